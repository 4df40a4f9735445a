"""Counts what was tried, for the report of a soak."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from soaking import Figures

Tally = Callable[[str], AbstractContextManager[None]]


@pytest.fixture(scope="session")
def tally(figures: Figures) -> Tally:
    """``with tally("SQL"):`` around one attack; it counts as repelled where the block ends without an exception."""
    counts: dict[str, list[int]] = {}

    @contextmanager
    def attacked(family: str) -> Iterator[None]:
        count = counts.setdefault(family, [0, 0])
        count[0] += 1
        try:
            yield
            count[1] += 1
        finally:
            figures.add("Attacks", family, *count)

    return attacked
