"""Components are pickled and copied as their settings: what was opened is opened anew, and is what it was."""

from __future__ import annotations

import copy
import pickle

import pytest
from damage.collection import QUERIES, pages, retrievers
from hashed_words import HashedWords
from soaking import mostly_soaked

import nlp_retrieval.errors
from core.engines import Brief, SplitAt
from nlp_retrieval import (
    Bm25Retriever,
    FaissRetriever,
    LanguageModel,
    ReciprocalRankFusion,
    RetrievalResult,
    Searcher,
)
from nlp_retrieval.core.components.component import Component
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.loaders.database import DatabaseLoader


def told(results: list[list[RetrievalResult]]) -> list[list[tuple[str, float, str]]]:
    return [[(hit.item.item_id, hit.score, repr(sorted(hit.signals.items()))) for hit in hits] for hits in results]


def hybrid() -> Searcher:
    """Every part, and labels of its own."""
    retrievers = {"words": Bm25Retriever(k1=1.2), "vectors": FaissRetriever(HashedWords(16), index="hnsw")}
    return Searcher(retrievers, processor=SplitAt(" "), fusion=ReciprocalRankFusion(k=30), reranker=Brief(), depth=20)


ERRORS = [cls for cls in vars(nlp_retrieval.errors).values() if isinstance(cls, type) and issubclass(cls, Exception)]
COPIES = {"pickled": lambda one: pickle.loads(pickle.dumps(one)), "copied": copy.deepcopy}
copied_both_ways = pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)


@copied_both_ways
@pytest.mark.parametrize("label", mostly_soaked(["hybrid", *retrievers()], 3))
def test_a_copy_of_an_opened_searcher_searches_the_same_index(label, copied, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    searcher = hybrid() if label == "hybrid" else Searcher([retrievers()[label]])
    searcher.index(pages(), tmp_path / "index")
    other = copied(searcher)
    assert other == searcher
    assert repr(other) == repr(searcher)
    assert told(other.search(QUERIES, 10)) == told(searcher.search(QUERIES, 10))
    assert other.opened is not searcher.opened
    assert told(copied(copied(other)).search(QUERIES, 10)) == told(searcher.search(QUERIES, 10))


def test_what_is_pickled_holds_nothing_that_was_opened(tmp_path):
    searcher = hybrid()
    searcher.index(pages(), tmp_path / "index")
    searcher.search(QUERIES)
    content = pickle.dumps(searcher)
    assert len(content) < 4096
    assert not any(page.metadata["title"].encode() in content for page in pages())


# secrets


def test_a_key_is_pickled_as_the_name_of_its_variable(monkeypatch):
    monkeypatch.setenv("HARBOUR_KEY", "correct-horse-battery")
    lm = LanguageModel("openai/small", api_key_env="HARBOUR_KEY")
    content = pickle.dumps(lm)
    assert b"HARBOUR_KEY" in content
    assert b"correct-horse" not in content
    assert pickle.loads(content) == lm
    monkeypatch.delenv("HARBOUR_KEY")
    with pytest.raises(ConfigurationError, match="HARBOUR_KEY is not set"):
        pickle.loads(content)


class Keyed(Component):
    """Holds a key as text.

    Args:
        api_key: of a server.
    """

    kind = "processors"
    name = "keyed"

    def __init__(self, api_key: str) -> None:
        self.api_key = api_key


@pytest.mark.parametrize(
    "component",
    [Keyed("correct-horse-battery"), DatabaseLoader("postgresql://me:correct-horse@host/db", table="pages")],
    ids=["a setting named so", "a password in a URL"],
)
def test_a_secret_that_is_given_as_text_is_not_pickled_and_is_copied(component, monkeypatch):
    with pytest.raises(ConfigurationError, match="holds what looks like a secret, and is not pickled") as caught:
        pickle.dumps([component])
    assert "correct" not in str(caught.value)
    other = copy.deepcopy(component)
    assert other == component


def test_errors_come_back_from_another_process():
    for error in [cls("found, where, cure") for cls in ERRORS]:
        other = pickle.loads(pickle.dumps(error))
        assert type(other) is type(error)
        assert str(other) == str(error)
        assert vars(other) == vars(error)
