"""Reports and sources written to make an audit pass what is wrong, or to be taken for another page: none does."""

from __future__ import annotations

from pathlib import Path

import pytest

from nlp_retrieval import Bm25Retriever, Searcher
from nlp_retrieval.systems.evidence.audit import CitationAuditor
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
from nlp_retrieval.systems.evidence.verdict.claims import ClaimVerifier
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier

URL = "https://bridge.example/long"
SOURCE = "The Long Bridge was opened in 1932. It carries rail and road traffic, and it was built by Ada Winter."


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> EvidenceIndex:
    found = EvidenceIndex(tmp_path_factory.mktemp("project"), Searcher([Bm25Retriever()]))
    found.add_document(SOURCE, URL, "The Long Bridge")
    found.build_index()
    return found


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("The Long Bridge was opened in 1952<!-- 1932 --> [1].", "other number"),
        ("The Long Bridge was opened in 19\u200b52 [1].", "other number"),
        ("The Long Bridge was opened in \uff11\uff19\uff15\uff12 [1].", "other number"),
        ("The Long Bridge was opened in ~~1932~~ 1952 [1].", "other number"),
        ("The Long Bridge was n\u043et opened in 1932 [1].", "contradicted"),
        ("The Long Bridge was \u202enot\u202c opened in 1932 [1].", "contradicted"),
    ],
)
def test_a_report_hides_nothing_of_what_it_claims(index: EvidenceIndex, written: str, reason: str) -> None:
    (row,) = CitationAuditor(index, LexicalVerifier()).audit(f"{written}\n\n[1]: {URL}").rows
    assert (row.status, row.reason) == ("REVIEW", reason)


@pytest.mark.parametrize(
    "url",
    [f"{URL}.evil", "https://bridge.example.evil/long", f"https://evil.example/{URL}", "https://br\u0456dge.example/long"],
)
def test_another_address_is_not_taken_for_that_of_a_source(index: EvidenceIndex, url: str) -> None:
    (row,) = CitationAuditor(index, LexicalVerifier()).audit(f"The Long Bridge was opened in 1932 [1].\n\n[1]: {url}").rows
    assert row.status == "SOURCE_NOT_INDEXED"


def test_copies_with_a_padding_of_their_own_verify_nothing(tmp_path: Path) -> None:
    claim = "The Long Bridge carries 160,000 vehicles every day."
    story = (
        f"{claim} The harbour office published the figure on Monday, after it had counted for a whole year with cameras at "
        "both ends of the bridge, and it said that lorries were a tenth of them."
    )
    index = EvidenceIndex(tmp_path, Searcher([Bm25Retriever()]))
    for number in range(6):
        padding = " ".join(f"Outlet {number} sells {word} of kind {number * word} by post." for word in range(3, 90))
        index.add_document(f"{story}\n\n{padding}", f"https://outlet{number}.example/")
    index.build_index()
    verdict = ClaimVerifier(index, LexicalVerifier()).verify(claim)
    assert len(verdict.supporting_evidence) == 6
    assert (verdict.verification_status, verdict.independence_count) == ("SUPPORTED", 1)
