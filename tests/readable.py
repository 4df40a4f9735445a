"""Waits for a pipe."""

from __future__ import annotations

import select
from typing import IO


def is_readable(pipe: IO[bytes] | int, seconds: float) -> bool:
    """Whether there is something to read, or the other end is closed, before so much time is over.

    ``select.select`` knows no descriptor above 1,023, and a process that runs many tests has more.
    """
    waiting = select.poll()
    waiting.register(pipe, select.POLLIN)
    return bool(waiting.poll(seconds * 1000))
