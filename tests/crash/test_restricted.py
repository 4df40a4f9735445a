"""Files that may not grow, as on a full disk; folders that may not be written or read: a typed error, and nothing is lost."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from soaking import Figures, mostly_soaked

from crash.driving import AllTrials

_TYPED = "IndexWriteError: ", "OutputError: "
_GROWING = ["update", "sweep", "index, every engine", "index, replace=True", "add, every engine", "compact, every engine"]


@pytest.mark.parametrize("name", mostly_soaked(_GROWING))
def test_a_file_that_may_not_grow_is_a_typed_error_and_the_old_state_stays(
    trials: AllTrials, name: str, effort: int, figures: Figures
) -> None:
    made, errors = trials[name].anew(), []
    for limit in [0, 200, 3_000] if effort == 1 else sorted({1, 100, 200, 10_000, *range(0, 9_000, 1_000)}):
        with made.world() as world:
            ran = made.worker.ask("run", made.operation, world, limit=limit)
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


_FORBIDDEN = [
    *((name, "indexes", 0o555, _TYPED) for name in ("add", "index beside an index", "compact")),
    *(("add, every engine", file, 0, ("IndexDamagedError: ",)) for file in ("rows.npy", "items.arrow", "index.faiss")),
    ("index", "cache", 0o555, ()),
    ("sweep over an earlier one", "runs", 0o555, _TYPED),
    ("sweep", "stages", 0o555, ()),
]
"""An operation, what may not be written or read, its mode, and the errors: none where it changes nothing."""


@pytest.mark.parametrize("case", mostly_soaked(_FORBIDDEN, [_FORBIDDEN[0], _FORBIDDEN[3]]), ids=lambda case: f"{case[:2]}")
def test_what_may_not_be_written_or_read_is_a_typed_error_and_is_not_lost(
    trials: AllTrials, case: tuple[str, str, int, tuple[str, ...]]
) -> None:
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
