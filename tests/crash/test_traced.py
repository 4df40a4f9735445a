"""Killed at a system call, those of native code among them: Arrow, FAISS and Lucene write without Python."""

from __future__ import annotations

import re
import signal
from collections import Counter
from pathlib import Path

import pytest
from soaking import Figures

from crash.driving import Trials, named, sampled
from crash.operations import OPERATIONS

_CALLS = "write pwrite64 writev rename renameat renameat2 fsync fdatasync unlink unlinkat ftruncate mkdir rmdir".split()
_KILLS = 200
_KILLS_BESIDE_JAVA = 25


def _points(made: Trials, log: Path) -> list[tuple[str, int]]:
    """Every system call that changes files, by its name and its number among those of its name in its thread."""
    with made.world() as world:
        ran = made.worker.ask("run", made.operation, world, traced=["-o", str(log), "-e", f"trace={','.join(_CALLS)}"])
        assert ran["done"], ran
    counts: Counter[tuple[str, str]] = Counter()
    points = []
    for line in log.read_text(errors="replace").splitlines():
        if found := re.match(r"(?:(\d+) +)?(\w+)\(", line):
            thread, call = found[1] or "", found[2]
            counts[thread, call] += 1
            points.append((call, counts[thread, call]))
    return sorted(set(points))


@pytest.mark.soak
@pytest.mark.parametrize("name", [*named(OPERATIONS, native=False), *named(OPERATIONS, native=True)])
def test_killed_at_a_system_call_it_leaves_the_old_state_or_the_new_one(trials, name, tmp_path, figures):
    check_traced(trials[name].anew(), name, tmp_path, figures)


def check_traced(made: Trials, name: str, tmp_path: Path, figures: Figures) -> None:
    """Kill an operation at system calls, and check what it leaves."""
    points = _points(made, tmp_path / "log")
    killed = 0
    for call, number in sampled(points, _KILLS_BESIDE_JAVA if made.operation.native else _KILLS):
        with made.world() as world:
            words = ["-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=SIGKILL:when={number}"]
            ran = made.worker.ask("run", made.operation, world, traced=words)
            killed += ran["signal"] == signal.SIGKILL
            made.judge(world, f"killed at {call} number {number} (strace {' '.join(words)})", done=ran["done"])
    what = f"SIGKILL at {killed:,} of {len(points):,} writes, renames, syncs, ..., native ones among them"
    figures.add("Crashes", f"{name}: killed in system calls", made.tried, made.right, what)
    assert killed > 0.9 * made.tried
    assert not made.wrong, "\n".join(made.wrong)
