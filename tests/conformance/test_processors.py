"""Every processor keeps every rule; those that ask a language model ask a server of the tests."""

from __future__ import annotations

import pytest
from chat_server import asked, fields, model, server

from nlp_retrieval.processors.entity_phrases import EntityPhrases
from nlp_retrieval.processors.rules import Chain, ClauseSplit, KeywordExpansion
from nlp_retrieval.processors.with_model import ClaimPhrases, HyDE
from nlp_retrieval.testing import ProcessorRules

__all__ = ["model", "server"]


class TestClauseSplit(ProcessorRules):
    component = ClauseSplit


@pytest.mark.soak
class TestClausesWithoutTheQuery(ProcessorRules):
    component = ClauseSplit

    def make(self):
        return ClauseSplit(min_words=1, max_clauses=4, keep_query=False)


class TestEntityPhrases(ProcessorRules):
    component = EntityPhrases


@pytest.mark.soak
class TestPhrasesWithoutTheQuery(ProcessorRules):
    component = EntityPhrases

    def make(self):
        return EntityPhrases(max_phrases=2, context=0, keep_query=False)


class TestKeywordExpansion(ProcessorRules):
    component = KeywordExpansion

    def make(self):
        return KeywordExpansion({"lighthouse": ["beacon", "東京"], "the": ["article"], "glacier": ["ice"]})


@pytest.mark.soak
class TestKeywordsForEveryQuery(ProcessorRules):
    component = KeywordExpansion

    def make(self):
        return KeywordExpansion(["novel", "glacier"], keep_query=False)


class TestChain(ProcessorRules):
    component = Chain

    def make(self):
        return Chain([ClauseSplit(min_words=2), KeywordExpansion(["novel"]), EntityPhrases()])


class AsksAModel(ProcessorRules):
    """Of processors that ask: every test has a server and an empty folder of answers."""

    @pytest.fixture(autouse=True)
    def asking(self, server, model):
        self.model = model
        halves = server.answer
        server.answer = lambda body: halves(body) if "## claim ##" in str(body) else self.passage(asked(body, "query"))

    def passage(self, query):
        return fields(passage=f"It is known of {query} that storms came.")


class TestClaimDecomposition(AsksAModel):
    component = ClaimPhrases

    def make(self):
        return ClaimPhrases(self.model())


class TestHyDE(AsksAModel):
    component = HyDE

    def make(self):
        return HyDE(self.model())
