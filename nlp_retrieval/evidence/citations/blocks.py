"""A Markdown report as blocks of text: headings, paragraphs, items, rows of tables, notes.

A Markdown parser decides what is text. Code blocks, HTML and images are not; of a link its text and its address are kept, as
they are written. Each block knows its line, each piece of it too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Literal

from nlp_retrieval.errors import DependencyError

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

__all__ = ["Block", "Definition", "MarkdownText", "Piece", "blocks_of", "web_address"]

_LONGEST_INLINE = 4_000
"""Characters of one paragraph that are parsed together: a parser's work on brackets and emphasis may grow with the square."""

_INVISIBLE = dict.fromkeys(
    [0xAD, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF, *range(0xFFF9, 0xFFFD), *range(0xE0000, 0xE0080)]
)
"""Not seen by a reader of the report, so they must not part a mark from what it marks."""

_WEB = re.compile(r"https?://[^\s/]", re.IGNORECASE)
_BARE = re.compile(r"://[^\s<>\"`{}|\\^\[\]（）【】「」『』《》，。、；]+")
_SCHEME = re.compile(r"(?<![a-z0-9])https?\Z", re.IGNORECASE)
_TRAILING = ".,;:!?*_~'\u2019\u201d)"
_NOTE = re.compile(r"\[\^([^\s\[\]]{1,200})\]")
_SUP_OPEN = re.compile(r"<sup\b", re.IGNORECASE)
_SUP_CLOSE = re.compile(r"</sup\b", re.IGNORECASE)
_LINE_BREAK = re.compile(r"<br\b", re.IGNORECASE)
_HIDDEN = re.compile(r"<(script|style|template|noscript|title|textarea)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Piece:
    """A stretch of a block.

    Args:
        kind: what it is: text, code within a line, a link, a mark of a footnote, or what stands raised.
        text: of a link, what it is called; of a footnote, its name.
        line: of the report, from 1; of a break, the one that begins.
        url: of a link, as written.
        label: of a link, the definition that it refers to.
        title: what a link's definition calls its target.
    """

    kind: Literal["text", "code", "link", "note", "raised", "break"]
    text: str
    line: int
    url: str = ""
    label: str = ""
    title: str = ""


@dataclass(frozen=True)
class Block:
    """A stretch of the report that holds whole sentences.

    Args:
        kind: what it is; a row of a table is one block.
        line: where it begins, from 1.
        pieces: of a row of a table, those of each cell; of anything else, all in one list.
        level: of a heading, 1 to 6; of an item, how deep it stands; else 0.
        name: of a note; of an item its number, or "-", and nothing for its further paragraphs.
        heads: of a row of a table, what its columns are called.
    """

    kind: Literal["heading", "paragraph", "item", "row", "note"]
    line: int
    pieces: list[list[Piece]]
    level: int = 0
    name: str = ""
    heads: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Definition:
    """A link's definition: ``[1]: https://example.org "Title"``."""

    label: str
    url: str
    title: str
    line: int


@dataclass(frozen=True)
class MarkdownText:
    """The blocks of a report and the definitions of its links."""

    blocks: list[Block]
    definitions: list[Definition]


def web_address(url: str) -> bool:
    """Whether this is the address of a page on the web."""
    return bool(_WEB.match(url))


def blocks_of(text: str) -> MarkdownText:
    """Return what is text in a Markdown report.

    Args:
        text: of the report.

    Raises:
        DependencyError: the Markdown parser is not installed.
    """
    tokens = _parser().parse(text.translate(_INVISIBLE), {})
    definitions = [
        Definition(token.meta["label"], token.meta["url"], token.meta["title"], token.map[0] + 1)
        for token in tokens
        if token.type == "definition" and token.map
    ]
    return MarkdownText(list(_blocks(tokens)), definitions)


def _blocks(tokens: Sequence[Token]) -> Iterator[Block]:
    line, level, note, depth, item = 1, 0, None, 0, ""
    cells: list[list[Piece]] | None = None
    heads: list[str] = []
    for token in tokens:
        if token.map:
            line = token.map[0] + 1
        match token.type:
            case "heading_open":
                level = int(token.tag[1:])
            case "heading_close":
                level = 0
            case "footnote_reference_open":
                note = str(token.meta["label"])
                # a note without any text has to be known too
                yield Block("note", line, [[]], name=note)
            case "footnote_reference_close":
                note = None
            case "list_item_open":
                depth, item = depth + 1, token.info or "-"
            case "list_item_close":
                depth, item = depth - 1, ""
            case "thead_open":
                heads = []
            case "tr_open":
                cells = []
            case "tr_close":
                if cells is not None and heads:
                    yield Block("row", line, cells, heads=heads)
                elif cells is not None:
                    heads = ["".join(piece.text for piece in cell).strip() or " " for cell in cells]
                cells = None
            case "inline":
                pieces = list(_pieces(token.children or [], line))
                if cells is not None:
                    cells.append(pieces)
                elif level:
                    yield Block("heading", line, [pieces], level=level)
                elif note is not None:
                    yield Block("note", line, [pieces], name=note)
                elif depth:
                    yield Block("item", line, [pieces], level=depth, name=item)
                    item = ""
                else:
                    yield Block("paragraph", line, [pieces])


def _pieces(children: Sequence[Token], line: int) -> Iterator[Piece]:
    link: Token | None = None
    inside: list[str] = []
    raised: list[str] | None = None
    hidden = ""
    for token in children:
        text = _text(token)
        if hidden:
            hidden = "" if token.type == "html_inline" and token.content.lower().startswith(f"</{hidden}") else hidden
        elif token.type == "link_open":
            link, inside = token, []
        elif token.type == "link_close" and link is not None:
            yield _link(link, "".join(inside), line)
            link = None
        elif token.type in ("softbreak", "hardbreak") or _LINE_BREAK.match(text):
            (inside if link is not None else raised if raised is not None else []).append(" ")
            if link is None and raised is None:
                yield Piece("break", " ", line + (token.type != "html_inline"))
        elif token.type == "html_inline":
            if _SUP_OPEN.match(text) and link is None:
                raised = []
            elif _SUP_CLOSE.match(text) and raised is not None:
                yield Piece("raised", "".join(raised), line)
                raised = None
            elif found := _HIDDEN.match(text):
                hidden = found[1].lower()
        elif token.type == "footnote_ref":
            yield Piece("note", str(token.meta["label"]), line)
        elif token.type == "bare_link":
            yield Piece("link", "", line, url=token.content)
        elif link is not None and text:
            inside.append(text)
        elif raised is not None and text:
            raised.append(text)
        elif text:
            yield Piece("code" if token.type == "code_inline" else "text", text, line)
        line += 1 if token.type in ("softbreak", "hardbreak") else token.content.count("\n")
    if raised is not None:
        yield Piece("raised", "".join(raised), line)


def _text(token: Token) -> str:
    return token.content if token.type in ("text", "code_inline", "html_inline") else ""


def _link(token: Token, text: str, line: int) -> Piece:
    url = str(token.attrGet("href") or "")
    named = "" if text == url or f"mailto:{text}" == url else text
    return Piece("link", named, line, url, str(token.meta.get("label", "")), str(token.attrGet("title") or ""))


@cache
def _parser() -> MarkdownIt:
    try:
        from markdown_it import MarkdownIt
        from mdit_py_plugins.footnote import footnote_plugin
    except ImportError as error:
        install = "pip install 'nlp_retrieval[evidence]'"
        raise DependencyError(f"reading citations needs a Markdown parser: {install} ({error})") from None
    parser = MarkdownIt("commonmark", {"store_labels": True, "inline_definitions": True}).enable(["table", "strikethrough"])
    parser.use(footnote_plugin, inline=False, move_to_end=False)
    parser.inline.ruler.at("footnote_ref", _note)
    # addresses are compared with what is indexed, so they stay as they are written
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    parser.core.ruler.at("inline", _inline)
    parser.inline.ruler.before("escape", "bare_link", _bare_link)
    return parser


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
        places = (content.rfind(gap, begin + 1, limit) + len(gap) for gap in ("\n", ". ", " "))
        end = next((place for place in places if place > begin + 1), limit)
        yield content[begin:end]
        begin = end
    yield content[begin:]


def _note(state: StateInline, silent: bool) -> bool:
    """A mark of a footnote, whether there is such a footnote or not."""
    found = _NOTE.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        state.push("footnote_ref", "", 0).meta = {"label": found[1]}
    state.pos = found.end()
    return True


def _bare_link(state: StateInline, silent: bool) -> bool:
    """An address that stands in the text without any marking."""
    if not state.src.startswith("://", state.pos) or state.linkLevel:
        return False
    scheme = _SCHEME.search(state.src[max(0, state.pos - 6) : state.pos])
    found = _BARE.match(state.src, state.pos, state.posMax)
    if scheme is None or found is None or len(found[0]) < 4:
        return False
    rest = _trimmed(found[0])
    if not silent:
        if not state.pending.endswith(scheme[0]):
            return False
        state.pending = state.pending[: -len(scheme[0])]
        token = state.push("bare_link", "", 0)
        token.content = scheme[0] + rest
    state.pos += len(rest)
    return True


def _trimmed(url: str) -> str:
    """Without the punctuation after it; a bracket that it opens itself belongs to it."""
    end = len(url)
    surplus = url.count(")") - url.count("(")
    while end > 3 and url[end - 1] in _TRAILING:
        if url[end - 1] == ")":
            if surplus <= 0:
                break
            surplus -= 1
        end -= 1
    return url[:end]


