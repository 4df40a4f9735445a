"""A full disk, files that may not grow, folders that may not be written or read: a typed error, and nothing is lost."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from soaking import mostly_soaked

from crash.driving import Trials, sampled
from crash.index_operations import index_of

_LIMITS = [0, 1, 100, 200, 1_000, 3_000, 10_000]


def _limited(made: Trials, limits: list[int], since: int = 1) -> list[str]:
    """Run the operation with each limit in bytes on the size of a file, and judge; returns what errors there were.

    Args:
        made: the operation.
        limits: one for each run.
        since: the event from which on the limit holds.
    """
    errors = []
    for limit in limits:
        with made.world() as world:
            ran = made.worker.ask("run", made.operation, world, limit=[since, limit])
            how = f"files of at most {limit} bytes"
            assert ran["done"], (how, ran)
            errors.append(ran["failed"])
            if ran["failed"] and not ran["failed"].startswith(("IndexWriteError: ", "OutputError: ")):
                made.wrong.append(f"{made.operation.name}, {how}: {ran['failed']}")
            left = [path.name for path in world.rglob(".scratch-*")] + [path.name for path in world.rglob(".manifest.json.*")]
            if left:
                made.wrong.append(f"{made.operation.name}, {how}: it leaves {left}")
            made.judge(world, how, done=not ran["failed"])
    return errors


@pytest.mark.parametrize(
    "name",
    mostly_soaked(
        [
            "update",
            "sweep",
            "index, every engine",
            "index, replace=True",
            "add, every engine",
            "delete",
            "compact, every engine",
        ],
    ),
)
def test_a_file_that_may_not_grow_is_a_typed_error_and_the_old_state_stays(trials, name, effort, figures):
    made = trials[name].anew()
    limits = sampled(_LIMITS, 3) if effort == 1 else sorted({*_LIMITS, *range(0, 9_000, 250)})
    errors = _limited(made, limits)
    figures.add("Crashes", f"{name}: no space", made.tried, made.right, "RLIMIT_FSIZE, from 0 bytes up")
    assert any(errors)
    assert not made.wrong, "\n".join(made.wrong)


@pytest.mark.soak
def test_each_engine_says_that_it_cannot_write(trials, worker):
    """Limits just below the size of each file of each engine, so that every writer meets one."""
    made = trials["index, every engine"].anew()
    with made.world() as world:
        worker.ask("run", made.operation, world)
        sizes = {path.stat().st_size for path in index_of(world).rglob("*") if path.is_file()}
    errors = _limited(made, sampled(sorted(size - 1 for size in sizes if size), 8, seed=1))
    assert all(error.startswith("IndexWriteError") for error in errors)
    assert not made.wrong, "\n".join(made.wrong)


@pytest.mark.soak
def test_lucene_says_that_it_cannot_write(trials, effort, figures):
    made = trials["add, Lucene"].anew()
    last = max(number for number, event in enumerate(made.events, 1) if event.startswith("mkdir ") and ".scratch-" in event)
    errors = _limited(made, [100] if effort == 1 else [0, 50, 100, 200, 300], last)
    figures.add("Crashes", "add, Lucene: no space", made.tried, made.right, "RLIMIT_FSIZE, from 0 bytes up")
    assert any("Lucene" in error for error in errors), errors
    assert not made.wrong, "\n".join(made.wrong)


@pytest.mark.soak
@pytest.mark.parametrize("name", ["index, every engine", "add, every engine", "compact, every engine", "sweep"])
def test_a_disk_that_is_full(trials, name, tmp_path, figures):
    """A file system in memory that holds a little; making one needs rights that not every machine gives."""
    made = trials[name].anew()
    smallest = succeeded = 0
    for kilobytes in range(8, 16_000, 8):
        world = tmp_path / "world"
        world.mkdir()
        mounted = os.system(f"mount -t tmpfs -o size={kilobytes}k none {world} 2>/dev/null") == 0
        if not mounted:
            figures.add("Crashes", f"{name}: disk full", 0, 0, "no rights to mount a small file system here")
            return
        try:
            with made.world() as before:
                try:
                    shutil.copytree(before, world, dirs_exist_ok=True)
                except shutil.Error:
                    continue
            ran = made.worker.ask("run", made.operation, world)
            assert ran["done"], ran
            if ran["failed"] and not ran["failed"].startswith(("IndexWriteError: ", "OutputError: ")):
                made.wrong.append(f"{kilobytes} KiB: {ran['failed']}")
            smallest, succeeded = smallest or kilobytes, succeeded + (not ran["failed"])
            os.system(f"mount -o remount,size=16m none {world}")
            made.judge(world, f"a disk of {kilobytes} KiB", done=not ran["failed"])
        finally:
            os.system(f"umount {world}")
            shutil.rmtree(world)
        if succeeded == 3:
            break
    told = f"file systems of {smallest} to {kilobytes} KiB, then more space"
    figures.add("Crashes", f"{name}: disk full", made.tried, made.right, told)
    assert made.tried > 3
    assert not made.wrong, "\n".join(made.wrong)


def _owned_by_nobody(world: Path) -> None:
    for path in [world, *world.rglob("*")]:
        os.chown(path, 65534, 65534, follow_symlinks=False)


def _mode(world: Path, mode: int) -> None:
    for path in [world, *world.rglob("*")]:
        if path.is_dir():
            path.chmod(mode)


@pytest.mark.parametrize("name", mostly_soaked(["add", "index beside an index", "delete", "compact"]))
def test_an_index_that_may_not_be_written_is_a_typed_error(trials, name):
    made = trials[name].anew()
    with made.world() as world:
        if os.geteuid() == 0:
            _owned_by_nobody(world)
        _mode(index_of(world), 0o555)
        ran = made.worker.ask("run", made.operation, world, nobody=True)
        assert ran["failed"].startswith("IndexWriteError: "), ran
        assert "permission denied" in ran["failed"]
        _mode(index_of(world), 0o755)
        assert made.judge(world, "not allowed to write", done=False), made.wrong


@pytest.mark.soak
def test_a_folder_that_may_not_be_made_is_a_typed_error(trials):
    made = trials["index"].anew()
    with made.world() as world:
        world.chmod(0o555)
        ran = made.worker.ask("run", made.operation, world, nobody=True)
        assert ran["failed"].startswith("IndexWriteError: "), ran
        assert not index_of(world).exists()


@pytest.mark.soak
def test_a_cache_that_may_not_be_written_changes_nothing(trials):
    made = trials["index"].anew()
    with made.world() as world:
        (world / "cache").mkdir()
        if os.geteuid() == 0:
            _owned_by_nobody(world)
        (world / "cache").chmod(0o555)
        ran = made.worker.ask("run", made.operation, world, nobody=True)
        assert (ran["done"], ran["failed"]) == (True, "")
        (world / "cache").chmod(0o755)
        assert made.judge(world, "no cache", done=True), made.wrong


@pytest.mark.parametrize("file", mostly_soaked(["items.arrow", "manifest.json", "vectors.npy", "index.faiss", "rows.npy"], 2))
def test_a_file_that_may_not_be_read_is_a_typed_error_and_is_not_lost(trials, file):
    made = trials["add, every engine"].anew()
    with made.world() as world:
        if os.geteuid() == 0:
            _owned_by_nobody(world)
        shutil.rmtree(world / "cache", ignore_errors=True)
        (path,) = [path for path in index_of(world).rglob(file) if path.parent.name != "colbert"][:1]
        path.chmod(0)
        ran = made.worker.ask("run", made.operation, world, nobody=True)
        assert ran["failed"].startswith("IndexDamagedError: "), ran
        assert file in ran["failed"]
        path.chmod(0o644)
        assert made.judge(world, f"{file} could not be read", done=False), made.wrong


@pytest.mark.soak
def test_a_run_folder_that_may_not_be_written_is_a_typed_error(trials):
    made = trials["sweep over an earlier one"].anew()
    with made.world() as world:
        if os.geteuid() == 0:
            _owned_by_nobody(world)
        _mode(world / "runs", 0o555)
        ran = made.worker.ask("run", made.operation, world, nobody=True)
        assert ran["failed"].startswith("OutputError: "), ran
        _mode(world / "runs", 0o755)
        assert made.judge(world, "not allowed to write", done=False), made.wrong


@pytest.mark.soak
def test_a_stage_cache_that_may_not_be_written_changes_nothing(trials):
    made = trials["sweep"].anew()
    with made.world() as world:
        (world / "stages").mkdir()
        if os.geteuid() == 0:
            _owned_by_nobody(world)
        (world / "stages").chmod(0o555)
        ran = made.worker.ask("run", made.operation, world, nobody=True)
        assert (ran["done"], ran["failed"]) == (True, "")
        (world / "stages").chmod(0o755)
        assert made.judge(world, "no stage cache", done=True), made.wrong
