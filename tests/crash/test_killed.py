"""Killed at any event, an operation leaves the old state or the new one, and can be run again."""

from __future__ import annotations

import signal

import pytest
from soaking import Figures, mostly_soaked

from crash.driving import ONLY_BEFORE, AllTrials, Trials, sampled
from crash.operations import OPERATIONS

_POINTS = {"Lucene": (2, 10), "engine": (3, 30), "sweep": (4, 40), "": (5, 60)}
"""By a part of the name: how many points in the short part, and how many in the long one."""


@pytest.mark.parametrize("name", mostly_soaked(list(OPERATIONS), ("update", "sweep")))
def test_killed_at_any_event_it_leaves_the_old_state_or_the_new_one(
    trials: AllTrials, name: str, effort: int, figures: Figures
) -> None:
    check_killed(trials[name].anew(), effort, figures)


def check_killed(made: Trials, effort: int, figures: Figures) -> None:
    """Kill an operation at points drawn at random, and check what it leaves."""
    name, events = made.operation.name, made.events
    points = [(number, "before") for number in range(1, len(events) + 1)]
    points += [(number, "after") for number, event in enumerate(events, 1) if not event.startswith(ONLY_BEFORE)]
    for number, when in sampled(points, next(most for part, most in _POINTS.items() if part in name)[effort > 1]):
        with made.world() as world:
            ran = made.worker.ask("run", made.operation, world, kill=[number, when])
            how = f"killed {when} event {number} of {len(events)} ({events[number - 1]})"
            assert ran["signal"] == signal.SIGKILL, (how, ran)
            made.judge(world, how, done=ran["done"])
    figures.add(
        "Crashes", f"{name}: killed", made.tried, made.right, "SIGKILL before and after every rename, sync, unlink, ..."
    )
    assert made.tried >= 2
    assert not made.wrong, "\n".join(made.wrong)
