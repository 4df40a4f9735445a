"""When something happens to components in workers: so often, never in the first process, and noted in a file each time."""

from __future__ import annotations

import os
from pathlib import Path


def has_bad_luck(log: Path, times: int, home: int) -> bool:
    """Whether it happens now; if so, it is noted."""
    if os.getpid() == home or (log.exists() and len(log.read_text().split()) >= times):
        return False
    with log.open("a") as file:
        file.write(f"{os.getpid()}\n")
    return True
