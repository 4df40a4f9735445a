"""Figures of verdicts, with intervals by resampling whole families."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.evaluation.resampling import family_numbers
from nlp_retrieval.systems.evidence.verifiers.fitting import auc

_RESAMPLES = 1000

Figure = Callable[[NDArray[np.int64]], float]


def f1_by_label(labels: Sequence[str], calls: Sequence[str]) -> dict[str, Figure]:
    """Macro-F1 and the F1 of each label, as figures of rows."""
    names = sorted(set(labels))
    true = np.array([names.index(label) for label in labels])
    called = np.array([names.index(call) if call in names else -1 for call in calls])

    def one(number: int) -> Figure:
        def figure(rows: NDArray[np.int64]) -> float:
            right = np.sum((true[rows] == number) & (called[rows] == number))
            both = np.sum(true[rows] == number) + np.sum(called[rows] == number)
            return 2 * right / both if both else 0.0

        return figure

    each = {name: one(number) for number, name in enumerate(names)}
    return {"macro-F1": lambda rows: float(np.mean([figure(rows) for figure in each.values()])), **each}


def auc_of(scores: NDArray[np.float64], labels: Sequence[str], against: Sequence[str]) -> Figure:
    """The chance that a supported row has a higher score than one with one of the labels ``against``."""
    supported = np.array([label == "support" for label in labels])
    opposed = np.array([label in against for label in labels])

    def figure(rows: NDArray[np.int64]) -> float:
        some = rows[supported[rows] | opposed[rows]]
        return auc(scores[some], supported[some])

    return figure


def mean_of(values: Sequence[float]) -> Figure:
    """The mean of a value over rows."""
    array = np.asarray(values, np.float64)
    return lambda rows: float(array[rows].mean()) if len(rows) else float("nan")


def with_interval(figure: Figure, families: Sequence[Any]) -> str:
    """A figure over all rows, and its 95% interval over families, as text."""
    numbers = family_numbers(list(families))
    members = [np.flatnonzero(numbers == number) for number in range(numbers.max() + 1)]
    rng = np.random.default_rng(0)
    drawn = [
        figure(np.concatenate([members[number] for number in rng.integers(0, len(members), len(members))]))
        for _ in range(_RESAMPLES)
    ]
    low, high = np.nanpercentile(drawn, [2.5, 97.5])
    return f"{figure(np.arange(len(numbers))):.3f} [{low:.2f}, {high:.2f}]"


def said_and_seen(said: NDArray[np.float64], supported: NDArray[np.bool_]) -> tuple[dict[str, list[str]], float]:
    """Rows of a table by what probability of support was said, and the expected calibration error.

    A row: how many, the mean that was said, the share that is supported, and this as a bar.
    """
    bins = np.minimum((said * 10).astype(np.int64), 9)
    rows: dict[str, list[str]] = {}
    error = 0.0
    for number in range(10):
        some = bins == number
        if not some.any():
            continue
        mean, share = float(said[some].mean()), float(supported[some].mean())
        error += float(some.mean()) * abs(mean - share)
        name = f"{number / 10:.1f} to {(number + 1) / 10:.1f}"
        rows[name] = [f"{int(some.sum()):,}", f"{mean:.2f}", f"{share:.2f}", f"`{'=' * round(20 * share):<20}`"]
    return rows, error
