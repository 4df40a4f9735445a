r"""Reading LaTeX: sections, lists, footnotes, links, ``\cite`` and its kin, quantities, and ``thebibliography``.

Nothing is compiled, no other file is read (``\input``, ``.bib``), and macros of the document's own are not replaced.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any

from nlp_retrieval.documents.bibliography import bibliography_notes, plain_text
from nlp_retrieval.documents.blocks import Document, Draft, Piece, TextBlock, has_text, row_blocks
from nlp_retrieval.documents.cleaning import clean_text
from nlp_retrieval.errors import DependencyError, SourceError, install
from nlp_retrieval.text import printable

_HEADINGS = dict(part=1, chapter=1, section=2, subsection=3, subsubsection=4, paragraph=5, subparagraph=6)  # noqa: C408
_LEFT_OUT = frozenset(
    """
    label ref eqref pageref autoref cref Cref nocite includegraphics vspace hspace bibliographystyle
    usepackage documentclass newcommand renewcommand providecommand DeclareMathOperator setlength addtolength
    pagestyle thispagestyle maketitle author date thanks hypersetup graphicspath title index glossary
    textcolor color definecolor setcounter addtocounter tableofcontents printbibliography cline cmidrule
    rule phantom bibliography addbibresource input include subfile import
    """.split()
)
_ONE_ARGUMENT = """nocite bibliographystyle cline cmidrule glossary graphicspath index pageref pagestyle phantom subfile thanks
thispagestyle""".split()
_TWO_ARGUMENTS = ("addtocounter", "addtolength", "import")
_NO_TEXT = frozenset(
    """verbatim Verbatim lstlisting minted comment equation align gather multline eqnarray displaymath math filecontents
    tikzpicture algorithm algorithmic picture""".split()
)
_LISTS = frozenset(("itemize", "enumerate", "description"))
_TABLES = frozenset(("tabular", "tabularx", "longtable", "tabulary", "array"))
_ADDRESS = re.compile(r"(\\(?:url|href|path|nolinkurl)\s{0,5}\{)([^{}]{0,4000})(\})")
_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
_RAISED = re.compile(r"\$\s{0,3}\^\s{0,3}\{?\s{0,3}\[?([0-9][0-9, \u2013-]{0,40})\]?\s{0,3}\}?\s{0,3}\$")
_OTHER_FILES = re.compile(r"(?<!\\)\\(input|include|subfile|import)\b\s{0,5}\{([^{}]{1,200})\}")
_BIBLIOGRAPHIES = re.compile(r"\\(?:bibliography|addbibresource(?:\[[^\]]{0,80}\])?)\s{0,5}\{([^{}]{1,300})\}")
_CITE = re.compile(r"\\([A-Za-z]{0,30}[cC]ite[A-Za-z]{0,30})")
_NO_CITES = re.compile(r"nocite|(?:def|new|renew|set|bib|at)cite.*|cite(?:style|reset|setup)[a-z]*", re.IGNORECASE)
_POINTED = re.compile(
    r"(\\[A-Za-z]{0,30}[cC]ite[A-Za-z]{0,30}\*?)(?:<[^<>\n]{0,200}>|(?<=cites)\([^()\n]{0,200}\)|(?<=\))\([^()\n]{0,200}\)){1,2}"
)
"""Notes of apacite, and those of several works together, before the groups with keys."""

_SEVERAL = re.compile(r".*cites\Z")
_UNITS: dict[str, str] = dict(
    re.findall(
        r"(\S+)=(\S+)",
        """percent=% celsius=°C degreeCelsius=°C degree=° metre=m meter=m gram=g kilogram=kg second=s minute=min hour=h day=d
        litre=L liter=L tonne=t hectare=ha hertz=Hz watt=W joule=J newton=N pascal=Pa bar=bar kelvin=K mole=mol ampere=A
        volt=V ohm=Ω electronvolt=eV byte=B bit=bit nano=n micro=µ milli=m centi=c deci=d hecto=h kilo=k mega=M giga=G
        tera=T per=/ squared=² square=² cubed=³ cubic=³""",
    )
)
"""Units and prefixes of siunitx, as they are written."""

_BEFORE_NEXT = re.compile(r"\s*(?:(?:\[[^\]]{0,200}\]|\([^)]{0,200}\))\s*){0,20}")
_COMMENT = re.compile(r"(?<!\\)%[^\n]{0,10000}")


def _context(cites: Iterable[str]) -> Any:
    try:
        from pylatexenc.latexwalker import get_default_latex_context_db
        from pylatexenc.macrospec import EnvironmentSpec, MacroSpec
    except ImportError as error:
        raise DependencyError(f"reading LaTeX needs pylatexenc: {install('evidence')} ({error})") from None
    context = get_default_latex_context_db()
    macros = [MacroSpec(name, "[{[{" if name.lower().endswith("volcite") else "*[[{") for name in cites]
    macros += [MacroSpec(name, "[{") for name in ("num", "unit", "si", "ang")]
    macros += [MacroSpec(name, "[{{") for name in ("SI", "qty")]
    macros += [MacroSpec(name, "[{{{") for name in ("SIrange", "qtyrange")] + [MacroSpec("numrange", "[{{")]
    macros += [MacroSpec(name, "*[{") for name in (*_HEADINGS, "caption")]
    macros += [MacroSpec(name, "{") for name in ("textsuperscript", "url", "path", "nolinkurl", "title", "enquote", "label")]
    macros += [MacroSpec("footnote", "[{"), MacroSpec("href", "[{{"), MacroSpec("bibitem", "[{"), MacroSpec("textcolor", "[{{")]
    macros += [MacroSpec(name, "{") for name in _ONE_ARGUMENT] + [MacroSpec(name, "{{") for name in _TWO_ARGUMENTS]
    macros += [MacroSpec("multirow", "{{{"), MacroSpec("rule", "[{{")]
    macros += [MacroSpec("addbibresource", "[{"), MacroSpec("footnotetext", "[{"), MacroSpec("multicolumn", "{{{")]
    environments = [
        EnvironmentSpec("thebibliography", "{"),
        EnvironmentSpec("tabularx", "{{"),
        EnvironmentSpec("longtable", "[{"),
    ]
    context.add_context_category("citations", macros=macros, environments=environments, prepend=True)
    return context


def read_latex(text: str, where: str) -> Document:
    """Return the text of a document in LaTeX.

    Raises:
        SourceError: it cannot be parsed, is nested too deeply, or has no text.
        DependencyError: pylatexenc is not installed.
    """
    text, removed = clean_text(text)
    # a sign of a comment in an address is none
    text = _ADDRESS.sub(lambda link: link[1] + re.sub(r"(?<!\\)%", r"\\%", link[2]) + link[3], text)
    reader = _Latex(_POINTED.sub(r"\1", text), where)
    try:
        reader.read()
    except RecursionError:
        raise SourceError(f"{where}: its groups are nested too deeply; remove some braces") from None
    if not has_text(reader.blocks):
        raise SourceError(f"{where}: it has no text")
    source = _COMMENT.sub("", text)
    notes = [
        f"{where}: \\{kind}{{{printable(name)}}} was not followed; audit that file too"
        for kind, name in dict.fromkeys(match.groups() for match in _OTHER_FILES.finditer(source))
    ]
    for match in _BIBLIOGRAPHIES.finditer(source):
        notes += bibliography_notes(match[1])
    return Document(reader.blocks, reader.title, removed=removed, notes=notes)


class _Latex:
    def __init__(self, text: str, where: str) -> None:
        self._text, self._where = text, where
        self._cites = {name for name in _CITE.findall(text) if not _NO_CITES.fullmatch(name)}
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.blocks: list[TextBlock] = []
        self.title = ""
        self._draft = Draft()
        self._line = 1
        self._depth = self._quoted = 0
        self._items: list[Iterator[int] | None] = []
        self._item = ""
        self._numbers = count(1)
        self._entry: str | None = None

    def read(self) -> None:
        from pylatexenc.latexwalker import LatexWalker, LatexWalkerError

        try:
            nodes, _, _ = LatexWalker(self._text, latex_context=_context(self._cites), tolerant_parsing=True).get_latex_nodes()
        except LatexWalkerError as error:
            raise SourceError(f"{self._where}: LaTeX that cannot be parsed ({printable(str(error))[:120]})") from None
        document = next((node for node in nodes if _environment(node) == "document"), None)
        for node in nodes if document is not None else ():
            if _macro(node) == "title":
                self.title = plain_text(self._inner(node.nodeargd.argnlist[-1]))
        self._walk(nodes if document is None else document.nodelist)
        self._flush()

    def _at(self, node: Any) -> int:
        return bisect_right(self._starts, node.pos)

    def _flush(self, kind: str = "", level: int = 0) -> None:
        if not self._draft:
            self._draft.take()
            return
        pieces, line = self._draft.take(), self._line
        if kind == "heading":
            self.blocks.append(TextBlock("heading", line, [pieces], level=level))
        elif self._entry is not None:
            self.blocks.append(TextBlock("note", line, [pieces], name=self._entry))
        elif self._depth:
            self.blocks.append(TextBlock("item", line, [pieces], level=self._depth, name=self._item, quoted=self._quoted > 0))
            self._item = ""
        else:
            self.blocks.append(TextBlock("paragraph", line, [pieces], quoted=self._quoted > 0))

    def _walk(self, nodes: Sequence[Any]) -> None:  # noqa: PLR0912
        several = False
        for node in nodes or ():
            if node is None:
                continue
            if not self._draft:
                self._line = self._at(node)
            kind = type(node).__name__
            if several and kind == "LatexGroupNode":  # \cites{a}{b}
                self._cite(self._inner(node), node)
                continue
            if several and kind == "LatexCharsNode" and _BEFORE_NEXT.fullmatch(node.chars):
                continue
            several = False
            if kind == "LatexCharsNode":
                self._chars(node)
            elif kind == "LatexGroupNode":
                self._walk(node.nodelist)
            elif kind == "LatexMacroNode":
                self._read_macro(node)
                several = node.macroname in self._cites and _SEVERAL.fullmatch(node.macroname) is not None
            elif kind == "LatexEnvironmentNode":
                self._read_environment(node)
            elif kind == "LatexMathNode":
                self._math(node)
            elif kind == "LatexSpecialsNode":
                if "\n" in node.specials_chars:
                    self._flush()
                else:
                    self._draft.text(self._plain(node), self._at(node))

    def _chars(self, node: Any) -> None:
        position = node.pos
        for number, part in enumerate(_PARAGRAPH.split(node.chars)):
            if number:
                self._flush()
                position = self._text.find(part[:40], position)
                self._line = bisect_right(self._starts, max(position, 0))
            self._draft.text(re.sub(r"\s+", " ", part), bisect_right(self._starts, max(position, 0)))

    def _read_macro(self, node: Any) -> None:  # noqa: PLR0912
        name, line = node.macroname, self._at(node)
        groups = [group for group in (node.nodeargd.argnlist or () if node.nodeargd else ()) if group is not None]
        if name in self._cites:
            self._cite(self._inner(groups[-1]) if groups else f"\\{name}", node)
        elif name in _HEADINGS:
            self._flush()
            self._line = self._at(node)
            self._walk(groups[-1:])
            self._flush("heading", _HEADINGS[name])
        elif name in ("footnote", "footnotetext"):
            self._footnote(groups[-1:], node)
        elif name in ("url", "path", "nolinkurl", "href"):
            self._link(name, groups, node)
        elif name == "textsuperscript":
            self._draft.raised(self._inner(groups[-1]) if groups else "", self._at(node))
        elif name == "item":
            self._flush()
            self._item = str(next(self._items[-1])) if self._items and self._items[-1] is not None else "-"
        elif name == "bibitem":
            self._flush()
            self._line = self._at(node)
            self._entry = self._inner(groups[-1]) if groups else ""
            self.blocks.append(TextBlock("note", self._line, [[]], name=self._entry))
        elif name == "caption":
            self._flush()
            self._walk(groups[-1:])
            self._flush()
        elif name in ("par", "newpage", "clearpage"):
            self._flush()
        elif name == "\\":
            self._draft.line_break(self._at(node))
        elif name in ("newblock", "noindent", "centering"):
            self._draft.text(" ", self._at(node))
        elif name in ("num", "unit", "si", "SI", "qty", "ang", "SIrange", "qtyrange", "numrange"):
            self._draft.text(
                _quantity(name, [self._inner(group) for group in groups if group.latex_verbatim()[:1] == "{"]), line
            )
        elif name == "enquote":
            self._draft.text("\u201c", line)
            self._walk(groups[-1:])
            self._draft.text("\u201d", line)
        elif name in ("textcolor", "multirow"):
            self._walk(groups[-1:])
        elif name not in _LEFT_OUT:
            plain = "" if any(_holds_macro(group) for group in groups) else self._plain(node)
            if plain.strip() or not groups:
                self._draft.text(plain, line)
            else:
                self._walk(groups[-1:])

    def _cite(self, keys: str, node: Any) -> None:
        for key in filter(None, (key.strip() for key in keys.split(","))):
            self._draft.note(key, self._at(node))

    def _footnote(self, groups: Sequence[Any], node: Any) -> None:
        name, line = f"footnote {next(self._numbers)}", self._at(node)
        self._draft.note(name, line)
        outer, self._draft = self._draft, Draft()
        self._walk(groups)
        pieces = self._draft.take()
        self._draft = outer
        if pieces and all(piece.kind == "note" or not piece.text.strip(" .;,") for piece in pieces):
            # \footnote{\cite{key}} cites the work itself
            self._draft.drop_last()
            for piece in (piece for piece in pieces if piece.kind == "note"):
                self._draft.note(piece.text, line)
            return
        self.blocks += [TextBlock("note", line, [[]], name=name), TextBlock("note", line, [_keys_as_text(pieces)], name=name)]

    def _link(self, name: str, groups: Sequence[Any], node: Any) -> None:
        at = 2 if name == "href" else 1
        if len(groups) < at:
            return
        url = re.sub(r"\\([%#&_{}~])", r"\1", self._inner(groups[-at]))
        self._draft.link(url, "" if at == 1 else self._plain(groups[-1]), self._at(node))

    def _read_environment(self, node: Any) -> None:
        name = node.environmentname.rstrip("*")
        if name in _NO_TEXT:
            return
        if name in _TABLES:
            self._flush()
            self.blocks += row_blocks(list(self._rows(node)))
            return
        self._flush()
        self._quoted += name in ("quote", "quotation", "displayquote")
        if name in _LISTS:
            self._items.append(count(1) if name == "enumerate" else None)
            self._depth += 1
        self._walk(node.nodelist)
        self._flush()
        if name in _LISTS:
            self._items.pop()
            self._depth -= 1
        if name == "thebibliography":
            self._entry = None
        self._quoted -= name in ("quote", "quotation", "displayquote")

    def _rows(self, node: Any) -> Iterator[tuple[int, list[list[Piece]]]]:
        outer, self._draft = self._draft, Draft()
        cells: list[list[Piece]] = []
        line = self._at(node)
        for inner in node.nodelist or ():
            if _macro(inner) == "\\" or getattr(inner, "specials_chars", "") == "&":
                cells.append(self._draft.take())
                if _macro(inner) == "\\":
                    if any(cells):
                        yield line, cells
                    cells = []
            elif _macro(inner) not in ("hline", "toprule", "midrule", "bottomrule", *_LEFT_OUT):
                line = self._at(inner) if not cells and not self._draft else line
                self._cell(inner)
        cells.append(self._draft.take())
        if any(cells):
            yield line, cells
        self._draft = outer

    def _cell(self, node: Any) -> None:
        if type(node).__name__ == "LatexCharsNode":
            self._draft.text(re.sub(r"\s+", " ", node.chars), self._at(node))
        elif _macro(node) == "multicolumn":
            self._walk(node.nodeargd.argnlist[-1:])
        else:
            self._walk([node])

    def _math(self, node: Any) -> None:
        raised = _RAISED.fullmatch(node.latex_verbatim())
        if raised:
            self._draft.raised(raised[1], self._at(node))
        elif node.displaytype == "inline":
            self._draft.code(self._plain(node), self._at(node))

    def _inner(self, node: Any) -> str:
        source = str(node.latex_verbatim())
        return source[1:-1] if source[:1] in "{[" and source[-1:] in "}]" else source

    def _plain(self, node: Any) -> str:
        from pylatexenc.latex2text import LatexNodes2Text

        return str(LatexNodes2Text(math_mode="text").nodelist_to_text([node]))


def _macro(node: Any) -> str:
    return str(getattr(node, "macroname", ""))


def _environment(node: Any) -> str:
    return str(getattr(node, "environmentname", ""))


def _holds_macro(group: Any) -> bool:
    """Return whether a group holds more than text, as a citation or a link."""
    nodes = getattr(group, "nodelist", None) or ()
    return type(group).__name__ == "LatexGroupNode" and any(type(node).__name__ != "LatexCharsNode" for node in nodes)


def _quantity(name: str, values: Sequence[str]) -> str:
    r"""Return a quantity of siunitx as it is printed: ``\SI{5}{\kilo\metre}`` is 5 km."""
    n_numbers = 2 if name.endswith("range") else 0 if name in ("unit", "si") else 1
    numbers = [re.sub(r"(?<=[0-9])e(?=[0-9+-])", " \u00d7 10^", value) for value in values[:n_numbers]]
    unit = " ".join(values[n_numbers:]).replace("~", " ").replace(".", " ")
    unit = re.sub(r"\\(square|cubic)((?:\s*\\[A-Za-z]{1,20}){1,2})", r"\2\\\1", unit)
    unit = re.sub(r"\\([A-Za-z]{1,20})\s*", lambda macro: _UNITS.get(macro[1], macro[1]), unit)
    return " ".join(filter(None, (" to ".join(numbers).replace(";", " ") + "°" * (name == "ang"), unit)))


def _keys_as_text(pieces: Sequence[Piece]) -> list[Piece]:
    r"""Return a footnote's pieces with the keys in it as text, by which the work is found: "see \cite{key}"."""
    return [Piece("text", f"[@{piece.text}]", piece.line) if piece.kind == "note" else piece for piece in pieces]
