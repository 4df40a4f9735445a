"""Progress of work that takes longer than two seconds, or of unknown length, on standard error: count, bar and time left.

Commands also report to a pipe or a file, by a plain line every ten seconds. Nothing here starts a thread: the lines change when
work advances.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Literal, TypeVar

from nlp_retrieval.core.processes import Lock

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")

_AFTER = 2.0
"""Seconds of work before it is shown."""
_REDRAWN, _REPORTED = 0.1, 10.0
"""Seconds between two states of the line in a terminal, and between two plain lines."""

Advance = Callable[[int], object]
"""Called with the number of units done since the last call."""


class Display:
    """Shows the work in progress: ``auto`` in a terminal or notebook, ``lines`` also in a pipe or file, ``off`` nowhere."""

    def __init__(self) -> None:
        self.mode: Literal["auto", "lines", "off"] = "auto"
        self._bars: Progress | None = None
        self._last = 0.0
        self._lock = Lock()
        self._process = os.getpid()

    @contextmanager
    def work(self, what: str, total: int | None) -> Iterator[Advance]:
        """Show some work; arguments as of :func:`progress`."""
        silent = os.getpid() != self._process or sys.stderr is None or sys.stderr.closed  # a child's parent reports
        drawn = not silent and (sys.stderr.isatty() or "ipykernel" in sys.modules)
        if silent or self.mode == "off" or not (drawn or self.mode == "lines"):
            yield lambda _: None
            return
        done, begun, bars = 0, time.monotonic(), None
        if drawn:
            with self._lock:
                bars = self._bars = self._bars or _bars()
                task = bars.add_task(what, total=total)
                if total is None:  # it may not advance
                    with suppress(OSError, ValueError):
                        bars.start()

        def advance(n: int) -> None:
            nonlocal done
            with self._lock, suppress(OSError, ValueError):  # a terminal that is gone or a full disk must not end the work
                done += n
                if bars is not None:
                    bars.update(task, advance=n)
                now = time.monotonic()
                if now - begun < _AFTER or now - self._last < (_REDRAWN if drawn else _REPORTED):
                    return
                self._last = now
                if bars is not None:
                    bars.start()
                    bars.refresh()
                else:
                    sys.stderr.write(f"{what}: {done:,}" + (f" of {total:,}\n" if total else "\n"))
                    sys.stderr.flush()

        try:
            yield advance
        finally:
            if bars is not None:
                with self._lock:
                    bars.remove_task(task)
                    if not bars.tasks:
                        self.clear()
                        self._bars = None

    def clear(self) -> None:
        """Erase the lines, so that something else can be written."""
        if self._bars is not None and self._bars.live.is_started:
            with suppress(OSError, ValueError):
                self._bars.stop()


def _bars() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(16), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(
        *columns, console=Console(stderr=True), auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
    )


DISPLAY = Display()


def progress(what: str, total: int | None) -> AbstractContextManager[Advance]:
    """Show the progress of something, on standard error, once it has taken two seconds; a context manager.

    Of an unknown ``total`` a terminal or notebook shows it at once.

    Examples:
        >>> with progress("reading", total=len(items)) as advance:
        ...     for item in items:
        ...         advance(1)
    """
    return DISPLAY.work(what, total)


def tracked(what: str, batches: Iterable[list[T]], total: int | None) -> Iterator[list[T]]:
    """Yield batches, and show progress by the number of their members.

    Examples:
        >>> [len(batch) for batch in tracked("counting", [["a", "b"], ["c"]], total=3)]
        [2, 1]
    """
    with progress(what, total) as advance:
        for batch in batches:
            yield batch
            advance(len(batch))


def tracked_each(what: str, items: Sequence[T]) -> Iterator[T]:
    """Yield items one by one, and show progress by their number."""
    return (item for (item,) in tracked(what, ([item] for item in items), len(items)))
