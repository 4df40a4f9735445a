"""A full disk, files that may not grow, folders that may not be written or read: a typed error, and nothing is lost."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from soaking import mostly_soaked

from crash.driving import sampled

_TYPED = "IndexWriteError: ", "OutputError: "
_LIMITS = [0, 1, 100, 200, 1_000, 3_000, 10_000]
_GROWING = [
    *("update", "sweep", "index, every engine", "index, replace=True", "add, every engine", "delete", "compact, every engine"),
]


@pytest.mark.parametrize("name", mostly_soaked(_GROWING))
def test_a_file_that_may_not_grow_is_a_typed_error_and_the_old_state_stays(trials, name, effort, figures):
    made, errors = trials[name].anew(), []
    for limit in sampled(_LIMITS, 3) if effort == 1 else sorted({*_LIMITS, *range(0, 9_000, 250)}):
        with made.world() as world:
            ran = made.worker.ask("run", made.operation, world, limit=[1, limit])
            how = f"files of at most {limit} bytes"
            assert ran["done"], (how, ran)
            errors.append(ran["failed"])
            left = [*world.rglob(".scratch-*"), *world.rglob(".manifest.json.*")]
            if left or (ran["failed"] and not ran["failed"].startswith(_TYPED)):
                made.wrong.append(f"{name}, {how}: {ran['failed']}, it leaves {left}")
            made.judge(world, how, done=not ran["failed"])
    figures.add("Crashes", f"{name}: no space", made.tried, made.right, "RLIMIT_FSIZE, from 0 bytes up")
    assert any(errors)
    assert not made.wrong, "\n".join(made.wrong)


@pytest.mark.soak
@pytest.mark.parametrize("name", ["index, every engine", "add, every engine", "compact, every engine", "sweep", "add, Lucene"])
def test_a_disk_that_is_full(trials, name, tmp_path, figures):
    """A file system in memory that holds a little; making one needs rights that not every machine gives."""
    made, world = trials[name].anew(), tmp_path / "world"
    succeeded = 0
    for kilobytes in range(8, 16_000, 8):
        world.mkdir()
        if os.system(f"mount -t tmpfs -o size={kilobytes}k none {world} 2>/dev/null") != 0:
            pytest.skip("no rights to mount a small file system here")
        try:
            with made.world() as before:
                try:
                    shutil.copytree(before, world, dirs_exist_ok=True)
                except shutil.Error:
                    continue
            ran = made.worker.ask("run", made.operation, world)
            assert ran["done"], ran
            if ran["failed"] and not ran["failed"].startswith(_TYPED):
                made.wrong.append(f"{kilobytes} KiB: {ran['failed']}")
            succeeded += not ran["failed"]
            os.system(f"mount -o remount,size=16m none {world}")
            made.judge(world, f"a disk of {kilobytes} KiB", done=not ran["failed"])
        finally:
            os.system(f"umount {world}")
            shutil.rmtree(world)
        if succeeded == 3:
            break
    figures.add("Crashes", f"{name}: disk full", made.tried, made.right, f"file systems up to {kilobytes} KiB, then more space")
    assert made.tried > 3
    assert not made.wrong, "\n".join(made.wrong)


_FORBIDDEN = [
    *((name, "indexes", 0o555, _TYPED) for name in ("add", "index beside an index", "delete", "compact")),
    *(("add, every engine", file, 0, ("IndexDamagedError: ",)) for file in ("items.arrow", "manifest.json", "vectors.npy")),
    *(("add, every engine", file, 0, ("IndexDamagedError: ",)) for file in ("index.faiss", "rows.npy")),
    ("index", "cache", 0o555, ()),
    ("sweep over an earlier one", "runs", 0o555, _TYPED),
    ("sweep", "stages", 0o555, ()),
]
"""An operation, what may not be written or read, its mode, and the errors: none where it changes nothing."""


@pytest.mark.parametrize("case", mostly_soaked(_FORBIDDEN, [_FORBIDDEN[0], _FORBIDDEN[4]]), ids=lambda case: f"{case[:2]}")
def test_what_may_not_be_written_or_read_is_a_typed_error_and_is_not_lost(trials, case):
    name, place, mode, errors = case
    made = trials[name].anew()
    with made.world() as world:
        if mode == 0:
            shutil.rmtree(world / "cache", ignore_errors=True)
            paths = [path for path in world.rglob(place) if path.parent.name != "colbert"][:1]
        else:
            (world / place).mkdir(exist_ok=True)
            paths = [world / place, *(path for path in (world / place).rglob("*") if path.is_dir())]
        if os.geteuid() == 0:
            for path in [world, *world.rglob("*")]:
                os.chown(path, 65534, 65534, follow_symlinks=False)
        _change(paths, mode)
        ran = made.worker.ask("run", made.operation, world, nobody=True)
        _change(paths, 0o755)
        assert ran["failed"].startswith(errors) if errors else (ran["done"], ran["failed"]) == (True, ""), ran
        assert made.judge(world, f"{place} with the mode {mode:o}", done=not errors), made.wrong


def _change(paths: list[Path], mode: int) -> None:
    for path in paths:
        path.chmod(mode)
