"""Peak memory of this process, and the work of others on its machine."""

from __future__ import annotations

import os
import resource
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self


class PeakMemory:
    """Largest resident memory of this process inside a ``with`` block, in bytes, sampled every 20 ms.

    On systems that do not report the current size (only Linux does), it is the peak of the whole process so far.
    """

    bytes: int = 0

    def __enter__(self) -> Self:
        self._stop = threading.Event()
        self.bytes = resident_bytes()
        self._thread = threading.Thread(target=self._sample, daemon=True, name="nlp_retrieval-peak-memory")
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()
        self.bytes = max(self.bytes, resident_bytes())

    def _sample(self) -> None:
        while not self._stop.wait(0.02):
            self.bytes = max(self.bytes, resident_bytes())


class OtherProcesses:
    """Average number of cores used by other processes since this object was created."""

    def __init__(self) -> None:
        self._begin = _processor_seconds()

    @property
    def cores(self) -> float | None:
        """None if the system does not report it (only Linux does), or too little time has passed."""
        now = _processor_seconds()
        if now is None or self._begin is None or now[0] - self._begin[0] < _LEAST_SECONDS:
            return None
        elapsed, busy, own = (after - before for after, before in zip(now, self._begin, strict=True))
        return max(0.0, (busy - own) / elapsed)


_LEAST_SECONDS = 0.1
"""Minimum interval to measure; the system counts hundredths of a second."""


def _processor_seconds() -> tuple[float, float, float] | None:
    """The time, and the seconds worked so far by all processors: for all processes, and for this one."""
    try:
        user, nice, system, _, _, interrupts, soft_interrupts = map(int, Path("/proc/stat").read_text().split()[1:8])
    except (OSError, ValueError):
        return None
    ticks = user + nice + system + interrupts + soft_interrupts
    return time.perf_counter(), ticks / os.sysconf("SC_CLK_TCK"), sum(os.times()[:4])


def resident_bytes() -> int:
    """Current resident memory of this process, in bytes (the peak so far if the system reports no more)."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
