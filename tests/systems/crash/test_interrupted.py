"""What a system does, killed or without power at any moment, leaves the old state or the new one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from crash.driving import AllTrials
from crash.test_killed import check_killed
from crash.test_power_loss import check_power_loss
from soaking import Figures, mostly_soaked

from .operations import OPERATIONS


@pytest.mark.parametrize("name", mostly_soaked(list(OPERATIONS), ("study",)))
def test_killed_at_any_event_it_leaves_the_old_state_or_the_new_one(
    trials: AllTrials, name: str, effort: int, figures: Figures
) -> None:
    check_killed(trials[name].anew(), effort, figures)


@pytest.mark.parametrize("name", mostly_soaked([name for name, one in OPERATIONS.items() if not one.synced_unseen], ("study",)))
def test_what_was_not_synced_is_not_needed(trials: AllTrials, name: str, effort: int, figures: Figures) -> None:
    check_power_loss(trials[name].anew(), effort, figures)


@pytest.mark.soak
def test_what_was_added_is_synced_before_it_is_said(tmp_path: Path) -> None:
    """SQLite syncs by itself: after its last write to a file, and before the addition returns."""
    OPERATIONS["sources"].prepare(tmp_path)
    log = tmp_path / "log"
    script = """
import pathlib, sys
from systems.crash.operations import OPERATIONS
OPERATIONS["sources"].run(pathlib.Path(sys.argv[1]))
"""
    traced = ["strace", "-f", "-y", "-o", str(log), "-e", "trace=write,pwrite64,fsync,fdatasync"]
    subprocess.run([*traced, sys.executable, "-c", script, str(tmp_path)], check=True, cwd=Path(__file__).parents[2])
    unsynced: set[str] = set()
    said = 0
    for line in log.read_text(errors="replace").splitlines():
        found = re.match(r"(?:\d+ +)?(\w+)\(\d+<([^>]*)>", line)
        if found is None:
            continue
        call, path = found[1], Path(found[2])
        if path.name == "returned":
            said += 1
            assert not unsynced
        elif path.name in ("evidence.sqlite3", "evidence.sqlite3-wal"):  # the third, -shm, is made again from these
            if call in ("fsync", "fdatasync"):
                unsynced.discard(path.name)
            else:
                unsynced.add(path.name)
    assert said == 3
