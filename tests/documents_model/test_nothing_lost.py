"""Text and citations that a conversion could lose, in each format."""

from __future__ import annotations

import io
import re
import zipfile

import pytest

from nlp_retrieval.documents import Document, bibliography_of, read_document
from nlp_retrieval.errors import InputError, SourceError

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
        ("a.tex", r"It is \SI{5}{\kilo\metre} and \qty{30}{km\per\hour}.", "It is 5 km and 30 km/h."),
        ("a.html", "<p><ruby>東<rt>とう</rt>京<rt>きょう</rt></ruby>は大きい。</p>", "東京 (とうきょう)は大きい。"),
        ("a.tex", r"\sout{Not} \replaced{new}{old} \textminus5, \sfrac{1}{2}, H$_2$O\iffalse no\fi.", "new −5, 1/2, H2O."),  # noqa: RUF001
        ("a.tex", r"\begin{description}\item[Bee] dances\end{description}", "- Bee dances"),
        ("a.tex", r"It fell by 95\% [0.5--0.9], et al.\ [12].", "It fell by 95% [0.5\u20130.9], et al. [12]."),
        ("a.tex", r"It is 5\,[kg], \bee [3].", "It is 5 [kg], [3]."),
        (
            "a.tex",
            r"\begin{tabular}{lcc}\toprule\multirow{2}{*}{Land} & \multicolumn{2}{c}{Cost} \\ \cmidrule(lr){2-3} & 2019 & 2020 "
            r"\\ \midrule A & 1 & 2 \\ \bottomrule\end{tabular}",
            "Land | Cost 2019 | Cost 2020\nA | 1 | 2",
        ),
        (
            "a.tex",
            r"\begin{tabular}{ll}A & \begin{tabular}{ll}\multicolumn{2}{c}{x} \\ 1 & 2\end{tabular} "
            r"\\ \midrule B & 7 \end{tabular}",
            "A | x x 1 2\nB | 7",
        ),
        (
            "a.html",
            "<table><tr><td rowspan=2>Land<td colspan=2>Cost<tr><td>2019<td>2020<tr><td>A<td>1<td>2</table>",
            "Land | Cost 2019 | Cost 2020\nA | 1 | 2",
        ),
        (
            "a.tex",
            r"\begin{tabular}{ll}Land & n \\ \midrule \multirow{2}{*}{A} & 1 \\ & 2 \\ B & 3\end{tabular}",
            "Land | n\nA | 1\nA | 2\nB | 3",
        ),
        ("a.tex", r"\begin{tabular}{ll}\multicolumn{2}{c}{Catch} \\ Krill & 5\end{tabular}", "Catch | Catch\nKrill | 5"),
        ("a.tex", r"\ang{45;30;10}, \SI{5}{\metre\tothe{3}}.", "45°30\u203210\u2033, 5 m³."),
        ("a.tex", r"\si{\per\raiseto{2}\second}, \qtyproduct{2x3}{\m}.", "/s², 2 \u00d7 3 m."),
        ("a.tex", "\\begin{tabular}{ll}a & b \\\\\n[12] & c \\\\ [0.5ex] d & 1\\end{tabular}", "a | b\n[12] | c\nd | 1"),
        ("a.tex", "One \\\\*[-2pt] two \\\\\n[Frisch 1965] three.", "One \ntwo \n[Frisch 1965] three."),
        ("a.tex", r"Of \lstinline|x_y|, \lstinline[language=C]{a % $b} and \verb|x_y|.", "Of x_y, a % $b and x_y."),
        ("a.tex", r"\begin{block}{Note 5}10 people came.\end{block}", "Note 5\n\n10 people came."),
        ("a.tex", r"Ants \input a/b run.", "Ants run."),
        ("a.tex", r"He wrote \foreigntextquote{german}[Roe][!]{so}.", "He wrote “so” Roe!."),
        ("a.tex", r"\begin{theorem}[Euler, 1736] It is.\end{theorem}", "(Euler, 1736) It is."),
        ("a.tex", r"PM$_{2.5}$, \glqq so\grqq, \verb*|a b|\glsadd{x}\setlist{y}.", "PM2.5, „so“, a b."),
        ("a.tex", r"\newcommand{\x}[2][9]{#2 has #1}\def\bee{Apis}\bee, \x{it}, \x[5]{and}.", "Apis, it has 9, and has 5."),
        ("a.tex", r"\newcommand\a{x}\renewcommand\a{y}\newcommand\b[1]{v#1\mathrm#1\beta}$\b{u}\a$ is.", "vuuβy is."),
        ("a.tex", r"\newcommand{\lb}{\{}\newcommand{\rb}{\}}A \lb1\rb{} is \label{never closed.", "A {1} is never closed."),
        ("a.tex", r"\NewDocumentCommand\x{s O{9} +m}{#3 has #2}\x{It}, \x*[5]{he}.", "It has 9, he has 5."),
        ("a.tex", r"\newcommand\y{m}{Bees} do.", "Bees do."),
        ("a.tex", "Run\n\\begin{lstlisting}[language=C]\nx = {\n\\end{lstlisting}\nnow.", "Run\n\nx = {\n\nnow."),
        ("a.tex", r"\begin{frame}[fragile]{Ants}\begin{columns}[T]They run.\end{columns}\end{frame}", "Ants\n\nThey run."),
        ("a.tex", r"It is \[ E = 5 \] or \begin{equation}\label{a}r = 2\end{equation}.", "It is E = 5 or r = 2."),
        ("a.tex", r"\begin{tabular}{ll}A & B \\ \midrule \makecell{x \\ y} & 1\end{tabular}", "A | B\nx \ny | 1"),
        ("a.tex", r"\keypoint[a]{Krill}{swarm}.", "Krill swarm."),
        ("a.tex", r"\begin{keybox}{Bees}They dance.\end{keybox}", "Bees\n\nThey dance."),
        ("a.tex", r"\IEEEPARstart{B}{ees}\ \begin{tcolorbox}[breakable]run.\end{tcolorbox}", "Bees\n\nrun."),
        ("a.tex", r"\newcommand\R{r}\begin{tabular}{l}Ant\\R\\\R\end{tabular}\ding{51}", "Ant\n\nR\n\nr"),
        ("a.tex", r"\def\eg{e.g\onedot}\def\onedot{\futurelet\@let@token\@onedot}So \eg, bees.", "So e.g, bees."),
        (
            "a.tex",
            r"\author[a]{Roe}It\hskip 2em plus 1em is \ensuremath{25^\circ}C \figref{x}\bibinfo{year}{now}.",
            "It is 25°C now.",
        ),
        ("a.html", "<p>As <a href='#cite1'>Roe (2001)</a> says, 2<sup>b</sup>.<p id=cite1>Roe.", "As Roe says, 2.\n\nRoe."),
        ("a.html", "<p>In 2019<span class=footnote>At noon.</span>, yes.", "In 2019, yes.\n\nAt noon."),
        ("a.html", f"<a href='{ANTS}'><h2>Ants</h2><p>They run.</p></a>", "Ants\n\nThey run."),
        ("a.md", "Hive\n: A house\n: A box\n", "Hive\n\nA house\n\nA box"),
        ("a.md", "Write to <mailto:a@b.example>.", "Write to mailto:a@b.example."),
        ("a.html", f"<p>So <a href='{ANTS}'>Roe </a>says <math><msqrt><mn>4</mn></msqrt></math>.", "So Roe says √4."),
        ("a.md", "```markdown\n# Bees\n\nThey dance.\n```\n", "Bees\n\nThey dance."),
        ("a.md", "!!! tip\n\n    Bees *dance*.\n\n```{tip}\nAnts *run*.\n```\n", "!!! tip\n\nBees dance.\n\n{tip} Ants run."),
        ("a.md", "Bees dance.\n\n<!-- todo\n\nAnts do not.", "Bees dance.\n\n<!-- todo\n\nAnts do not."),
        ("a.md", "Bees dance.\n\n<![CDATA[ [1]\n\nAnts do not.", "Bees dance.\n\n<![CDATA[ [1]\n\nAnts do not."),
        ("a.md", "Bees dance.\n\n<?php echo\n\nAnts do not.", "Bees dance.\n\n<?php echo\n\nAnts do not."),
        ("a.md", "Bees dance.\n\n```\n\nAnts do not.", "Bees dance.\n\nAnts do not."),
        ("a.md", "Bees:\n\n```\na = b\n```\n", "Bees:\n\na = b"),
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
        (r"They run and \textquote[{\cite[2]{roe}}]{fly}, \citetext{see \citealp{poe}}.", ["roe", "poe"]),
        (r"\newcommand{\mycite}[1]{\cite{#1}}Ants run \mycite{doe}, \cite{roe, % no" + "\npoe}.", ["doe", "roe", "poe"]),
        (
            r"\begin{displaycquote}[5]{doe}Long.\end{displaycquote}They \textcquote[5]{roe}{fly}, \cite<see>[p.~3]{poe}.",
            ["doe", "roe", "poe"],
        ),
        (r"They \hyphentextcquote{german}{doe}{fly}.\begin{displayquote}[\cite{roe}]Long.\end{displayquote}", ["doe", "roe"]),
        (r"\begin{lemma}[\cite{doe}]So.\end{lemma}\begin{tcolorbox}[title=Ants \cite{roe}]So.\end{tcolorbox}", ["doe", "roe"]),
        (r"\NewDocumentCommand\citeproc{mm}{\def\citeproctext{#2}\cite{#1}}It is (\citeproc{ref-roe}{Roe 2001}).", ["ref-roe"]),
        (r"\citestyle{plain}\nocite{x} Ants run \citeA{doe}.", ["doe"]),
        (r"\let\src\citep\def\zit#1{\footcite{#1}}Ants run \src{doe}.\zit{roe} \point[\cite{poe}]{So}.", ["doe", "roe", "poe"]),
        (r"\citelist{\cite{doe}\cite{roe}} \author{Kay \cite{poe}} \[ x \text{\cite{kay}} \]", ["doe", "roe", "poe", "kay"]),
        ("Some 900 ships\\textsuperscript{2} of $5^{3}$ and 4 m\\textsuperscript{2}.", ["2"]),
    ],
)
def test_marks_of_latex_are_data(written: str, marks: list[str]) -> None:
    assert notes_of(read_document(written.encode(), "a.tex")) == marks


def test_what_is_below_macros_and_listings_keeps_its_line() -> None:
    written = "\\def\\a#1{\n}\\cites(see)\n{doe}\n{roe}\n\\begin{minted}[a,\nb]{c++}\nx\n\\end{minted}\n\\a{x\n}\\cite{poe}"
    blocks = read_document(written.encode(), "a.tex").blocks
    marks = [(piece.text, piece.line) for block in blocks for piece in block.pieces[0] if piece.kind == "note"]
    assert marks == [("doe", 2), ("roe", 2), ("poe", 10)]


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


def test_macros_that_are_not_known_are_named() -> None:
    written = r"\newcommand{\bee}{Apis}\begin{document}The \bee{} is \strange{12} \textbf{mm} long.\end{document}"
    read = read_document(written.encode(), "a.tex")
    assert read.text == "The Apis is 12 mm long."
    assert read.notes == ["a.tex: macros that are not known, of which only what stands in their braces was read: \\strange"]


def test_a_title_is_read_as_the_text_is() -> None:
    written = r"\title{On \enquote{Bees} at \SI{5}{\km}}\begin{document}\href{https://a.example}{\textsf{Text}}\end{document}"
    assert read_document(written.encode(), "a.tex").title == "On “Bees” at 5 km"
    assert read_document(rb"See \lstinline|x| and \texttt y.", "a.tex").text == "See x and y."
    with pytest.raises(SourceError, match="LaTeX that cannot be parsed"):
        read_document(rb"Text \verb", "a.tex")


def word_file(**parts: str) -> bytes:
    """A DOCX of parts, each by the last words of its name."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, part in parts.items():
            archive.writestr(f"word/_rels/document.xml.{name}" if name == "rels" else f"word/{name}.xml", part)
    return file.getvalue()


def strict_docx() -> bytes:
    """A DOCX in the strict form, with a link and struck text."""
    form = "http://purl.oclc.org/ooxml"
    body = (
        f"<w:p>{RUN('', 'Bees dance ')}<w:hyperlink r:id='x1'>{RUN('', 'by Frisch')}</w:hyperlink>{RUN('', ' in ')}"
        f"{RUN('<w:rPr><w:strike/></w:rPr>', '1964 ')}{RUN('<w:rPr><w:dstrike/></w:rPr>', '1965 ')}{RUN('', '1966.')}"
        f"{RUN('<w:rPr><w:vanish/></w:rPr>', 'Obey.')}</w:p>"
    )
    relation = f"Type='{form}/officeDocument/relationships/hyperlink' Target='{DANCE}' TargetMode='External'"
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    names = f"xmlns:w='{form}/wordprocessingml/main' xmlns:r='{form}/officeDocument/relationships'"
    return word_file(
        document=f"<w:document {names}><w:body>{body}</w:body></w:document>",
        rels=f"<Relationships xmlns='{package}'><Relationship Id='x1' {relation}/></Relationships>",
    )


def test_a_strict_docx_keeps_its_links_and_loses_what_is_struck_or_hidden() -> None:
    read = read_document(strict_docx(), "a.docx")
    assert read.text == "Bees dance by Frisch in 1966."
    assert [piece.url for piece in read.blocks[0].pieces[0] if piece.kind == "link"] == [DANCE]
    assert read.removed["struck"] == 1
    assert read.notes == ["a.docx: stretches of hidden text that were left out: 1"]


W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
W += 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
MC = "xmlns:mc='http://schemas.openxmlformats.org/markup-compatibility/2006'"
RUN = "<w:r>{}<w:t xml:space='preserve'>{}</w:t></w:r>".format
MATHS, SUM = "<m:r><m:t>{}</m:t></m:r>".format, "<m:naryPr><m:chr m:val='∑'/></m:naryPr>"
STYLE = "<w:style w:type='{}' w:styleId='{}'>{}</w:style>".format
BASED = "<w:basedOn w:val='{}'/>".format
STYLES = f"""<w:styles {W}><w:style w:styleId='Plain'/>
{STYLE("character", "Hid", "<w:rPr><w:vanish/></w:rPr>")}
{STYLE("paragraph", "HidLine", "<w:rPr><w:vanish/></w:rPr>")}{STYLE("paragraph", "HidLine2", BASED("HidLine"))}
{STYLE("character", "Struck", "<w:rPr><w:strike/></w:rPr>")}{STYLE("character", "Struck2", BASED("Struck"))}
{STYLE("character", "Up", "<w:rPr><w:vertAlign w:val='superscript'/></w:rPr>")}{STYLE("character", "Up2", BASED("Up"))}
{STYLE("paragraph", "Number", "<w:pPr><w:numPr><w:numId w:val='1'/></w:numPr></w:pPr>")}</w:styles>"""
NUMBERING = f"""<w:numbering {W}><w:abstractNum w:abstractNumId="7"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl>
</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num></w:numbering>"""


def styled(style: str, text: str) -> str:
    return RUN(f"<w:rPr><w:rStyle w:val='{style}'/></w:rPr>", text)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (f"See <w:fldSimple w:instr='REF x'>{RUN('', 'Table 2')}</w:fldSimple>.", "See Table 2."),
        (f"Of <m:oMath><m:f><m:num>{MATHS('1')}</m:num><m:den>{MATHS('2')}</m:den></m:f></m:oMath>.", "Of 1/2."),
        (f"Of <m:oMath><m:nary>{SUM}<m:d>{MATHS('x+1')}</m:d></m:nary></m:oMath>.", "Of ∑(x+1)."),
        (
            "<w:ruby><w:rt><w:r><w:t>kan</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>漢</w:t></w:r></w:rubyBase></w:ruby>.",
            "漢 (kan).",
        ),
        (f"One<w:cr/>two<w:br w:type='page'/><w:dir>{RUN('', 'three')}</w:dir>.", "One\ntwo\nthree."),
        ("<w:rPr><w:rStyle w:val='Hid'/></w:rPr>", ""),
        (f"It has 22{styled('Up', '2')} of 10{styled('Up2', '6')}{styled('Struck2', ' not')}.", "It has 22 of 10⁶."),
        ("<w:pPr><w:pStyle w:val='HidLine2'/></w:pPr>No.", ""),
        (f"<mc:Any {MC}><mc:Choice>{RUN('', 'So.')}</mc:Choice><mc:Fallback/></mc:Any>", "So."),
        (f"<w:new>{RUN('', 'Of a new')}</w:new><w:r><w:sym w:font='Arial' w:char='00B5'/></w:r> kind.", "Of a newµ kind."),
        ("<w:pPr><w:pStyle w:val='Number'/></w:pPr>One.", "1. One."),
        (f'See <w:fldSimple w:instr=\' HYPERLINK "{DANCE}" \\l "s2" \'>{RUN("", "the site")}</w:fldSimple>.', "See the site."),
    ],
)
def test_what_a_word_processor_shows_is_read(body: str, text: str) -> None:
    """Text between elements stands for runs."""
    if body.startswith("<w:rPr>"):
        inner = RUN(body, "Shown ")
    else:
        inner = re.sub(r"(<w:ruby>.*</w:ruby>|<w:cr/>|<w:br [^>]*>)", r"<w:r>\1</w:r>", body)
        inner = re.sub(r"(?:(?<=>)|^)([^<>]+)(?=<w:r>|<w:fld|<m:oMath>|$)", lambda plain: RUN("", plain[1]), inner)
    inner = re.sub(r"<w:r><w:t xml:space='preserve'></w:t></w:r>", "", inner)
    document = f"<w:document {W}><w:body><w:p>{inner}</w:p><w:p>{RUN('', 'End.')}</w:p></w:body></w:document>"
    read = read_document(word_file(document=document, styles=STYLES, numbering=NUMBERING), "a.docx")
    links = [piece.url for block in read.blocks for piece in block.pieces[0] if piece.kind == "link"]
    assert links == [f"{DANCE}#s2"] * ("HYPERLINK" in body)
    assert read.text == f"{text.strip()}\n\nEnd.".strip()


def test_every_address_and_key_of_an_entry_is_found() -> None:
    text = rf"""@proceedings{{all, title={{Bees}}, year=1999, url={{{ANTS}}}}}
@proceedings{{part, title={{Part}}, crossref={{all}}}}
@inproceedings{{one, author={{Roe, R.}}, title={{Ants}}, crossref={{part}}}}
@article{{two, ids={{old, older}}, author={{Doe, J.}}, title={{Wasps}}, year=2001, url={{\url{{{DANCE}}}}}}}
@article{{three, author={{Kay, J.}}, title={{Hives}}, year=2021, journal={{arXiv preprint arXiv:2101.00001}}}}"""
    entries = {entry.mark: entry for entry in bibliography_of(text)}
    assert entries["one"].url == ANTS
    assert entries["one"].title == "Roe (1999). Ants"
    assert entries["two"].url == entries["old"].url == entries["older"].url == DANCE
    assert entries["three"].url == "https://arxiv.org/abs/2101.00001"


@pytest.mark.parametrize(
    ("fields", "title", "url"),
    [
        ("eprint={arXiv:2101.00001v2}, archiveprefix={arXiv}", "", "https://arxiv.org/abs/2101.00001v2"),
        ("title={U}, year=2001", "(2001). T", ""),
        ("author=undefined, year=2001", "undefined (2001). T", ""),
        ("link={https://a.example/x}", "", "https://a.example/x"),
        ("url={<https://a.example/x>}", "", "https://a.example/x"),
        ("url={https://a.example/x; https://a.example/y}", "", "https://a.example/x"),
        ("eprint={123}, eprinttype={jstor}", "", "https://www.jstor.org/stable/123"),
        ("url={a.example/x_y}", "", "https://a.example/x_y"),
        ("url={www.a.example, seen 2020}", "", "https://www.a.example"),
        ("pmid={123}", "", "https://pubmed.ncbi.nlm.nih.gov/123"),
        ("eprint={123}, eprinttype={pubmed}", "", "https://pubmed.ncbi.nlm.nih.gov/123"),
        ("note={PMC12345}", "", "https://pmc.ncbi.nlm.nih.gov/articles/PMC12345"),
        ("author={World Health Organization}, year={2021a}", "World Health Organization (2021a). T", ""),
        ("author={Watson, Mary Jane and {Bee Fund of Orlau}}, year=1999", "Watson & Bee Fund of Orlau (1999). T", ""),
    ],
)
def test_entries_are_read_as_people_and_tools_write_them(fields: str, title: str, url: str) -> None:
    entry = bibliography_of(f"@misc{{a, title={{T}}, {fields}}}")[0]
    assert (entry.title if title else "", entry.url) == (title, url)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n@article{key, title={T}}\n@book{Key, title={U}}", "repeated bibliography entry: Key"),
        ('[{"id": "key"}, {"id": "Key"}]', "the key 'Key' of work 2 is also that of work 1"),
        ("\n@article{title={T}, year=2000}", "line 2: the @article there has no key"),
        ("@string{a = {b}}", "no entry could be read"),
    ],
)
def test_a_bibliography_without_a_key_for_each_entry_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        bibliography_of(text)
