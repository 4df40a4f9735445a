"""An opened searcher is handed to the pools that people use, and finds there what it finds here."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from hashed_words import HashedWords, items_of
from soaking import mostly_soaked

from nlp_retrieval import FaissRetriever, Searcher
from nlp_retrieval.core import RankedLists

PARTS = [[f"fox number {number}", "whale"] for number in range(4)]


@pytest.fixture
def searcher(tmp_path: Path) -> Searcher:
    made = Searcher(["bm25", FaissRetriever(HashedWords(16))], reranker="overlap")
    made.index(items_of([f"{animal} number {row}" for animal in ("fox", "whale") for row in range(20)]), tmp_path / "index")
    return made


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("method", mostly_soaked(["spawn", "fork", "forkserver"], 2))
def test_a_pool_of_processes_searches(searcher: Searcher, method: str) -> None:
    here = [searcher.search(part, 5) for part in PARTS]
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
        there = list(pool.map(searcher.search, PARTS, [5] * len(PARTS), timeout=300))
    assert there == here
    assert {type(one) for one in there} == {RankedLists}
    assert there[1].to_arrow().equals(here[1].to_arrow())
