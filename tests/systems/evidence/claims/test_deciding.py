"""What a source does to a claim: lookups first, the verifier for what they leave open."""

from __future__ import annotations

import pytest

from nlp_retrieval.systems.evidence.verdict.deciding import Decider, Decision, Question
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier, Judgement


class _Believer(BaseVerifier):
    """Supports every claim that it is asked about, with one probability, and keeps the claims."""

    name = "believer"

    def __init__(self, support: float = 0.95) -> None:
        self.support, self.asked = support, list[str]()

    def judge_pairs(self, claims: list[str], passages: list[str]) -> list[Judgement]:
        self.asked += claims
        rest = (1 - self.support) / 2
        return [Judgement(self.support, rest, rest, (0, len(passage)), {}) for passage in passages]


def _decided(claim: str, source: str, verifier: BaseVerifier) -> Decision:
    (decision,) = Decider(verifier, 0.5).decide([Question(claim, source, source)])
    return decision


SUBSIDIES = "The town of Aldra got 31 million crowns, more than Berik with 12 million."


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Berik got 31 million crowns.", SUBSIDIES),
        ("The canal was dug in 1871.", "The canal was dug in 1817."),
        ("The paper calls it \u201ca triumph of planning\u201d.", "The paper calls it a triumph of nerve."),
        ("The museum lends its maps to schools.", "The museum does not lend its maps to schools."),
    ],
)
def test_a_model_is_not_asked_what_can_be_looked_up(claim: str, source: str) -> None:
    believer = _Believer()
    decision = _decided(claim, source, believer)
    assert not decision.holds
    assert decision.detail
    assert believer.asked == []


@pytest.mark.parametrize("claim", ["Aldra got 31 million crowns.", "Aldra got 19 million crowns more than Berik."])
def test_a_model_is_asked_about_the_rest(claim: str) -> None:
    believer = _Believer()
    decision = _decided(claim, SUBSIDIES, believer)
    assert decision.verdict == "supported"
    assert believer.asked == [claim]


def test_support_of_which_the_verifier_is_not_sure_is_weak() -> None:
    claim, source = "The choir sings in the old mill.", "In the old mill, songs are practised by the choir."
    words = [_decided(claim, source, _Believer(support)).verdict for support in (0.45, 0.52, 0.69, 0.7, 0.95)]
    assert words == ["not found", "weak", "weak", "supported", "supported"]
