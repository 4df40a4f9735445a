"""Reading Markdown: it becomes a page of HTML, of which each block has the line that it is on.

Beyond CommonMark the parser knows tables, struck-out text, lists of tasks and of definitions, and footnotes. Addresses are
kept as written. Struck text and images are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

from nlp_retrieval.core import parse_yaml
from nlp_retrieval.documents.blocks import (
    NOT_IN_ADDRESSES,
    Document,
    Piece,
    Reference,
    TextBlock,
    clean_text,
    clean_title,
    trimmed,
    web_address,
)
from nlp_retrieval.documents.html import AT, LABEL, LINE, MARK, NOTE, NUMBER, document_of, parse_page
from nlp_retrieval.errors import ConfigurationError, DependencyError, install

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

# what is parsed together, up to the end of a line, sentence or word: a parser's work on brackets may be quadratic
_TOGETHER = re.compile("|".join(rf".{{1,4000}}{end}" for end in (r"\Z", r"\n", r"\. ", " ", "")), re.DOTALL)
_DEEPEST = 100  # nested quotes, and half as many lists; the parser recurses into each, and omits deeper ones
_BARE = re.compile(rf"://[^{NOT_IN_ADDRESSES}]+")
_SCHEME = re.compile(r"(?<![a-z0-9])https?\Z", re.IGNORECASE)
_WRAPPED = re.compile(r"\s*(`{3,}|~{3,})(?:markdown|md)[ \t]*(\n.*\n)[ \t]*\1\s*", re.IGNORECASE | re.DOTALL)
_NEVER_CLOSED = re.compile(
    r"(?is)\s*<(?:!--(?!.*-->)|\?(?!.*\?>)|!\[CDATA\[(?!.*\]\]>)|(script|pre|style|textarea)\b(?!.*</\1>))"
)
_MOST_UNCLOSED = 9
_NO_TERM = "~\u2060"  # at the beginning of a line: "~ 5 %" is no definition
# "!!! note" and "=== "Tab"" with what is indented below; "```{note}", but not "```{python}"
_ADMONITION = re.compile(r"(?m)^( *)(?:!!!|\?\?\?\+?|===)[ \t]+\S.*\n(?:[ \t]*\n|\1 {4}.*\n?)+")
_DIRECTIVE = re.compile(
    r"(?m)^( *)(`{3,}|~{3,})(\{(?!r\}|python|julia|sql|bash|mermaid|code|literal)[a-z][\w:-]*\}.*\n(?:.*\n){0,200}?)\1\2[ \t]*$"
)
_LABELS = ("[!", "**", "__")  # with which notes begin in block quotes: "> **Note:** ...", "> [!NOTE]"
_FRONT_MATTER = re.compile(r"---[ \t]{0,80}\n(.*?)^(?:---|\.\.\.)[ \t]{0,80}$", re.MULTILINE | re.DOTALL)


@cache
def markdown_parser() -> MarkdownIt:
    """Return the parser."""
    try:
        from markdown_it import MarkdownIt
        from mdit_py_plugins.deflist import deflist_plugin
        from mdit_py_plugins.footnote import footnote_plugin
        from mdit_py_plugins.tasklists import tasklists_plugin
    except ImportError as error:
        raise DependencyError(f"reading Markdown needs a parser: {install('evidence')} ({error})") from None
    options = {"store_labels": True, "inline_definitions": True, "maxNesting": _DEEPEST}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    parser.use(footnote_plugin, inline=False, move_to_end=False, always_match_refs=True)
    parser.use(tasklists_plugin).use(deflist_plugin)
    # addresses are compared with indexed ones, so they stay as written
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    parser.core.ruler.at("inline", _inline)
    parser.inline.ruler.before("escape", "bare_link", _bare_link)
    for kind in ("footnote_ref", "softbreak", "hardbreak"):
        parser.add_render_rule(kind, _written)
    parser.add_render_rule("html_block", lambda _, tokens, at, *__: _balanced("div", tokens[at], tokens[at].content))
    parser.renderer.rules["fence"] = parser.renderer.rules["code_block"]  # type: ignore[attr-defined]
    return parser


def _inline(state: StateCore) -> None:
    for token in state.tokens:
        if token.type == "inline":
            token.children = []
            for part in _TOGETHER.findall(token.content):
                state.md.inline.parse(part, state.md, state.env, token.children)


def _bare_link(state: StateInline, silent: bool) -> bool:
    """Parse a bare address in the text, in which nothing is a mark of Markdown."""
    if not state.src.startswith("://", state.pos) or state.linkLevel:
        return False
    scheme = _SCHEME.search(state.src[max(0, state.pos - 6) : state.pos])
    match = _BARE.match(state.src, state.pos, state.posMax)
    if scheme is None or match is None:
        return False
    rest = trimmed(match[0])
    if not silent:
        state.pending += rest
    state.pos += len(rest)
    return True


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
    title, cleaned, notes = _front_matter(normalize("NFC", cleaned), where)
    if wrapped := _WRAPPED.fullmatch(cleaned):  # in a code fence
        cleaned = "\n" * cleaned.count("\n", 0, wrapped.start(2)) + wrapped[2]
    tokens = _parsed(cleaned)
    read = document_of(parse_page(_page_of(tokens), where), where)
    if any(token.level >= _DEEPEST - 1 for token in tokens):
        notes.append(f"{where}: what is nested in more than {_DEEPEST // 2} lists or quotes was left out; flatten it")
    definitions = [
        Reference(meta["label"], meta["title"].replace(_NO_TERM, "~"), web_address(meta["url"]), token.map[0] + 1)
        for token in tokens
        if token.type == "definition" and token.map and (meta := token.meta)
    ]
    return replace(
        read, title=clean_title(title) or read.title, definitions=definitions, removed=read.removed + removed, notes=notes
    )


def _parsed(text: str) -> list[Token]:
    """Return the tokens of a text, in which no code fence or comment that is never closed hides what follows."""
    for _ in range(3):  # some are within others; what is in them is no code
        text = _ADMONITION.sub(lambda block: block[0].replace(f"\n{block[1]}    ", f"\n{block[1]}"), text)
        text = _DIRECTIVE.sub(r"\1\3", text)
    lines = re.sub(r"(?m)^([ \t>]{0,20})~(?=[ \t])", rf"\1{_NO_TERM}", text).split("\n")
    for _ in range(_MOST_UNCLOSED):
        tokens = markdown_parser().parse("\n".join(lines))
        if not tokens or not tokens[-1].map:
            break
        last, (begin, end) = tokens[-1], tokens[-1].map
        if last.type == "html_block" and _NEVER_CLOSED.match(last.content):
            lines[begin] = lines[begin].replace("<", "\\<", 1)
        elif last.type == "fence" and (end - 1 == begin or set(lines[end - 1].strip()) != {last.markup[0]}):
            lines[begin] = ""
        else:
            break
    return tokens


def read_text(text: str, _where: str) -> Document:
    """Return plain text as it is."""
    cleaned, removed = clean_text(text)
    return Document([TextBlock("other", 1, [[Piece("code", cleaned.strip(), 1)]])], removed=removed)


def _front_matter(text: str, where: str) -> tuple[str, str, list[str]]:
    """Return the title in the YAML before a text, the text after it, whose lines keep their numbers, and notes."""
    block = _FRONT_MATTER.match(text, 0, 64 * 2**10)  # it is never longer
    if block is None:
        return "", text, []
    try:
        values = parse_yaml(block[1], "front matter")
    except (ConfigurationError, ValueError) as error:
        return "", text, [f"{where}: the front matter at its beginning is taken for text ({error}); correct or remove it"]
    if not isinstance(values, dict):
        return "", text, []
    rest = "\n" * block[0].count("\n") + text[block.end() :]
    note = f"{where}: the bibliography that it names was not read; give it by --bibliography FILE"
    return str(values.get("title") or ""), rest, [note] * bool(values.get("bibliography"))


def _page_of(tokens: Sequence[Token]) -> str:
    """Return the page of a document: its elements have their lines, its links the labels of their definitions."""
    parser = markdown_parser()
    line = 1
    for at, token in enumerate(tokens):
        line = token.map[0] + 1 if token.map else line
        token.attrSet(AT, str(line))
        if token.type == "list_item_open":
            token.attrSet(NUMBER, token.info or "-")
        elif token.type.startswith("footnote_reference"):
            token.tag = NOTE
            token.attrSet("name", str(token.meta.get("label", "")))
        elif token.type == "blockquote_open" and "".join(each.content for each in tokens[at : at + 3]).startswith(_LABELS):
            token.attrSet("role", "note")
        for child in token.children or ():
            line += child.type in ("softbreak", "hardbreak")
            child.attrSet(AT, str(line))
            if child.type == "link_open":
                child.attrSet(LABEL, str(child.meta.get("label", "")))
            line += child.content.count("\n")
    written = []
    for token in (token for token in tokens if token.type != "definition"):
        part = parser.renderer.render([token], parser.options, {})
        has_tags = any(child.type == "html_inline" for child in token.children or ())
        written.append(_balanced("span", token, part) if has_tags else part)
    return f"<html><body>{''.join(written)}</body></html>".replace(_NO_TERM, "~")


def _written(_: object, tokens: Sequence[Token], at: int, *__: object) -> str:
    """Return the mark of a footnote, or a break of a line."""
    token = tokens[at]
    tag = {"footnote_ref": MARK, "softbreak": LINE}.get(token.type, "br")
    return f'<{tag} {AT}="{token.attrGet(AT)}" name="{escape(str(token.meta.get("label", "")))}"></{tag}>'


def _balanced(tag: str, token: Token, content: str) -> str:
    """Return HTML in an element by itself, so that it changes nothing else: readers of Markdown use no style sheets."""
    from lxml import etree

    page = parse_page(f"<html><body>{content}</body></html>", "HTML")
    etree.strip_elements(page, "style", "link", with_tail=False)
    body: Any = next(page.iter("body"), page)
    body.tag = tag
    body.set(AT, str(token.attrGet(AT)))
    return str(etree.tostring(body, encoding="unicode", method="html"))
