"""Every retriever keeps every rule, in the configurations that work differently inside."""

from __future__ import annotations

import os

import pytest
from hashed_tokens import HashedTokens
from hashed_words import HashedWords
from milvus_server import milvus_url
from postgres_server import env_url
from sparse_models import HashedTerms

from nlp_retrieval import (
    Bm25Retriever,
    CombSUM,
    FaissRetriever,
    FeedbackRetriever,
    LinkGraphRetriever,
    MilvusRetriever,
    OverlapReranker,
    PgvectorRetriever,
    PyseriniRetriever,
    SearchableItem,
)
from nlp_retrieval.core.search.searcher import SearcherRetriever
from nlp_retrieval.retrievers.colbert.retriever import ColbertRetriever
from nlp_retrieval.retrievers.link_graph.mentions import Hyperlinks, TitleMentions
from nlp_retrieval.retrievers.servers.embedded import TRUSTED
from nlp_retrieval.retrievers.splade import SpladeRetriever
from nlp_retrieval.testing import RetrieverRules, UpdateRules
from nlp_retrieval.testing.retriever_rules import AnswerRules, FilterRules

from . import as_described
from .checked import configured

soak = pytest.mark.soak


class EverythingMatches:
    """Of engines that rank all items for every query."""

    def may_match(self, query: str, item: SearchableItem) -> bool:
        return True


class AnyWordMatches:
    """Of engines to which all words are alike."""

    def may_match(self, query: str, item: SearchableItem) -> bool:
        return bool(as_described.words(query) & as_described.words(item.text))


class Ranking(EverythingMatches, RetrieverRules):
    """Of engines that rank all items."""


class Searching(EverythingMatches, AnswerRules, FilterRules, UpdateRules):
    """Of further configurations of an engine whose settings are checked once."""


class Embedded(EverythingMatches, AnswerRules, FilterRules):
    """Of engines whose server is started for them: it is of this class, whose tests have caches of their own."""

    @pytest.fixture(autouse=True)
    def trusted(self, monkeypatch):
        index = self.index_into("main")
        monkeypatch.setenv(TRUSTED, os.pathsep.join(str(index / name) for name in (".postgres", ".milvus")))


def words():
    return HashedWords(dimension=24)


ROUNDED = {"tolerance": 1e-6}
"""Products of one query and of many are rounded otherwise."""

TestBm25 = configured(RetrieverRules, Bm25Retriever)
TestBm25ExpandedByRm3 = soak(configured(Searching, Bm25Retriever, lambda _: Bm25Retriever(feedback="rm3")))
TestBm25MergedByRank = soak(configured(AnswerRules, Bm25Retriever, lambda _: Bm25Retriever(merge="rrf")))
TestPyserini = configured(RetrieverRules, PyseriniRetriever, lambda _: PyseriniRetriever())

TestFaissFlat = configured(Ranking, FaissRetriever, lambda _: FaissRetriever(words()), **ROUNDED)
TestFaissHnsw = soak(configured(Searching, FaissRetriever, lambda _: FaissRetriever(words(), index="hnsw"), **ROUNDED))
TestFaissSq8 = soak(
    configured(
        Searching,
        FaissRetriever,
        lambda _: FaissRetriever(words(), index="sq8"),
        first_items=12,
        update_tolerance=0.15,  # the codes are those that twelve vectors asked for
        **ROUNDED,
    )
)

TestColbert = configured(
    Ranking,
    ColbertRetriever,
    lambda _: ColbertRetriever(HashedTokens(24)),
    update_tolerance=0.15,  # what the codes of one segment and of another keep of so few vectors
)
TestColbertUncompressed = soak(
    configured(Searching, ColbertRetriever, lambda _: ColbertRetriever(HashedTokens(24), bits=None), **ROUNDED)
)
TestSplade = configured(Ranking, SpladeRetriever, lambda _: SpladeRetriever(HashedTerms()))

TestLinkGraph = configured(
    Ranking,
    LinkGraphRetriever,
    lambda _: LinkGraphRetriever([Bm25Retriever()], links=[TitleMentions(), Hyperlinks()]),
    order_depends_on_filter=True,
)
TestLinkGraphWithVectors = soak(
    configured(
        Searching,
        LinkGraphRetriever,
        lambda _: LinkGraphRetriever([Bm25Retriever(), FaissRetriever(words())], pagerank="exact"),
        order_depends_on_filter=True,
        **ROUNDED,
    )
)
TestFeedback = configured(
    Ranking, FeedbackRetriever, lambda _: FeedbackRetriever([FaissRetriever(words()), Bm25Retriever()]), tolerance=1e-5
)
TestFeedbackInASmallPool = soak(
    configured(
        Searching,
        FeedbackRetriever,
        lambda _: FeedbackRetriever([FaissRetriever(words())], document="title", pool=3),
        tolerance=1e-5,
    )
)


class TestSearcher(AnswerRules, FilterRules, UpdateRules):  # it has no index of its own
    component = SearcherRetriever

    def make(self):
        retrievers = [Bm25Retriever(), Bm25Retriever(k1=1.6)]
        return SearcherRetriever(retrievers, fusion=CombSUM(), reranker=OverlapReranker(blend="replace"))


# servers


def pgvector(**settings):
    return {"component": PgvectorRetriever, "make": lambda _: PgvectorRetriever(words(), url=env_url(), **settings), **ROUNDED}


TestPgvectorExact = configured(Ranking, **pgvector())
TestPgvectorHnsw = soak(configured(Searching, **pgvector(index_type="hnsw")))
TestPgvectorHalves = soak(configured(Searching, **pgvector(index_type="hnsw", precision="halfvec")))
TestPgvectorEmbedded = soak(configured(Embedded, PgvectorRetriever, lambda _: PgvectorRetriever(words()), **ROUNDED))

TestMilvus = configured(Searching, MilvusRetriever, lambda _: MilvusRetriever(words(), url=milvus_url()), **ROUNDED)
TestMilvusHnsw = soak(
    configured(Searching, MilvusRetriever, lambda _: MilvusRetriever(words(), url=milvus_url(), index_type="hnsw"), **ROUNDED)
)
TestMilvusEmbedded = soak(configured(Embedded, MilvusRetriever, lambda _: MilvusRetriever(words()), **ROUNDED))


@pytest.mark.soak
class TestMilvusWords(AnyWordMatches, AnswerRules, FilterRules, UpdateRules):
    component = MilvusRetriever
    tolerance = 1e-6
    update_tolerance = 2.0  # words are weighed in each segment until segments are joined

    def make(self):
        return MilvusRetriever(mode="bm25", url=milvus_url())


# classes that define index and retrieve alone


@pytest.mark.soak
class TestRetrieverInMemory(AnyWordMatches, RetrieverRules):
    component = as_described.KeepsInMemory


class TestRetrieverThatLoadsAndSaves(AnyWordMatches, RetrieverRules):
    component = as_described.LoadsAndSaves
