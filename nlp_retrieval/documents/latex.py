r"""Reading LaTeX: sections, lists, footnotes, links, ``\cite`` and its kin, quantities, and ``thebibliography``.

Nothing is compiled, no other file is read (``\input``, ``.bib``), and macros of the document's own are not replaced.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from nlp_retrieval.documents.bibliography import bibliography_notes
from nlp_retrieval.documents.blocks import Document
from nlp_retrieval.documents.cleaning import clean_text
from nlp_retrieval.documents.html import FOOTNOTE, MARK, NOTE, TEXT, Tree
from nlp_retrieval.errors import SourceError
from nlp_retrieval.text import printable

_HEADINGS = "part chapter section subsection subsubsection paragraph subparagraph".split()
_ELEMENTS = {name: f"h{max(1, level)}" for level, name in enumerate(_HEADINGS)} | {
    "caption": "p",
    "enquote": "q",
    "textsuperscript": "sup",
}
_LEFT_OUT = frozenset(
    """
    label ref eqref pageref autoref cref Cref nocite includegraphics vspace hspace bibliographystyle
    usepackage documentclass newcommand renewcommand providecommand DeclareMathOperator setlength addtolength
    pagestyle thispagestyle maketitle author date thanks hypersetup graphicspath title index glossary
    color definecolor setcounter addtocounter tableofcontents printbibliography cline cmidrule
    hline toprule midrule bottomrule rule phantom bibliography addbibresource input include subfile import
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
_LISTS = {"itemize": "ul", "enumerate": "ol", "description": "ul"}
_TABLES = ("tabular", "tabularx", "longtable", "tabulary", "array")
_QUOTES = ("quote", "quotation", "displayquote")
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
        document = reader.tree.document(where)
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
    return replace(document, title=reader.title, removed=document.removed + removed, notes=notes)


class _Latex:
    """Makes a page of HTML of a document, which the reader of HTML reads."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._cites = {name for name in _CITE.findall(text) if not _NO_CITES.fullmatch(name)}
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._footnotes = count(1)
        self._in_note = False
        self._row, self._list = 0, 2
        self.tree = Tree()
        self.title = ""

    def read(self) -> None:
        """Read the document."""
        from pylatexenc.latexwalker import LatexWalker

        nodes, _, _ = LatexWalker(self._text, latex_context=_context(self._cites), tolerant_parsing=True).get_latex_nodes()
        document = next((node for node in nodes if getattr(node, "environmentname", "") == "document"), None)
        for node in nodes if document is not None else ():
            if _macro(node) == "title":
                self.title = " ".join(_plain(node.nodeargd.argnlist[-1]).split())
        self._walk(nodes if document is None else document.nodelist)

    def _walk(self, nodes: Sequence[Any]) -> None:
        several = False
        for node in nodes or ():
            if node is None:
                continue
            kind = type(node).__name__
            if several and kind == "LatexGroupNode":  # \cites{a}{b}
                self._cite(_inner(node))
                continue
            if several and kind == "LatexCharsNode" and _BEFORE_NEXT.fullmatch(node.chars):
                continue
            several = kind == "LatexMacroNode" and node.macroname in self._cites and node.macroname.endswith("cites")
            self.tree.line = bisect_right(self._starts, node.pos)
            self._read(node, kind)

    def _read(self, node: Any, kind: str) -> None:  # noqa: PLR0912 -- a branch for each kind of node
        if kind == "LatexCharsNode":
            position = node.pos
            for number, part in enumerate(_PARAGRAPH.split(node.chars)):
                if number:
                    self.tree.one("p")
                    position = max(self._text.find(part[:40], position), 0)
                    self.tree.line = bisect_right(self._starts, position)
                self.tree.one(TEXT, part)
        elif kind == "LatexGroupNode":
            self._walk(node.nodelist)
        elif kind == "LatexMacroNode":
            self._read_macro(node, node.macroname)
        elif kind == "LatexEnvironmentNode":
            self._read_environment(node, node.environmentname.rstrip("*"))
        elif kind == "LatexMathNode":
            if raised := _RAISED.fullmatch(node.latex_verbatim()):
                self.tree.one("sup", raised[1])
            elif node.displaytype == "inline":
                self.tree.one("code", _plain(node))
        elif kind == "LatexSpecialsNode":
            if node.specials_chars == "&" and self._row:
                self.tree.end("td", self._row)
                self.tree.begin("td")
            elif "\n" in node.specials_chars:
                self.tree.one("p")
            else:
                self.tree.one(TEXT, _plain(node))

    def _read_macro(self, node: Any, name: str) -> None:  # noqa: PLR0912
        tree = self.tree
        groups = [group for group in (node.nodeargd.argnlist or () if node.nodeargd else ()) if group is not None]
        last = _inner(groups[-1]) if groups else ""
        if name in self._cites:
            self._cite(last if groups else f"\\{name}")
        elif name in _ELEMENTS and groups:
            self._within(_ELEMENTS[name], groups[-1:])
        elif name in ("footnote", "footnotetext"):
            self._footnote(groups[-1:])
        elif name in ("url", "path", "nolinkurl") and groups:
            tree.one("a", _unescaped(last), href=_unescaped(last))
        elif name == "href" and len(groups) > 1:
            tree.one("a", _plain(groups[-1]), href=_unescaped(_inner(groups[-2])))
        elif name == "item":
            tree.end("li", self._list)
            tree.begin("li")
        elif name == "bibitem":
            tree.end(NOTE, self._list)
            tree.begin(NOTE, name=last)
        elif name == "multicolumn" and self._row:
            tree.set("colspan", _inner(groups[0]))
            self._walk(groups[-1:])
        elif name in ("par", "newpage", "clearpage"):
            tree.one("p")
        elif name == "\\" and self._row:
            tree.end("tr", self._row - 1)
            tree.begin("tr")
            tree.begin("td")
        elif name == "\\":
            tree.one("br")
        elif name in ("newblock", "noindent", "centering"):
            tree.text(" ")
        elif name in _QUANTITIES:
            tree.text(_quantity(name, [_inner(group) for group in groups if group.latex_verbatim()[:1] == "{"]))
        elif name not in _LEFT_OUT:
            plain = "" if name in ("textcolor", "multirow") or any(map(_holds_macro, groups)) else _plain(node)
            tree.one(TEXT, plain)
            if groups and not plain.strip():
                self._walk(groups[-1:])

    def _within(self, tag: str, nodes: Sequence[Any], **attributes: str) -> None:
        outside = len(self.tree)
        self.tree.begin(tag, **attributes)
        self._walk(nodes)
        self.tree.close(outside)

    def _cite(self, keys: str) -> None:
        for key in filter(None, (key.strip() for key in keys.split(","))):
            if self._in_note:  # "see \cite{key}": the work is found by the key as text
                self.tree.text(f"[@{key}]")
            else:
                self.tree.one(MARK, name=key)

    def _footnote(self, groups: Sequence[Any]) -> None:
        name = f"footnote {next(self._footnotes)}"
        nodes = [node for group in groups for node in getattr(group, "nodelist", ())]
        cites = [node for node in nodes if _macro(node) in self._cites]
        if cites and all(node in cites or not node.latex_verbatim().strip(" \n.;,~") for node in nodes):
            self._walk(groups)  # \footnote{\cite{key}} cites the work itself
            return
        outer, self._in_note = self._in_note, True
        self._within(FOOTNOTE, groups, name=name)
        self._in_note = outer

    def _read_environment(self, node: Any, name: str) -> None:
        if name in _NO_TEXT:
            return
        tree, outside, outer = self.tree, len(self.tree), (self._row, self._list)
        if name in _TABLES:
            tree.begin("table")
            tree.begin("tr")
            self._row = len(tree)
            tree.begin("td")
        else:
            tree.begin("blockquote" if name in _QUOTES else _LISTS.get(name, "div"))
            self._row, self._list = 0, len(tree)
        self._walk(node.nodelist)
        tree.close(outside)
        self._row, self._list = outer


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
