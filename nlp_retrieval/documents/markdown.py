"""Reading Markdown: what its readers see, with the line of each block and of each piece of it.

Beyond CommonMark the parser knows tables, struck-out text, footnotes, and bare addresses in the text, which are kept as
written. A code fence, comment or ``<pre>`` that is never closed hides nothing: it is text. Struck text and images are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from html import unescape
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

from nlp_retrieval.core import parse_yaml
from nlp_retrieval.documents.addresses import NOT_IN_ADDRESSES, trimmed, web_address
from nlp_retrieval.documents.bibliography import bibliography_notes, entries_of_csl
from nlp_retrieval.documents.blocks import Definition, Document, Draft, Piece, TextBlock, as_head
from nlp_retrieval.documents.cleaning import Removed, clean_text, clean_title
from nlp_retrieval.errors import ConfigurationError, DependencyError, install

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_LONGEST_INLINE = 4_000
"""Characters of one paragraph that are parsed together: a parser's work on brackets and emphasis may be quadratic."""

_DEEPEST = 100
"""Depth of nested quotes, and half as many lists; the parser recurses into each, and omits deeper ones."""

_MOST_UNCLOSED = 9
_BARE = re.compile(rf"://[^{NOT_IN_ADDRESSES}]+")
_SCHEME = re.compile(r"(?<![a-z0-9])https?\Z", re.IGNORECASE)
_NOTE = re.compile(r"\[\^([^\s\[\]]{1,200}|[0-9]{1,9}(?:[,;] ?\^?[0-9]{1,9}){1,50})\]")
_MARK_WITH_CARETS = re.compile(r"\^\[[0-9][0-9,; \u2013-]{0,80}\]")
_NEVER_CLOSED = re.compile(
    r"\s*<(?:!--(?!.*-->)|\?(?!.*\?>)|!\[CDATA\[(?!.*\]\]>)|(?:script|pre|style|textarea)\b(?!.*</(?:script|pre|style|textarea)>))",
    re.IGNORECASE | re.DOTALL,
)
_RULE = re.compile(r"---[ \t]{0,80}\n")
_KEY = re.compile(r"\s{0,9}[\w\"'-]{1,80}\s{0,9}:")
_END = re.compile(r"^(?:---|\.\.\.)[ \t]{0,80}$", re.MULTILINE)
_LONGEST_FRONT_MATTER = 64 * 2**10
_LONGEST_VALUE = 2_000
_MOST_VALUES = 50
_WRAPPED = re.compile(r"\s*(`{3,}|~{3,})(?:markdown|md)[ \t]*(?=\n)", re.IGNORECASE)
_TAG = re.compile(r"<(/?)(\w+)\b(?:[^<>]{0,300}?\bhref ?= ?[\"']?([^\s\"'<>]{1,4000}))?")
_STRUCK = ("s", "strike", "del")
_HIDDEN = ("script", "style", "template", "noscript", "title", "textarea", *_STRUCK)


# The parser leaves addresses as written, and its work is bounded.


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
    return parser


def _inline(state: StateCore) -> None:
    for token in state.tokens:
        if token.type == "inline":
            token.children = []
            for part in _parts(token.content):
                state.md.inline.parse(part, state.md, state.env, token.children)


def _parts(content: str) -> Iterator[str]:
    while len(content) > _LONGEST_INLINE:
        cuts = (content.rfind(gap, 1, _LONGEST_INLINE) + len(gap) for gap in ("\n", ". ", " "))
        end = next((cut for cut in cuts if cut > len(". ")), _LONGEST_INLINE)
        yield content[:end]
        content = content[end:]
    yield content


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
        number = state.env["notes"] = state.env.get("notes", 0) + 1
        token = state.push("footnote_ref", "", 0)
        token.meta, token.children = {"label": f"inline note {number}"}, []
        state.env["in_note"] = True
        state.md.inline.parse(state.src[state.pos + 2 : end], state.md, state.env, token.children)
        state.env["in_note"] = False
        token.content = "\n" * state.src.count("\n", state.pos, end)
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
        state.push("bare_link", "", 0).content = scheme[0] + rest
    state.pos += len(rest)
    return True


def _parsed(text: str) -> list[Token]:
    """Return the tokens of a text, in which no fence or comment that is never closed hides what follows."""
    lines = text.split("\n")
    for _ in range(_MOST_UNCLOSED):
        tokens = markdown_parser().parse("\n".join(lines), {})
        last = tokens[-1] if tokens else None
        if last is None or last.map is None:
            break
        begin, end = last.map
        if last.type == "fence":
            closing = lines[end - 1].strip()
            if end - 1 > begin and closing.startswith(last.markup) and not closing.strip(last.markup[0]):
                break
            lines[begin] = ""
        elif last.type == "html_block" and _NEVER_CLOSED.match(last.content):
            lines[begin] = lines[begin].replace("<", "\\<", 1)
        else:
            break
    return tokens


def read_markdown(text: str, where: str) -> Document:
    """Return the text of a Markdown document; its title is that of the front matter, else its first heading.

    Args:
        text: of the document.
        where: its name, for messages.

    Raises:
        DependencyError: the Markdown parser is not installed.

    Examples:
        >>> [block.kind for block in read_markdown("- Krill **swarm**.", "krill.md").blocks]
        ['item']
    """
    cleaned, removed = clean_text(text)
    fields, cleaned, notes = split_front_matter(normalize("NFC", cleaned), where)
    tokens = _parsed(_unwrapped(cleaned))
    reader = _MarkdownBlocks(removed)
    blocks = list(reader.read(tokens))
    title = " ".join(str(fields.get("title") or "").split())
    headings = (block.pieces[0] for block in blocks if block.kind == "heading")
    works = fields.get("references")
    if any(token.level >= _DEEPEST - 1 for token in tokens):
        notes.append(f"{where}: what is nested in more than {_DEEPEST // 2} lists or quotes was left out; flatten it")
    return Document(
        blocks,
        clean_title(title or next(map(_as_line, headings), ""))[0],
        definitions=[
            Definition(token.meta["label"], web_address(token.meta["url"]), token.meta["title"], token.map[0] + 1)
            for token in tokens
            if token.type == "definition" and token.map
        ],
        works=entries_of_csl(works, "the front matter") if isinstance(works, list) else [],
        removed=reader.draft.removed,
        metadata=_metadata(fields),
        notes=[*bibliography_notes(fields.get("bibliography")), *notes],
    )


def read_plain(text: str, where: str) -> Document:
    """Return plain text as it is, without the front matter before it."""
    cleaned, removed = clean_text(text)
    fields, body, notes = split_front_matter(cleaned, where)
    block = TextBlock("other", 1, [[Piece("code", body.strip(), 1)]])
    title = clean_title(str(fields.get("title") or ""))[0]
    return Document([block], title, removed=removed, metadata=_metadata(fields), notes=notes)


def _as_line(pieces: Sequence[Piece]) -> str:
    return " ".join("".join(piece.text for piece in pieces if piece.kind not in ("note", "raised")).split())


def split_front_matter(text: str, where: str) -> tuple[dict[str, Any], str, list[str]]:
    """Return the YAML before a text by its keys, the text after it, whose lines keep their numbers, and notes.

    What is not plain YAML (tags, too many aliases, a key twice) belongs to the text, and a note says so.
    """
    begin = _RULE.match(text)
    end = _END.search(text, begin.end()) if begin else None
    if begin is None or end is None or end.start() > _LONGEST_FRONT_MATTER:
        return {}, text, []
    block = text[begin.end() : end.start()]
    try:
        values = parse_yaml(block, "front matter")
    except ConfigurationError as error:
        note = f"{where}: the YAML at its beginning cannot be read, and is taken for text ({error}); correct or remove it"
        return {}, text, [note] if _KEY.match(block) else []
    if not isinstance(values, dict):
        return {}, text, []
    return values, "\n" * text.count("\n", 0, end.end()) + text[end.end() :], []


def _metadata(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the values of front matter that are text, by lower-case names."""
    found = {str(name).strip().lower()[:100]: _as_text(value) for name, value in list(fields.items())[:_MOST_VALUES]}
    return [(name, value) for name, value in found.items() if name and value]


def _as_text(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(str(each) for each in value[:_MOST_VALUES] if not isinstance(each, list | dict))[:_LONGEST_VALUE]
    return "" if value is None or isinstance(value, dict) else str(value)[:_LONGEST_VALUE]


def _unwrapped(text: str) -> str:
    """Return a document without the code fence around all of it; its lines keep their numbers."""
    opened, body = _WRAPPED.match(text), text.rstrip()
    last = body[body.rfind("\n") + 1 :]
    if opened is None or last.strip() != opened[1]:
        return text
    return "\n" * text.count("\n", 0, opened.end()) + body[opened.end() : -len(last)]


class _MarkdownBlocks:
    """Position in a document's structure."""

    def __init__(self, removed: Removed) -> None:
        self.draft = Draft()
        self.draft.removed = removed
        self._line, self._level, self._depth, self._quotes = 1, 0, 0, 0
        self._note: str | None = None
        self._item = ""
        self._cells: list[list[Piece]] | None = None
        self._heads: list[str] = []
        self._is_labelled: bool | None = None

    def read(self, tokens: Sequence[Token]) -> Iterator[TextBlock]:
        """Yield the blocks."""
        for token in tokens:
            if token.map:
                self._line = token.map[0] + 1
            if token.type == "inline":
                yield from self._text(token)
                for child in token.children or ():
                    if child.type == "footnote_ref" and child.children is not None:
                        name = str(child.meta["label"])
                        yield TextBlock("note", self._line, [[]], name=name)
                        yield TextBlock("note", self._line, [_Pieces(self.draft, self._line).read(child.children)], name=name)
            elif token.type in ("fence", "code_block"):
                for number, text in enumerate(token.content.rstrip("\n").split("\n")):
                    if number:
                        self.draft.line_break(self._line + number)
                    self.draft.code(text, self._line + number)
                yield TextBlock("other", self._line, [self.draft.take()])
            elif token.type == "html_block":
                yield from self._html(token.content)
            else:
                yield from self._mark(token)

    def _html(self, content: str) -> Iterator[TextBlock]:
        """Yield the blocks of HTML within Markdown: they are seen, but no prose of the author's."""
        from nlp_retrieval.documents.html import document_of, parse_page

        read = document_of(parse_page(f"<html><body>{content}</body></html>", "HTML"), "HTML", works={})
        self.draft.removed += read.removed
        for block in read.blocks:
            pieces = [[replace(piece, line=self._line) for piece in cell] for cell in block.pieces]
            yield replace(block, kind="other", line=self._line, pieces=pieces)

    def _mark(self, token: Token) -> Iterator[TextBlock]:
        """Handle a token that begins or ends a block."""
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
                cells, self._cells = self._cells or [], None
                if self._heads:
                    yield TextBlock("row", self._line, cells, heads=self._heads)
                else:
                    self._heads = ["".join(as_head(piece) for piece in cell).strip() or " " for cell in cells]

    def _text(self, token: Token) -> Iterator[TextBlock]:
        pieces = _Pieces(self.draft, self._line).read(token.children or [])
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
    """Makes pieces of the tokens within a block; the text of a link, and raised text, is kept until that ends."""

    def __init__(self, draft: Draft, line: int) -> None:
        self._draft, self._line = draft, line
        self._open: Piece | None = None
        self._within = ""
        self._hidden = ""

    def read(self, tokens: Sequence[Token]) -> list[Piece]:
        """Return the pieces of a block."""
        for token in tokens:
            if self._hidden:
                ends = token.type == f"{self._hidden}_close" or token.content.lower().startswith(f"</{self._hidden}")
                self._hidden = "" if ends else self._hidden
            elif token.type == "html_inline":
                self._html(token.content)
            else:
                self._take(token)
            self._line += 1 if token.type in ("softbreak", "hardbreak") else token.content.count("\n")
        self._end()
        return self._draft.take()

    def _take(self, token: Token) -> None:
        match token.type:
            case "link_open":
                url, title = (str(token.attrGet(name) or "") for name in ("href", "title"))
                self._begin(Piece("link", url, self._line, web_address(url), str(token.meta.get("label", "")), title))
            case "link_close":
                self._end("link")
            case "softbreak" | "hardbreak":
                self._break(self._line + 1, "\n" if token.type == "hardbreak" else " ")
            case "footnote_ref":
                self._draft.note(str(token.meta["label"]), self._line)
            case "bare_link":
                self._draft.add(Piece("link", "", self._line, url=token.content))
            case "code_inline" if self._open is None and token.content:
                self._draft.code(token.content, self._line)
            case "text" | "code_inline":
                self._say(token.content)
            case "s_open":
                self._hide("s")

    def _html(self, tag: str) -> None:
        if tag.startswith("<!--"):
            self._draft.removed += Removed(unrendered=1)
        read = _TAG.match(tag)
        closes, name = (bool(read[1]), read[2].lower()) if read else (False, "")
        if name == "br":
            self._break(self._line, "\n")
        elif name == "q":  # as a browser shows it
            self._say("\u201d" if closes else "\u201c")
        elif name in ("a", "sup") and closes:
            self._end("link" if name == "a" else "raised")
        elif name in ("a", "sup") and (self._open is None or self._open.kind == "raised"):
            url = unescape(read[3] or "") if read else ""
            if name == "sup" or url:
                self._begin(Piece("link", url, self._line, web_address(url)) if url else Piece("raised", "", self._line))
        elif name in _HIDDEN and not closes:
            self._hide(name)

    def _hide(self, tag: str) -> None:
        self._hidden = tag
        self._draft.removed += Removed(struck=tag in _STRUCK)

    def _say(self, text: str) -> None:
        if self._open is not None:
            self._within += text
        else:
            self._draft.text(text, self._line)

    def _break(self, line: int, text: str) -> None:
        self._within += " "
        # a line is counted where it begins, also within a link
        self._draft.line_break(line, text)

    def _begin(self, piece: Piece) -> None:
        self._end()
        self._open, self._within = piece, ""

    def _end(self, kind: str = "") -> None:
        if self._open is None or kind not in ("", self._open.kind):
            return
        opened, self._open = self._open, None
        if opened.kind == "raised":
            self._draft.raised(self._within, self._line)
            return
        is_address = self._within in (opened.text, opened.text.removeprefix("mailto:"))
        self._draft.add(replace(opened, text="" if is_address else self._within, line=self._line))
