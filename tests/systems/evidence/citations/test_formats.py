"""Reports in the formats and styles of citing that people have, and files that cannot be read."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import docx
import pytest
from documents_model.pdfs import content, pdf_of

from nlp_retrieval.documents.bibliography import read_bibliography
from nlp_retrieval.documents.reading import read_as
from nlp_retrieval.errors import SourceError
from nlp_retrieval.systems.evidence.citations.formats import read_report_file, read_text
from nlp_retrieval.systems.evidence.citations.report import CitedReport, read_report

DANCE, ANTS, WHO, WEB = (f"https://doi.org/10.1000/{name}" for name in ("dance", "ants", "who", "web"))
LIST = f"""

## References

Doe, J., & Roe, R. (2001a). Ants. {ANTS}

Frisch, K. von, Lind, A., & Berg, O. (1965). The dance of bees. {DANCE}

Smith, J. (n.d.). A site. {WEB}

World Health Organization. (2021). Bees and health. {WHO}
"""


def urls(report: CitedReport) -> list[str]:
    return [one.url for one in report.citations]


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("Bees dance (Frisch et al., 1965, p. 4).", [DANCE]),
        ("Bees dance (see Frisch et al. 1965; but cf. Doe & Roe, 2001a, pp. 2-3).", [DANCE, ANTS]),
        ("Doe and Roe (2001a) found that ants do not.", [ANTS]),
        ("Bees are healthy (World Health Organization [WHO], 2021; Smith, n.d.).", [WHO, WEB]),
        ("Bees are healthy (WHO, 2021). They dance (ibid., p. 3).", [WHO, WHO]),
        ("Bees dance (cf. Frisch, Lind,\nand Berg 1965; Doe & Roe\n2001a).", [DANCE, ANTS]),
        ("The World Health Organization's (2021) bees. Frisch and colleagues (1965) saw 5.", [WHO, DANCE]),
    ],
)
def test_authors_with_a_year_are_found_however_they_are_written(text: str, cited: list[str]) -> None:
    report = read_report(text + LIST)
    assert urls(report) == cited
    assert report.missing == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("Bees dance (Frisch et al., 1965; Marlow, 2011).", ["Marlow, 2011"]),
        ("Ants run^1^ at 12% \u00b2 in Germany\u00b3, on 5 miles\u00b2.", ["2", "3"]),
        ("Bees dance (ibid.).", ["ibid."]),
        ("Bees dance [@missing].", ["missing"]),
    ],
)
def test_what_looks_like_a_citation_and_names_nothing_is_missing(text: str, missing: list[str]) -> None:
    assert [one.mark for one in read_report(text + LIST).missing] == missing


def test_authors_with_a_year_that_no_entry_has_are_listed() -> None:
    report = read_report(f"Bees dance (Frisch et al., 1965). Marlow (2011) found ants (Paris, 2015).{LIST}")
    assert report.missing == []
    assert report.notes == ["no reference fits these, so they are not taken for citations: Marlow, 2011; Paris, 2015"]
    text = f"Bees [7a] dance [Fri65], from [0, 1]. Ants run<sup>5</sup> [Source: Roe, 2003].{LIST}"
    assert read_report(text).notes == ["no reference fits these, so they are not taken for citations: Roe, 2003; [7a]; [Fri65]"]
    for marks in ("1", "11"):
        text = f"Bees dance.<sup>{marks}</sup> Ants run<sup>5</sup>.\n\n## References\n\n1. {ANTS}"
        assert read_report(text).notes == ["no reference fits these, so they are not taken for citations: ^5^"]


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("Ants (US Census Bureau, 2023).", "U.S. Census Bureau. (2023)."),
        ("For ants, as for Bees, O'Neill (2014) saw 5.", "O\u2019Neill, T. (2014)."),
        ("Ants (Muller & Saenz, 2014).", "Müller, T., & Sáenz, A. (2014)."),
    ],
)
def test_names_are_compared_as_readers_do(text: str, entry: str) -> None:
    assert urls(read_report(f"{text}\n\n## References\n\n{entry} {DANCE}\n")) == [DANCE]


def test_why_a_citation_names_nothing_is_told() -> None:
    twice = "\n\nDoe, J. (2001). Ants. https://a.example/1\n\nDoe, J. (2001). Wasps. https://a.example/2\n"
    report = read_report(f"Ants (Doe, 2001). Bees (Marlow & Bo, 2011). Wasps [3-4000].{LIST}{twice}")
    several, nobody, long = (one.problem for one in report.missing)
    assert several == "2 references are by Doe, 2001; tell them apart by letters"
    assert nobody == "no reference is by Marlow & Bo, 2011"
    assert long == "[3-4000] is no range from a number to a higher one, of at most 100 references"


@pytest.mark.parametrize(
    "text",
    [
        "It was hot (2019), and (Monday, 2019) too (see Figure 2).",
        "They [sic] said [...] so (May 2001), write to a.b2019@site.example or @frisch1965b.",
        "It is in $[1, 2]$ or $x_{[3]}$ for $5, In Germany (2009) reported cases rose.",
    ],
)
def test_what_is_no_citation_is_not_counted(text: str) -> None:
    assert read_report(text + LIST).citations == []


BIB = """% of roe@a.example, doe@b.example
@string{pub = "Press"}
@article{frisch1965, author = {von Frisch, Karl and Lind, {\\'E}va}, title = {The {Dance} of Bees}, date = {1965-03},
  doi = {10.1000/dance}, publisher = pub, url = {https://press.example/1}}
@book{doe2001, author = {{Ant Society}}, title = "Ants", year = 2001, url = {https://ants.example/a\\_b}}
"""
CSL = [
    {"id": "frisch1965", "author": [{"family": "Frisch", "non-dropping-particle": "von"}, {"family": "Lind"}],
     "issued": {"date-parts": [[1965, 3]]}, "title": "The Dance", "DOI": "10.1000/dance", "URL": "https://press.example/1"},
    {"citationKey": "doe2001", "creators": [{"name": "Ant Society"}], "date": "2001", "url": "https://ants.example/a_b"},
]  # fmt: skip


@pytest.mark.parametrize("text", [BIB, json.dumps(CSL), json.dumps({"items": CSL})], ids=["bib", "csl", "zotero"])
def test_keys_and_authors_are_found_in_a_bibliography(text: str) -> None:
    cited = (
        "Bees dance (@fig-a1) [@frisch1965, p. 3; see @doe2001]. @frisch1965 saw it (Ant Society, 2001), and {cite:p}`doe2001`"
    )
    report = read_report(f"{cited}, {{% cite doe2001 %}}, :cite:`doe2001` [cite:@doe2001].", read_bibliography(text))
    assert urls(report) == [DANCE, "https://ants.example/a_b", DANCE, *["https://ants.example/a_b"] * 5]
    assert report.citations[0].other_urls == ("https://press.example/1",)
    assert report.unused == []


def test_front_matter_is_no_text_and_names_no_file() -> None:
    report = read_report(f"---\ntitle: On Bees\nbibliography: /etc/passwd\n---\n\nBees dance ({DANCE}).\n")
    assert (report.title, urls(report), report.citations[0].line) == ("On Bees", [DANCE], 6)
    (note,) = report.notes
    assert note == "the report: the bibliography that it names was not read; give it by --bibliography FILE"


LATEX = r"""\documentclass{article}
\title{On B\'ees}
\begin{document}
\section{Dances}
Bees \emph{dance}~\citep[see][p.~4]{frisch1965,nokey}. 5\% of ants do too.\footnote{See \url{https://a.example/x%20y}.}
\def\hidden{hidden 5}M\"arta saw it \parencites[1]{frisch1965}[2]{own}. % \cite{comment}
\begin{verbatim}
\cite{verbatim}
\end{verbatim}
Wasps fly\footcite{own}, as \href{https://b.example/y}{the site} says.\footnote{So do \citet{frisch1965} and \cite{own}.}
\input{more.tex}
\begin{thebibliography}{9}
\bibitem[O]{own} A. Own. \newblock Title. doi:10.1000/ants
\end{thebibliography}
\end{document}
"""


def test_latex_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.tex").write_text(LATEX)
    assert read_report_file(tmp_path / "a.tex").notes[0].startswith(f"{tmp_path}/a.tex: \\input{{more.tex}} was not followed")
    report = read_report(read_text(LATEX, "latex"), read_bibliography(BIB))
    assert [(one.mark, one.url, one.sentence, one.line) for one in report.citations] == [
        ("frisch1965", DANCE, "Bees dance.", 5),
        ("nokey", "", "Bees dance.", 5),
        ("footnote 1", "https://a.example/x%20y", "5% of ants do too.", 5),
        ("frisch1965", DANCE, "M\u00e4rta saw it.", 6),
        ("own", ANTS, "M\u00e4rta saw it.", 6),
        ("own", ANTS, "Wasps fly, as the site says.", 10),
        ("", "https://b.example/y", "Wasps fly, as the site says.", 10),
        ("footnote 2", DANCE, "Wasps fly, as the site says.", 10),
        ("own", ANTS, "Wasps fly, as the site says.", 10),
    ]
    assert report.title == "On B\u00e9es"
    assert [one.mark for one in report.missing] == ["nokey"]
    assert report.sentences[-1].text == "Wasps fly, as the site says."
    assert report.notes == ["the report: \\input{more.tex} was not followed; audit that file too"]
    assert read_report(read_text(r"Write \lstinline|\cite{x}| or \verb+\cite{y}+.", "latex")).citations == []


HTML = f"""<html><head><title>T</title></head><body><nav><a href="https://nav.example">x</a></nav><h1>On Bees</h1>
<p>Bees dance<sup><a id="r1" href="#fn1">1</a></sup>. Ants do not (<a href="#ref-doe">Doe 2001</a>).</p>
<p style="display:none">Hidden (<a href="https://hidden.example">x</a>).</p><pre>[7]</pre>
<table><tr><th>Animal</th><th>Dances</th></tr><tr><td>Bee</td><td>yes <a href="{WHO}">WHO</a></td></tr></table>
<ol><li id="fn1">Frisch. <a href="{DANCE}">link</a> <a href="#r1">back</a></li></ol>
<p>So <d-cite key="ref-doe"></d-cite>.<a href="#fn2">2</a></p><p id="fn2"><a href="#ref-doe">Doe 2001</a>, 5</p>
<div id="ref-doe">Doe (2001). Ants. {ANTS}</div></body></html>"""


def test_html_is_read() -> None:
    report = read_report(read_text(HTML, "html"))
    assert [(one.url, one.sentence) for one in report.citations] == [
        (DANCE, "Bees dance."),
        (ANTS, "Ants do not."),
        (WHO, "Animal: Bee; Dances: yes WHO"),
        *[(ANTS, "So.")] * 2,
    ]
    assert report.title == "On Bees"
    assert "hidden" in report.notes[0]


def test_a_list_of_references_is_known_by_its_class_and_bare_addresses_stay_as_written() -> None:
    entries = f"<div>[1] Roe. Ants. {ANTS}</div><div>[2] Frisch. Bees. {DANCE}</div>"
    page = f'<p>Ants run [1]. Bees dance [2].</p><div class="csl-bib-body">{entries}</div>'
    report = read_report(read_text(page, "html"))
    assert (report.title, [(one.mark, one.url) for one in report.citations]) == ("", [("1", ANTS), ("2", DANCE)])
    address = "https://a.example/main/__init__.py?a_b_c*d*e_f"
    assert urls(read_report(f"Ants run [1].\n\n## References\n\n[1] {address}\n")) == [address]


def test_a_docx_that_a_word_processor_wrote_is_read(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_heading("On Bees", 0)
    paragraph = document.add_paragraph("Bees dance (Frisch et al., 1965). Ants do [")
    paragraph.add_run("9").bold = True
    paragraph.add_run("].")
    table = document.add_table(2, 2)
    for cell, text in zip(
        [cell for row in table.rows for cell in row.cells], ["Animal", "Dances", "Bee", "yes (WHO, 2021)"], strict=True
    ):
        cell.text = text
    document.add_heading("References", 1)
    for line in LIST.split("\n\n")[2:]:
        document.add_paragraph(line)
    document.save(tmp_path / "a.docx")
    report = read_report(read_report_file(tmp_path / "a.docx"))
    assert (report.title, report.unit) == ("On Bees", "paragraph")
    assert [(one.mark, one.url, one.sentence, one.line) for one in report.citations] == [
        ("Frisch et al., 1965", DANCE, "Bees dance.", 2),
        ("9", "", "Ants do.", 2),
        ("WHO, 2021", WHO, "Animal: Bee; Dances: yes", 6),
    ]


W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def docx_of(body: str, **parts: str) -> bytes:
    """A DOCX with a body, and other parts, all as WordprocessingML."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", f"<w:document {W}><w:body>{body}</w:body></w:document>")
        for name, part in parts.items():
            archive.writestr(f"{name}.xml" if "/" in name else f"word/{name}.xml", part)
    return file.getvalue()


def run(text: str) -> str:
    return f"<w:r><w:t xml:space='preserve'>{text}</w:t></w:r>"


def docx_report(body: str, **parts: str) -> CitedReport:
    return read_report(read_as("docx", docx_of(body, **parts), "a.docx"))


def test_a_docx_that_declares_a_document_type_is_refused() -> None:
    with pytest.raises(SourceError, match=r"a\.docx: word/styles\.xml declares a document type"):
        docx_report("<w:p/>", styles=ENTITY)
    # without a byte order mark
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", f"<?xml version='1.0' encoding='UTF-16'?>{ENTITY}".encode("utf-16-le"))
    with pytest.raises(SourceError, match=r"word/document\.xml declares a document type"):
        read_as("docx", file.getvalue(), "a.docx")


def test_footnotes_of_a_docx_are_read_and_what_a_field_shows() -> None:
    note = f'<w:footnotes {W}><w:footnote w:id="2"><w:p>{run(f"See {ANTS}.")}</w:p></w:footnote></w:footnotes>'
    zotero = field("ADDIN ZOTERO_ITEM CSL_CITATION {}", run("(von Frisch, 1965)"))
    body = f'<w:p>{run("Ants do.")}<w:r><w:footnoteReference w:id="2"/></w:r>{run(" Bees dance ")}{zotero}{run(".")}</w:p>'
    simple = field(f'HYPERLINK "{WEB}" \\o "A tip"', run("the site"))
    body += f"<w:p>{run('Wasps fly, as ')}{simple}{run(' says.')}</w:p>"
    body += f"<w:p>{run('References')}</w:p><w:p>{run(f'von Frisch, K. (1965). Bees. {DANCE}')}</w:p>"
    report = docx_report(body, footnotes=note)
    assert [(one.mark, one.url, one.sentence) for one in report.citations] == [
        ("1", ANTS, "Ants do."),
        ("von Frisch, 1965", DANCE, "Bees dance."),
        ("", WEB, "Wasps fly, as the site says."),
    ]


def field(instruction: str, *shown: str) -> str:
    """A field of a DOCX, with the runs that it shows."""
    return (
        f'<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>{instruction}</w:instrText></w:r>'
        f'<w:r><w:fldChar w:fldCharType="separate"/></w:r>{"".join(shown)}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.rtf", b"{\\rtf1 Bees dance.}", "RTF; save it as DOCX"),
        ("a.docx", b"\xd0\xcf\x11\xe0\xa1", "a DOCX with a password; save it as DOCX without one"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1", "an old Word file"),
    ],
)
def test_a_report_in_another_format_is_refused_with_its_cure(name: str, data: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(SourceError, match=said):
        read_report_file(tmp_path / name)
    with pytest.raises(SourceError, match="this is a folder; pass the path of a file in it"):
        read_report_file(tmp_path)
    assert "rtf" in read_text(r"{\rtf Bees dance").text


ENTITY = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>'


RAISED = '<w:rPr><w:vertAlign w:val="superscript"/></w:rPr>'
NUMBERING = f"""<w:numbering {W}><w:abstractNum w:abstractNumId="7">
<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/></w:lvl>
</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num></w:numbering>"""


def test_raised_numbers_of_a_docx_cite_a_numbered_list() -> None:
    entry = '<w:p><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr>{}</w:p>'
    endnote = field("ADDIN EN.CITE x", f"<w:r>{RAISED}<w:t>1,2</w:t></w:r>")
    reference = field("REF _Ref1 \\r", run("[2]"))
    body = f"<w:p>{run('Bees dance in 2022')}{endnote}{run('. Wasps fly ')}{reference}{run('.')}</w:p>"
    body += f"<w:p>{run('References')}</w:p>{entry.format(run(f'Frisch. {DANCE}'))}{entry.format(run(f'Roe. {ANTS}'))}"
    report = docx_report(body, numbering=NUMBERING)
    assert [(one.mark, one.url, one.sentence) for one in report.citations] == [
        ("1", DANCE, "Bees dance in 2022."),
        ("2", ANTS, "Bees dance in 2022."),
        ("2", ANTS, "Wasps fly."),
    ]


PDF_LINES = content(
    "Bees dance \\(Frisch, 1965\\). Ants do not [9].",
    "References",
    "Frisch, K. \\(1965\\). The dance of bees. https://doi.org/10.1000/",
    "dance",
    "Roe, R. \\(2001\\). Ants. https://doi.org/10.1000/ants",
)


def test_a_pdf_is_read_by_its_pages() -> None:
    report = read_report(read_as("pdf", pdf_of(content("A page."), PDF_LINES, content("")), "a.pdf"))
    assert [(one.mark, one.url, one.line) for one in report.citations] == [("Frisch, 1965", DANCE, 2), ("9", "", 2)]
    assert [one.url for one in report.unused] == [ANTS]
    assert report.unit == "page"
    assert report.notes == ["a.pdf: no text on page 3; recognise the text of scans first (ocrmypdf in.pdf out.pdf)"]


def printed(*stretches: tuple[int, int, int, str]) -> bytes:
    """The drawing of a page: stretches of text, each with its place and size."""
    return "\n".join(f"BT /F1 {size} Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET" for x, y, size, text in stretches).encode("latin-1")


def test_raised_numbers_of_a_pdf_cite_the_footnotes_below() -> None:
    first = printed(
        (50, 780, 10, "Bees dance in 2022."),
        (150, 784, 6, "1"),
        (158, 780, 10, "Some 12% of ants"),
        (240, 784, 6, "2,3"),
        (252, 780, 10, "on 5 km"),
        (290, 784, 6, "2"),
        (296, 780, 10, "do not,"),
        (50, 100, 8, "1"),
        (56, 97, 8, f"Frisch, {DANCE[:-2]}"),
        (50, 88, 8, f"{DANCE[-2:]}"),
        (50, 78, 8, f"2. Roe, {ANTS}"),
        (50, 68, 8, f"3 Site, {WEB}"),
        (290, 30, 8, "1"),
    )
    second = printed((50, 780, 10, "as Roe saw."), (120, 784, 6, "4"), (50, 90, 8, f"4 Health, {WHO}"), (290, 30, 8, "2"))
    report = read_report(read_as("pdf", pdf_of(first, second), "a.pdf"))
    assert [(one.mark, one.url, one.sentence, one.line) for one in report.citations] == [
        ("1", DANCE, "Bees dance in 2022.", 1),
        ("2", ANTS, "Some 12% of ants on 5 km\u00b2 do not, as Roe saw.", 1),
        ("3", WEB, "Some 12% of ants on 5 km\u00b2 do not, as Roe saw.", 1),
        ("4", WHO, "Some 12% of ants on 5 km\u00b2 do not, as Roe saw.", 2),
    ]
    assert report.uncited == []


def test_links_to_places_within_a_paragraph_of_sources_are_marks() -> None:
    sources = f'<a id="s1"></a>1. [One]({DANCE})\n2. <a id="s2"></a>[Two]({ANTS})\n'
    assert urls(read_report(f"Bees dance ([1](#s1)). Ants run [[2]](#s2).\n\n## Sources\n\n{sources}")) == [DANCE, ANTS]


def test_sources_under_each_paragraph_are_cited_by_it() -> None:
    text = f"# Bees\n\nBees dance.\n\nSources:\n- [One]({DANCE})\n- {ANTS}\n\nWasps fly.\n\n**Sources:**\n- {WHO}\n\nThe end.\n"
    assert [(one.url, one.sentence) for one in read_report(text).citations] == [
        (DANCE, "Bees dance."),
        (ANTS, "Bees dance."),
        (WHO, "Wasps fly."),
    ]


def test_short_notes_cite_the_work_that_a_longer_one_names() -> None:
    full = f"Karl Frisch, *The Dance of Bees* (Vienna: Press, 1965), 3. {DANCE}"
    notes = f"[^1]: {full}\n[^2]: Ibid., 4.\n[^3]: Roe, *Ants*. {ANTS}\n"
    report = read_report(f"A is.[^1] B is.[^2] C is.[^3] D is.[^4]\n\n{notes}[^4]: Frisch, *Dance of Bees*, 45.\n")
    assert urls(report) == [DANCE, DANCE, ANTS, DANCE]
