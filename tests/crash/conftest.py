"""One worker for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crash import operations
from crash.driving import AllTrials, Worker, working


@pytest.fixture(scope="session")
def worker() -> Iterator[Worker]:
    with working(operations.__name__) as made:
        yield made


@pytest.fixture(scope="session")
def trials(worker: Worker) -> AllTrials:
    return AllTrials(worker, operations.OPERATIONS)
