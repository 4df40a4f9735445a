"""The Markdown parser that reports are read with: addresses stay as they are written, and its work is bounded.

Beyond CommonMark it knows tables, text that is struck out, footnotes, and addresses that stand in the text without any marking.
A code fence, a comment or a ``<pre>`` that nothing closes hides nothing: it is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nlp_retrieval.errors import DependencyError, install

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline

__all__ = ["NOT_IN_ADDRESSES", "markdown_parser", "trimmed"]

_LONGEST_INLINE = 4_000
"""Characters of one paragraph that are parsed together: a parser's work on brackets and emphasis may grow with the square."""

NOT_IN_ADDRESSES = r"\s<>\"`{}|\\^\[\]\uff08\uff09【】「」『』《》\uff0c。、\uff1b"
"""Characters that end an address without any marking, for a set in a pattern."""

_BARE = re.compile(rf"://[^{NOT_IN_ADDRESSES}]+")
_SCHEME = re.compile(r"(?<![a-z0-9])https?\Z", re.IGNORECASE)
_TRAILING = ".,;:!?*_~'\u2019\u201d)"
_NOTE = re.compile(r"\[\^([^\s\[\]]{1,200}|[0-9]{1,9}(?:[,;] ?\^?[0-9]{1,9}){1,50})\]")
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
    # addresses are compared with what is indexed, so they stay as they are written
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
        state.line = begin + 1  # of the line of the fence nothing is left
        return True
    return fence(state, begin, end, silent)


def _open_fences(text: str) -> set[int]:
    """The lines of code fences that nothing closes: none follows that is as long, or one that opens a block of its own."""
    found = set()
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
            found.add(lines)
        following.append((length, opens))
    return found


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
    rest = trimmed(found[0])
    if not silent:
        if not state.pending.endswith(scheme[0]):
            return False
        state.pending = state.pending[: -len(scheme[0])]
        token = state.push("bare_link", "", 0)
        token.content = scheme[0] + rest
    state.pos += len(rest)
    return True


def trimmed(url: str) -> str:
    """Return an address without the punctuation after it; a bracket that it opens itself belongs to it."""
    end = len(url)
    surplus = url.count(")") - url.count("(")
    while end > 3 and url[end - 1] in _TRAILING:
        if url[end - 1] == ")":
            if surplus <= 0:
                break
            surplus -= 1
        end -= 1
    return url[:end]
