r"""Reading LaTeX: sections, lists, tables, footnotes, links, ``\cite`` and its kin, quantities, and ``thebibliography``.

Nothing is compiled and no other file is read (``\input``, ``.bib``). Macros that a document defines are replaced by what they
stand for; unknown ones are named in a note, and the text in their braces is read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from itertools import pairwise
from pathlib import Path
from string import punctuation
from typing import Any

from nlp_retrieval.core import read_yaml
from nlp_retrieval.documents.blocks import Document, as_raised, clean_text
from nlp_retrieval.documents.html import AT, FOOTNOTE, MARK, NOTE, document_of, number_of, parse_page
from nlp_retrieval.errors import SourceError
from nlp_retrieval.text import printable

_DATA = read_yaml(Path(__file__).with_name("latex.yaml"))


def _table(kind: str) -> dict[str, tuple[str, str]]:
    keys = [(*key.rpartition(" ")[::2], names.split()) for key, names in _DATA[kind].items()]
    return {name: (arguments, shown) for arguments, shown, names in keys for name in names}


_MACROS, _ENVIRONMENTS = _table("macros"), _table("environments")
_SYMBOLS = dict(pair.split("=") for pair in _DATA["symbols"].split()) | dict.fromkeys(_DATA["spaces"].split(), " ")
_UNITS: dict[str, str] = dict(pair.split("=") for pair in _DATA["units"].split())
_ABOUT = "x-about"  # element in a cell that tells of the line above its row, or of the rows and columns that it spans
_ADDRESS = re.compile(r"(\\(?:url|href|path|nolinkurl)\s{0,5}\{)([^{}]{0,4000})(\})")
_PARAGRAPH = re.compile(r"(\n[ \t]*\n\s*)")
_SCRIPT = re.compile(r"(?:(\^)|_)[\s{]{0,9}\[?([0-9](?:[0-9, \u2013+-]|\.(?(1)(?![0-9]))){0,40})\]?")
_POWER = re.compile(r"\^\{?([0-9+\u2212-]{1,6})(?![0-9+\u2212.-])\}?")
_SPACING = re.compile(r"\A\[\s*(?:[-+.\\]|[0-9.]+\s*[a-z\\]).*", re.DOTALL)
_SETTING = re.compile(r"=|\A[\s\d.]*\Z|\A[a-zHT!]*(?:,\s?[a-z]+)*\Z")  # an option that is no text
_OTHER_FILES = re.compile(
    r"(?<!\\)\\(input|include|subfile|import(?=\{)|bibliography|addbibresource)(?:\[[^\]]{0,80}\])?\s{0,5}\{([^{}]{1,300}(?:\}\{[^{}]{1,300})?)\}"
)
_CITE = re.compile(r"\\([A-Za-z]{0,30}[cC]ite[A-Za-z]{0,30}|bibentry)(?![A-Za-z])")
_REFERS = re.compile(r"\\([A-Za-z]{0,30}[rR]ef)(?![A-Za-z])")  # to a place in the document
_NO_CITES = re.compile(r"(?i)nocite|cite(?:text|list)|newcites|(?:def|renew|set|bib|at)cite.*|cite(?:style|reset|setup)[a-z]*")
_SEVERAL = re.compile(  # a citation of several works, with notes of each and of all together
    r"(\\[A-Za-z]{0,30}cites)\*?(?:\s*\([^()\n]{0,200}\)){0,2}((?:\s*(?:\[[^\]]{0,200}\]\s*){0,2}\{[^{}]{0,400}\}){1,50})"
)
_POINTED = re.compile(r"(\\[A-Za-z]{0,30}[cC]ite[A-Za-z]{0,30}\*?)<[^<>\n]{0,200}>")  # a note of apacite
_LISTING = re.compile(r"\\(?:lstinline|[vV]erb)\*?(?:\[[^\]\n]{0,200}\])?(?:\{([^{}\n]{0,1000})\}|(?=[^A-Za-z\s\[{]))")
_INPUT = re.compile(r"\\input[ \t]{1,5}([\w./-]{1,200})")
_COMMENT = re.compile(r"(?<!\\)%[^\n]{0,10000}")
# what is no text, and what the parser does not tell from text
_UNREAD = re.compile(r"\\iffalse\b.*?\\fi\b|\\cmidrule\([a-z]{0,9}\)\{[^{}]{0,20}\}", re.DOTALL)
_SKIP = re.compile(r"\\(?:kern|[hv]skip|parskip|parindent)[ =-]{0,3}[0-9.]+ ?[a-z]{2}\b(?: (?:plus|minus) [0-9.]+[a-z]+)*")
_CODE = re.compile(
    r"\\begin\{([vV]erbatim\*?|lstlisting|minted|alltt)\}((?:\[[^\]]{0,400}\])?(?:\{[^{}\s]{0,40}\}(?=\s))?)"
    r"((?:[^\\]|\\(?!begin\{\1\}|end\{\1\}))*)\\end\{\1\}"
)
_BRACE = re.compile(rf"{_CODE.pattern}|{_LISTING.pattern}(?:([^\w\s{{}}])[^\n]{{0,999}}?\5)?|%[^\n]{{0,10000}}|\\[\s\S]|[{{}}]")
_CHAR = r"[^{}\\]|\\[\s\S]"
_GROUP = rf"\{{(?:{_CHAR}|\{{(?:{_CHAR}|\{{(?:{_CHAR}|\{{(?:{_CHAR}){{0,500}}\}}){{0,500}}\}}){{0,999}}\}}){{0,2000}}\}}"
_DEFINED = re.compile(
    r"\\(?:(?:new|renew|provide)command|Declare(?:MathOperator|RobustCommand)|[egx]?def|let|(?P<signed>[A-Z][a-z]{2,6}DocumentCommand))\*?"
    r"\s{0,3}\{?\\(?P<name>[A-Za-z@]{1,40})\}?\s{0,3}(?(signed)\{(?P<signature>(?:[^{}]|\{[^{}]{0,99}\}){0,99})\}"
    r"|(?:\[(?P<n>[1-9])\])?\s{0,3}(?P<option>\[[^\[\]]{0,200}\])?(?P<takes>[#1-9]{2,18}|=)?)"
    rf"\s{{0,3}}(?P<text>{_GROUP}|\\[A-Za-z@]{{1,40}})"
)
_GIVEN = {"s": r"(\*)?", "o": r"\s?(\[[^\[\]]{0,400}\])?", "m": rf"\s{{0,9}}({_GROUP})"}  # by the letters of xparse


def read_latex(text: str, where: str) -> Document:
    """Return the text of a document in LaTeX."""
    from pylatexenc.latexwalker import LatexWalkerError

    text, removed = clean_text(text)
    text = _INPUT.sub(r"\\input{\1}", text)
    source = _COMMENT.sub("", text)
    # a sign of a comment in an address is none
    body = _ADDRESS.sub(lambda link: link[1] + re.sub(r"(?<!\\)%", r"\\%", link[2]) + link[3], text)
    body = _closed(_UNREAD.sub(lambda unread: _on_lines("", unread[0]), _SKIP.sub("", body)))
    body = _CODE.sub(lambda code: "%\n" * code[2].count("\n") + rf"\begin{{verbatim}}{code[3]}\end{{verbatim}}", body)
    body = _expanded(body, source)
    # no text holds the delimiter: it is a control character, and those are cleaned away
    body = _LISTING.sub(lambda listing: r"\verb" + (f"\x01{listing[1]}\x01" if listing[1] else ""), body)
    body = _SEVERAL.sub(lambda cites: _on_lines(cites[1] + re.sub(r"\}[^{}]*\{", ",", cites[2]), cites[0]), body)
    reader = _Latex(_POINTED.sub(r"\1", body))
    try:
        page = parse_page(f"<html><body>{reader.read()}</body></html>", where)
    except (LatexWalkerError, IndexError) as error:  # \verb at the end of a text
        raise SourceError(f"{where}: LaTeX that cannot be parsed ({printable(str(error))[:120]})") from None
    except RecursionError:
        raise SourceError(f"{where}: its groups are nested too deeply; remove some braces") from None
    for table in reversed(list(page.iter("table"))):  # a table in a cell before the one around it
        _settle(table)
    document = document_of(page, where)
    notes = []
    for kind, name in dict.fromkeys(_OTHER_FILES.findall(source)):
        cure = "was not read; give it by --bibliography FILE" if "bib" in kind else "was not followed; audit that file too"
        notes.append(f"{where}: \\{kind}{{{printable(name)}}} {cure}")
    if names := ", ".join(f"\\{name}" for name in list(reader.unknown)[:20]):
        notes.append(f"{where}: macros that are not known, of which only what stands in their braces was read: {names}")
    return replace(document, removed=document.removed + removed, notes=notes)


def _on_lines(text: str, replaced: str) -> str:
    """Return a text with the lines of what it replaces, so that those below keep their numbers."""
    lines = "%\n" * (replaced.count("\n") - text.count("\n"))
    return text + lines + "{}" * bool(lines)  # a comment hides the space below it


def _closed(text: str) -> str:
    """Return a text in which a brace that is never closed, in no comment or code, is closed at once: it would hide the rest."""
    opened: list[int] = []
    for brace in _BRACE.finditer(text):
        if brace[0] == "{":
            opened.append(brace.end())
        elif brace[0] == "}" and opened:
            opened.pop()
    return "}".join(text[begin:end] for begin, end in pairwise([0, *opened, len(text)]))


def _expanded(text: str, source: str) -> str:
    """Return a text with what the macros that its source defines stand for; of several definitions, the last one counts."""
    text = _DEFINED.sub(lambda defined: _on_lines("", defined[0]), text)
    longest = 4 * len(text) + 100_000  # since macros may stand for macros, and these again
    for one in [*{one["name"]: one for one in _DEFINED.finditer(source) if one["name"] not in _MACROS}.values()] * 6:
        takes = re.findall(r"([A-Za-z])(\{[^{}]*\})?", one["signature"] or "o" * (one["option"] is not None))
        takes += [("m", "")] * (int(one["n"] or (one["takes"] or "").count("#")) - len(takes))
        given = "".join(_GIVEN.get(kind.lower(), "(?!)") for kind, _ in takes)
        written = _DEFINED.sub("", _inner(one["text"])).replace("\\xspace", " ")  # without definitions in it
        written = " ".join(re.sub(r"(\\[A-Za-z@]+)(?=#)", r"\1 ", written).split())
        written += "{}" * bool(takes and re.search(r"\\[A-Za-z@]+\Z", written))  # or it would go on with what follows
        kept = re.search(r"\\\w*@\w", written) or (takes and _CITE.fullmatch("\\" + one["name"]) and not _CITE.search(written))
        if not kept and (most := (longest - len(text)) // (len(written) + 1)) > 0:
            used = partial(_used, written=written, defaults=[default or one["option"] or "" for _, default in takes])
            text = re.sub(rf"(?<!(?<!\\)\\)\\{one['name']}(?![A-Za-z@]){given}", used, text, count=most)
    return text


def _used(use: re.Match[str], written: str, defaults: Sequence[str]) -> str:
    values = {f"#{at}": _inner(use[at] or default) for at, default in enumerate(defaults, 1)}
    return _on_lines(re.sub("#[1-9]", lambda place: values.get(place[0], ""), written), use[0])


class _Latex:
    """Writes a document as HTML; items, rows and cells end where others begin, as the parser of HTML knows."""

    def __init__(self, text: str) -> None:
        from pylatexenc.latex2text import get_default_latex_context_db as texts
        from pylatexenc.latexwalker import LatexWalker, get_default_latex_context_db
        from pylatexenc.macrospec import EnvironmentSpec, MacroSpec

        self._macros = dict.fromkeys(_REFERS.findall(text), ("*[{", "-")) | _MACROS
        for name in {name for name in _CITE.findall(text) if not _NO_CITES.fullmatch(name)}:
            self._macros[name] = ("*[{[{" if name.lower().endswith("volcite") else "*[[{", "cite")
        context = get_default_latex_context_db()
        macros = [MacroSpec(name, arguments) for name, (arguments, _) in self._macros.items()]
        environments = [EnvironmentSpec(name, arguments) for name, (arguments, _) in _ENVIRONMENTS.items() if arguments]
        context.add_context_category("documents", macros=macros, environments=environments, prepend=True)
        spoken = {spec.macroname for spec in texts().iter_macro_specs()} | _SYMBOLS.keys() | {*punctuation, " ", "\n", "\t"}
        self._known = {spec.macroname for spec in context.iter_macro_specs()} | spoken
        # what stands for text has no option: "95\% [0.5--0.9]", "\ldots [3]"
        context.add_context_category("signs", macros=[MacroSpec(name, "") for name in spoken])
        context.set_unknown_macro_spec(MacroSpec("", "*["))
        context.set_unknown_environment_spec(EnvironmentSpec("", "["))
        self._walker = LatexWalker(text, latex_context=context, tolerant_parsing=True)
        self._is_in_table = False
        self._written: list[str] = []
        self._line = 1
        self.unknown: dict[str, None] = {}

    def read(self) -> str:
        """Return the document as HTML."""
        nodes, _, _ = self._walker.get_latex_nodes()
        document = next((node for node in nodes if getattr(node, "environmentname", "") == "document"), None)
        titles = (node for node in nodes if getattr(node, "macroname", "") == "title")
        self._walk(nodes if document is None else [*titles, *document.nodelist])
        return "".join(self._written)

    def _begin(self, tag: str, **attributes: str) -> None:
        named = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
        self._written.append(f'<{tag} {AT}="{self._line}"{named}>')

    def _add(self, text: str, tag: str = "span", **attributes: str) -> None:
        self._begin(tag, **attributes)
        self._written.append(f"{escape(text)}</{tag}>")

    def _within(self, tag: str, nodes: Sequence[Any], **attributes: str) -> None:
        self._begin(tag, **attributes)
        self._walk(nodes)
        self._written.append(f"</{tag}>")

    def _walk(self, nodes: Sequence[Any]) -> None:
        is_given, before = False, ""  # whether the last one is an argument of a macro that is not known
        for node, following in pairwise([*filter(None, nodes or ()), None]):
            name, kind = getattr(node, "macroname", ""), type(node).__name__
            if name and name not in self._known and type(following).__name__ == "LatexGroupNode":
                self.unknown[name] = None
            self._line = self._walker.pos_to_lineno_colno(node.pos)[0]
            self._add(" " * (is_given and kind == "LatexGroupNode"))
            is_given = kind == "LatexGroupNode" and (is_given or before in self.unknown)
            self._read(node, kind)
            before = name

    def _shown(self, node: Any) -> str:
        """How the table shows a macro; empty if it has none."""
        return self._macros.get(getattr(node, "macroname", ""), ("", ""))[1]

    def _read(self, node: Any, kind: str) -> None:
        if kind == "LatexCharsNode":
            position = node.pos
            for number, part in enumerate(_PARAGRAPH.split(node.chars)):
                self._line = self._walker.pos_to_lineno_colno(position)[0]
                self._add("", "p") if number % 2 else self._add(part)
                position += len(part)
        elif kind == "LatexGroupNode":
            outer, self._is_in_table = self._is_in_table, False  # which begins no row or cell
            self._walk(node.nodelist)
            self._is_in_table = outer
        elif kind == "LatexMathNode" and (script := _SCRIPT.fullmatch(node.latex_verbatim().strip("${} \n"))):
            self._add(script[2], "sup" if script[1] else "span")
        elif kind == "LatexMathNode" or self._shown(node) == "formula":
            self._add_shown(node)
        elif kind == "LatexMacroNode":
            self._read_macro(node, node.macroname)
        elif kind == "LatexEnvironmentNode":
            self._read_environment(node, node.environmentname.rstrip("*"))
        elif kind == "LatexSpecialsNode" and node.specials_chars == "&" and self._is_in_table:
            self._begin("td")
        elif kind == "LatexSpecialsNode":
            self._add(_plain(node))

    def _read_macro(self, node: Any, name: str) -> None:  # noqa: PLR0912, PLR0915 -- a branch for each kind of macro
        shown = self._shown(node)
        groups, options = _arguments(node)
        last = _inner(groups[-1]) if groups else ""
        if shown == "cite":
            self._cite(last or f"\\{name}")
        elif shown == "br":
            for tag in ("tr", "td") if self._is_in_table else ("br",):
                self._begin(tag)
            self._add(_SPACING.sub("", "".join(option.latex_verbatim() for option in options)))
        elif shown == "rule":
            self._add("", _ABOUT, name=name)
        elif shown == "item":
            self._begin("li")
            self._walk(options)
            self._add(" ")
        elif not shown:
            if name == "verb":
                self._within("code", groups)
            elif groups and len(name) > 1:  # nothing is known of it, or it changes how its argument looks
                self._walk(groups[-1:])
            else:  # a sign, or a letter with an accent
                self._add(_SYMBOLS.get(name) or _plain(node))
            if node.macro_post_space and name not in self._known:  # "\\bee [1]"
                self._add("".join(option.latex_verbatim() for option in options))
            else:
                self._cite_within(options)
        elif shown == "-" or not (groups or shown == "p"):
            self._cite_within(groups)
        elif shown[0].isdecimal():
            if name in ("multicolumn", "multirow") and self._is_in_table:
                self._add("", _ABOUT, **{"colspan" if name == "multicolumn" else "rowspan": _inner(groups[0])})
            for part in shown:
                self._walk(groups[int(part) - 1 :][:1]) if part.isdecimal() else self._add(part)
        elif shown == "quotation":
            self._within("blockquote" if "block" in name else "q", groups[-1:])
            if "cquote" in name:
                self._cite(_inner(groups[-2]))
            else:  # who is quoted
                self._add(" " * bool(options))
                self._walk(options)
        elif shown == "note":  # one that holds only citations cites the works itself
            inner = [each for each in getattr(groups[-1], "nodelist", groups) if each.latex_verbatim().strip(" \n.;,~")]
            self._walk(inner) if all(self._shown(each) == "cite" for each in inner) else self._within(FOOTNOTE, groups[-1:])
        elif shown == "link":
            url = re.sub(r"\\([%#&_{}~])", r"\1", _inner(groups[0]))
            href = "doi:" * (name == "doi") + url
            self._add(url, "a", href=href) if len(groups) == 1 else self._within("a", groups[1:], href=href)
        elif shown == "bibitem":
            self._written.append(f"</{NOTE}>")
            self._begin(NOTE, name=last)
        elif shown in ("num", "unit"):
            self._add(_quantity(name, shown == "num", [_inner(group) for group in groups]))
        else:
            self._within(shown, groups[-1:])

    def _add_shown(self, node: Any, tag: str = "code") -> None:
        """Write code as it is, or a formula as far as a line of text can show it."""
        formula = _POWER.sub(lambda power: as_raised(power[1]), _plain(node).replace("<cit.>", "").strip())
        self._add(getattr(getattr(node, "nodeargd", None), "verbatim_text", formula).strip("\n"), tag)
        self._cite_within([node])

    def _cite_within(self, nodes: Iterable[Any]) -> None:
        """Read only the citations in what is not read otherwise."""
        for node in filter(None, nodes):
            if self._shown(node) == "cite":
                self._walk([node])
            else:
                given = getattr(getattr(node, "nodeargd", None), "argnlist", None) or ()
                self._cite_within((*(getattr(node, "nodelist", None) or ()), *given))

    def _cite(self, keys: str) -> None:
        for key in filter(None, (key.strip() for key in _COMMENT.sub("", keys).split(","))):
            self._add("", MARK, name=key)

    def _read_environment(self, node: Any, name: str) -> None:
        tag = _ENVIRONMENTS.get(name, ("", "div"))[1]
        if tag in ("-", "pre", "code"):
            if tag != "-":
                self._add_shown(node, tag)
            return
        outer, self._is_in_table = self._is_in_table, tag == "table"
        (groups, options), nodes = _arguments(node), list(node.nodelist)
        if self._is_in_table:
            captions = [each for each in nodes if getattr(each, "macroname", "") == "caption"]
            self._walk(captions)
            self._begin("table")
            self._begin("tr")
            self._within("td", [each for each in nodes if each not in captions])
        else:
            self._begin(tag)
            is_slide = name in _DATA["slides"].split()
            while name not in _ENVIRONMENTS and [type(each).__name__ for each in nodes[:1]] == ["LatexGroupNode"]:
                self._within("h3" if is_slide else "p", [nodes.pop(0)])  # its title, or what else it was given
            if not is_slide and name not in _ENVIRONMENTS and not all(map(_SETTING.search, map(_inner, options))):
                self._add("(")
                self._walk(options)
                self._add(") ")
            elif "quote" not in name:  # what an option cites is not lost
                self._cite_within(options)
            # of a drawing, what is in braces is its text
            self._walk([each for each in nodes if type(each).__name__ == "LatexGroupNode"] if tag == "figure" else nodes)
            if "quote" in name:  # who is quoted
                self._walk(options if name == "displayquote" else ())
                self._cite(",".join(map(_inner, groups)))
        self._written.append(f"</{tag}>")
        self._is_in_table = outer


def _settle(table: Any) -> None:
    """Make the rows above the first rule below a row the heads of a table, and leave out cells that one above covers."""
    from lxml import etree

    heads = Counter[str]()
    rows: list[Any] = []
    for row in [each for each in table.iter("tr") if next(each.iterancestors("table")) is table]:
        for about in row.iter(_ABOUT):
            rule = about.get("name", "")
            heads[rule] = heads[rule] or len(rows)
        if "".join(row.itertext()).strip() or next(row.iter(MARK), None) is not None:
            rows.append(row)
        else:
            row.getparent().remove(row)
    n_heads = heads["endhead"] or heads["endfirsthead"] or heads["midrule"] or heads["hline"]
    below = Counter[int]()
    for number, row in enumerate(rows):
        column = 0
        for cell in list(row):
            for about in cell.iter(_ABOUT):
                cell.attrib.update(about.attrib)
            if below[column] and not "".join(cell.itertext()).strip():
                below[column] -= 1
                row.remove(cell)
            elif (cell.get("rowspan") or "").isdecimal():
                below[column] = number_of(cell, "rowspan") - 1
            column += number_of(cell, "colspan")
            cell.tag = "th" if number < n_heads else "td"
    etree.strip_elements(table, _ABOUT, with_tail=False)


def _arguments(node: Any) -> tuple[list[Any], list[Any]]:
    """Return the arguments of a macro or environment that are given, and its options."""
    given = node.nodeargd
    nodes = list(zip(getattr(given, "argspec", None) or "", getattr(given, "argnlist", None) or (), strict=False))
    groups, options = ([node for kind, node in nodes if kind == wanted and node is not None] for wanted in "{[")
    return groups, options


def _inner(given: Any) -> str:
    """Return what is in the braces or brackets of an argument."""
    source = given if isinstance(given, str) else str(given.latex_verbatim())
    return source[1:-1] if source[:1] in "{[" and source[-1:] in "}]" else source


def _plain(node: Any) -> str:
    from pylatexenc.latex2text import LatexNodes2Text

    try:
        return str(LatexNodes2Text(math_mode="text").nodelist_to_text([node])).replace("^\u2218", "\u00b0")
    except (AttributeError, LookupError, TypeError):  # a macro without the arguments that it needs
        return re.sub(r"[\\{}]", " ", node.latex_verbatim())


def _quantity(name: str, is_number: bool, values: Sequence[str]) -> str:
    r"""Return a quantity of siunitx as it is printed: ``\SI{5}{\kilo\metre}`` is 5 km."""
    n_numbers = is_number * (2 if name.endswith("range") else 1)
    numbers = " to ".join(values[:n_numbers]).replace("+-", "\u00b1")
    numbers = re.sub(r"(?<=[0-9])e([0-9+-]+)", lambda power: f" \u00d7 10{as_raised(power[1])}", numbers)
    numbers = re.sub(r"(?<=[0-9])x(?=[0-9])", " \u00d7 ", numbers)
    if name == "ang":
        return "".join(f"{part}{sign}" for part, sign in zip(numbers.split(";"), "\u00b0\u2032\u2033", strict=False) if part)
    numbers = numbers.replace(";", ", ")
    unit = " ".join(values[n_numbers:]).replace("~", " ").replace(".", " ")
    unit = re.sub(r"(\\(?:square|cubic|raiseto\s*\{[0-9+-]{1,4}\}))((?:\s*\\[A-Za-z]{1,20}){1,2})", r"\2\1", unit)
    unit = re.sub(r"\s*\\(?:tothe|raiseto)\s*\{([0-9+-]{1,4})\}", lambda power: as_raised(power[1]), unit)
    unit = re.sub(r"\\([A-Za-z]{1,20})\s*", lambda macro: _UNITS.get(macro[1], macro[1]), unit)
    return f"{numbers}{' ' * bool(numbers and unit and unit != '°')}{unit}"
