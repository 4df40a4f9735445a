"""The retriever of hops keeps every rule, in the configurations that work differently inside."""

from __future__ import annotations

from conformance.test_retrievers import EverythingMatches
from hashed_words import HashedWords

from nlp_retrieval import FaissRetriever
from nlp_retrieval.systems.policy.chunk_tables.retriever import ChunkVectorRetriever
from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTablesLoader
from nlp_retrieval.systems.policy.hop.retriever import HopRetriever
from nlp_retrieval.testing import ComponentRules, RetrieverRules


class TestHop(EverythingMatches, RetrieverRules):
    component = HopRetriever
    tolerance = 1e-6
    order_depends_on_filter = True

    def make(self):
        return HopRetriever(FaissRetriever(HashedWords(dimension=24)))


class TestChunkVectors(ComponentRules):
    """What it indexes are rows of a database; ``chunk_tables/test_stored_vectors.py`` searches them."""

    component = ChunkVectorRetriever

    def make(self):
        return ChunkVectorRetriever(ChunkTablesLoader("env:PLANS"), HashedWords(dimension=24))
