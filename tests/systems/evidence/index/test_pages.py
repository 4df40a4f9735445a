"""Pages of a PDF, from the file to passages, verdicts and audits; and files of older formats."""

from __future__ import annotations

import json

import pytest
from documents_model.pdfs import content, pdf_of

from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.systems.evidence.audit import CitationAuditor
from nlp_retrieval.systems.evidence.audit_report import audit_json, render_audit, retrieval_audit
from nlp_retrieval.systems.evidence.citations.report import read_report
from nlp_retrieval.systems.evidence.source_files import read_sources
from nlp_retrieval.systems.evidence.verdict.claims import ClaimVerifier
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier
from tests.systems.evidence.index.sources import lexical

REPORT = "https://port.example/report.pdf"
HARBOUR = "The harbour of Port Ellery was dredged to a depth of 14 metres in 2021."
GOES_ON = ("The dredging of the northern basin cost the town more than", "18 million crowns in the year 2022 alone.")


@pytest.fixture
def index(tmp_path):
    """An index of a PDF: its second page is empty, and a sentence goes on from the third to the fourth."""
    filler = [f"Line {n} of the annual report of the port authority is about staff." for n in range(12)]
    pages = [content("Annual report of the port.", "1"), content(), content(*filler, HARBOUR, GOES_ON[0], "3")]
    pages.append(content("the planned " + GOES_ON[1], "4"))
    (tmp_path / "report.pdf").write_bytes(pdf_of(*pages, title="Annual report"))
    index = lexical(tmp_path / "project")
    with pytest.warns(RetrievalWarning, match="no text on page 2"):
        documents = list(read_sources(tmp_path / "report.pdf", url=REPORT))
    index.add_source(documents[0])
    index.build_index()
    return index


def test_a_passage_knows_its_pages(index):
    source = index.source(REPORT)
    assert source.pages == 4
    passages = index.passages(source.key)
    text = index.text(source.key)
    assert f"{GOES_ON[0]} the planned {GOES_ON[1]}" in text  # one sentence, without the printed page numbers
    assert passages[0].pages[0] == 1
    assert passages[-1].pages[-1] == 4
    assert sorted({page for passage in passages for page in passage.pages}) == [1, 3, 4]
    for passage in passages:
        assert passage.page_of() == ("pp. {}-{}" if len(passage.pages) > 1 else "p. {}").format(
            *dict.fromkeys((passage.pages[0], passage.pages[-1]))
        )


def test_a_quote_names_its_page_everywhere(index):
    verdict = ClaimVerifier(index, LexicalVerifier()).verify(HARBOUR).as_dict()
    (found,) = verdict["supporting_evidence"]
    assert (found["quote"], found["page"]) == (HARBOUR, "p. 3")
    across = f"{GOES_ON[0]} the planned {GOES_ON[1]}"
    report = read_report(f"# Port\n\n{across} [1]\n\n{HARBOUR} [1]\n\n## References\n\n[1] Report. {REPORT}\n")
    done = CitationAuditor(index, LexicalVerifier()).audit(report)
    assert [row.page for row in done.rows] == ["pp. 3-4", "p. 3"]
    assert [row["page"] for row in json.loads(audit_json(done))["rows"]] == ["pp. 3-4", "p. 3"]
    assert "pp. 3-4" in render_audit(done)
    assert "(pp. 3-4)" in retrieval_audit(done, index.stats(), "bm25").replace("\\", "")
