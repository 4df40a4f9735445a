"""Progress bars for operations longer than a second; silent if standard error is not a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

T = TypeVar("T")


class Advance(Protocol):
    """Called with the number of units done since the last call."""

    def __call__(self, n: int) -> None:
        """Advance by ``n``."""


def _ignore(n: int) -> None:
    del n


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Advance]:
    """Show the progress of something, on standard error, once it has taken a second.

    Args:
        what: name of the operation ("encoding").
        total: number of units; None if unknown.

    Examples:
        >>> with progress("reading", total=len(items)) as advance:
        ...     for item in items:
        ...         advance(1)
    """
    if not sys.stderr.isatty():
        yield _ignore
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(what, total=total)
    begin, shown = time.perf_counter(), False

    def advance(n: int) -> None:
        nonlocal shown
        bar.advance(task, n)
        if not shown and time.perf_counter() - begin > 1.0:
            bar.start()
            shown = True

    try:
        yield advance
    finally:
        if shown:
            bar.stop()


def tracked(what: str, batches: Iterable[list[T]], total: int) -> Iterator[list[T]]:
    """Yield batches, and show progress by the number of their members.

    Examples:
        >>> [len(batch) for batch in tracked("counting", [["a", "b"], ["c"]], total=3)]
        [2, 1]
    """
    with progress(what, total) as advance:
        for batch in batches:
            yield batch
            advance(len(batch))
