"""Every retriever keeps every rule, in the configurations that work differently inside."""

from __future__ import annotations

import re

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
    PostgresTextRetriever,
    PyseriniRetriever,
    SearchableItem,
)
from nlp_retrieval.core.search.searcher import SearcherRetriever
from nlp_retrieval.retrievers.colbert.retriever import ColbertRetriever
from nlp_retrieval.retrievers.link_graph.mentions import Hyperlinks, TitleMentions
from nlp_retrieval.retrievers.splade import SpladeRetriever
from nlp_retrieval.testing import RetrieverRules, UpdateRules
from nlp_retrieval.testing.retriever_rules import AnswerRules, FilterRules

from . import as_described


class EverythingMatches:
    """Of engines that rank all items for every query."""

    def may_match(self, query: str, item: SearchableItem) -> bool:
        return True


class Searching(EverythingMatches, AnswerRules, FilterRules, UpdateRules):
    """Of further configurations of an engine whose settings are checked once."""


class TestBm25(RetrieverRules):
    component = Bm25Retriever


@pytest.mark.soak
class TestBm25ExpandedByRm3(Searching):
    component = Bm25Retriever

    def make(self):
        return Bm25Retriever(feedback="rm3")


@pytest.mark.soak
class TestBm25MergedByRank(AnswerRules):
    component = Bm25Retriever

    def make(self):
        return Bm25Retriever(merge="rrf")


class TestSearcher(AnswerRules, FilterRules, UpdateRules):  # it has no index of its own
    component = SearcherRetriever

    def make(self):
        retrievers = [Bm25Retriever(), Bm25Retriever(k1=1.6)]
        return SearcherRetriever(retrievers, fusion=CombSUM(), reranker=OverlapReranker(blend="replace"))


class TestPyserini(RetrieverRules):
    component = PyseriniRetriever

    def make(self):
        return PyseriniRetriever(document_vectors=True)  # which rm3 needs


class TestFaissFlat(EverythingMatches, RetrieverRules):
    component = FaissRetriever
    tolerance = 1e-6  # products of one query and of many are rounded otherwise

    def make(self):
        return FaissRetriever(HashedWords(dimension=24))


@pytest.mark.soak
class TestFaissHnsw(Searching):
    component = FaissRetriever
    tolerance = 1e-6

    def make(self):
        return FaissRetriever(HashedWords(dimension=24), index="hnsw")


@pytest.mark.soak
class TestFaissSq8(Searching):
    component = FaissRetriever
    tolerance = 1e-6
    first_items = 12
    update_tolerance = 0.15  # the codes are those that twelve vectors asked for

    def make(self):
        return FaissRetriever(HashedWords(dimension=24), index="sq8")


class TestColbert(EverythingMatches, RetrieverRules):
    component = ColbertRetriever
    update_tolerance = 0.15  # what the codes of one segment and of another keep of so few vectors

    def make(self):
        return ColbertRetriever(HashedTokens(24))


@pytest.mark.soak
class TestColbertUncompressed(EverythingMatches, UpdateRules):
    component = ColbertRetriever
    tolerance = 1e-6

    def make(self):
        return ColbertRetriever(HashedTokens(24), bits=None)


class TestSplade(EverythingMatches, RetrieverRules):
    component = SpladeRetriever

    def make(self):
        return SpladeRetriever(HashedTerms())


class TestLinkGraph(EverythingMatches, RetrieverRules):
    component = LinkGraphRetriever
    order_depends_on_filter = True

    def make(self):
        return LinkGraphRetriever([Bm25Retriever()], links=[TitleMentions(), Hyperlinks()])


@pytest.mark.soak
class TestLinkGraphWithVectors(Searching):
    component = LinkGraphRetriever
    tolerance = 1e-6
    order_depends_on_filter = True

    def make(self):
        return LinkGraphRetriever([Bm25Retriever(), FaissRetriever(HashedWords(dimension=24))], pagerank="exact")


class TestFeedback(EverythingMatches, RetrieverRules):
    component = FeedbackRetriever
    tolerance = 1e-5

    def make(self):
        return FeedbackRetriever([FaissRetriever(HashedWords(dimension=24)), Bm25Retriever()])


@pytest.mark.soak
class TestFeedbackInASmallPool(Searching):
    component = FeedbackRetriever
    tolerance = 1e-5

    def make(self):
        return FeedbackRetriever([FaissRetriever(HashedWords(dimension=24))], document="title", pool=3)


class OnAServer:
    """Of engines whose data lives in a server."""

    def prepare(self):
        type(self).url = env_url()


class TestPgvectorExact(OnAServer, EverythingMatches, RetrieverRules):
    component = PgvectorRetriever
    tolerance = 1e-6

    def make(self):
        return PgvectorRetriever(HashedWords(dimension=24), url=self.url)


@pytest.mark.soak
class TestPgvectorHnsw(OnAServer, Searching):
    component = PgvectorRetriever
    tolerance = 1e-6

    def make(self):
        return PgvectorRetriever(HashedWords(dimension=24), url=self.url, index_type="hnsw")


@pytest.mark.soak
class TestPgvectorHalves(OnAServer, Searching):
    component = PgvectorRetriever
    tolerance = 1e-6

    def make(self):
        return PgvectorRetriever(HashedWords(dimension=24), url=self.url, index_type="hnsw", precision="halfvec")


@pytest.mark.soak
class TestPgvectorOld(Searching):
    component = PgvectorRetriever
    tolerance = 1e-6

    def prepare(self):
        type(self).url = env_url("old")

    def make(self):
        return PgvectorRetriever(HashedWords(dimension=24), url=self.url, index_type="hnsw")


@pytest.mark.soak
class TestPgvectorEmbedded(EverythingMatches, AnswerRules, FilterRules):
    component = PgvectorRetriever
    tolerance = 1e-6

    def make(self):
        return PgvectorRetriever(HashedWords(dimension=24))


class TestPostgresText(OnAServer, RetrieverRules):
    component = PostgresTextRetriever

    def make(self):
        return PostgresTextRetriever(url=self.url)


class OnMilvus:
    """Of configurations of Milvus on a server."""

    component = MilvusRetriever
    tolerance = 1e-6  # products of one query and of many are rounded otherwise

    def prepare(self):
        type(self).url = milvus_url()


class TestMilvusBoth(OnMilvus, EverythingMatches, RetrieverRules):
    update_tolerance = 0.02  # ranks by words that are weighed in each segment
    order_depends_on_filter = True

    def make(self):
        return MilvusRetriever(HashedWords(dimension=24), "both", url=self.url)


@pytest.mark.soak
class TestMilvusHnsw(OnMilvus, Searching):
    def make(self):
        return MilvusRetriever(HashedWords(dimension=24), url=self.url, index_type="hnsw")


@pytest.mark.soak
class TestMilvusWords(OnMilvus, AnswerRules, FilterRules, UpdateRules):
    update_tolerance = 2.0  # words are weighed in each segment until segments are joined

    def may_match(self, query, item):
        return bool(words_of(query) & words_of(item.text))

    def make(self):
        return MilvusRetriever(mode="bm25", url=self.url)


def words_of(text):
    """What Milvus's standard analyzer makes of a text."""
    return {*re.findall(r"\w+", text.lower())}


@pytest.mark.soak
class TestMilvusEmbedded(EverythingMatches, AnswerRules, FilterRules):
    component = MilvusRetriever
    tolerance = 1e-6

    def make(self):
        return MilvusRetriever(HashedWords(dimension=24))


class AnyWordMatches:
    """Of engines to which all words are alike."""

    def may_match(self, query, item):
        return bool(as_described.words(query) & as_described.words(item.text))


@pytest.mark.soak
class TestRetrieverInMemory(AnyWordMatches, RetrieverRules):
    component = as_described.KeepsInMemory


class TestRetrieverThatLoadsAndSaves(AnyWordMatches, RetrieverRules):
    component = as_described.LoadsAndSaves
