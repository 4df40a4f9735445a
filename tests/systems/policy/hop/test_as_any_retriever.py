"""Hops are copied, filtered, taken up and protected as every retriever is."""

from __future__ import annotations

from pathlib import Path

import pytest
from attacks.test_planted_pickles import ITEMS, check_planted
from core.search.test_copying import check_copied, copied_both_ways
from core.search.test_from_settings import check_parts
from core.test_filters import check_filtered, items
from hashed_words import HashedWords

from nlp_retrieval import Bm25Retriever, FaissRetriever, Searcher
from nlp_retrieval.systems.policy.hop.retriever import HopRetriever


def hops() -> HopRetriever:
    return HopRetriever(Bm25Retriever())


@copied_both_ways
def test_a_copy_of_an_opened_searcher_searches_the_same_index(copied, tmp_path):
    check_copied(Searcher([HopRetriever(Bm25Retriever(), subject="old")]), copied, tmp_path)


def test_parts_given_by_name_are_those_made_by_hand():
    check_parts(HopRetriever("bm25"), HopRetriever(Bm25Retriever()))


@pytest.mark.filterwarnings("ignore:.*found nothing for:nlp_retrieval.RetrievalWarning")
def test_it_gives_k_items_that_fulfil_the_filter_wherever_k_do(tmp_path: Path) -> None:
    searcher = Searcher([HopRetriever(FaissRetriever(HashedWords()))])
    searcher.index(items(), tmp_path)
    check_filtered(searcher, exact=False)


def test_an_index_with_a_pickle_in_place_of_a_file_is_damaged(tmp_path: Path) -> None:
    Searcher([hops()]).index(ITEMS, tmp_path / "index")
    check_planted(hops(), tmp_path / "index", tmp_path)
