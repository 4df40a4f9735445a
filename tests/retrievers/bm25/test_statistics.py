"""Statistics of a collection are those that are counted by hand, also after updates and through other retrievers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hashed_words import HashedWords

from nlp_retrieval import Bm25Retriever, FaissRetriever, LinkGraphRetriever, SearchableItem, Searcher
from nlp_retrieval.errors import ConfigurationError

TEXTS = ["whale song whale", "a whale eats krill", "", "krill drift in the sea", "the sea the sea"]
PAGES = {"Krill": "small animals", "Blue whale": "eats Krill"}
PLAIN = Bm25Retriever(stemmer="none", stopwords=None)


def items(texts: list[str], first: int = 0) -> list[SearchableItem]:
    return [SearchableItem(item_id=f"i{number}", content=text) for number, text in enumerate(texts, first)]


def by_hand(texts: list[str]) -> tuple[list[int], Counter[str], Counter[str]]:
    """Lengths, document frequencies and collection frequencies of texts without capitals and punctuation."""
    words = [text.split() for text in texts]
    return (
        list(map(len, words)),
        Counter(word for text in words for word in set(text)),
        Counter(word for text in words for word in text),
    )


def test_statistics_are_those_counted_by_hand(tmp_path: Path) -> None:
    searcher = Searcher([PLAIN])
    searcher.index(items(TEXTS), tmp_path / "index")
    statistics = searcher.collection_statistics()
    lengths, documents, occurrences = by_hand(TEXTS)
    assert (statistics.n_items, statistics.n_terms, statistics.average_length) == (5, sum(lengths), sum(lengths) / 5)
    assert statistics.lengths.tolist() == lengths
    assert {term: statistics.document_frequency(term) for term in statistics.vocabulary} == documents
    assert {term: statistics.collection_frequency(term) for term in statistics.vocabulary} == occurrences
    assert (statistics.document_frequency("absent"), statistics.collection_frequency("absent")) == (0, 0)
    assert repr(statistics) == "<5 items of 3.2 terms; 9 distinct terms>"


def test_terms_are_those_of_the_index(tmp_path: Path) -> None:
    searcher = Searcher([Bm25Retriever()])
    searcher.index(items(["Whales are singing.", "the song of a whale"]), tmp_path / "index")
    statistics = searcher.collection_statistics()
    assert statistics.terms("The whales, the whale and a squid") == ["whale", "whale", "squid"]
    assert set(statistics.vocabulary) == {term for text in ("Whales singing", "song whale") for term in statistics.terms(text)}
    assert statistics.document_frequency("whale") == 2


def test_deleted_items_do_not_count_and_added_ones_do(tmp_path: Path) -> None:
    searcher = Searcher([PLAIN])
    searcher.index(items(TEXTS), tmp_path / "index")
    searcher.add(items(["a new whale"], first=5), auto_compact=False)
    searcher.delete(["i0"], auto_compact=False)
    live = [*TEXTS[1:], "a new whale"]
    lengths, documents, occurrences = by_hand(live)
    statistics = searcher.collection_statistics()
    assert statistics.n_items == 5
    assert statistics.lengths.tolist() == [0, *lengths]
    assert statistics.n_terms == sum(lengths)
    assert {term: statistics.document_frequency(term) for term in [*documents, "song"]} == {**documents, "song": 0}
    assert {term: statistics.collection_frequency(term) for term in [*occurrences, "song"]} == {**occurrences, "song": 0}


def test_a_retriever_over_bm25_has_its_statistics_and_one_of_vectors_none(tmp_path: Path) -> None:
    searcher = Searcher([LinkGraphRetriever([PLAIN])])
    titled = [SearchableItem(item_id=title, content=text, metadata={"title": title}) for title, text in PAGES.items()]
    searcher.index(titled, tmp_path / "links")
    assert searcher.collection_statistics().document_frequency("krill") == 2
    searcher = Searcher([FaissRetriever(HashedWords())])
    searcher.index(items(TEXTS[:2]), tmp_path / "vectors")
    with pytest.raises(ConfigurationError, match=r"none of faiss counts words; open the index with bm25"):
        searcher.collection_statistics()
