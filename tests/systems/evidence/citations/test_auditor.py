"""Each citation is judged inside its own source, and told apart by what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nlp_retrieval import Bm25Retriever, Searcher
from nlp_retrieval.errors import InputError
from nlp_retrieval.systems.evidence.audit import CitationAudit, CitationAuditor
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex, SourceReading
from nlp_retrieval.systems.evidence.index.store import SourceVersion
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier, Judgement
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier

from ..sources import BRIDGE, SOURCES, project

REFERENCES = "\n\n## References\n\n" + "\n".join(f"[{n}] {one[2]}. {one[1]}" for n, one in enumerate(SOURCES, start=1))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> EvidenceIndex:
    return project(tmp_path_factory.mktemp("project"))


def audited(index: EvidenceIndex, text: str) -> CitationAudit:
    return CitationAuditor(index, LexicalVerifier(), threshold=0.35).audit(text + REFERENCES)


def test_the_same_words_are_judged_apart_in_prose_and_in_a_block_quote(index: EvidenceIndex) -> None:
    said = "opened in 1932 was the Long Bridge [1]."
    for text in (f"{said}\n\n> {said}", f"> {said}\n\n{said}"):
        by_quoted = {row.citation.quoted: row.reason for row in audited(index, text).rows}
        assert by_quoted == {False: "", True: "quote not found"}


def test_a_citation_that_is_repeated_is_judged_once(index: EvidenceIndex) -> None:
    asked: list[str] = []

    class Counting(LexicalVerifier):
        def judge_pairs(self, claims: list[str], passages: list[str]) -> list[Judgement]:
            asked.extend(claims)
            return super().judge_pairs(claims, passages)

    said = "The Long Bridge was opened in 1932"
    report = f"{said} [1].\n\nIt rained. {said} [1].\n\n{said} [1], as the city says [1].{REFERENCES}"
    rows = CitationAuditor(index, Counting(), 0.35).audit(report).rows
    assert [(row.citation.number, row.citation.line) for row in rows] == [(1, 1), (2, 3), (3, 5), (4, 5)]
    assert all(row.passage is not None for row in rows)
    assert len(asked) == 2


def test_claims_with_the_url_that_they_cite_are_audited_like_a_report(index: EvidenceIndex) -> None:
    auditor = CitationAuditor(index, LexicalVerifier(), threshold=0.35)
    opened, url = "The Long Bridge was opened in 1932.", SOURCES[0][1]
    claims = [
        {"text": opened, "cited_url": url, "id": 7},
        {"text": "The Long Bridge was opened in 1952.", "cited_url": [url]},
        {"text": opened, "cited_url": "https://nowhere.example/"},
        {"text": opened, "cited_url": None},
    ]
    rows = auditor.audit(claims).rows
    assert [(row["claim"], row["cited_url"]) for row in rows] == [
        (claim["text"], url if number < 2 else claim["cited_url"] or "") for number, claim in enumerate(claims)
    ]
    assert [row["status"] for row in rows] == ["PASS", "REVIEW", "SOURCE_NOT_INDEXED", "REVIEW"]
    assert [row["reason"] for row in rows] == ["", "other number", "", "no reference"]
    assert opened in str(rows[0]["actual_passage"])
    assert rows[0]["support_score"] == audited(index, "The Long Bridge was opened in 1932 [1].").rows[0].support_score


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ([{"text": "x", "cited_url": "y"}, {"text": "x", "url": "y"}], "claim 2 of 2 needs"),
        *[([{"text": "x", "cited_url": cited}], '"cited_url" a URL, a list of them, or None') for cited in (3, 0, [False])],
        ({"text": "x", "cited_url": "y"}, "come as a list of dicts with text and cited_url, not as dict"),
    ],
)
def test_claims_that_are_no_dicts_are_refused(index: EvidenceIndex, claims: list[dict[str, object]], said: str) -> None:
    with pytest.raises(InputError, match=said):
        CitationAuditor(index, LexicalVerifier()).audit(claims)


@pytest.mark.parametrize(
    ("sentence", "reason", "detail"),
    [
        ("The Long Bridge was opened in 1952 [1].", "other number", "1952"),
        (
            "The Long Bridge was opened in 1932 \u201cwith an utter and lasting disgrace\u201d [1].",
            "quote not found",
            "utter and",
        ),
        ("Its walls are painted by schoolchildren [1].", "not found", "no passage"),
        ("The Long Bridge was not opened in 1932 [1].", "contradicted", "says this without the negation"),
        ("Beetles of the genus Onthophagus roll dung [6].", "contradicted", "says this with a negation"),
        ("The Long Bridge was closed in 1932 [1].", "contradicted", "says this with 'open"),
        (f"The Long Bridge was opened in 1932{', and it carries rail and road traffic' * 60} [1].", "too long", "2,000"),
        ("It is cited to nothing [9].", "no reference", "[9] has no entry"),
    ],
)
def test_what_is_wrong_with_a_citation_is_told(index: EvidenceIndex, sentence: str, reason: str, detail: str) -> None:
    (row,) = audited(index, sentence).rows
    assert (row.status, row.reason) == ("REVIEW", reason)
    assert detail in row.detail


class Believer(BaseVerifier):
    """Supports everything that it reads, up to 50 characters."""

    name = "believer"

    def judge_pairs(self, claims: list[str], passages: list[str]) -> list[Judgement]:
        read, unread = Judgement(1.0, 0.0, 0.0, (0, 0)), Judgement(0.0, 0.0, 1.0, (0, 0), was_judged=False)
        return [read if len(claim) <= 50 else unread for claim in claims]


@pytest.mark.parametrize(
    ("sentence", "passes"),
    [
        ('The mayor called it "a gate to the north" [1].', True),
        ("The mayor called it \u201cA gate \u2026 north\u201d [1].", True),
        ('The mayor called it "a door to the north" [1].', False),
        ("The mayor called it <q>a door to the north</q> [1].", False),
        ("> The mayor painted the whole road [1].", False),
        ("> The mayor opened the road on 12 March 2019 [1].", True),
        ("It is \u221240 km long [1].", False),
        ("It was opened on 2019-03-12 [1].", True),
        ("It is 40,000 metres long [1].", True),
    ],
)
def test_quotations_dates_and_units_are_looked_up(tmp_path: Path, sentence: str, passes: bool) -> None:
    index = EvidenceIndex(tmp_path, Searcher([Bm25Retriever()]))
    text = "The mayor opened the road on 12 March 2019, and called it \u201ca gate to the north\u201d. It is 40 km long."
    index.add_document(text, "https://road.example.org/")
    index.build_index()
    (row,) = CitationAuditor(index, Believer()).audit(sentence + "\n\n## References\n\n[1] https://road.example.org/").rows
    assert (row.status == "PASS") is passes
    assert passes or row.reason in ("other number", "quote not found")


TITLES = """\
Smith, J. (2020). Sleep and memory in adults: a trial. Journal of Sleep, 3, 1-9. https://doi.org/10.1000/sleep
Lee, K. (2021). Sleep and memory in adults. Journal of Sleep, 4.
Okoye, A. (2019). "Ferries of the inner harbour." Harbour Press.
Berg, M. (2018). Annual report 2018. Harbour Office.
Diaz, P. (2017). Tides and silt in harbours. Coast Press.
"""


@pytest.mark.parametrize(
    ("titles", "entry", "key"),
    [
        ({"sleep": "Sleep and memory in adults: a trial"}, 0, "sleep"),
        ({"sleep": "Sleep and memory in adults", "trial": "Sleep and Memory in Adults: A Trial"}, 0, "trial"),
        ({"sleep": "Sleep and memory in adults", "trial": "Sleep and Memory in Adults: A Trial"}, 1, "sleep"),
        ({"ferries": "Okoye - 2019 - Ferries of the inner harbour"}, 2, "ferries"),
        ({"report": "Annual report 2018"}, 3, None),  # that of many
        ({"one": "Tides and silt in harbours", "two": "Tides and Silt in Harbours"}, 4, None),
    ],
)
def test_a_reference_is_judged_by_the_only_file_with_its_title(
    tmp_path: Path, titles: dict[str, str], entry: int, key: str | None
) -> None:
    index = EvidenceIndex(tmp_path / "project", Searcher([Bm25Retriever()]))
    for name, title in titles.items():
        index.add_document("Adults slept 7.2 hours. Ferries run daily.", f"file:///papers/{name}.pdf", title, "B")
    index.build_index()
    audit = CitationAuditor(index, LexicalVerifier()).audit(
        f"Adults slept 7.2 hours [1].\n\n## References\n\n[1] {TITLES.splitlines()[entry]}\n"
    )
    (row,) = audit.rows
    assert row.cited_url == (f"file:///papers/{key}.pdf" if key else "https://doi.org/10.1000/sleep" if entry == 0 else "")
    assert (row.status == "PASS") is (key is not None)
    assert any("source with their title" in note and "[1]" in note for note in audit.report.notes) is (key is not None)


def test_a_source_that_is_not_there_or_was_deleted_is_told_apart(tmp_path: Path) -> None:
    index = project(tmp_path)
    index.delete(SOURCES[0][1])
    index.build_index()
    nowhere = "It is so ([there](https://nowhere.example.org/x)). The Long Bridge was opened in 1932 [1]."
    first, second = audited(index, nowhere).rows
    assert (first.status, first.reason) == ("SOURCE_NOT_INDEXED", "")
    assert (second.status, second.reason) == ("SOURCE_NOT_INDEXED", "deleted source")
    assert second.passage is None


def test_a_source_that_another_process_deletes_during_the_audit_is_not_indexed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = project(tmp_path)
    other, read = EvidenceIndex(tmp_path, Searcher([Bm25Retriever()])), index.reading

    def read_after_its_end(source: SourceVersion, claim: str) -> SourceReading | None:
        other.delete(SOURCES[0][1])
        return read(source, claim)

    monkeypatch.setattr(index, "reading", read_after_its_end)
    (row,) = audited(index, "The Long Bridge was opened in 1932 [1].").rows
    assert (row.status, row.reason) == ("SOURCE_NOT_INDEXED", "deleted source")


def test_a_changed_page_is_judged_by_its_newest_version(tmp_path: Path) -> None:
    index = project(tmp_path)
    changed = BRIDGE.replace("1932", "1934")
    index.add_document(changed, SOURCES[0][1], "The Long Bridge", "A", "2026-02-02T00:00:00Z")
    index.build_index()
    sentences = "The Long Bridge was opened in 1932 [1]. The Long Bridge was opened in 1934 [1]. It was opened in 1936 [1]."
    old, new, never = audited(index, sentences).rows
    assert (old.status, old.reason) == ("REVIEW", "changed source")
    assert old.detail.startswith("the version fetched 2026-01-02T00:00:00Z supports this, the newest does not: ")
    assert old.detail.endswith("the source does not have 1932")
    assert old.passage is not None
    assert "1934" in old.passage.content
    assert new.status == "PASS"
    assert (never.status, never.reason) == ("REVIEW", "other number")


@pytest.mark.parametrize("built", [True, False])
def test_a_long_source_that_is_not_searchable_yet_is_read_where_it_speaks_of_the_claim(tmp_path: Path, built: bool) -> None:
    index = project(tmp_path)
    filler = "\n\n".join(f"Paragraph {n} speaks of the weather in the harbour, of fog and rain and wind." for n in range(2_000))
    url = "https://long.example.org/"
    index.add_document(f"{filler}\n\nThe lighthouse was built of red granite.\n\n{filler}", url, fetch_date="2026-01-01")
    if built:
        index.add_document(f"{filler} It rains.", url, fetch_date="2026-01-02")
        index.build_index()
    (row,) = CitationAuditor(index, LexicalVerifier(), 0.35).audit(f"The lighthouse was built of red granite ({url}).").rows
    assert (row.status, row.reason) == (("REVIEW", "changed source") if built else ("PASS", ""))
