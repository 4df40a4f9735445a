"""Progress of work that takes longer than two seconds, on standard error: one line with count, rate and time left.

In a terminal and a notebook the line is written over itself, and erased at the end. Commands also report to a pipe or a file,
by a plain line every ten seconds; Python does not, so that a program that uses this library writes nothing of its own. Work
inside other work ("7 of 25 configurations") shares the line. Nothing here starts a thread: the line changes when work advances.
"""

from __future__ import annotations

import builtins
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Literal, Protocol, TextIO, TypeVar

from nlp_retrieval.core.processes import Lock

T = TypeVar("T")

_AFTER = 2.0
"""Seconds of work before it is shown."""
_REDRAWN, _REPORTED = 0.1, 10.0
"""Seconds between two states of the line in a terminal, and between two plain lines."""
_BAR = 16

Mode = Literal["auto", "lines", "off"]
AtOnce = Literal["", "terminal", "everywhere"]


class Advance(Protocol):
    """Called with the number of units done since the last call."""

    def __call__(self, n: int) -> None:
        """Advance by ``n``."""


def _ignore(n: int) -> None:
    del n


class _Work:
    def __init__(self, what: str, total: int | None, begun: float) -> None:
        self.what, self.total, self.begun, self.done = what, total, begun, 0

    def count(self) -> str:
        return f"{self.done:,} of {self.total:,}" if self.total is not None else f"{self.done:,}"

    def pace(self, now: float) -> str:
        """The rate, and the time left."""
        seconds = now - self.begun
        if not self.done or seconds <= 0:
            return ""
        rate = self.done / seconds
        shown = f"{rate:,.0f}/s" if rate >= 9.95 else f"{rate:.1f}/s" if rate >= 0.1 else f"{1 / rate:,.0f} s each"
        if self.total is None or self.done > self.total:
            return f", {shown}"
        return f", {shown}, {clock_time((self.total - self.done) / rate)} left"

    def bar(self) -> str:
        if not self.total:
            return ""
        filled = min(_BAR, _BAR * self.done // self.total)
        return f"[{'#' * filled}{'-' * (_BAR - filled)}] "


class Display:
    """Shows the work in progress.

    Args:
        clock: returns seconds; for tests.
        stream: returns the stream to write to; by default standard error at the time.
        mode: ``auto`` shows work in a terminal or notebook, ``lines`` also in a pipe or file, ``off`` nowhere.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        stream: Callable[[], TextIO] = lambda: sys.stderr,
        mode: Mode = "auto",
    ) -> None:
        self.mode: Mode = mode
        self._clock, self._stream = clock, stream
        self._works: list[_Work] = []
        self._shown = 0
        self._last = -_REPORTED
        self._lock = Lock()
        self._process = os.getpid()

    @contextmanager
    def work(self, what: str, total: int | None, *, at_once: AtOnce = "") -> Iterator[Advance]:
        """Show some work; arguments as of :func:`progress`."""
        kind = self._kind()
        if kind == "none":
            yield _ignore
            return
        work = _Work(what, total, self._clock())
        with self._lock:
            self._works.append(work)
            if at_once == "everywhere" or (at_once and kind == "line"):
                self._show(work, kind)

        def advance(n: int) -> None:
            with self._lock:
                work.done += n
                now = self._clock()
                begun = self._works[0].begun if kind == "line" and self._works else work.begun
                if now - begun >= _AFTER and now - self._last >= (_REDRAWN if kind == "line" else _REPORTED):
                    self._show(work, kind)

        try:
            yield advance
        finally:
            with self._lock:
                self._works.remove(work)
                self.clear()

    def clear(self) -> None:
        """Erase the line, so that something else can be written."""
        if self._shown:
            self._write("\r" + " " * self._shown + "\r")
            self._shown = 0

    def _kind(self) -> Literal["line", "plain", "none"]:
        """How work is shown here; never by a forked child, whose parent reports."""
        if self.mode == "off" or _hidden.get() or os.getpid() != self._process:
            return "none"
        stream = self._stream()
        if stream is None or stream.closed:
            return "none"
        if stream.isatty() or in_notebook():
            return "line"
        return "plain" if self.mode == "lines" else "none"

    def _show(self, work: _Work, kind: str) -> None:
        now = self._last = self._clock()
        above = [f"{other.count()} {other.what}" for other in self._works if other is not work and other.total and other.done]
        count = f": {work.count()}{work.pace(now)}" if work.done or work.total else " ..."
        parts = [*above[:1], f"{work.what}{count}"]
        if kind == "plain":
            self._write(" | ".join(parts) + "\n")
            return
        width = shutil.get_terminal_size((80, 24)).columns - 1
        text = " | ".join(parts)
        text = work.bar() + text if len(text) + _BAR + 3 <= width else text
        text = text if len(text) <= width else text[: width - 1] + "…"
        self._write("\r" + text + " " * (self._shown - len(text)))
        self._shown = len(text)

    def _write(self, text: str) -> None:
        stream = self._stream()
        try:
            stream.write(text)
            stream.flush()
        except (OSError, ValueError, AttributeError, UnicodeEncodeError):
            self.mode = "off"  # a closed stream must not end the work


_hidden: ContextVar[bool] = ContextVar("hidden", default=False)
DISPLAY = Display()


def progress(what: str, total: int | None, *, at_once: AtOnce = "") -> AbstractContextManager[Advance]:
    """Show the progress of something, on standard error, once it has taken two seconds; a context manager.

    Args:
        what: name of the operation ("encoding").
        total: number of units; None if unknown.
        at_once: where it is shown before two seconds, because it does not advance: ``terminal``, or ``everywhere`` if it is
            known to take long.

    Examples:
        >>> with progress("reading", total=len(items)) as advance:
        ...     for item in items:
        ...         advance(1)
    """
    return DISPLAY.work(what, total, at_once=at_once)


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


def tracked(what: str, batches: Iterable[list[T]], total: int, *, at_once: AtOnce = "") -> Iterator[list[T]]:
    """Yield batches, and show progress by the number of their members; ``at_once`` as of :func:`progress`.

    Examples:
        >>> [len(batch) for batch in tracked("counting", [["a", "b"], ["c"]], total=3)]
        [2, 1]
    """
    with progress(what, total, at_once=at_once) as advance:
        for batch in batches:
            yield batch
            advance(len(batch))


def tracked_each(what: str, items: Sequence[T]) -> Iterator[T]:
    """Yield items one by one, and show progress by their number."""
    with progress(what, len(items)) as advance:
        for item in items:
            yield item
            advance(1)


def clock_time(seconds: float) -> str:
    """Return a duration as ``0:07`` or ``1:02:03``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def in_notebook() -> bool:
    """Return whether this runs in a Jupyter kernel, whose output can be written over like a terminal's."""
    return type(getattr(builtins, "get_ipython", lambda: None)()).__name__ == "ZMQInteractiveShell"
