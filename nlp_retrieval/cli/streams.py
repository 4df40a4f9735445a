"""Standard streams that nothing a reader does can interrupt the work on.

A closed pipe or a full device does not end a command half-way: what cannot be written is left out, the work goes on, and
the command then says so. A closed pipe is not an error: whoever reads has what they wanted, as ``head`` in a pipe has.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class FailSafeStream(io.FileIO):
    """A file that takes everything, and remembers why it could not write it."""

    failure: OSError | None = None

    def write(self, data: ReadableBuffer, /) -> int:
        """Write what can be written; the rest is let go of after the first failure."""
        if self.failure is None:
            try:
                return super().write(data)
            except OSError as error:
                self.failure = error
        return memoryview(data).nbytes

    @property
    def lost(self) -> str:
        """Why something was lost that somebody still waits for; empty where nothing was."""
        if self.failure is None or self.failure.errno == errno.EPIPE:
            return ""
        return os.strerror(self.failure.errno or errno.EIO)


@contextmanager
def fail_safe_streams() -> Iterator[FailSafeStream]:
    """Put such files under standard output and error, where these are the process's own; gives that of the output."""
    _fill_closed()
    output, errors = FailSafeStream(1, "wb", closefd=False), FailSafeStream(2, "wb", closefd=False)
    before = sys.stdin, sys.stdout, sys.stderr
    if sys.stdin is None:  # what Python makes of a stream that is closed
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")
    if sys.stdout is sys.__stdout__:
        sys.stdout = _text(output, sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text(errors, sys.stderr)
    try:
        yield output
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdin, sys.stdout, sys.stderr = before


def takes_all_text() -> bool:
    """Return whether standard output has an encoding that holds every character."""
    return (sys.stdout.encoding or "").replace("-", "").lower() in {"utf8", ""}


def _text(file: FailSafeStream, before: TextIO | None) -> TextIO:
    encoding = before.encoding if before is not None else "utf-8"
    lines = before is not None and before.isatty()
    return io.TextIOWrapper(io.BufferedWriter(file), encoding, "backslashreplace", line_buffering=lines)


def _fill_closed() -> None:
    """Take the place of streams that are closed, or the next file that is opened would: a message would be written into it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # gets the lowest number that is free
