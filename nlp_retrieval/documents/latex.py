r"""Reading LaTeX: sections, lists, footnotes, links, ``\cite`` and its kin, quantities, and ``thebibliography``.

Nothing is compiled, no other file is read (``\input``, ``.bib``), and macros of the document's own are not replaced.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any

from nlp_retrieval.documents.bibliography import bibliography_notes
from nlp_retrieval.documents.blocks import Document, Draft, Piece, TextBlock, row_blocks
from nlp_retrieval.documents.cleaning import clean_text
from nlp_retrieval.errors import SourceError
from nlp_retrieval.text import printable

_HEADINGS = dict(part=1, chapter=1, section=2, subsection=3, subsubsection=4, paragraph=5, subparagraph=6)  # noqa: C408
_LEFT_OUT = frozenset(
    """
    label ref eqref pageref autoref cref Cref nocite includegraphics vspace hspace bibliographystyle
    usepackage documentclass newcommand renewcommand providecommand DeclareMathOperator setlength addtolength
    pagestyle thispagestyle maketitle author date thanks hypersetup graphicspath title index glossary
    color definecolor setcounter addtocounter tableofcontents printbibliography cline cmidrule
    rule phantom bibliography addbibresource input include subfile import
    """.split()
)
_ARGUMENTS = {
    "{": """textsuperscript url path nolinkurl title enquote label nocite bibliographystyle cline cmidrule glossary graphicspath
    index pageref pagestyle phantom subfile thanks thispagestyle""",
    "[{": "num unit si ang footnote footnotetext bibitem addbibresource",
    "{{": "addtocounter addtolength import",
    "[{{": "SI qty numrange href textcolor rule",
    "[{{{": "SIrange qtyrange",
    "{{{": "multirow multicolumn",
    "*[{": " ".join((*_HEADINGS, "caption")),
}
"""Arguments of macros that the parser does not know, or knows otherwise."""

_ENVIRONMENTS = {"thebibliography": "{", "tabularx": "{{", "longtable": "[{"}
_NO_TEXT = frozenset(
    """verbatim Verbatim lstlisting minted comment equation align gather multline eqnarray displaymath math filecontents
    tikzpicture algorithm algorithmic picture""".split()
)
_LISTS = ("itemize", "enumerate", "description")
_TABLES = ("tabular", "tabularx", "longtable", "tabulary", "array")
_QUOTES = ("quote", "quotation", "displayquote")
_LINES = ("hline", "toprule", "midrule", "bottomrule")
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

_BEFORE_NEXT = re.compile(r"\s*(?:(?:\[[^\]]{0,200}\]|\([^)]{0,200}\))\s*){0,20}")
_COMMENT = re.compile(r"(?<!\\)%[^\n]{0,10000}")
_QUANTITIES = ("num", "unit", "si", "SI", "qty", "ang", "SIrange", "qtyrange", "numrange")
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


def _context(cites: Iterable[str]) -> Any:
    from pylatexenc.latexwalker import get_default_latex_context_db
    from pylatexenc.macrospec import EnvironmentSpec, MacroSpec

    context = get_default_latex_context_db()
    macros = [MacroSpec(name, "[{[{" if name.lower().endswith("volcite") else "*[[{") for name in cites]
    macros += [MacroSpec(name, arguments) for arguments, names in _ARGUMENTS.items() for name in names.split()]
    environments = [EnvironmentSpec(name, arguments) for name, arguments in _ENVIRONMENTS.items()]
    context.add_context_category("citations", macros=macros, environments=environments, prepend=True)
    return context


def read_latex(text: str, where: str) -> Document:
    """Return the text of a document in LaTeX.

    Raises:
        SourceError: it cannot be parsed, is nested too deeply, or has no text.
    """
    from pylatexenc.latexwalker import LatexWalkerError

    text, removed = clean_text(text)
    # a sign of a comment in an address is none
    text = _ADDRESS.sub(lambda link: link[1] + re.sub(r"(?<!\\)%", r"\\%", link[2]) + link[3], text)
    reader = _Latex(_POINTED.sub(r"\1", text))
    try:
        reader.read()
    except LatexWalkerError as error:
        raise SourceError(f"{where}: LaTeX that cannot be parsed ({printable(str(error))[:120]})") from None
    except RecursionError:
        raise SourceError(f"{where}: its groups are nested too deeply; remove some braces") from None
    source = _COMMENT.sub("", text)
    notes = [
        f"{where}: \\{kind}{{{printable(name)}}} was not followed; audit that file too"
        for kind, name in dict.fromkeys(match.groups() for match in _OTHER_FILES.finditer(source))
    ]
    for match in _BIBLIOGRAPHIES.finditer(source):
        notes += bibliography_notes(match[1])
    return Document(reader.blocks, reader.title, removed=removed, notes=notes)


class _Latex:
    """One reading of a document, block by block."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._cites = {name for name in _CITE.findall(text) if not _NO_CITES.fullmatch(name)}
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.blocks: list[TextBlock] = []
        self.title = ""
        self._draft = Draft()
        self._line = 1
        self._quoted = 0
        self._items: list[Iterator[int] | None] = []
        self._item = ""
        self._numbers = count(1)
        self._entry: str | None = None

    def read(self) -> None:
        """Read the document."""
        from pylatexenc.latexwalker import LatexWalker

        nodes, _, _ = LatexWalker(self._text, latex_context=_context(self._cites), tolerant_parsing=True).get_latex_nodes()
        document = next((node for node in nodes if getattr(node, "environmentname", "") == "document"), None)
        for node in nodes if document is not None else ():
            if _macro(node) == "title":
                self.title = " ".join(_plain(node.nodeargd.argnlist[-1]).split())
        self._walk(nodes if document is None else document.nodelist)
        self._flush()

    def _at(self, position: int) -> int:
        return bisect_right(self._starts, position)

    def _flush(self, level: int = 0) -> None:
        if not self._draft:
            self._draft.take()
            return
        pieces, line, quoted = self._draft.take(), self._line, self._quoted > 0
        if level:
            self.blocks.append(TextBlock("heading", line, [pieces], level=level))
        elif self._entry is not None:
            self.blocks.append(TextBlock("note", line, [pieces], name=self._entry))
        elif self._items:
            self.blocks.append(TextBlock("item", line, [pieces], level=len(self._items), name=self._item, quoted=quoted))
            self._item = ""
        else:
            self.blocks.append(TextBlock("paragraph", line, [pieces], quoted=quoted))

    def _walk(self, nodes: Sequence[Any]) -> None:
        several = False
        for node in nodes or ():
            if node is None:
                continue
            if not self._draft:
                self._line = self._at(node.pos)
            kind = type(node).__name__
            if several and kind == "LatexGroupNode":  # \cites{a}{b}
                self._cite(_inner(node), self._at(node.pos))
                continue
            if several and kind == "LatexCharsNode" and _BEFORE_NEXT.fullmatch(node.chars):
                continue
            several = kind == "LatexMacroNode" and node.macroname in self._cites and node.macroname.endswith("cites")
            self._read(node, kind)

    def _read(self, node: Any, kind: str) -> None:
        line = self._at(node.pos)
        if kind == "LatexCharsNode":
            self._chars(node)
        elif kind == "LatexGroupNode":
            self._walk(node.nodelist)
        elif kind == "LatexMacroNode":
            self._read_macro(node, node.macroname, line)
        elif kind == "LatexEnvironmentNode":
            self._read_environment(node, node.environmentname.rstrip("*"))
        elif kind == "LatexMathNode":
            if raised := _RAISED.fullmatch(node.latex_verbatim()):
                self._draft.raised(raised[1], line)
            elif node.displaytype == "inline":
                self._draft.code(_plain(node), line)
        elif kind == "LatexSpecialsNode":
            if "\n" in node.specials_chars:
                self._flush()
            else:
                self._draft.text(_plain(node), line)

    def _chars(self, node: Any) -> None:
        position = node.pos
        for number, part in enumerate(_PARAGRAPH.split(node.chars)):
            if number:
                self._flush()
                position = max(self._text.find(part[:40], position), 0)
                self._line = self._at(position)
            self._draft.text(re.sub(r"\s+", " ", part), self._at(position))

    def _read_macro(self, node: Any, name: str, line: int) -> None:  # noqa: PLR0912
        groups = [group for group in (node.nodeargd.argnlist or () if node.nodeargd else ()) if group is not None]
        last = _inner(groups[-1]) if groups else ""
        if name in self._cites:
            self._cite(last if groups else f"\\{name}", line)
        elif name in _HEADINGS or name == "caption":
            self._flush()
            self._line = line
            self._walk(groups[-1:])
            self._flush(_HEADINGS.get(name, 0))
        elif name in ("footnote", "footnotetext"):
            self._footnote(groups[-1:], line)
        elif name in ("url", "path", "nolinkurl") and groups:
            self._draft.link(_unescaped(last), "", line)
        elif name == "href" and len(groups) > 1:
            self._draft.link(_unescaped(_inner(groups[-2])), _plain(groups[-1]), line)
        elif name == "textsuperscript":
            self._draft.raised(last, line)
        elif name == "item":
            self._flush()
            self._item = str(next(self._items[-1])) if self._items and self._items[-1] is not None else "-"
        elif name == "bibitem":
            self._flush()
            self._line, self._entry = line, last
            self.blocks.append(TextBlock("note", line, [[]], name=last))
        elif name in ("par", "newpage", "clearpage"):
            self._flush()
        elif name == "\\":
            self._draft.line_break(line)
        elif name in ("newblock", "noindent", "centering"):
            self._draft.text(" ", line)
        elif name in _QUANTITIES:
            values = [_inner(group) for group in groups if group.latex_verbatim()[:1] == "{"]
            self._draft.text(_quantity(name, values), line)
        elif name not in _LEFT_OUT:
            marks = ("\u201c", "\u201d") if name == "enquote" else ("", "")
            is_whole = name in ("enquote", "textcolor", "multirow") or any(map(_holds_macro, groups))
            plain = "" if is_whole else _plain(node)
            self._draft.text(marks[0] or plain, line)
            if groups and not plain.strip():
                self._walk(groups[-1:])
            self._draft.text(marks[1], line)

    def _cite(self, keys: str, line: int) -> None:
        for key in filter(None, (key.strip() for key in keys.split(","))):
            self._draft.note(key, line)

    def _footnote(self, groups: Sequence[Any], line: int) -> None:
        name = f"footnote {next(self._numbers)}"
        outer, self._draft = self._draft, Draft()
        self._walk(groups)
        pieces, self._draft = self._draft.take(), outer
        if pieces and all(piece.kind == "note" or not piece.text.strip(" .;,") for piece in pieces):
            for piece in (piece for piece in pieces if piece.kind == "note"):  # \footnote{\cite{key}} cites the work itself
                self._draft.note(piece.text, line)
            return
        self._draft.note(name, line)
        # "see \cite{key}": the work is found by the key as text
        written = [Piece("text", f"[@{piece.text}]", piece.line) if piece.kind == "note" else piece for piece in pieces]
        self.blocks += [TextBlock("note", line, [[]], name=name), TextBlock("note", line, [written], name=name)]

    def _read_environment(self, node: Any, name: str) -> None:
        if name in _NO_TEXT:
            return
        self._flush()
        if name in _TABLES:
            self.blocks += row_blocks(list(self._rows(node)))
            return
        self._quoted += name in _QUOTES
        if name in _LISTS:
            self._items.append(count(1) if name == "enumerate" else None)
        self._walk(node.nodelist)
        self._flush()
        if name in _LISTS:
            self._items.pop()
        elif name == "thebibliography":
            self._entry = None
        self._quoted -= name in _QUOTES

    def _rows(self, node: Any) -> Iterator[tuple[int, list[list[Piece]]]]:
        outer, self._draft = self._draft, Draft()
        cells: list[list[Piece]] = []
        line = self._at(node.pos)
        for inner in (*(node.nodelist or ()), None):
            name = _macro(inner)
            if inner is None or name == "\\" or getattr(inner, "specials_chars", "") == "&":
                cells.append(self._draft.take())
                if inner is None or name == "\\":
                    if any(cells):
                        yield line, cells
                    cells = []
            elif name not in _LINES and name not in _LEFT_OUT:
                line = self._at(inner.pos) if not cells and not self._draft else line
                if type(inner).__name__ == "LatexCharsNode":
                    self._draft.text(re.sub(r"\s+", " ", inner.chars), self._at(inner.pos))
                else:
                    self._walk(inner.nodeargd.argnlist[-1:] if name == "multicolumn" else [inner])
        self._draft = outer


def _macro(node: Any) -> str:
    return str(getattr(node, "macroname", ""))


def _inner(node: Any) -> str:
    source = str(node.latex_verbatim())
    return source[1:-1] if source[:1] in "{[" and source[-1:] in "}]" else source


def _plain(node: Any) -> str:
    from pylatexenc.latex2text import LatexNodes2Text

    return str(LatexNodes2Text(math_mode="text").nodelist_to_text([node]))


def _unescaped(url: str) -> str:
    return re.sub(r"\\([%#&_{}~])", r"\1", url)


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
