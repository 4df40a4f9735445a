"""One index of every kind, and a process in which damaged files are opened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .collection import build, retrievers
from .trials import Trials


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of the collection for every retriever that needs no Java; a test leaves it as it was."""
    path = tmp_path_factory.mktemp("damage") / "index"
    build(path, retrievers())
    return path


@pytest.fixture(scope="session")
def believing() -> Iterator[Trials]:
    """A process that believes every file, whatever its size."""
    trials = Trials()
    yield trials
    trials.close()
