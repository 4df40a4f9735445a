"""Progress of work that takes longer than two seconds, or of unknown length, on standard error: count, bar and time left.

A terminal or a notebook shows one line for each work under way, which is erased at its end. Commands also report to a pipe or a
file, by a plain line every ten seconds; Python does not, so that a program that uses this library writes nothing of its own.
Nothing here starts a thread: the lines change when work advances.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
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


def _ignore(n: int) -> None:
    del n


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
        if self.mode == "off" or _hidden.get() or os.getpid() != self._process or sys.stderr is None or sys.stderr.closed:
            yield _ignore  # a forked child is silent: its parent reports
        elif sys.stderr.isatty() or "ipykernel" in sys.modules:
            with self._bar(what, total) as advance:
                yield advance
        else:
            yield self._line(what, total) if self.mode == "lines" else _ignore

    def clear(self) -> None:
        """Erase the lines, so that something else can be written."""
        if self._bars is not None:
            with suppress(OSError, ValueError):
                self._bars.stop()

    @contextmanager
    def _bar(self, what: str, total: int | None) -> Iterator[Advance]:
        with self._lock:
            bars = self._bars = self._bars or _bars()
            task, begun = bars.add_task(what, total=total), time.monotonic()
            if total is None:  # it may not advance
                with suppress(OSError, ValueError):
                    bars.start()

        def advance(n: int) -> None:
            with self._lock, suppress(OSError, ValueError):  # a terminal that is gone must not end the work
                bars.update(task, advance=n)
                if (now := time.monotonic()) - begun >= _AFTER and now - self._last >= _REDRAWN:
                    self._last = now
                    bars.start()
                    bars.refresh()

        try:
            yield advance
        finally:
            with self._lock:
                bars.remove_task(task)
                if not bars.tasks:
                    self.clear()
                    self._bars = None

    def _line(self, what: str, total: int | None) -> Advance:
        done, begun = 0, time.monotonic()
        of = "" if total is None else f" of {total:,}"

        def advance(n: int) -> None:
            nonlocal done
            with self._lock, suppress(OSError, ValueError):  # a full disk must not end the work
                done += n
                if (now := time.monotonic()) - begun >= _AFTER and now - self._last >= _REPORTED:
                    self._last = now
                    sys.stderr.write(f"{what}: {done:,}{of}\n")
                    sys.stderr.flush()

        return advance


def _bars() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        *(TextColumn("{task.description}"), BarColumn(16), MofNCompleteColumn(), TimeRemainingColumn()),
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


_hidden: ContextVar[bool] = ContextVar("hidden", default=False)
DISPLAY = Display()


def progress(what: str, total: int | None) -> AbstractContextManager[Advance]:
    """Show the progress of something, on standard error, once it has taken two seconds; a context manager.

    Args:
        what: name of the operation ("encoding").
        total: number of units; None if unknown, and then a terminal or notebook shows it at once.

    Examples:
        >>> with progress("reading", total=len(items)) as advance:
        ...     for item in items:
        ...         advance(1)
    """
    return DISPLAY.work(what, total)


@contextmanager
def hidden_progress() -> Iterator[None]:
    """Show no progress of the work inside the block.

    Examples:
        >>> with hidden_progress():
        ...     batches = list(tracked("counting", [["a"]], total=1))
    """
    token = _hidden.set(True)
    try:
        yield
    finally:
        _hidden.reset(token)


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


def tracked_each(what: str, items: Sequence[T]) -> Iterator[T]:
    """Yield items one by one, and show progress by their number."""
    return (item for (item,) in tracked(what, ([item] for item in items), len(items)))
