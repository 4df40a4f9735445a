"""Text and citations that a conversion could lose, in each format."""

from __future__ import annotations

import io
import zipfile

import pytest

from nlp_retrieval.documents import Document, bibliography_of, read_document

ANTS, DANCE = "https://doi.org/10.1000/ants", "https://doi.org/10.1000/dance"


def notes_of(document: Document) -> list[str]:
    """The marks of a document, by their names, in order."""
    return [
        piece.text
        for block in document.blocks
        for cell in block.pieces
        for piece in cell
        if piece.kind in ("note", "raised") and block.kind != "note"
    ]


@pytest.mark.parametrize(
    ("name", "written", "text"),
    [
        ("a.tex", r"They said \enquote{no \emph{more}} of it.", "They said “no more” of it."),
        ("a.tex", r"The \mbox{harbour} of \textsf{Orlau} is deep.", "The harbour of Orlau is deep."),
        (
            "a.tex",
            r"It is \SI{5}{\kilo\metre} and \qty{30}{km\per\hour}.",
            "It is 5 km and 30 km/h.",
        ),
        ("a.tex", r"From \SIrange{3}{4}{\percent} to \SI{2}{\square\metre}.", "From 3 to 4 % to 2 m²."),
        ("a.html", "<p><ruby>東<rt>とう</rt>京<rt>きょう</rt></ruby>は大きい。</p>", "東京 (とうきょう)は大きい。"),
        ("a.md", "It has ~~2~~ 22 stops, <del>3</del>4 lines.", "It has 22 stops, 4 lines."),
        ("a.md", "It covers 40 m<sup>2</sup> and 10<sup>6</sup> trees.<sup>2</sup>", "It covers 40 m² and 10⁶ trees."),
    ],
)
def test_text_is_read_as_its_readers_see_it(name: str, written: str, text: str) -> None:
    assert read_document(written.encode(), name).text == text


@pytest.mark.parametrize(
    ("written", "marks"),
    [
        (r"Ants run \citetalias{doe}, bees \nptextcite[3]{roe}.", ["doe", "roe"]),
        (r"Ants run \volcite{2}[p.~3]{doe} and \autocites(see)()[3]{doe}[4]{roe}.", ["doe", "doe", "roe"]),
        (r"Ants run.\footnote{\url{https://a.example}} Bees do.\footnote{\cite{doe}.}", ["footnote 1", "doe"]),
        (r"\citestyle{plain}\nocite{x} Ants run \citeA<see>{doe}.", ["doe"]),
        ("Some 900 ships\\textsuperscript{2} of $5^{3}$ and 4 m\\textsuperscript{2}.", ["2"]),
    ],
)
def test_marks_of_latex_are_data(written: str, marks: list[str]) -> None:
    assert notes_of(read_document(written.encode(), "a.tex")) == marks


def test_a_footnote_in_a_cell_or_in_another_footnote_is_a_note_and_no_text_of_it() -> None:
    written = r"""Bees dance.\footnote{See Roe.\footnote{See Doe.}}
\begin{tabular}{ll}Animal & Dances \\ Bee & yes\footnote{See Poe.} \\ Ant & no \\ \end{tabular}"""
    notes = [
        (block.name, "".join(piece.text for piece in cell))
        for block in read_document(written.encode(), "a.tex").blocks
        for cell in block.pieces
        if block.kind == "note" and cell
    ]
    assert sorted(notes) == [("footnote 1", "See Roe.footnote 2"), ("footnote 2", "See Doe."), ("footnote 3", "See Poe.")]
    assert notes_of(read_document(written.encode(), "a.tex")) == ["footnote 1", "footnote 3"]


def strict_docx() -> bytes:
    """A DOCX in the strict form, with a link and struck text."""
    form = "http://purl.oclc.org/ooxml"
    run = "<w:r>{}<w:t xml:space='preserve'>{}</w:t></w:r>".format
    body = (
        f"<w:p>{run('', 'Bees dance ')}<w:hyperlink r:id='x1'>{run('', 'by Frisch')}</w:hyperlink>{run('', ' in ')}"
        f"{run('<w:rPr><w:strike/></w:rPr>', '1964 ')}{run('<w:rPr><w:dstrike/></w:rPr>', '1965 ')}{run('', '1966.')}"
        f"{run('<w:rPr><w:vanish/></w:rPr>', 'Obey.')}</w:p>"
    )
    relation = f"Type='{form}/officeDocument/relationships/hyperlink' Target='{DANCE}' TargetMode='External'"
    names = f"xmlns:w='{form}/wordprocessingml/main' xmlns:r='{form}/officeDocument/relationships'"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", f"<w:document {names}><w:body>{body}</w:body></w:document>")
        package = "http://schemas.openxmlformats.org/package/2006/relationships"
        relations = f"<Relationships xmlns='{package}'><Relationship Id='x1' {relation}/></Relationships>"
        archive.writestr("word/_rels/document.xml.rels", relations)
    return file.getvalue()


def test_a_strict_docx_keeps_its_links_and_loses_what_is_struck_or_hidden() -> None:
    read = read_document(strict_docx(), "a.docx")
    assert read.text == "Bees dance by Frisch in 1966."
    assert [piece.url for piece in read.blocks[0].pieces[0] if piece.kind == "link"] == [DANCE]
    assert read.removed.struck == 1
    assert read.notes == ["a.docx: 1 stretches of hidden text were left out"]


def test_every_address_and_key_of_an_entry_is_found() -> None:
    text = rf"""@proceedings{{all, title={{Bees}}, year=1999, url={{{ANTS}}}}}
@inproceedings{{one, author={{Roe, R.}}, title={{Ants}}, crossref={{all}}}}
@article{{two, ids={{old, older}}, author={{Doe, J.}}, title={{Wasps}}, year=2001, url={{\url{{{DANCE}}}}}}}
@article{{three, author={{Kay, J.}}, title={{Hives}}, year=2021, journal={{arXiv preprint arXiv:2101.00001}}}}"""
    entries = {entry.mark: entry for entry in bibliography_of(text).entries}
    assert entries["one"].url == ANTS
    assert entries["one"].title == "Roe (1999). Ants"
    assert entries["two"].url == entries["old"].url == entries["older"].url == DANCE
    assert entries["three"].url == "https://arxiv.org/abs/2101.00001"
