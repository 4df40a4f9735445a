"""Killed whenever a checkpoint of an encoding is opened or removed, a build leaves the old state, and is taken up."""

from __future__ import annotations

import signal

import pytest
from soaking import mostly_soaked

from nlp_retrieval.core.index.checkpoint import PREFIX


@pytest.mark.parametrize("name", mostly_soaked(["index in batches", "add in batches"]))
def test_killed_at_any_event_of_a_checkpoint_it_leaves_the_old_state_or_the_new_one(trials, name):
    made = trials[name].anew()
    points = [(number, event) for number, event in enumerate(made.events, 1) if PREFIX in event]
    assert {event.split()[0] for _, event in points} == {"open", "rename", "unlink"}
    for number, event in points[:: max(1, len(points) // 12)]:
        for when in ("before", "after") if event.startswith("unlink") else ("before",):
            with made.world() as world:
                ran = made.worker.ask("run", made.operation, world, kill=[number, when])
                assert ran["signal"] == signal.SIGKILL, (event, ran)
                made.judge(world, f"killed {when} {event}", done=ran["done"])
    assert made.tried >= 6
    assert not made.wrong, "\n".join(made.wrong)
