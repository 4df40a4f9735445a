"""The power fails at any moment, and what was not synced is gone: the old state or the new one is left all the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from soaking import Figures, mostly_soaked

from crash.driving import AllTrials, Trials, named, sampled
from crash.operations import OPERATIONS
from crash.power_loss import Left, crash_states
from crash.recording import read_record


class Records(dict[str, Path]):
    """What happened to the disk in an operation, recorded when it is first asked for.

    Args:
        trials: of the operations.
        folder: for the records.
    """

    def __init__(self, trials: AllTrials, folder: Path) -> None:
        super().__init__()
        self._trials, self._folder = trials, folder

    def __missing__(self, name: str) -> Path:
        self[name] = self._folder / name.replace("&", "and")
        made = self._trials[name]
        with made.world() as world:
            ran = made.worker.ask("run", made.operation, world, record=str(self[name]))
            assert ran["done"], ran
        return self[name]


@pytest.fixture(scope="module")
def records(trials, tmp_path_factory):
    return Records(trials, tmp_path_factory.mktemp("records"))


def judged(made: Trials, states: list[Left]) -> bool:
    """Whether all of what is left is right; looked at by one process."""
    left = []
    for state in states:
        world = made.worker.world()
        state.write(world)
        names, contents = state.variant
        how = f"power lost after step {state.step} ({state.event}), names kept: {names}, unsynced contents: {contents}"
        left.append((world, how, state.last))
    try:
        return made.judge_all(left)
    finally:
        for world, _, _ in left:
            shutil.rmtree(world, ignore_errors=True)


_AT_ONCE = 4
_STATES = {"Lucene": (2, 40), "engine": (2, 300), "sweep": (3, 300), "": (4, 2_000)}
"""By a part of the name: how many states in the short part, and how many in the long one."""


@pytest.mark.parametrize(
    "name",
    mostly_soaked(
        [*named(OPERATIONS, native=False, synced=True), *named(OPERATIONS, native=True)],
        ("update",),
    ),
)
def test_what_was_not_synced_is_not_needed(trials, records, name, effort, figures):
    check_power_loss(trials[name].anew(), records[name], name, effort, figures)


def check_power_loss(made: Trials, record: Path, name: str, effort: int, figures: Figures) -> None:
    """Check states of the disk that the loss of power in an operation may leave."""
    most = next(most for part, most in _STATES.items() if part in name)[effort > 1]
    root, steps = read_record(record)
    last = len(steps) - 1
    chosen = {last, *sampled(list(range(1, last)), most)}
    states = list(crash_states(record, root, steps, chosen=chosen))
    before, after = [left for left in states if not left.last], [left for left in states if left.last]
    chosen_states = [*sampled(before, most), *sampled(after, most)]
    for first in range(0, len(chosen_states), _AT_ONCE):
        judged(made, chosen_states[first : first + _AT_ONCE])
    figures.add("Crashes", f"{name}: power lost", made.tried, made.right, "unsynced names and contents lost, cut or zeroed")
    assert made.tried >= 3
    assert not made.wrong, "\n".join(made.wrong)
