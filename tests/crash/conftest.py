"""One worker for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crash import operations
from crash.driving import AllTrials, all_trials


@pytest.fixture(scope="session")
def trials() -> Iterator[AllTrials]:
    with all_trials(operations.__name__, operations.OPERATIONS) as made:
        yield made
