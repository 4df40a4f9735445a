"""What a system does, killed or without power at any moment, leaves the old state or the new one."""

from __future__ import annotations

import pytest
from crash.driving import AllTrials
from crash.test_killed import check_killed
from crash.test_power_loss import check_power_loss
from soaking import Figures, mostly_soaked

from .operations import OPERATIONS


@pytest.mark.parametrize("name", mostly_soaked(list(OPERATIONS), ("study",)))
def test_killed_at_any_event_it_leaves_the_old_state_or_the_new_one(
    trials: AllTrials, name: str, effort: int, figures: Figures
) -> None:
    check_killed(trials[name].anew(), effort, figures)


@pytest.mark.parametrize("name", mostly_soaked([name for name, one in OPERATIONS.items() if not one.synced_unseen], ("study",)))
def test_what_was_not_synced_is_not_needed(trials: AllTrials, name: str, effort: int, figures: Figures) -> None:
    check_power_loss(trials[name].anew(), effort, figures)
