"""How many threads are worth starting."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """How many cores this process may use: fewer than there are where a container or ``taskset`` says so."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
