"""The power fails at any moment, and what was not synced is gone: the old state or the new one is left all the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from soaking import Figures, mostly_soaked

from crash.driving import ONLY_BEFORE, AllTrials, Trials, sampled
from crash.operations import OPERATIONS

_STATES = {"Lucene": (2, 10), "engine": (2, 30), "sweep": (3, 40), "": (4, 60)}
"""By a part of the name: at how many events, and how many states of them, in the short part and in the long one."""


@pytest.mark.parametrize(
    "name", mostly_soaked([name for name, one in OPERATIONS.items() if not one.synced_unseen], ("update",))
)
def test_what_was_not_synced_is_not_needed(trials: AllTrials, name: str, effort: int, figures: Figures) -> None:
    check_power_loss(trials[name].anew(), effort, figures)


def check_power_loss(made: Trials, effort: int, figures: Figures) -> None:
    """Check states of the disk that the loss of power in an operation may leave."""
    name = made.operation.name
    most = next(most for part, most in _STATES.items() if part in name)[effort > 1]
    events = [number for number, event in enumerate(made.events, 1) if not event.startswith(ONLY_BEFORE)]
    target = made.worker.world()
    with made.world() as world:
        ran = made.worker.ask("run", made.operation, world, power_loss=[str(target), sampled(events, most)])
    assert ran["done"], ran
    left = json.loads((target / "left.json").read_text())
    for done in (False, True):
        for folder, how, _ in sampled([one for one in left if one[2] == done], most):
            made.judge(Path(folder), how, done=done)
    shutil.rmtree(target)
    figures.add("Crashes", f"{name}: power lost", made.tried, made.right, "unsynced names and contents lost, cut or zeroed")
    assert made.tried >= 3
    assert not made.wrong, "\n".join(made.wrong)
