"""The Markdown parser that reports are read with: addresses stay as they are written, and its work is bounded.

Beyond CommonMark it knows tables, text that is struck out, footnotes, and addresses that stand in the text without any marking.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nlp_retrieval.errors import DependencyError, install

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline

__all__ = ["markdown_parser"]

_LONGEST_INLINE = 4_000
"""Characters of one paragraph that are parsed together: a parser's work on brackets and emphasis may grow with the square."""

_BARE = re.compile(r"://[^\s<>\"`{}|\\^\[\]\uff08\uff09【】「」『』《》\uff0c。、\uff1b]+")
_SCHEME = re.compile(r"(?<![a-z0-9])https?\Z", re.IGNORECASE)
_TRAILING = ".,;:!?*_~'\u2019\u201d)"
_NOTE = re.compile(r"\[\^([^\s\[\]]{1,200})\]")


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
