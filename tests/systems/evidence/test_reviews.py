"""Reviews of citations: they survive what does not matter, reopen when it does, and nobody's decision is lost."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict

import pytest
from cli.commands import run

from nlp_retrieval import Bm25Retriever, Searcher
from nlp_retrieval.errors import InputError
from nlp_retrieval.systems.evidence.audit import CitationAuditor, summary_of
from nlp_retrieval.systems.evidence.audit_report import summary_sentence
from nlp_retrieval.systems.evidence.commands.reports import read_cited_report
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
from nlp_retrieval.systems.evidence.reviews import ReviewedCitation, Reviews
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


def reviewed(auditor: CitationAuditor, report: str = REPORT) -> list[str]:
    return [row.review.said for row in auditor.audit(report).rows]


@pytest.mark.parametrize(
    "report",
    [
        REPORT,
        f"A new first line.\n\n{REPORT}",
        REPORT.replace("[1]", "[7]"),
        REPORT.replace("It has 27 stops", "It  has\n27\u00a0stops"),
        REPORT.replace("https://stats.example/tram", "http://STATS.example/tram/?utm_source=x"),
        REPORT.replace("[1]. The tram", "[1].\n\nThe tram"),
    ],
    ids=["same", "moved", "renumbered", "spaces", "address", "paragraph"],
)
def test_a_review_survives_a_new_audit_of_the_same_sentence_and_source(auditor, report):
    first, second = auditor.audit(REPORT).report.citations
    auditor.reviews.add(first, "accepted", "Ann", "The count of 2025.")
    auditor.reviews.add(second, "rejected", "Bob")
    again = project(auditor.index.project_path)
    rows = again.audit(report).rows
    assert [row.status for row in rows] == ["REVIEW", "PASS"]
    assert [(row.review.decision, row.passes) for row in rows] == [("accepted", True), ("rejected", False)]
    summary = summary_of(rows)
    assert (summary.passed, summary.review, summary.accepted, summary.rejected) == (1, 1, 1, 1)
    assert summary_sentence(rows) == "1 of 2 citations pass (1 accepted by a reviewer); 1 rejected by a reviewer."


def test_a_review_reopens_if_its_source_changes(auditor):
    auditor.reviews.add(auditor.audit(REPORT).report.citations[0], "accepted", "Ann")
    auditor.index.add_document(TEXT.replace("22", "23"), TRAM)
    auditor.index.build_index()
    row, other = auditor.audit(REPORT).rows
    date = auditor.reviews.all()[0].date[:10]
    assert row.review.said == f"reviewed on an earlier version: accepted by Ann on {date}; the source has changed"
    assert (row.review.decision, row.passes) == ("", False)
    assert other.review.said == "", "another sentence of the same source was not reviewed"
    assert auditor.audit(REPORT.replace("27", "28")).rows[0].review.said == "", "another sentence is another citation"


def test_the_last_of_two_reviewers_stands_and_their_disagreement_is_shown(auditor):
    citation = auditor.audit(REPORT).report.citations[0]
    for decision, by in (("accepted", "Ann"), ("rejected", "Bob"), ("noted", "Cy")):
        auditor.reviews.add(citation, decision, by, "Look again." if decision == "noted" else "")
    review = auditor.audit(REPORT).rows[0].review
    assert (review.decision, review.is_disputed) == ("rejected", True)
    assert "the reviewers disagree" in review.said
    assert [each.by for each in review.history] == ["Ann", "Bob", "Cy"]
    auditor.reviews.add(citation, "withdrawn", "Bob")
    review = auditor.audit(REPORT).rows[0].review
    assert (review.decision, review.is_disputed) == ("accepted", False)
    assert [each.decision for each in review.history] == ["accepted", "rejected", "noted", "withdrawn"]
    auditor.reviews.add(citation, "withdrawn", "Ann")
    assert auditor.audit(REPORT).rows[0].review.decision == "noted"


def test_many_writers_lose_nothing(auditor):
    citation = auditor.audit(REPORT).report.citations[0]

    def write(name: str) -> None:
        own = Reviews(auditor.index)
        for number in range(8):
            own.add(citation, "noted", name, f"note {number}")

    writers = [threading.Thread(target=write, args=(f"reviewer {number}",)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len({(review.by, review.note) for review in auditor.reviews.all()}) == 32


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"decision": "passed"}, "decision='passed'"),
        ({"by": "  "}, "name of its reviewer"),
        ({"by": "Jos\u00e9\u200d"}, "visible characters"),
        ({"decision": "noted"}, "a note is empty"),
        ({"cited": "javascript:alert(1)"}, "neither a URL"),
        ({"version": "0" * 64}, "no text 000000000000"),
        ({"cited": "https://elsewhere.example/"}, "this project has no text"),
        ({"version": ""}, "was added since"),
    ],
)
def test_a_review_that_cannot_be_used_is_refused(auditor, wrong, message):
    of = asdict(auditor.reviews.citation(auditor.audit(REPORT).report.citations[0]))
    given = of | {"decision": "accepted", "by": "Ann"} | wrong
    decision, by = given.pop("decision"), given.pop("by")
    with pytest.raises(InputError, match=message):
        auditor.reviews.add(ReviewedCitation(**given), decision, by)
    assert auditor.reviews.all() == []


def test_reviews_decide_what_fails_on_the_command_line(tmp_path):
    folder = make_project(tmp_path)
    audit = ("evidence", "audit", "project", "report.md", "--fail-on", "review")
    assert run(*audit, folder=folder).returncode == 1
    nobody = run("evidence", "review", "project", "report.md", "2", "--accept", folder=folder)
    assert nobody.returncode != 0
    assert "--by" in nobody.stderr
    done = run("evidence", "review", "project", "report.md", "2", "3", "--accept", "--by", "Ann", folder=folder)
    assert done.returncode == 0, done.stderr
    passed = run(*audit, folder=folder)
    assert passed.returncode == 0, passed.stdout
    assert "3 of 3 citations pass (2 accepted by a reviewer)." in passed.stdout
    rejected = run("evidence", "review", "project", "report.md", "1", "--reject", "--by", "Bob", folder=folder)
    assert rejected.returncode == 0, rejected.stderr
    assert run(*audit, folder=folder).returncode == 1
    listed = run("evidence", "review", "project", "report.md", folder=folder)
    assert "rejected by Bob" in listed.stdout
    assert "22 stops" not in listed.stdout, "an accepted citation is not open"


def test_a_review_says_which_sources_were_found_by_their_titles_as_the_audit_does(tmp_path):
    folder = make_project(tmp_path)
    (folder / "more.jsonl").write_text(json.dumps({"url": TRAM, "title": "The stops of a tram", "content": TEXT}))
    assert run("evidence", "add", "project", "more.jsonl", "-r", "bm25", folder=folder).returncode == 0
    (folder / "titles.md").write_text("It has 27 stops [1].\n\n## References\n\n[1] Rehm, I. The stops of a tram.\n")
    for command in ("audit", "review"):
        done = run("evidence", command, "project", "titles.md", folder=folder)
        assert "note: nothing is stored under their address, so these are judged by the source with their title: [1]" in (
            done.stderr
        )


def test_a_work_without_a_title_is_none_that_a_citation_without_one_cites(tmp_path):
    (tmp_path / "report.md").write_text("It has 27 stops [@a]. It is old [@nobody].\n")
    (tmp_path / "works.json").write_text('[{"id": "a", "title": "Tram in figures"}, {"id": "b"}]')
    read = read_cited_report(tmp_path / "report.md", tmp_path / "works.json")
    assert [citation.title for citation in read.citations] == ["Tram in figures", ""]
    assert [work.mark for work in read.references] == ["a"]
