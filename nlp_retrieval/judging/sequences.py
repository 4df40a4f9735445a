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
from nlp_retrieval.errors import ConfigurationError, GoldError, nearest
from nlp_retrieval.evaluation.resampling import family_numbers, family_sums
from nlp_retrieval.judging.estimates import query_values
from nlp_retrieval.judging.pool import JudgingPool

Verdict = Literal["better", "worse", "smaller than the margin", "open"]

_GRID = 501
_MOST = 0.75  # share of the stake that a single bet may lose
_ALPHA = 0.05


@dataclass(frozen=True)
class DifferenceVerdict:
    """What is decided about a difference, at any moment.

    Args:
        verdict: "better" or "worse" than the baseline, "smaller than the margin", or "open".
        value: mean difference so far; NaN before the first family.
        low: lower end of the sequence's present interval.
        high: upper end.
        families: judged completely.
        judgements: in them.
        more_judgements: about how many are still missing to a decision, if value and variance stay as they are; None if it is
            decided, nothing can be said, or the value is too near to the margin.
        reason: why it cannot be decided at all; empty if it can.

    Examples:
        >>> runs = {"a": {"q1": [("whale", 1.0)], "q2": [("fox", 1.0)]}, "b": {"q1": [("krill", 1.0)], "q2": [("fox", 1.0)]}}
        >>> decision = decide(JudgingProject.create("judging", queries, runs, items).pool(), "precision@1", "b", "a")
        >>> decision.verdict, decision.families
        ('open', 0)
    """

    verdict: Verdict
    value: float
    low: float
    high: float
    families: int
    judgements: int
    more_judgements: int | None = None
    reason: str = ""

    @property
    def decided(self) -> bool:
        """Return whether judging can stop."""
        return self.verdict != "open"


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
        measure: its name.
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
        >>> decide(JudgingProject.create("judging", queries, runs, items).pool(), "mrr@1", "b", "a", margin=0.02).decided
        False
    """
    if system not in pool.systems:
        raise ConfigurationError(f"the pool has no system {system!r}; {nearest(system, list(pool.systems))}")
    if system == baseline or not 0 <= margin < 1 or together < 1:
        raise ConfigurationError(
            f"system={system!r}, baseline={baseline!r}, margin={margin}, together={together}; take two systems, "
            "0 <= margin < 1, and 1 or more differences"
        )
    alpha = _ALPHA / together
    values = query_values(pool, measure, baseline)
    row = values.rows.index((system, baseline))
    numbers = family_numbers(pool.families)
    sizes = np.bincount(numbers).astype(np.float64)
    mean_size = sizes.mean()
    in_order = np.arange(len(numbers)) if order is None else np.asarray(order, np.int64)
    first_seen = list(dict.fromkeys(numbers[in_order].tolist()))
    complete = np.zeros(len(sizes), bool)
    complete[numbers[values.complete]] = True
    done = [family for family in first_seen if complete[family]]
    judged = int((values.complete[pool.pair_query] & pool.chosen & ~np.isnan(pool.grades)).sum())
    if values.reasons[row]:
        return DifferenceVerdict("open", math.nan, -1, 1, len(done), judged, reason=values.reasons[row])
    if values.is_ratio:
        return DifferenceVerdict("open", math.nan, -1, 1, len(done), judged, reason=_RATIO)
    by_family = family_sums(values.people[[row]], numbers)[0][done] / mean_size
    low, high = values.bounds[row] / mean_size
    if low == high:
        return DifferenceVerdict(
            "smaller than the margin" if margin > 0 else "open", 0.0, 0.0, 0.0, len(done), judged, reason=_SAME
        )
    if not done:
        return DifferenceVerdict("open", math.nan, max(-1.0, float(low)), min(1.0, float(high)), 0, 0)
    ends = confidence_sequence(by_family, (float(low), float(high)), alpha)
    low, high = ends[-1].tolist()
    value = float(by_family.mean())
    verdict: Verdict = "open"
    if low > 0 or high < 0:
        verdict = "better" if low > 0 else "worse"
    if -margin < low and high < margin:
        verdict = "smaller than the margin"
    more = None if verdict != "open" else _missing(by_family, value, margin, judged / len(done), alpha)
    return DifferenceVerdict(verdict, value, low, high, len(done), judged, more)


_RATIO = "the ratio of two sums changes with every judgement; ask for precision, or judge whole questions (depth-k)"
_SAME = "both systems have the same rankings as far as the measure looks"


def confidence_sequence(values: Sequence[float] | Scores, bounds: tuple[float, float], alpha: float = _ALPHA) -> Scores:
    """Return ``[values, 2]``, after each value the interval of the mean; all of them hold it with probability 1 - alpha.

    Nothing is assumed but the bounds, and that each value has the same mean, given those before it.

    Args:
        values: in the order of observation.
        bounds: the lowest and highest possible.
        alpha: probability that the sequence ever leaves the mean out.

    Raises:
        GoldError: a value is outside the bounds.

    Examples:
        >>> confidence_sequence([0.1] * 60, (-0.2, 0.2))[-1].round(2).tolist()
        [0.05, 0.13]
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


def _missing(values: Scores, value: float, margin: float, per_family: float, alpha: float) -> int | None:
    """About how many more judgements decide, if mean and variance stay as they are."""
    n = len(values)
    goal = max(abs(value), margin - abs(value))
    if n < 5 or goal <= 0:
        return None
    variance = float(values.var(ddof=1))
    needed = n
    while needed < 100_000 and math.sqrt(2 * variance * math.log(math.sqrt(needed) * 2 / alpha) / needed) > goal:
        needed = int(needed * 1.1) + 1
    return None if needed >= 100_000 else max(1, round((needed - n) * per_family))
