"""HippoRAG's retriever keeps every rule, in the configurations that work differently inside."""

from __future__ import annotations

import pytest
from conformance.test_retrievers import EverythingMatches
from hashed_words import HashedWords

from nlp_retrieval.systems.hipporag.retriever import HippoRagRetriever
from nlp_retrieval.testing import RetrieverRules, UpdateRules
from nlp_retrieval.testing.retriever_rules import AnswerRules, FilterRules
from nlp_retrieval.testing.verdict import ITEMS
from systems.hipporag.stored_knowledge import openie_docs


class HippoRag(EverythingMatches):
    """Over what some of the kit's passages say."""

    component = HippoRagRetriever
    tolerance = 1e-6

    def prepare(self):
        said = {
            "orrin": [["the lighthouse keeper", "lives at", "Cape Orrin"], ["the lighthouse keeper", "wrote", "a novel"]],
            "velda": [["Velda Marsh", "painted", "the lighthouse"], ["the lighthouse", "stands at", "Cape Orrin"]],
            "tokyo": [["Velda Marsh", "slept in", "東京"]],
            "twin-a": [["a copper lantern", "hangs over", "the narrow gate"]],
            "lodz": [["Łódź", "kept", "one weaving mill"]],
        }
        told = openie_docs((item, said.get(item.item_id, [])) for item in ITEMS)
        (self.folder / "openie.json").write_text(told, "utf-8")

    @property
    def knowledge(self):
        """The file, beside the indexes of the kit."""
        return str(self.folder / "openie.json")


class TestHippoRag(HippoRag, RetrieverRules):
    def make(self):
        return HippoRagRetriever(HashedWords(dimension=24), self.knowledge)


@pytest.mark.soak
class TestHippoRagByEntities(HippoRag, AnswerRules, FilterRules, UpdateRules):
    def make(self):
        return HippoRagRetriever(HashedWords(dimension=24), self.knowledge, linking="entities")


@pytest.mark.soak
class TestHippoRagWithoutPassageNodes(HippoRag, AnswerRules, FilterRules, UpdateRules):
    def make(self):
        return HippoRagRetriever(HashedWords(dimension=24), self.knowledge, passage_weight=0.0)
