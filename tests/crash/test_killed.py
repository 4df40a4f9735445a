"""Killed at any event, an operation leaves the old state or the new one, and can be run again."""

from __future__ import annotations

import signal
from contextlib import ExitStack

import pytest
from soaking import Figures, mostly_soaked

from crash.driving import ONLY_BEFORE, Trials, named, sampled
from crash.operations import OPERATIONS


def _killed(made: Trials, most: int) -> None:
    """Kill the operation at so many of its points, drawn at random, and judge what is left."""
    events = made.events
    points = [(number, when) for number in range(1, len(events) + 1) for when in ("before", "after")]
    points = [(number, when) for number, when in points if when == "before" or not events[number - 1].startswith(ONLY_BEFORE)]
    with ExitStack() as worlds:
        left = []
        for number, when in sampled(points, most):
            world = worlds.enter_context(made.world())
            ran = made.worker.ask("run", made.operation, world, kill=[number, when])
            how = f"killed {when} event {number} of {len(events)} ({events[number - 1]})"
            assert ran["signal"] == signal.SIGKILL, (how, ran)
            left.append((world, how, ran["done"]))
            if not made.operation.native:  # starting Java for each would take longest
                made.judge_all([left.pop()])
        made.judge_all(left)


def _most(name: str, effort: int) -> int:
    """How many points to try: the fewer, the more each takes."""
    short, long = next(most for part, most in _POINTS.items() if part in name)
    return short if effort == 1 else long


_POINTS = {"Lucene": (2, 100), "Milvus": (4, 400), "engine": (3, 400), "sweep": (4, 400), "": (5, 10_000)}
"""By a part of the name: how many points in the short part, and how many in the long one."""


_SHORT = ("update", "sweep")


@pytest.mark.parametrize("name", mostly_soaked([*named(OPERATIONS, native=False), *named(OPERATIONS, native=True)], _SHORT))
def test_killed_at_any_event_it_leaves_the_old_state_or_the_new_one(trials, name, effort, figures):
    check_killed(trials[name].anew(), name, effort, figures)


def check_killed(made: Trials, name: str, effort: int, figures: Figures) -> None:
    """Kill an operation, and check what it leaves."""
    _killed(made, _most(name, effort))
    figures.add(
        "Crashes", f"{name}: killed", made.tried, made.right, "SIGKILL before and after every rename, sync, unlink, ..."
    )
    assert made.tried >= 2
    assert not made.wrong, "\n".join(made.wrong)
