"""Standard streams that a reader cannot interrupt.

A closed pipe or a full device does not stop a command half-way: output that cannot be written is dropped, the work goes on, and
the command reports it. A closed pipe is not an error: the reader has what it wanted, like ``head`` in a pipe.
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
    """A file that accepts all writes, and remembers the first error."""

    failure: OSError | None = None

    def write(self, data: ReadableBuffer, /) -> int:
        """Write as much as possible; after the first failure, the rest is dropped."""
        if self.failure is None:
            try:
                return super().write(data)
            except OSError as error:
                self.failure = error
        return memoryview(data).nbytes

    @property
    def lost(self) -> str:
        """Return why output was lost that its reader still expects; empty if none was."""
        if self.failure is None or self.failure.errno == errno.EPIPE:
            return ""
        return os.strerror(self.failure.errno or errno.EIO)


@contextmanager
def fail_safe_streams() -> Iterator[FailSafeStream]:
    """Wrap standard output and error in such files, if they are the process's own; yields the wrapper of the output."""
    _fill_closed()
    output, errors = FailSafeStream(1, "wb", closefd=False), FailSafeStream(2, "wb", closefd=False)
    before = sys.stdin, sys.stdout, sys.stderr
    if sys.stdin is None:  # Python's value for a closed stream
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
    """Return whether standard output has an encoding for every character."""
    return (sys.stdout.encoding or "").replace("-", "").lower() in {"utf8", ""}


def _text(file: FailSafeStream, before: TextIO | None) -> TextIO:
    encoding = before.encoding if before is not None else "utf-8"
    lines = before is not None and before.isatty()
    return io.TextIOWrapper(io.BufferedWriter(file), encoding, "backslashreplace", line_buffering=lines)


def _fill_closed() -> None:
    """Fill closed standard streams, so that the next file opened does not take their place and receive messages."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # takes the lowest free number
