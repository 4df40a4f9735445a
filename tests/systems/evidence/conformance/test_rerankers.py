"""A verifier keeps the rules of rerankers, and judges like one."""

from __future__ import annotations

import numpy as np

from nlp_retrieval import SearchableItem
from nlp_retrieval.systems.evidence.verifiers.base import ABSTAINED, Judgement
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier
from nlp_retrieval.systems.evidence.verifiers.reranker import VerifierReranker
from nlp_retrieval.testing import RerankerRules

CLAIM = "The tram network closed in 1962."
PASSAGES = ("The tram network closed in 1962.", "The tram network closed in 1974.", "Whales eat krill.")


class TestVerifierReranker(RerankerRules):
    component = VerifierReranker

    def make(self):
        return VerifierReranker(LexicalVerifier(), blend="replace")


def test_what_bears_on_a_claim_scores_above_what_does_not_and_an_abstention_scores_0() -> None:
    class Abstains(LexicalVerifier):
        def judge_pairs(self, claims: list[str], passages: list[str]) -> list[Judgement]:
            return [Judgement(0.9, 0.05, 0.05, (0, 0), {ABSTAINED: 1.0}) for _ in claims]

    items = [SearchableItem(item_id=str(number), content=text) for number, text in enumerate(PASSAGES)]
    columns = VerifierReranker("lexical").score_pairs([CLAIM] * 3, items)
    expected = [(each.support, each.contradict) for each in LexicalVerifier().judge([CLAIM] * 3, PASSAGES)]
    assert np.allclose(np.stack([columns["support"], columns["contradict"]], axis=1), expected)
    assert min(columns["score"][:2]) > columns["score"][2]
    assert VerifierReranker(Abstains()).score_pairs([CLAIM], items[:1])["score"].tolist() == [0.0]
