"""Damage to the files of hops, threads and forks: as of every retriever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from damage.collection import build, files_of
from damage.test_checked_files import check_named
from damage.test_trusted_files import check_reader
from damage.trials import Trials
from soaking import Figures

from . import damaged
from .damaged import retrievers

LABEL = "hop"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of the collection; a test leaves it as it was."""
    path = tmp_path_factory.mktemp("damage") / "index"
    build(path, retrievers())
    return path


@pytest.fixture
def believing() -> Iterator[Trials]:
    trials = Trials(engines=damaged.__name__)
    yield trials
    trials.close()


@pytest.mark.soak
def test_no_reader_follows_damaged_numbers(index: Path, believing: Trials, effort: int, figures: Figures) -> None:
    check_reader(believing, index, LABEL, effort, figures, LABEL)


@pytest.mark.soak
def test_damage_is_named(index: Path, effort: int, figures: Figures) -> None:
    check_named([file for file in files_of(index, effort) if file.owner == LABEL], index, effort, figures)
