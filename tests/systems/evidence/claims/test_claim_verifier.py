"""A claim is verified by independent origins, with quotes that stand in the stored text."""

from __future__ import annotations

import pytest

from nlp_retrieval.errors import ConfigurationError, QueryError
from nlp_retrieval.systems.evidence.audit import CitationAuditor
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
from nlp_retrieval.systems.evidence.verdict.claims import ClaimVerifier
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier, Judgement
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier

from ..sources import SOURCES, project


class WordVerifier(BaseVerifier):
    """Supports where a passage has a word, which comes with it."""

    name = "words-of-a-test"

    def __init__(self, supporting: str) -> None:
        self.supporting = supporting

    def judge_pairs(self, claims: list[str], passages: list[str]) -> list[Judgement]:
        found = []
        for passage in passages:
            support = 0.9 * (self.supporting in passage)
            end = passage.find(".") + 1
            found.append(Judgement(support, 0.0, 1 - support, (0, end)))
        return found


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> EvidenceIndex:
    return project(tmp_path_factory.mktemp("project"))


@pytest.mark.parametrize(
    ("claim", "status", "word"),
    [
        ("The Long Bridge was opened in 1932.", "PASS", "supported"),
        ("The Long Bridge carries trams across the harbour.", "WEAK", "weak"),
        ("The Long Bridge was not opened in 1932.", "REVIEW", "contradicted"),
        ("The Long Bridge was opened in 1733.", "REVIEW", "contradicted"),
    ],
)
def test_a_sentence_and_its_source_are_decided_alike_in_an_audit_and_in_a_verdict(
    index: EvidenceIndex, claim: str, status: str, word: str
) -> None:
    url = SOURCES[0][1]
    (row,) = CitationAuditor(index, LexicalVerifier()).audit([{"text": claim, "cited_url": url}]).rows
    verdict = ClaimVerifier(index, LexicalVerifier()).verify(claim)
    sides = (verdict.supporting_evidence, verdict.weak_evidence, verdict.contradicting_evidence, verdict.neutral_evidence)
    found = {each.decision.verdict for side in sides for each in side if each.passage.url == url}
    assert (row.status, found) == (status, {word})


def test_what_cannot_be_used_is_named(index: EvidenceIndex) -> None:
    with pytest.raises(ConfigurationError, match=r"claim_type='C4'; .*C1, C2"):
        ClaimVerifier(index, LexicalVerifier()).verify("x", "C4")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"threshold=1\.2"):
        ClaimVerifier(index, LexicalVerifier(), threshold=1.2)
    with pytest.raises(ConfigurationError, match="k=0"):
        ClaimVerifier(index, LexicalVerifier(), k=0)
    with pytest.raises(QueryError):
        ClaimVerifier(index, LexicalVerifier()).verify(7)  # type: ignore[arg-type]


class SilentVerifier(BaseVerifier):
    """Says nothing, and why."""

    name = "silent"

    def judge_pairs(self, claims: list[str], passages: list[str]) -> list[Judgement]:
        return [Judgement(0.0, 0.0, 1.0, (0, 0), was_judged=False)] * len(claims)


def test_passages_that_were_not_judged_are_not_told_as_a_finding(index: EvidenceIndex) -> None:
    verdict = ClaimVerifier(index, SilentVerifier()).verify("The Long Bridge")
    read = len(verdict.neutral_evidence)
    assert (verdict.verification_status, verdict.not_judged) == ("UNVERIFIED", read)
    assert f"{read} of {read} passages were not judged by silent: " in verdict.rule
    assert verdict.as_dict()["not_judged"] == read > 0
    assert ClaimVerifier(index, WordVerifier("1932")).verify("The Long Bridge").not_judged == 0
