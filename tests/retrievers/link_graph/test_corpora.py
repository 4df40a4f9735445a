"""Second hops are found over their links and by nothing else; corpora that are no encyclopedia do no harm."""

from __future__ import annotations

from pathlib import Path

import pytest
from hashed_words import rows_of
from linked_pages import two_hops

from nlp_retrieval import Bm25Retriever, LinkGraphRetriever, SearchableItem
from nlp_retrieval.core import BaseRetriever

BM25 = Bm25Retriever()
HOPS = two_hops()


def ranked(retriever: BaseRetriever, items: list[SearchableItem], query: str, path: Path, k: int = 50) -> list[int]:
    retriever.index(items, path)
    return rows_of(retriever.retrieve([[query]], path, k)[0])


# second hops


@pytest.mark.parametrize("kind", list(HOPS))
def test_a_second_hop_that_shares_no_word_with_the_query_is_found_over_its_link(tmp_path: Path, kind: str) -> None:
    corpus = HOPS[kind]
    shared = {*corpus.query.split()} & {word for item in corpus.items[1:] for word in item.text.lower().split()}
    assert not shared
    assert ranked(BM25, corpus.items, corpus.query, tmp_path) == [0]
    walked = ranked(LinkGraphRetriever([BM25], links=[corpus.links]), corpus.items, corpus.query, tmp_path)
    assert {*walked[:2]} == {0, 1}


@pytest.mark.parametrize("kind", list(HOPS))
def test_it_is_lost_without_a_walk_and_where_the_links_are_shuffled(tmp_path: Path, kind: str) -> None:
    corpus = HOPS[kind]
    still = LinkGraphRetriever([BM25], links=[corpus.links], damping=0.0)
    assert ranked(still, corpus.items, corpus.query, tmp_path / "still") == [0]
    walk = LinkGraphRetriever([BM25], links=[corpus.links])
    elsewhere = ranked(walk, corpus.shuffled, corpus.query, tmp_path / "shuffled")
    (second,) = {*elsewhere[:2]} - {0}
    assert corpus.shuffled[second].content != corpus.items[1].content


# corpora that are no encyclopedia
