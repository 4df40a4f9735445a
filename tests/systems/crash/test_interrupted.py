"""What a system does, killed or without power at any moment, leaves the old state or the new one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from crash.driving import named
from crash.test_killed import check_killed
from crash.test_power_loss import check_power_loss
from soaking import mostly_soaked

from .operations import OPERATIONS

_SHORT = {"study"}


@pytest.mark.parametrize("name", mostly_soaked(named(OPERATIONS, native=False), _SHORT))
def test_killed_at_any_event_it_leaves_the_old_state_or_the_new_one(trials, name, effort, figures):
    check_killed(trials[name].anew(), name, effort, figures)


@pytest.mark.parametrize("name", mostly_soaked(named(OPERATIONS, native=False, synced=True), _SHORT))
def test_what_was_not_synced_is_not_needed(trials, name, effort, figures):
    check_power_loss(trials[name].anew(), name, effort, figures)


@pytest.mark.soak
def test_what_was_added_is_synced_before_it_is_said(trials, tmp_path):
    """SQLite syncs by itself: after its last write to a file, and before the addition returns."""
    made, log = trials["first sources"].anew(), tmp_path / "log"
    with made.world() as world:
        words = ["-y", "-o", str(log), "-e", "trace=write,pwrite64,fsync,fdatasync"]
        assert made.worker.ask("run", made.operation, world, traced=words)["done"]
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
