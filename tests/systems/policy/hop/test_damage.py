"""Damage to the files of hops, threads and forks: as of every retriever."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from concurrency.test_forks import check_child
from concurrency.test_threads import check_opened_once, check_shared
from damage.collection import build, files_of
from damage.test_changing_files import check_read_on
from damage.test_checked_files import check_named
from damage.test_trusted_files import check_reader, own_files
from damage.trials import Trials
from soaking import Figures

from nlp_retrieval import Searcher

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
def own(index: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(index, tmp_path / "own"))


@pytest.fixture
def believing() -> Iterator[Trials]:
    trials = Trials(engines=damaged.__name__)
    yield trials
    trials.close()


@pytest.mark.soak
def test_no_reader_follows_damaged_numbers(index: Path, believing: Trials, effort: int, figures: Figures) -> None:
    check_reader(believing, index, LABEL, own_files(index, LABEL, effort), effort, figures)


@pytest.mark.soak
def test_damage_is_named(index: Path, effort: int, figures: Figures) -> None:
    check_named([file for file in files_of(index, effort) if file.owner == LABEL], index, effort, figures)


def test_a_file_that_is_touched_linked_copied_or_removed_is_read_on(own: Path, tmp_path: Path) -> None:
    check_read_on(retrievers()[LABEL], files_of(own), LABEL, own, tmp_path)


@pytest.mark.filterwarnings("ignore:bm25 found nothing:nlp_retrieval.errors.RetrievalWarning")
def test_a_searcher_gives_every_thread_what_it_gives_one(index: Path, effort: int, figures: Figures) -> None:
    check_shared(Searcher([retrievers()[LABEL]]).open(index), LABEL, effort, figures)


def test_a_retriever_used_first_by_many_threads_opens_its_index_once(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_opened_once(retrievers()[LABEL], index, monkeypatch)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_finds_what_its_parent_finds(index: Path) -> None:
    check_child(Searcher([retrievers()[LABEL]]).open(index))
