"""Reading Markdown: what its readers see, with the line of each block and of each piece of it.

A Markdown parser decides what is text; the address of a link is kept as written. Names of pages that are not addresses
(``doi:10.1000/x``, ``arXiv:2101.00001``, ``www.example.org``) are links too. Struck text and images are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from html import unescape
from itertools import count
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

from nlp_retrieval.core import parse_yaml
from nlp_retrieval.documents.addresses import NOT_IN_ADDRESSES, trimmed, web_address
from nlp_retrieval.documents.bibliography import bibliography_notes, entries_of_csl
from nlp_retrieval.documents.blocks import Definition, Document, Draft, Piece, TextBlock, as_head
from nlp_retrieval.documents.cleaning import Removed, clean_text, clean_title
from nlp_retrieval.errors import ConfigurationError, DependencyError, SourceError, install

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token


# The parser leaves addresses as written, and its work is bounded.
#
# Beyond CommonMark it knows tables, struck-out text, footnotes, and bare addresses in the text. An unclosed code fence, comment
# or ``<pre>`` hides nothing: it is text.

_LONGEST_INLINE = 4_000
"""Characters of one paragraph that are parsed together: a parser's work on brackets and emphasis may be quadratic."""

_DEEPEST = 100
"""Depth of nested quotes, and half as many lists; the parser recurses into each, and omits deeper ones."""

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
        raise DependencyError(f"reading Markdown needs a parser: {install('evidence')} ({error})") from None
    options = {"store_labels": True, "inline_definitions": True, "maxNesting": _DEEPEST}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
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
_RULE = re.compile(r"---[ \t]{0,80}\n")
_KEY = re.compile(r"\s{0,9}[\w\"'-]{1,80}\s{0,9}:")
_END = re.compile(r"^(?:---|\.\.\.)[ \t]{0,80}$", re.MULTILINE)
_LONGEST_FRONT_MATTER = 64 * 2**10
_LONGEST_VALUE = 2_000
_MOST_VALUES = 50
_WRAPPED = re.compile(r"\s*(`{3,}|~{3,})(?:markdown|md)[ \t]*(?=\n)", re.IGNORECASE)
_SUP_OPEN = re.compile(r"<sup\b", re.IGNORECASE)
_SUP_CLOSE = re.compile(r"</sup\b", re.IGNORECASE)
_LINE_BREAK = re.compile(r"<br\b", re.IGNORECASE)
_QUOTE_TAG = re.compile(r"<(/?)q\b", re.IGNORECASE)
_HIDDEN = re.compile(r"<(script|style|template|noscript|title|textarea|s|strike|del)\b", re.IGNORECASE)
_STRUCK = ("s", "strike", "del")


def read_markdown(text: str, where: str, *, strict: bool = True, with_html: bool = True) -> Document:
    """Return the text of a Markdown document; its title is that of the front matter, else its first heading.

    Args:
        text: of the document.
        where: its name, for messages.
        strict: whether front matter that is not plain YAML is an error; else it belongs to the text.
        with_html: whether blocks of HTML are read, as blocks of the kind "other".

    Raises:
        SourceError: its front matter cannot be read.
        DependencyError: the Markdown parser is not installed.

    Examples:
        >>> [block.kind for block in read_markdown("- Krill **swarm**.", "krill.md").blocks]
        ['item']
    """
    cleaned, removed = clean_text(text)
    fields, cleaned = split_front_matter(normalize("NFC", cleaned), where, strict=strict)
    env: dict[str, Any] = {}
    tokens = markdown_parser().parse(_unwrapped(cleaned), env)
    definitions = [
        Definition(token.meta["label"], web_address(token.meta["url"]), token.meta["title"], token.map[0] + 1)
        for token in tokens
        if token.type == "definition" and token.map
    ]
    draft = Draft()
    draft.removed = removed
    blocks = list(_blocks(tokens, env.get("inline_notes", []), draft, with_html=with_html))
    title = " ".join(str(fields.get("title") or "").split())
    title = title or next((as_line(block.pieces[0]) for block in blocks if block.kind == "heading"), "")
    works = fields.get("references")
    notes = bibliography_notes(fields.get("bibliography"))
    if any(token.level >= _DEEPEST - 1 for token in tokens):
        notes.append(f"{where}: what is nested in more than {_DEEPEST // 2} lists or quotes was left out; flatten it")
    return Document(
        blocks,
        clean_title(title)[0],
        definitions=definitions,
        works=entries_of_csl(works, "the front matter") if isinstance(works, list) else [],
        removed=draft.removed,
        metadata=metadata_of(fields),
        notes=notes,
    )


def read_plain(text: str, where: str) -> Document:
    """Return plain text as it is, without the front matter before it."""
    cleaned, removed = clean_text(text)
    fields, body = split_front_matter(cleaned, where, strict=False)
    block = TextBlock("other", 1, [[Piece("code", body.strip(), 1)]])
    title = clean_title(str(fields.get("title") or ""))[0]
    return Document([block], title, removed=removed, metadata=metadata_of(fields))


def as_line(pieces: Sequence[Piece]) -> str:
    """Return pieces as one line of text, without marks."""
    return " ".join("".join(piece.text for piece in pieces if piece.kind not in ("note", "raised")).split())


def split_front_matter(text: str, where: str, *, strict: bool) -> tuple[dict[str, Any], str]:
    """Return the YAML before a text by its keys, and the text after it, whose lines keep their numbers.

    Args:
        text: of a file; without front matter it is returned as it is.
        where: its name, for messages.
        strict: whether a block that is not plain YAML is an error; else it belongs to the text.

    Raises:
        SourceError: the block is not plain YAML (tags, too many aliases, a key twice), or has more than 64 KiB.
    """
    begin = _RULE.match(text)
    end = _END.search(text, begin.end()) if begin else None
    if begin is None or end is None:
        return {}, text
    block = text[begin.end() : end.start()]
    fault = "more than 64 KiB" if len(block) > _LONGEST_FRONT_MATTER else ""
    values: object = None
    try:
        values = None if fault else parse_yaml(block, "front matter")
    except ConfigurationError as error:
        fault = str(error)
    if fault and strict and _KEY.match(block):
        raise SourceError(f"{where}: the YAML at its beginning cannot be read ({fault}); correct or remove it")
    if not isinstance(values, dict):
        return {}, text
    return values, "\n" * text.count("\n", 0, end.end()) + text[end.end() :]


def metadata_of(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the values of front matter that are text, by lower-case names."""
    found = {str(name).strip().lower()[:100]: _as_text(value) for name, value in list(fields.items())[:_MOST_VALUES]}
    return [(name, value) for name, value in found.items() if name and value]


def _as_text(value: object) -> str:
    if isinstance(value, list):
        parts = [_as_text(each) for each in value[:_MOST_VALUES] if not isinstance(each, list | dict)]
        return "; ".join(filter(None, parts))[:_LONGEST_VALUE]
    return "" if value is None or isinstance(value, dict) else str(value)[:_LONGEST_VALUE]


def _unwrapped(text: str) -> str:
    """Return a document without the code fence around all of it; its lines keep their numbers."""
    opened, end = _WRAPPED.match(text), len(text.rstrip())
    if opened is None or text[text.rfind("\n", 0, end) + 1 : end].strip() != opened[1]:
        return text
    begin = text.rfind("\n", 0, end)
    return "\n" * text.count("\n", 0, opened.end()) + text[opened.end() : max(begin, opened.end())]


def _blocks(
    tokens: Sequence[Token], inline_notes: Sequence[Sequence[Token]], draft: Draft, *, with_html: bool
) -> Iterator[TextBlock]:
    walk = _Walk(draft)
    notes = count(1)
    for token in tokens:
        if token.type == "inline":
            yield from walk.text(token)
            for child in token.children or ():
                if child.type == "footnote_ref" and str(child.meta["label"]).startswith("inline note "):
                    number = next(notes)
                    name, line = f"inline note {number}", token.map[0] + 1 if token.map else 1
                    yield TextBlock("note", line, [[]], name=name)
                    yield TextBlock("note", line, [_Pieces(draft, line).read(inline_notes[number - 1])], name=name)
        elif token.type in ("fence", "code_block"):
            yield _code(token, draft)
        elif token.type == "html_block" and with_html:
            yield from _html(token, draft)
        else:
            yield from walk.mark(token)


def _code(token: Token, draft: Draft) -> TextBlock:
    line = token.map[0] + 1 if token.map else 1
    for number, text in enumerate(token.content.rstrip("\n").split("\n")):
        if number:
            draft.line_break(line + number)
        draft.code(text, line + number)
    return TextBlock("other", line, [draft.take()])


def _html(token: Token, draft: Draft) -> Iterator[TextBlock]:
    """Yield the blocks of HTML within Markdown: they are seen, but no prose of the author's."""
    from nlp_retrieval.documents.html import document_of, parse_page

    line = token.map[0] + 1 if token.map else 1
    read = document_of(parse_page(f"<html><body>{token.content}</body></html>", "HTML"), "HTML", works={})
    draft.removed += read.removed
    for block in read.blocks:
        pieces = [[replace(piece, line=line) for piece in cell] for cell in block.pieces]
        yield replace(block, kind="other", line=line, pieces=pieces)


class _Walk:
    """Position of the tokens in a document's structure."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
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
        pieces = _Pieces(self._draft, self._line).read(token.children or [])
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

    def __init__(self, draft: Draft, line: int) -> None:
        self._draft, self._line = draft, line
        self._within: list[str] | None = None
        self._link: Token | str | None = None
        self._hidden = ""

    def read(self, tokens: Sequence[Token]) -> list[Piece]:
        """Return the pieces of a block."""
        for token in tokens:
            if self._hidden:
                ended = token.type == f"{self._hidden}_close" or (
                    token.type == "html_inline" and token.content.lower().startswith(f"</{self._hidden}")
                )
                self._hidden = "" if ended else self._hidden
            elif token.type == "html_inline":
                self._html(token.content)
            elif token.type == "s_open":
                self._hide("s")
            else:
                self._take(token)
            self._line += 1 if token.type in ("softbreak", "hardbreak") else token.content.count("\n")
        self._end_link()
        self._end_raised()
        return self._draft.take()

    def _hide(self, tag: str) -> None:
        self._hidden = tag
        if tag in _STRUCK:
            self._draft.removed += Removed(struck=1)

    def _take(self, token: Token) -> None:
        match token.type:
            case "link_open":
                self._end_raised()
                self._link, self._within = token, []
            case "link_close":
                self._end_link()
            case "softbreak" | "hardbreak":
                self._break(self._line + 1, "\n" if token.type == "hardbreak" else " ")
            case "footnote_ref":
                self._draft.note(str(token.meta["label"]), self._line)
            case "bare_link":
                self._draft.add(Piece("link", "", self._line, url=token.content))
            case "text" | "code_inline" if token.content and self._within is not None:
                self._within.append(token.content)
            case "text" if token.content:
                self._draft.text(token.content, self._line)
            case "code_inline" if token.content:
                self._draft.code(token.content, self._line)

    def _break(self, line: int, text: str) -> None:
        if self._within is not None:
            self._within.append(" ")
        # a line is counted where it begins, also within a link
        self._draft.line_break(line, text)

    def _html(self, tag: str) -> None:
        if _LINE_BREAK.match(tag):
            self._break(self._line, "\n")
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
                self._draft.text(mark, self._line)
        elif hidden := _HIDDEN.match(tag):
            self._hide(hidden[1].lower())
        elif tag.startswith("<!--"):
            self._draft.removed += Removed(unrendered=1)

    def _end_link(self) -> None:
        if self._link is None:
            return
        opened, text = self._link, "".join(self._within or [])
        url = opened if isinstance(opened, str) else str(opened.attrGet("href") or "")
        named = "" if text in (url, url.removeprefix("mailto:")) else text
        label = "" if isinstance(opened, str) else str(opened.meta.get("label", ""))
        title = "" if isinstance(opened, str) else str(opened.attrGet("title") or "")
        self._draft.add(Piece("link", named, self._line, web_address(url), label, title))
        self._link = self._within = None

    def _end_raised(self) -> None:
        if self._within is not None and self._link is None:
            self._draft.raised("".join(self._within), self._line)
            self._within = None
