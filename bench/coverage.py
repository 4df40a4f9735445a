"""How often intervals hold what they are of, and how often the test calls a difference real where there is none.

Everything is drawn from known populations: shares, graded measures and differences of them, of few families and many, of one
size and of several; and per-query values of two BM25 rankings of HoVer's claims, families drawn with replacement. Beside the
package's intervals stand percentile intervals of resampled families (Efron, 1979), which most tools print.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bench.common import Data, Row, compared
from nlp_retrieval import BeirLoader, Bm25Retriever, HoverLoader, Searcher
from nlp_retrieval.evaluation.resampling import bootstrap_intervals, family_numbers, randomisation_test

_FAMILIES = (5, 10, 20, 50, 144, 1000)
_SIZES = {"1": [1], "2": [2], "5": [5], "1 to 8": [1, 1, 1, 2, 8], "1 to 30": [1] * 9 + [30]}
_TRIALS, _FEWER, _RESAMPLES = 1000, 300, 1000
_ALIKE = 0.3  # correlation of the queries of a family
_LEAST = 0.93  # what is below in a thousand trials is not chance, where 0.95 is true and the worst of a hundred is taken
_OF_A_MEASURE, _OF_A_DIFFERENCE = (0.0, 1.0), (-1.0, 1.0)

Values = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, NDArray[np.int64]], Values]
"""``[trials, queries]``, drawn for as many trials and for families of these sizes."""


def measure(data: Data) -> list[Row]:
    """Coverage of the intervals by the number of families, then error rates of the test."""
    rows = []
    for what, bounds, populations in (("means", _OF_A_MEASURE, _measures()), ("differences", _OF_A_DIFFERENCE, _differences())):
        for families in _FAMILIES:
            cells = {
                f"{name}, sizes {sizes}": _cell(mean, bounds, draw, families, _SIZES[sizes])
                for name, (mean, draw) in populations.items()
                for sizes in _SIZES
            }
            rows.append(_coverage(f"intervals of {what}, {families:,} families", cells))
    values, numbers = _hover(data)
    of_differences = values[1::2] - values[::2]
    for what, of_queries, bounds in (("means", values, _OF_A_MEASURE), ("differences", of_differences, _OF_A_DIFFERENCE)):
        for families in (5, 20, 144):
            cells = {f"{number}": _resampled(row, numbers, families, bounds) for number, row in enumerate(of_queries)}
            rows.append(_coverage(f"intervals of {what} of BM25 on HoVer's claims, {families} families of them", cells))
    return [*rows, *(_errors(name, draw, symmetric) for name, (draw, symmetric) in _nulls().items())]


def _measures() -> dict[str, tuple[float, Draw]]:
    found: dict[str, tuple[float, Draw]] = {}
    for mean in (0.5, 0.8, 0.9, 0.95, 0.99):
        found[f"shares of {mean:g}"] = mean, partial(_shares, mean)
        found[f"thirds of {mean:g}"] = mean, partial(_graded, mean, 3)
        found[f"grades of {mean:g}"] = mean, partial(_graded, mean, None)
    return found


def _differences() -> dict[str, tuple[float, Draw]]:
    mixed: dict[str, tuple[list[float], list[float]]] = {
        "lost 10%, won 10%": ([-1, 0, 1], [0.1, 0.8, 0.1]),
        "lost 2%, won 20%": ([-1, 0, 1], [0.02, 0.78, 0.2]),
        "lost 1%, won 2%": ([-1, 0, 1], [0.01, 0.97, 0.02]),
        "halves": ([-1, -0.5, 0, 0.5, 1], [0.02, 0.1, 0.6, 0.2, 0.08]),
        "small gains, large losses": ([-0.5, 0.1], [1 / 6, 5 / 6]),
        "smaller gains, rarer losses": ([-0.95, 0.05], [0.05, 0.95]),
    }
    return {name: (float(np.dot(*one)), partial(_mixed, *one)) for name, one in mixed.items()}


def _nulls() -> dict[str, tuple[Draw, bool]]:
    """Differences whose mean is 0: as likely of either sign, and not."""
    return {
        "normal": (lambda draw, trials, sizes: draw.normal(size=(trials, sizes.sum())), True),
        "lost 10%, won 10%": (partial(_mixed, [-1, 0, 1], [0.1, 0.8, 0.1]), True),
        "thirds": (partial(_mixed, [-2 / 3, -1 / 3, 0, 1 / 3, 2 / 3], [0.1, 0.2, 0.4, 0.2, 0.1]), True),
        "exponential": (lambda draw, trials, sizes: draw.exponential(size=(trials, sizes.sum())) - 1, False),
        "gains of 0, 0.33 and losses of 0.67": (partial(_mixed, [-2 / 3, 0, 1 / 3], [0.2, 0.4, 0.4]), False),
        "gains of 0.1 and losses of 0.5": (partial(_mixed, [-0.5, 0.1], [1 / 6, 5 / 6]), False),
        "gains of 0.05 and losses of 0.95": (partial(_mixed, [-0.95, 0.05], [0.05, 0.95]), False),
    }


def _rates(draw: np.random.Generator, mean: float, trials: int, sizes: NDArray[np.int64]) -> Values:
    """Of each query, how likely it succeeds: alike in a family."""
    concentration = 1 / _ALIKE - 1
    of_families = draw.beta(mean * concentration, (1 - mean) * concentration, (trials, len(sizes)))
    return np.repeat(of_families, sizes, axis=1)


def _shares(mean: float, draw: np.random.Generator, trials: int, sizes: NDArray[np.int64]) -> Values:
    return (draw.random((trials, sizes.sum())) < _rates(draw, mean, trials, sizes)).astype(float)


def _graded(mean: float, steps: int | None, draw: np.random.Generator, trials: int, sizes: NDArray[np.int64]) -> Values:
    rates = _rates(draw, mean, trials, sizes)
    if steps is not None:
        return draw.binomial(steps, rates) / steps
    rates = np.clip(rates, 1e-6, 1 - 1e-6)
    return draw.beta(20 * rates, 20 * (1 - rates))


def _mixed(
    kinds: Sequence[float], chances: Sequence[float], draw: np.random.Generator, trials: int, sizes: NDArray[np.int64]
) -> Values:
    own = draw.choice(kinds, (trials, sizes.sum()), p=chances)
    of_families = np.repeat(draw.choice(kinds, (trials, len(sizes)), p=chances), sizes, axis=1)
    return np.where(draw.random(own.shape) < _ALIKE, of_families, own)


def _cell(mean: float, bounds: tuple[float, float], population: Draw, families: int, kinds: Sequence[int]) -> Values:
    draw = np.random.default_rng(families)
    trials = _FEWER if families > 144 else _TRIALS
    blocks = 1 if len(kinds) == 1 else 5 if families > 144 else 10  # of trials with the same sizes
    parts = []
    for _ in range(blocks):
        chosen = draw.choice(kinds, families)
        values = population(draw, trials // blocks, chosen)
        parts.append(_judged(values, np.repeat(np.arange(families), chosen), bounds, mean))
    return np.mean(parts, axis=0)


def _judged(values: Values, numbers: NDArray[np.int64], bounds: tuple[float, float], mean: float) -> list[float]:
    """Share of ours that hold the mean, their width, both of percentile intervals, and the share of ours that are points."""
    ours = bootstrap_intervals(values, list(map(str, numbers)), resamples=_RESAMPLES, bounds=np.array([bounds])).T
    found = []
    for low, high in (ours, _percentile(values, numbers)):
        found += [float(((low <= mean + 1e-9) & (mean - 1e-9 <= high)).mean()), float((high - low).mean())]
    return [*found, float((ours[1] - ours[0] < 1e-9).mean())]


def _percentile(values: Values, numbers: NDArray[np.int64]) -> Values:
    """``[2, trials]``, the percentile interval of families drawn with replacement."""
    sizes = np.bincount(numbers)
    sums = np.stack([np.bincount(numbers, row) for row in values])
    drawn = np.random.default_rng(0).integers(len(sizes), size=(_RESAMPLES, len(sizes)))
    times = np.stack([np.bincount(row, minlength=len(sizes)) for row in drawn]).astype(np.float64)
    found: Values = np.quantile((times @ sums.T) / (times @ sizes)[:, None], [0.025, 0.975], axis=0)
    return found


def _hover(data: Data) -> tuple[Values, NDArray[np.int64]]:
    """``[measures, queries]`` of two rankings in turn, and the family of each query."""
    searchers = {"short": Searcher([Bm25Retriever(k1=0.9, b=0.4)]), "long": Searcher([Bm25Retriever(k1=2.0, b=1.0)])}
    run = compared(searchers, BeirLoader(str(data.corpus)), HoverLoader(data.claims), (5, 20), data.work / "coverage-index")
    names = ("recall@5", "perfect_recall@5", "ndcg@5", "recall@20", "perfect_recall@20", "mrr@20")
    values = np.stack([run.per_query[system][name] for name in names for system in searchers])
    return values, family_numbers(run.families)


def _resampled(values: Values, numbers: NDArray[np.int64], families: int, bounds: tuple[float, float]) -> Values:
    draw = np.random.default_rng(families)
    members = [np.flatnonzero(numbers == number) for number in range(numbers.max() + 1)]
    parts = []
    for _ in range(_FEWER):
        chosen = [members[number] for number in draw.integers(0, len(members), families)]
        drawn = np.repeat(np.arange(families), [len(one) for one in chosen])
        parts.append(_judged(values[np.concatenate(chosen)][None], drawn, bounds, float(values.mean())))
    return np.mean(parts, axis=0)


def _coverage(what: str, cells: dict[str, Values]) -> Row:
    held, width, theirs, their_width, points = np.stack(list(cells.values())).T
    worst = int(held.argmin())
    about = f" ({list(cells)[worst]})" if "sizes" in list(cells)[worst] else ""
    are_points = f", {points.max():.1%} are points" if points.any() else ""
    measured = (
        f"{held.mean():.1%} hold it, of the worst of {len(cells)} populations {held[worst]:.1%}{about}; mean width "
        f"{width.mean():.3f}{are_points}. Percentile: {theirs.mean():.1%}, worst {theirs.min():.1%}, width "
        f"{their_width.mean():.3f}"
    )
    return Row(what, f"95%; at least {_LEAST:.0%} in each", measured, bool(held[worst] >= _LEAST and not points.any()))


def _errors(name: str, null: Draw, symmetric: bool) -> Row:
    """How often p is at most 0.05 where the mean of the differences is 0, by the number of families."""
    rates: dict[int, list[str]] = {1: [], 3: []}
    worst = 0.0
    for families in (10, 20, 50, 144):
        for size, shown in rates.items():
            values = null(np.random.default_rng(families), 2 * _TRIALS, np.full(families, size))
            names = [str(place // size) for place in range(families * size)]
            rate = float((randomisation_test(values, names, 1023).p <= 0.05).mean())
            shown.append(f"{families} {rate:.1%}")
            worst = max(worst, rate)
    return Row(
        f"test at 0.05 where nothing differs: {name} ({'as likely of either sign' if symmetric else 'skewed, mean 0'})",
        "at most 6.5%" if symmetric else "-",
        f"of 10 to 144 queries: {', '.join(rates[1])}; of families of three: {', '.join(rates[3])}",
        worst <= 0.065 if symmetric else None,
    )
