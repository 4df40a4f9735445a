"""Every processor keeps every rule; those that ask a language model ask a server of the tests."""

from __future__ import annotations

import pytest
from chat_server import asked, fields, model, server

from nlp_retrieval.processors.entity_phrases import EntityPhrases
from nlp_retrieval.processors.rules import ClauseSplit, KeywordExpansion
from nlp_retrieval.processors.with_model import ClaimPhrases, HyDE
from nlp_retrieval.testing import ProcessorRules

from .checked import configured

soak = pytest.mark.soak

__all__ = ["model", "server"]


KEYWORDS = {"lighthouse": ["beacon", "東京"], "the": ["article"], "glacier": ["ice"]}

TestClauseSplit = configured(ProcessorRules, ClauseSplit)
TestClausesWithoutTheQuery = soak(
    configured(ProcessorRules, ClauseSplit, lambda _: ClauseSplit(min_words=1, max_clauses=4, keep_query=False))
)
TestEntityPhrases = configured(ProcessorRules, EntityPhrases)
TestPhrasesWithoutTheQuery = soak(
    configured(ProcessorRules, EntityPhrases, lambda _: EntityPhrases(max_phrases=2, context=0, keep_query=False))
)
TestKeywordExpansion = configured(ProcessorRules, KeywordExpansion, lambda _: KeywordExpansion(KEYWORDS))
TestKeywordsForEveryQuery = soak(
    configured(ProcessorRules, KeywordExpansion, lambda _: KeywordExpansion(["novel", "glacier"], keep_query=False))
)


class AsksAModel(ProcessorRules):
    """Of processors that ask: every test has a server and an empty folder of answers."""

    @pytest.fixture(autouse=True)
    def asking(self, server, model):
        self.model = model
        halves = server.answer
        server.answer = lambda body: halves(body) if "## claim ##" in str(body) else self.passage(asked(body, "query"))

    def passage(self, query):
        return fields(passage=f"It is known of {query} that storms came.")


TestClaimDecomposition = configured(AsksAModel, ClaimPhrases, lambda test: ClaimPhrases(test.model()))
TestHyDE = configured(AsksAModel, HyDE, lambda test: HyDE(test.model()))
