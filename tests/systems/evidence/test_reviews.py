"""Reviews of citations: they survive what does not matter, and reopen when it does."""

from __future__ import annotations

import pytest
from cli.commands import run

from nlp_retrieval import Bm25Retriever, Searcher
from nlp_retrieval.errors import InputError
from nlp_retrieval.systems.evidence.audit import CitationAuditor
from nlp_retrieval.systems.evidence.audit_report import summary_sentence
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier
from systems.evidence.commands.world import make_project

TRAM = "https://stats.example/tram"
TEXT = "The tram carried 2.4 million passengers in 2019. It has 22 stops."
REPORT = """# The tram

It has 27 stops [1]. The tram carried 2.4 million passengers in 2019 [1].

[1]: https://stats.example/tram
"""


def project(folder) -> CitationAuditor:
    index = EvidenceIndex(folder, Searcher([Bm25Retriever()]))
    index.add_document(TEXT, TRAM)
    index.build_index()
    return CitationAuditor(index, LexicalVerifier())


@pytest.fixture
def auditor(tmp_path):
    return project(tmp_path / "project")


def test_a_review_survives_a_new_audit_of_the_same_sentence_and_source(auditor, subtests):
    first, second = auditor.audit(REPORT).report.citations
    auditor.reviews.add(first, "accepted", "Ann", "The count of 2025.")
    auditor.reviews.add(second, "rejected", "Bob")
    reports = {
        "same": REPORT,
        "moved": f"A new first line.\n\n{REPORT}",
        "renumbered": REPORT.replace("[1]", "[7]"),
        "spaces": REPORT.replace("It has 27 stops", "It  has\n27\u00a0stops"),
        "address": REPORT.replace("https://stats.example/tram", "http://STATS.example/tram/?utm_source=x"),
    }
    for name, report in reports.items():
        with subtests.test(name):
            rows = project(auditor.index.project_path).audit(report).rows
            assert [row.status for row in rows] == ["REVIEW", "PASS"]
            assert [(row.review.decision, row.passes) for row in rows] == [("accepted", True), ("rejected", False)]
            assert summary_sentence(rows) == "1 of 2 citations pass; 1 to review: 1 rejected."


def test_a_review_reopens_if_its_source_or_sentence_changes(auditor):
    auditor.reviews.add(auditor.audit(REPORT).report.citations[0], "accepted", "Ann")
    for report in (REPORT.replace("27", "28"), REPORT.replace("It has 27", "> It has 27")):
        assert [row.review is None for row in auditor.audit(report).rows] == [True, True]
    auditor.index.add_document(TEXT.replace("22", "23"), TRAM)
    auditor.index.build_index()
    row, _ = auditor.audit(REPORT).rows
    assert (row.review, row.passes) == (None, False)


def test_the_last_review_stands_until_it_is_withdrawn(auditor):
    citation = auditor.audit(REPORT).report.citations[0]
    for decision, by, stands in (("accepted", "Ann", True), ("rejected", "Bob", True), ("withdrawn", "Bob", False)):
        auditor.reviews.add(citation, decision, by)
        review = auditor.audit(REPORT).rows[0].review
        assert (review is not None) == stands
        assert not stands or (review.decision, review.by) == (decision, by)


def test_a_review_that_cannot_be_used_is_refused(auditor):
    citation = auditor.audit(REPORT).report.citations[0]
    for decision, by, message in (("passed", "Ann", "decision='passed'"), ("accepted", " ", "name of its reviewer")):
        with pytest.raises(InputError, match=message):
            auditor.reviews.add(citation, decision, by)
    assert auditor.audit(REPORT).rows[0].review is None


def test_reviews_decide_what_fails_on_the_command_line(tmp_path):
    folder = make_project(tmp_path)
    audit = ("evidence", "audit", "project", "report.md", "--fail-on", "review")
    assert run(*audit, folder=folder).returncode == 1
    nobody = run("evidence", "review", "project", "report.md", "2", "--accept", folder=folder)
    assert nobody.returncode != 0
    assert "name of its reviewer" in nobody.stderr
    done = run("evidence", "review", "project", "report.md", "2", "3", "--accept", "--by", "Ann", folder=folder)
    assert done.returncode == 0, done.stderr
    passed = run(*audit, folder=folder)
    assert passed.returncode == 0, passed.stdout
    assert "3 of 3 citations pass." in passed.stdout
    rejected = run("evidence", "review", "project", "report.md", "1", "--reject", "--by", "Bob", folder=folder)
    assert rejected.returncode == 0, rejected.stderr
    assert run(*audit, folder=folder).returncode == 1
    listed = run("evidence", "review", "project", "report.md", folder=folder)
    assert "rejected by Bob" in listed.stdout
    assert "22 stops" not in listed.stdout, "an accepted citation is not open"
