"""Reports of a broken rule: the rule, the component, and the values that broke it; and the comparison of results."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NoReturn, TypeVar

from nlp_retrieval.core.models import RetrievalResult
from nlp_retrieval.errors import RetrievalWarning

_SHOWN = 600
_THREADS = 8
_ROUNDS = 4

ResultT = TypeVar("ResultT")


class BrokenRuleError(AssertionError):
    """A component broke a rule; the message names the rule, the component and the values."""


def broken(rule: str, component: object, found: str) -> NoReturn:
    """Report a broken rule.

    Args:
        rule: the expected behaviour, as one sentence.
        component: the component that broke it.
        found: the actual behaviour, with the values.

    Raises:
        BrokenRuleError: always.
    """
    __tracebackhide__ = True
    raise BrokenRuleError(f"rule broken: {rule}\n  component: {component!r}\n  found: {found}")


def shown(value: object) -> str:
    """Return a value's ``repr``, truncated if it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text):,} characters)"


def ids_of(results: Sequence[RetrievalResult]) -> list[str]:
    """Return the item ids of results, in order."""
    return [result.item.item_id for result in results]


def pairs_of(results: Sequence[RetrievalResult]) -> list[tuple[str, float]]:
    """Return item id and score of results, in order."""
    return [(result.item.item_id, result.score) for result in results]


def close(one: float, other: float, tolerance: float) -> bool:
    """Return whether two scores are equal within a tolerance: relative if they are above 1, absolute below."""
    return one == other or abs(one - other) <= tolerance * max(1.0, abs(one), abs(other))


def difference(one: Sequence[RetrievalResult], other: Sequence[RetrievalResult], tolerance: float) -> str | None:
    """Return how two lists differ; None if they do not.

    The items are the same, their scores differ by at most the tolerance, and the order differs only where scores are that
    close.
    """
    mine, its = dict(pairs_of(one)), dict(pairs_of(other))
    if mine.keys() != its.keys() or len(one) != len(other):
        return f"{shown(pairs_of(one))} against {shown(pairs_of(other))}"
    for item_id, score in mine.items():
        if not close(score, its[item_id], tolerance):
            return f"{item_id!r} scored {score!r} against {its[item_id]!r} (tolerance {tolerance:g})"
    for left, right in zip(ids_of(one), ids_of(other), strict=True):
        if left != right and not (tolerance and close(mine[left], mine[right], 2 * tolerance)):
            return f"{left!r} stands where {right!r} stood: {shown(pairs_of(one))} against {shown(pairs_of(other))}"
    return None


@contextmanager
def without_warnings() -> Iterator[None]:
    """Ignore warnings about skipped texts and items: these have their own rules.

    Warning filters are global to the process, so threads other than the main one leave them unchanged.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)
        yield


def in_threads(calls: Sequence[Callable[[], ResultT]]) -> Iterator[tuple[int, ResultT]]:
    """Make different calls in eight threads that run at once, each call several times.

    Yields:
        The number of a call, and its result.
    """
    with without_warnings(), ThreadPoolExecutor(_THREADS) as pool:
        runs = [(number, pool.submit(call)) for _ in range(_ROUNDS) for number, call in enumerate(calls)]
        for number, run in runs:
            yield number, run.result()
