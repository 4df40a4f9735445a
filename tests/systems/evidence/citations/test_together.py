"""A sentence that cites several sources is judged by all of them together, and each must add something to it."""

from __future__ import annotations

import pytest

from nlp_retrieval import Bm25Retriever, Searcher
from nlp_retrieval.systems.evidence.audit import AuditRow, CitationAuditor
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
from nlp_retrieval.systems.evidence.verdict.deciding import parts_of
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier

TEXTS = [
    "The Velmark plant was opened by the minister in 2003. It lies on the river Ost.",
    "With its turbines, the Velmark plant is known in the region. It employs 400 people in two shifts.",
    "Its turbines are exported to 12 countries, the company said in its report.",
    "Stormhavn is a port with 20,000 inhabitants. Its museum of ships opened in 1974.",
    "Unemployment in Ostrava stood at 5.1% last year.",
    "Brno reported an unemployment rate of 7.3%.",
]
REFERENCES = "\n\n## References\n\n" + "\n".join(f"[{n}] Source {n}. https://e{n}.org" for n, _ in enumerate(TEXTS, start=1))
ALL = "The Velmark plant opened in 2003, employs 400 people and exports its turbines to 12 countries"


@pytest.fixture(scope="module")
def auditor(tmp_path_factory: pytest.TempPathFactory) -> CitationAuditor:
    index = EvidenceIndex(tmp_path_factory.mktemp("project"), Searcher([Bm25Retriever()]))
    for number, text in enumerate(TEXTS, start=1):
        index.add_document(text, f"https://e{number}.org", f"Source {number}", "B", "")
    index.build_index()
    return CitationAuditor(index, LexicalVerifier())


def rows_of(auditor: CitationAuditor, text: str) -> list[AuditRow]:
    return auditor.audit(text + REFERENCES).rows


@pytest.mark.parametrize("marks", ["[1-3]", "[3][1][2]"])
def test_sources_that_support_a_sentence_together_pass_and_say_which_part_is_theirs(
    auditor: CitationAuditor, marks: str
) -> None:
    rows = sorted(rows_of(auditor, f"{ALL} {marks}."), key=lambda row: row.citation.mark)
    assert [row.status for row in rows] == ["WEAK"] * 3
    assert ["2003" in row.part for row in rows] == [True, False, False]
    assert ["400 people" in row.part for row in rows] == [False, True, False]
    assert ["12 countries" in row.part for row in rows] == [False, False, True]
    assert rows[1].detail == "with [1] and [3]: this source supports \u201cemploys 400 people\u201d" or marks == "[3][1][2]"
    assert rows[1].passage is not None
    assert "400 people" in rows[1].passage.content[slice(*rows[1].sentence)]


@pytest.mark.parametrize(("right", "wrong", "part"), [("400", "500", "500 people")])
def test_a_part_that_no_source_supports_fails_them_all_and_is_named(
    auditor: CitationAuditor, right: str, wrong: str, part: str
) -> None:
    rows = rows_of(auditor, f"{ALL.replace(right, wrong)} [1-3].")
    assert [row.status for row in rows] == ["REVIEW"] * 3
    assert any(part in row.detail for row in rows)


def test_a_source_that_adds_nothing_is_flagged_beside_those_that_support(auditor: CitationAuditor) -> None:
    rows = rows_of(auditor, f"{ALL} [1-4].")
    assert [row.status for row in rows] == ["WEAK", "WEAK", "WEAK", "REVIEW"]
    assert (rows[3].reason, rows[3].detail) == ("not found", "beside [1], [2] and [3], this source adds nothing")


def test_a_source_that_supports_all_of_it_needs_no_other(auditor: CitationAuditor) -> None:
    rows = rows_of(auditor, "The museum of ships in Stormhavn opened in 1974 [4][1].")
    assert [(row.status, row.part) for row in rows] == [("WEAK", ""), ("REVIEW", "")]


@pytest.mark.parametrize(
    ("sentence", "passes"),
    [
        ("The Velmark plant opened in 2003 [1], and its turbines are exported to 12 countries [3].", True),
        ("The Velmark plant opened in 2003 [3], and its turbines are exported to 12 countries [1].", False),
        ("Unemployment was 5.1% in Ostrava and 7.3% in Brno [5, 6].", True),
        ("Unemployment was 7.3% in Ostrava and 5.1% in Brno [5, 6].", False),
    ],
)
def test_a_mark_is_for_the_part_before_it_and_a_figure_for_its_subject(
    auditor: CitationAuditor, sentence: str, passes: bool
) -> None:
    assert {not row.to_review for row in rows_of(auditor, sentence)} == {passes}


def test_parts_end_at_marks_commas_and_conjunctions_and_hold_two_words_at_least() -> None:
    sentence = "The tram closed in 1962, and the museum, in 1974, got a house of its own and 40 visitors; admission is free."
    assert [text for _, text in parts_of(sentence, [len("The tram closed")])] == [
        "The tram closed",
        "in 1962, and the museum",
        "in 1974",
        "got a house of its own",
        "40 visitors",
        "admission is free.",
    ]
    many = parts_of(", ".join(f"number {n} of them" for n in range(40)))
    assert len(many) == 8
    assert many[-1][1].endswith("number 39 of them")
    assert parts_of("One thing.") == [(10, "One thing.")]
    assert parts_of("Smith showed this plant.", [len("Smith")]) == [(24, "Smith showed this plant.")]
