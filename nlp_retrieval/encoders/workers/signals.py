"""Keeping the handlers of memory faults: Ray sets handlers of its own, and removes existing ones.

Java reads memory that is not there on purpose, and its own handler makes an exception of that. In a process where Java runs,
a search by Lucene after a connection to a cluster would end the process otherwise.
"""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["handlers_kept"]

_NUMBERS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGTERM)
_LARGEST = 512
"""Bytes, more than a ``struct sigaction`` has on any platform."""


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Restore the handlers of signals that end a process."""
    library = ctypes.CDLL(None)
    kept = {number: ctypes.create_string_buffer(_LARGEST) for number in _NUMBERS}
    known = [number for number, handler in kept.items() if library.sigaction(int(number), None, handler) == 0]
    try:
        yield
    finally:
        for number in known:
            library.sigaction(int(number), kept[number], None)
