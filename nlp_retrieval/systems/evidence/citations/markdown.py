"""A Markdown report as blocks of text: headings, paragraphs, items, rows of tables, notes.

A Markdown parser decides what is text. Code blocks, HTML and images are not; the text and the address of a link are kept as
written. Names of pages that are not addresses (``doi:10.1000/x``, ``arXiv:2101.00001``, ``www.example.org``) are links too.
Each block and each piece of it has its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from html import unescape
from itertools import count, groupby
from typing import TYPE_CHECKING, Any

from nlp_retrieval.errors import DependencyError, install
from nlp_retrieval.systems.evidence.citations.addresses import (
    NOT_IN_ADDRESSES,
    plain_pieces,
    trimmed,
    visible_text,
    web_address,
)
from nlp_retrieval.systems.evidence.citations.bibliography import bibliography_notes, entries_of_csl
from nlp_retrieval.systems.evidence.citations.blocks import Definition, Piece, Reference, ReportText, TextBlock, as_head

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token


# The Markdown parser for reports: it leaves addresses as written, and its work is bounded.
#
# Beyond CommonMark it knows tables, struck-out text, footnotes, and bare addresses in the text. An unclosed code fence, comment
# or ``<pre>`` hides nothing: it is text.

_LONGEST_INLINE = 4_000
"""Characters of one paragraph that are parsed together: a parser's work on brackets and emphasis may be quadratic."""

_BARE = re.compile(rf"://[^{NOT_IN_ADDRESSES}]+")
_SCHEME = re.compile(r"(?<![a-z0-9])https?\Z", re.IGNORECASE)
_NOTE = re.compile(r"\[\^([^\s\[\]]{1,200}|[0-9]{1,9}(?:[,;] ?\^?[0-9]{1,9}){1,50})\]")
_MARK_WITH_CARETS = re.compile(r"\^\[[0-9][0-9,; \u2013-]{0,80}\]")
_FENCE = re.compile(r"^[ \t>]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]{1,4})?(`{3,}(?=[^`\n]*$)|~{3,})([^\n]*)$", re.MULTILINE)
_OPENED = re.compile(r"<(?:(script|pre|style|textarea)(?=[\s>]|$)|(!--)|(\?)|(!\[CDATA\[)|(!)[A-Z])", re.IGNORECASE)
_CLOSED = re.compile(r"</(script|pre|style|textarea)>|(--)>|(\?)>|(\]\]>)|(>)", re.IGNORECASE)


@cache
def markdown_parser() -> MarkdownIt:
    """Return the parser.

    Raises:
        DependencyError: it is not installed.
    """
    try:
        from markdown_it import MarkdownIt
        from mdit_py_plugins.footnote import footnote_plugin
    except ImportError as error:
        raise DependencyError(f"reading citations needs a Markdown parser: {install('evidence')} ({error})") from None
    parser = MarkdownIt("commonmark", {"store_labels": True, "inline_definitions": True}).enable(["table", "strikethrough"])
    parser.use(footnote_plugin, inline=False, move_to_end=False)
    parser.inline.ruler.at("footnote_ref", _note)
    parser.inline.ruler.after("footnote_ref", "inline_note", _inline_note)
    # addresses are compared with indexed ones, so they stay as written
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    parser.core.ruler.at("inline", _inline)
    parser.inline.ruler.before("escape", "bare_link", _bare_link)
    parser.block.ruler.at("fence", _fence, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    parser.block.ruler.at("html_block", _html_block, {"alt": ["paragraph", "reference", "blockquote"]})
    return parser


def _fence(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
    from markdown_it.rules_block.fence import fence

    open_fences = state.env.get("open_fences")
    if open_fences is None:
        open_fences = state.env["open_fences"] = _open_fences(state.src)
    if begin in open_fences:
        state.line = begin + 1  # nothing of the line of the fence is left
        return True
    return fence(state, begin, end, silent)


def _open_fences(text: str) -> set[int]:
    """Return the lines of unclosed code fences: no fence as long follows, or only one that opens a block of its own."""
    unclosed = set()
    later: dict[str, list[tuple[int, bool]]] = {"`": [], "~": []}
    lines = text.count("\n")
    end = len(text)
    for match in reversed(list(_FENCE.finditer(text))):
        lines -= text.count("\n", match.start(), end)
        end = match.start()
        following, length, opens = later[match[1][0]], len(match[1]), bool(match[2].strip())
        while following and following[-1][0] < length:
            following.pop()
        if not following or following[-1][1]:
            unclosed.add(lines)
        following.append((length, opens))
    return unclosed


def _html_block(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
    from markdown_it.rules_block.html_block import html_block

    start = state.bMarks[begin] + state.tShift[begin]
    opened = _OPENED.match(state.src, start)
    if opened is not None:
        last = state.env.get("last_closed")
        if last is None:
            last = state.env["last_closed"] = {match.lastindex: match.end() for match in _CLOSED.finditer(state.src)}
        if last.get(opened.lastindex, 0) <= opened.end():
            return False
    return html_block(state, begin, end, silent)


def _inline(state: StateCore) -> None:
    for token in state.tokens:
        if token.type == "inline":
            token.children = []
            for part in _parts(token.content):
                state.md.inline.parse(part, state.md, state.env, token.children)


def _parts(content: str) -> Iterator[str]:
    begin = 0
    while len(content) - begin > _LONGEST_INLINE:
        limit = begin + _LONGEST_INLINE
        cuts = (content.rfind(gap, begin + 1, limit) + len(gap) for gap in ("\n", ". ", " "))
        end = next((cut for cut in cuts if cut > begin + 1), limit)
        yield content[begin:end]
        begin = end
    yield content[begin:]


def _note(state: StateInline, silent: bool) -> bool:
    """Parse a mark of a footnote, whether there is such a footnote or not."""
    match = _NOTE.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        state.push("footnote_ref", "", 0).meta = {"label": match[1]}
    state.pos = match.end()
    return True


def _inline_note(state: StateInline, silent: bool) -> bool:
    """Parse a footnote within the text: ``^[Frisch (1965), p. 4]``; a note within it is text."""
    if not state.src.startswith("^[", state.pos) or state.env.get("in_note"):
        return False
    end = state.md.helpers.parseLinkLabel(state, state.pos + 1)
    if end < 0 or _MARK_WITH_CARETS.match(state.src, state.pos):
        return False
    if not silent:
        notes = state.env.setdefault("inline_notes", [])
        tokens: list[Token] = []
        state.env["in_note"] = True
        state.md.inline.parse(state.src[state.pos + 2 : end], state.md, state.env, tokens)
        state.env["in_note"] = False
        notes.append(tokens)
        token = state.push("footnote_ref", "", 0)
        token.meta, token.content = {"label": f"inline note {len(notes)}"}, "\n" * state.src.count("\n", state.pos, end)
    state.pos = end + 1
    return True


def _bare_link(state: StateInline, silent: bool) -> bool:
    """Parse a bare address in the text."""
    if not state.src.startswith("://", state.pos) or state.linkLevel:
        return False
    scheme = _SCHEME.search(state.src[max(0, state.pos - 6) : state.pos])
    match = _BARE.match(state.src, state.pos, state.posMax)
    if scheme is None or match is None or len(match[0]) < 4:
        return False
    rest = trimmed(match[0])
    if not silent:
        if not state.pending.endswith(scheme[0]):
            return False
        state.pending = state.pending[: -len(scheme[0])]
        token = state.push("bare_link", "", 0)
        token.content = scheme[0] + rest
    state.pos += len(rest)
    return True


_ANCHOR = re.compile(r"<a\b[^<>]{0,300}?\bhref ?= ?[\"']?([^\s\"'<>]{1,4000})", re.IGNORECASE)
_ANCHOR_CLOSE = re.compile(r"</a\b", re.IGNORECASE)
_FRONT_MATTER = re.compile(r"---[ \t]*\n((?:(?!---|\.\.\.)[^\n]*\n){1,2000})(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_WRAPPED = re.compile(r"\s*(`{3,}|~{3,})(?:markdown|md)[ \t]*(?=\n)", re.IGNORECASE)
_SUP_OPEN = re.compile(r"<sup\b", re.IGNORECASE)
_SUP_CLOSE = re.compile(r"</sup\b", re.IGNORECASE)
_LINE_BREAK = re.compile(r"<br\b", re.IGNORECASE)
_QUOTE_TAG = re.compile(r"<(/?)q\b", re.IGNORECASE)
_HIDDEN = re.compile(r"<(script|style|template|noscript|title|textarea)\b", re.IGNORECASE)


def blocks_of(text: str) -> ReportText:
    """Return the text of a Markdown report, as blocks.

    Raises:
        DependencyError: the Markdown parser is not installed.
    """
    text, title, works, notes = _without_front_matter(visible_text(text))
    env: dict[str, Any] = {}
    tokens = markdown_parser().parse(_unwrapped(text), env)
    definitions = [
        Definition(token.meta["label"], web_address(token.meta["url"]), token.meta["title"], token.map[0] + 1)
        for token in tokens
        if token.type == "definition" and token.map
    ]
    return ReportText(list(_blocks(tokens, env.get("inline_notes", []))), definitions, title, "line", works, notes)


def _without_front_matter(text: str) -> tuple[str, str, list[Reference], list[str]]:
    """Return a report without the YAML before it (its lines keep their numbers), its title, works, and what to say of it."""
    match = _FRONT_MATTER.match(text) if len(text) else None
    if match is None:
        return text, "", [], []
    import yaml

    try:
        fields = yaml.safe_load(match[1])
    except (yaml.YAMLError, ValueError, RecursionError):
        return text, "", [], []
    if not isinstance(fields, dict):
        return text, "", [], []
    works = fields.get("references")
    return (
        "\n" * match[0].count("\n") + text[match.end() :],
        " ".join(str(fields.get("title") or "").split()),
        entries_of_csl(works, "the front matter") if isinstance(works, list) else [],
        bibliography_notes(fields.get("bibliography")),
    )


def _unwrapped(text: str) -> str:
    """Return a report without the code fence around all of it; its lines keep their numbers."""
    opened, end = _WRAPPED.match(text), len(text.rstrip())
    if opened is None or text[text.rfind("\n", 0, end) + 1 : end].strip() != opened[1]:
        return text
    begin = text.rfind("\n", 0, end)
    return "\n" * text.count("\n", 0, opened.end()) + text[opened.end() : max(begin, opened.end())]


def _blocks(tokens: Sequence[Token], inline_notes: Sequence[Sequence[Token]]) -> Iterator[TextBlock]:
    walk = _Walk()
    notes = count(1)
    for token in tokens:
        if token.type == "inline":
            yield from walk.text(token)
            for child in token.children or ():
                if child.type == "footnote_ref" and str(child.meta["label"]).startswith("inline note "):
                    number = next(notes)
                    name, line = f"inline note {number}", token.map[0] + 1 if token.map else 1
                    yield TextBlock("note", line, [[]], name=name)
                    yield TextBlock("note", line, [_Pieces(line).read(inline_notes[number - 1])], name=name)
        else:
            yield from walk.mark(token)


class _Walk:
    """Position of the tokens in a report's structure."""

    def __init__(self) -> None:
        self._line, self._level, self._depth = 1, 0, 0
        self._note: str | None = None
        self._item = ""
        self._cells: list[list[Piece]] | None = None
        self._heads: list[str] = []
        self._quotes = 0
        self._is_labelled: bool | None = None

    def mark(self, token: Token) -> Iterator[TextBlock]:
        """Handle a token that begins or ends a block."""
        if token.map:
            self._line = token.map[0] + 1
        match token.type:
            case "heading_open" | "heading_close":
                self._level = int(token.tag[1:]) if token.nesting > 0 else 0
            case "footnote_reference_open":
                self._note = str(token.meta["label"])
                # notes without text count too
                yield TextBlock("note", self._line, [[]], name=self._note)
            case "footnote_reference_close":
                self._note = None
            case "list_item_open" | "list_item_close":
                self._depth += token.nesting
                self._item = (token.info or "-") if token.nesting > 0 else ""
            case "blockquote_open" | "blockquote_close":
                self._quotes += token.nesting
                self._is_labelled = self._is_labelled if self._quotes else None
            case "thead_open":
                self._heads = []
            case "tr_open":
                self._cells = []
            case "tr_close":
                yield from self._row()

    def _row(self) -> Iterator[TextBlock]:
        cells, self._cells = self._cells or [], None
        if self._heads:
            yield TextBlock("row", self._line, cells, heads=self._heads)
        else:
            self._heads = ["".join(as_head(piece) for piece in cell).strip() or " " for cell in cells]

    def text(self, token: Token) -> Iterator[TextBlock]:
        """Handle the text of a block."""
        if token.map:
            self._line = token.map[0] + 1
        pieces = _Pieces(self._line).read(token.children or [])
        if self._quotes and self._is_labelled is None:
            starts = [child.type for child in token.children or [] if child.type != "text" or child.content]
            self._is_labelled = token.content.startswith("[!") or starts[:1] == ["strong_open"]
        quoted = self._quotes > 0 and not self._is_labelled
        if self._cells is not None:
            self._cells.append(pieces)
        elif self._level:
            yield TextBlock("heading", self._line, [pieces], level=self._level)
        elif self._note is not None:
            yield TextBlock("note", self._line, [pieces], name=self._note)
        elif self._depth:
            yield TextBlock("item", self._line, [pieces], level=self._depth, name=self._item, quoted=quoted)
            self._item = ""
        else:
            yield TextBlock("paragraph", self._line, [pieces], quoted=quoted)


class _Pieces:
    """Makes pieces of the tokens within a block; text inside a link or raised text is kept until that ends."""

    def __init__(self, line: int) -> None:
        self._line = line
        self._pieces: list[Piece] = []
        self._within: list[str] | None = None
        self._link: Token | str | None = None
        self._hidden = ""

    def read(self, tokens: Sequence[Token]) -> list[Piece]:
        """Return the pieces of a block."""
        for token in tokens:
            if self._hidden:
                ended = token.type == "html_inline" and token.content.lower().startswith(f"</{self._hidden}")
                self._hidden = "" if ended else self._hidden
            elif token.type == "html_inline":
                self._html(token.content)
            else:
                self._take(token)
            self._line += 1 if token.type in ("softbreak", "hardbreak") else token.content.count("\n")
        self._end_link()
        self._end_raised()
        return list(_joined(self._pieces))

    def _take(self, token: Token) -> None:
        match token.type:
            case "link_open":
                self._end_raised()
                self._link, self._within = token, []
            case "link_close":
                self._end_link()
            case "softbreak" | "hardbreak":
                self._break(self._line + 1)
            case "footnote_ref":
                self._pieces.append(Piece("note", str(token.meta["label"]), self._line))
            case "bare_link":
                self._pieces.append(Piece("link", "", self._line, url=token.content))
            case "text" | "code_inline" if token.content and self._within is not None:
                self._within.append(token.content)
            case "text" | "code_inline" if token.content:
                self._pieces.append(Piece("text" if token.type == "text" else "code", token.content, self._line))

    def _break(self, line: int) -> None:
        if self._within is not None:
            self._within.append(" ")
        # a line is counted where it begins, also within a link
        self._pieces.append(Piece("break", " ", line))

    def _html(self, tag: str) -> None:
        if _LINE_BREAK.match(tag):
            self._break(self._line)
        elif (anchor := _ANCHOR.match(tag)) and self._link is None:
            self._end_raised()
            self._link, self._within = unescape(anchor[1]), []
        elif _ANCHOR_CLOSE.match(tag) and isinstance(self._link, str):
            self._end_link()
        elif _SUP_OPEN.match(tag) and self._link is None:
            self._end_raised()
            self._within = []
        elif _SUP_CLOSE.match(tag):
            self._end_raised()
        elif quote := _QUOTE_TAG.match(tag):  # as a browser shows it
            mark = "\u201d" if quote[1] else "\u201c"
            if self._within is not None:
                self._within.append(mark)
            else:
                self._pieces.append(Piece("text", mark, self._line))
        elif hidden := _HIDDEN.match(tag):
            self._hidden = hidden[1].lower()

    def _end_link(self) -> None:
        if self._link is not None:
            self._pieces.append(_link(self._link, "".join(self._within or []), self._line))
            self._link = self._within = None

    def _end_raised(self) -> None:
        if self._within is not None and self._link is None:
            self._pieces.append(Piece("raised", "".join(self._within), self._line))
            self._within = None


def _link(opened: Token | str, text: str, line: int) -> Piece:
    url = opened if isinstance(opened, str) else str(opened.attrGet("href") or "")
    named = "" if text in (url, url.removeprefix("mailto:")) else text
    if isinstance(opened, str):
        return Piece("link", named, line, web_address(url))
    return Piece("link", named, line, web_address(url), str(opened.meta.get("label", "")), str(opened.attrGet("title") or ""))


def _joined(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Yield pieces, with text joined that the parser split at a sign of emphasis."""
    for (kind, line), alike in groupby(pieces, key=lambda piece: (piece.kind, piece.line)):
        if kind == "text":
            yield from plain_pieces("".join(piece.text for piece in alike), line)
        else:
            yield from alike
