"""Until decided: intervals of a difference that hold at every look, so that judging may stop as soon as the answer is known.

An interval at 95% that one looks at after every question is wrong far more often than in 5% of cases. A confidence sequence is
not: with probability 95%, all its intervals hold the truth. These are the hedged bets of Waudby-Smith and Ramdas (JRSS B 2024,
https://arxiv.org/abs/2010.09686): somebody who bets against a mean that is true hardly ever wins twenty- to fortyfold.

Families of questions are assumed to be judged in a random order, and no difference of a family to be larger than the
rankings of the pool allow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.errors import ConfigurationError, GoldError
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.evaluation.resampling import family_numbers, family_sums
from nlp_retrieval.judging.pool import JudgingPool, is_sum, known_system, pair_weights, values_by_query, why_unknown

Verdict = Literal["better", "worse", "smaller than the margin", "open"]

_GRID = 501
_MOST = 0.75  # share of the stake that a single bet may lose
_ALPHA = 0.05
_FEWEST = 5
_FARTHEST = 3_000
SAME_RANKINGS = "both systems have the same rankings as far as the measure looks"


@dataclass(frozen=True)
class DifferenceVerdict:
    """What is decided about a difference, at any moment.

    Args:
        system: the system.
        baseline: that it is compared with.
        verdict: "better" or "worse" than the baseline, "smaller than the margin", or "open".
        value: mean difference so far; None before the first family, or if it cannot be known.
        low: lower end of the sequence's present interval.
        high: upper end.
        families: judged completely.
        judgements: in them.
        more_families: about how many are still missing to a decision, if further ones are like these; None if it is decided,
            fewer than five are judged, or even thousands would not do.
        reason: why it cannot be decided at all; empty if it can.

    Examples:
        >>> runs = {"a": {"q1": [("whale", 1.0)], "q2": [("fox", 1.0)]}, "b": {"q1": [("krill", 1.0)], "q2": [("fox", 1.0)]}}
        >>> decision = decide(JudgingProject.create("judging", queries, runs, items).pool(), "precision@1", "b", "a")
        >>> decision.verdict, decision.families
        ('open', 0)
    """

    system: str
    baseline: str
    verdict: Verdict
    value: float | None
    low: float
    high: float
    families: int
    judgements: int
    more_families: int | None = None
    reason: str = ""


def decide(
    pool: JudgingPool,
    measure: str,
    system: str,
    baseline: str,
    *,
    margin: float = 0.0,
    order: Sequence[int] | None = None,
    together: int = 1,
) -> DifferenceVerdict:
    """Return whether a difference is decided by people's judgements so far, however often one asks.

    Args:
        pool: judged in part.
        measure: its name. Recall and nDCG take the pool as all that is relevant.
        system: the system.
        baseline: that it is compared with.
        margin: a smaller difference does not matter; 0 if every one does.
        order: numbers of queries in the order of judging, a random one of families; None takes that of the pool. Later calls
            must keep it.
        together: number of differences about which something is said. With probability 95%, all of their sequences together
            hold the truth: each has 1 - 0.05 / together (Bonferroni).

    Raises:
        ConfigurationError: a name does not exist, the margin is below 0, or ``together`` below 1.

    Examples:
        >>> runs = {"a": {"q1": [("whale", 1.0)]}, "b": {"q1": [("krill", 1.0)]}}
        >>> decide(JudgingProject.create("judging", queries, runs, items).pool(), "mrr@1", "b", "a", margin=0.02).verdict
        'open'
    """
    known_system(pool, system)
    known_system(pool, baseline)
    if system == baseline or not 0 <= margin < 1 or together < 1:
        raise ConfigurationError(
            f"system={system!r}, baseline={baseline!r}, margin={margin}, together={together}; take two systems, "
            "0 <= margin < 1, and 1 or more differences"
        )
    complete = pool.complete
    judgements = int((complete[pool.pair_query] & pool.chosen & pool.judged).sum())
    numbers = family_numbers(pool.families)
    in_order = np.arange(len(numbers)) if order is None else np.asarray(order, np.int64)
    done = list(dict.fromkeys(numbers[in_order][complete[in_order]].tolist()))
    if reason := why_unknown(pool, measure, system, baseline):
        return DifferenceVerdict(system, baseline, "open", None, -1, 1, len(done), judgements, reason=reason)
    values, lowest, highest = values_by_family(pool, measure, system, baseline)
    if lowest == highest:
        verdict: Verdict = "smaller than the margin" if margin > 0 else "open"
        return DifferenceVerdict(system, baseline, verdict, 0.0, 0.0, 0.0, len(done), judgements, reason=SAME_RANKINGS)
    if not done:
        return DifferenceVerdict(system, baseline, "open", None, max(-1.0, lowest), min(1.0, highest), 0, 0)
    alpha, bounds = _ALPHA / together, (lowest, highest)
    low, high = confidence_sequence(values[done], bounds, alpha)[-1].tolist()
    verdict = _verdict(low, high, margin)
    more = _families_missing(values[done], bounds, alpha, margin) if verdict == "open" else None
    value = float(values[done].mean())
    return DifferenceVerdict(system, baseline, verdict, value, low, high, len(done), judgements, more)


def families_to_decide(
    pool: JudgingPool, measure: str, system: str, baseline: str, difference: float, together: int = 1
) -> int | None:
    """Return about how many families of questions it takes to decide a difference in precision@k, before anybody judges.

    Half of the pairs that one system alone finds are taken to be relevant, shifted so far that the difference comes out. None
    if thousands do not do, or the rankings are too alike for such a difference.
    """
    weights = pair_weights(pool, measure, system) - pair_weights(pool, measure, baseline)
    reach = np.abs(weights).sum() / len(pool.query_ids)
    if 2 * difference > reach:
        return None
    draw = np.random.default_rng(0)
    chance = 0.5 + difference / reach * np.sign(weights)
    numbers = family_numbers(pool.families)
    sizes = np.bincount(numbers)
    _, lowest, highest = values_by_family(pool, measure, system, baseline)
    values: list[Scores] = []
    while len(values) * len(sizes) < _FARTHEST:
        sums = np.bincount(numbers[pool.pair_query], weights * (draw.random(len(weights)) < chance), len(sizes))
        values.append(draw.permutation(sums / sizes.mean()))
    return _first_decided(np.concatenate(values)[:_FARTHEST], (lowest, highest), _ALPHA / together, 0.0)


def confidence_sequence(values: Sequence[float] | Scores, bounds: tuple[float, float], alpha: float = _ALPHA) -> Scores:
    """Return ``[values, 2]``, after each value the interval of the mean; all of them hold it with probability 1 - alpha.

    Values are in random order. A GoldError says that one is outside the bounds, the least and the greatest possible value.
    """
    lowest, highest = bounds
    span = highest - lowest
    scaled = (np.asarray(values, np.float64) - lowest) / span if span > 0 else np.zeros(0)
    if not span > 0 or scaled.min(initial=0) < -1e-9 or scaled.max(initial=1) > 1 + 1e-9:
        raise GoldError(
            f"values between {np.min(values, initial=np.inf):g} and {np.max(values, initial=-np.inf):g} are not within {bounds}"
        )
    count = np.arange(1, len(scaled) + 1)
    mean = (0.5 + np.cumsum(scaled)) / (count + 1)
    variance = (0.25 + np.cumsum((scaled - mean) ** 2)) / (count + 1)
    before = np.concatenate([[0.25], variance[:-1]])  # a bet is made before its value is known
    bet = np.sqrt(2 * math.log(2 / alpha) / (before * count * np.log1p(count)))
    grid = np.linspace(0, 1, _GRID)
    gain = scaled[:, None] - grid
    up = np.minimum(bet[:, None], _MOST / np.maximum(grid, 1e-12))
    down = np.minimum(bet[:, None], _MOST / np.maximum(1 - grid, 1e-12))
    won = np.maximum(np.cumsum(np.log1p(up * gain), axis=0), np.cumsum(np.log1p(-down * gain), axis=0)) + math.log(0.5)
    possible = np.maximum.accumulate(won, axis=0) < math.log(1 / alpha)
    any_left = possible.any(axis=1)
    step = 1 / (_GRID - 1)  # to the next value of the grid that is excluded
    first = np.maximum(possible.argmax(axis=1) - 1, 0) * step
    last = np.minimum(_GRID - possible[:, ::-1].argmax(axis=1), _GRID - 1) * step
    nearest_mean = np.clip(scaled.cumsum() / count, 0, 1)
    ends: Scores = np.stack([np.where(any_left, first, nearest_mean), np.where(any_left, last, nearest_mean)], axis=1)
    return ends * span + lowest


def _verdict(low: float, high: float, margin: float) -> Verdict:
    if -margin < low and high < margin:
        return "smaller than the margin"
    return "better" if low > 0 else "worse" if high < 0 else "open"


def _families_missing(values: Scores, bounds: tuple[float, float], alpha: float, margin: float) -> int | None:
    """Return about how many more families decide: the sequence goes on with those judged so far, again and again."""
    if len(values) < _FEWEST:
        return None
    rest = np.random.default_rng(0).choice(values, _FARTHEST)
    rest += values.mean() - rest.mean()  # drawn values have another mean by chance
    first = _first_decided(np.concatenate([values, np.clip(rest, *bounds)])[:_FARTHEST], bounds, alpha, margin)
    return None if first is None else max(1, first - len(values))


def _first_decided(values: Scores, bounds: tuple[float, float], alpha: float, margin: float) -> int | None:
    """Return after how many values there is a verdict; None if there is none."""
    for count in (len(values) // 25, len(values) // 5, len(values)):  # most are decided early
        ends = confidence_sequence(values[:count], bounds, alpha)
        for number, (low, high) in enumerate(ends.tolist(), start=1):
            if _verdict(low, high, margin) != "open":
                return number
    return None


def values_by_family(pool: JudgingPool, measure: str, system: str, baseline: str) -> tuple[Scores, float, float]:
    """Return ``[families]``, the difference of each, and the lowest and highest that the rankings of the pool allow.

    Sums over a family are divided by the mean size of families, so that their mean is that over questions.
    """
    numbers = family_numbers(pool.families)
    mean_size = float(np.bincount(numbers).mean())
    if is_sum(measure):
        weights = pair_weights(pool, measure, system) - pair_weights(pool, measure, baseline)
        weights = np.where(np.abs(weights) < 1e-12, 0, weights)
        rows = [weights * pool.relevant, np.minimum(weights, 0), np.maximum(weights, 0)]
        by_query: Scores = np.stack([np.bincount(pool.pair_query, row, len(pool.query_ids)) for row in rows])
    else:
        values, reach = (
            values_by_query(pool, measure, [system, baseline]),
            _reach(pool, system, baseline, Measure.read(measure)),
        )
        by_query = np.stack([values[system] - values[baseline], -reach, reach])
    values_of, low, high = family_sums(by_query, numbers) / mean_size
    return values_of, float(low.min()), float(high.max())


def _reach(pool: JudgingPool, system: str, baseline: str, measure: Measure) -> Scores:
    """``[queries]``, how far the difference of two systems can be from 0 by the rankings."""
    cut = slice(None, measure.cutoff)
    reach = np.empty(len(pool.query_ids))
    for query, (one, other) in enumerate(zip(pool.systems[system], pool.systems[baseline], strict=True)):
        first, second = one[cut].tolist(), other[cut].tolist()
        if measure.family in ("recall", "perfect_recall", "f1"):
            reach[query] = set(first) != set(second)
            continue
        same = next((n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second)))
        reach[query] = 0 if first == second else 1 / (same + 1) if measure.family == "mrr" else 1
    return reach
