"""Reading Markdown: what its readers see, with the line of each block and of each piece of it.

Beyond CommonMark the parser knows tables, struck-out text, footnotes, also within a sentence, definitions, roles that cite, and
bare addresses in the text, which are kept as written. A code fence, comment or ``<pre>`` that is never closed hides nothing: it
is text. Struck text and images are left out.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from html import unescape
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

from nlp_retrieval.core import parse_yaml
from nlp_retrieval.documents.addresses import NOT_IN_ADDRESSES, trimmed, web_address
from nlp_retrieval.documents.bibliography import bibliography_notes, csl_entries
from nlp_retrieval.documents.blocks import Document, Piece, Reference, TextBlock
from nlp_retrieval.documents.cleaning import clean_text, clean_title
from nlp_retrieval.documents.html import FOOTNOTE, LINE, MARK, NOTE, Tree, parse_page, set_line
from nlp_retrieval.errors import ConfigurationError, DependencyError, InputError, install

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
_RAISED_NUMBERS = r"[0-9][0-9, \u2013-]{0,40}"
_ONLY_NUMBERS = re.compile(rf"\^?{_RAISED_NUMBERS}")
_RAISED_BEFORE = re.compile(rf"\^{_RAISED_NUMBERS}\Z")
_NEVER_CLOSED = re.compile(
    r"\s*<(?:!--(?!.*-->)|\?(?!.*\?>)|!\[CDATA\[(?!.*\]\]>)|(?:script|pre|style|textarea)\b(?!.*</(?:script|pre|style|textarea)>))",
    re.IGNORECASE | re.DOTALL,
)
_RULE = re.compile(r"(---|\+\+\+)[ \t]{0,80}\n")
_KEY = re.compile(r"\s{0,9}[\w\"'-]{1,80}\s{0,9}[:=]")
_ENDS = {
    "---": re.compile(r"^(?:---|\.\.\.)[ \t]{0,80}$", re.MULTILINE),
    "+++": re.compile(r"^\+\+\+[ \t]{0,80}$", re.MULTILINE),
}
_LONGEST_FRONT_MATTER = 64 * 2**10
_LONGEST_VALUE = 2_000
_MOST_VALUES = 50
_WRAPPED = re.compile(r"\s*(`{3,}|~{3,})(?:markdown|md)[ \t]*(?=\n)", re.IGNORECASE)
_NOT_SHOWN = re.compile(r"^ {0,3}:{3,}[^\n]{0,200}$|(?<=\S)[ \t]{1,9}\{[#.][^{}\n]{0,200}\}[ \t]{0,9}$", re.MULTILINE)
"""The fences of a division, and the attributes of a heading, as Pandoc has them."""

_LABEL = re.compile(r"\[(?:[ xX]|![A-Za-z]{1,20})\][+-]?\s*")
"""The box of a task, and the kind of a note (``[!NOTE]``)."""

_TAG = re.compile(r"<(/?)(\w+)\b(?:[^<>]{0,300}?\bhref ?= ?[\"']?([^\s\"'<>]{1,4000}))?")
_TAGS = frozenset("a sup q s strike del script style template title textarea".split())
"""Elements within a paragraph that change what is read; the others only change how it looks."""


# The parser leaves addresses as written, and its work is bounded.


@cache
def markdown_parser() -> MarkdownIt:
    """Return the parser.

    Raises:
        DependencyError: it is not installed.
    """
    try:
        from markdown_it import MarkdownIt
        from mdit_py_plugins.deflist import deflist_plugin
        from mdit_py_plugins.footnote import footnote_plugin
        from mdit_py_plugins.myst_role import myst_role_plugin
    except ImportError as error:
        raise DependencyError(f"reading Markdown needs a parser: {install('evidence')} ({error})") from None
    options = {"store_labels": True, "inline_definitions": True, "maxNesting": _DEEPEST}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    parser.use(footnote_plugin, inline=False, move_to_end=False)
    parser.use(deflist_plugin).use(myst_role_plugin)
    parser.inline.ruler.at("footnote_ref", _note)
    parser.inline.ruler.before("myst_role", "inline_note", _inline_note)
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
    """Parse a footnote within a sentence, ``^[See Frisch.]``."""
    end = state.md.helpers.parseLinkLabel(state, state.pos + 1) if state.src.startswith("^[", state.pos) else -1
    before = max(0, state.pos - 42)  # as long as a raised mark may be
    if end < 0 or state.src[end + 1 : end + 2] in ("^", "(", "[") or _RAISED_BEFORE.search(state.src, before, state.pos):
        return False  # a raised mark, ^[2]^, or a link after one, ^2^[Frisch](https://a.example)
    if _ONLY_NUMBERS.fullmatch(state.src, state.pos + 2, end):
        return False  # ^[1]
    if not silent:
        note = state.push("inline_note", "", 0)
        note.children = []
        state.env["notes"] = state.env.get("notes", 0) + 1
        note.meta = {"name": f"note {state.env['notes']} within the text"}
        state.md.inline.parse(state.src[state.pos + 2 : end], state.md, state.env, note.children)
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
    tokens = _parsed(_NOT_SHOWN.sub("", _unwrapped(cleaned)))
    read = _page_of(tokens).document(where)
    title = " ".join(str(fields.get("title") or "").split())
    headings = (block.pieces[0] for block in read.blocks if block.kind == "heading")
    if any(token.level >= _DEEPEST - 1 for token in tokens):
        notes.append(f"{where}: what is nested in more than {_DEEPEST // 2} lists or quotes was left out; flatten it")
    definitions = [
        Reference(token.meta["label"], token.meta["title"], web_address(token.meta["url"]), token.map[0] + 1)
        for token in tokens
        if token.type == "definition" and token.map
    ]
    if isinstance(works := fields.get("references"), list):
        try:
            definitions += [replace(work, line=1) for work in csl_entries(works, where)]
        except InputError as error:
            notes.append(str(error))
    return replace(
        read,
        title=clean_title(title or next(map(_as_line, headings), ""))[0],
        definitions=definitions,
        removed=read.removed + removed,
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
    """Return the YAML or TOML before a text by its keys, the text after it, whose lines keep their numbers, and notes.

    What is neither plain YAML (tags, too many aliases, a key twice) nor TOML belongs to the text, and a note says so.
    """
    begin = _RULE.match(text)
    end = _ENDS[begin[1]].search(text, begin.end()) if begin else None
    if begin is None or end is None or end.start() > _LONGEST_FRONT_MATTER:
        return {}, text, []
    block = text[begin.end() : end.start()]
    try:
        values = parse_yaml(block, "front matter") if begin[1] == "---" else tomllib.loads(block)
    except (ConfigurationError, ValueError, RecursionError) as error:  # TOML may have more levels or digits than Python reads
        note = (
            f"{where}: the front matter at its beginning cannot be read, and is taken for text ({error}); correct or remove it"
        )
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


# The tokens as a page of HTML, which the reader of HTML reads.


def _page_of(tokens: Sequence[Token]) -> Tree:
    tree = Tree()
    quotes: list[str] = []
    for at, token in enumerate(tokens):
        if token.map:
            tree.line = token.map[0] + 1
        match token.type:
            case "inline":
                first = next((child for child in token.children or () if child.content), None)
                if first is not None and tokens[at - 2].type in ("list_item_open", "blockquote_open"):
                    first.content = _LABEL.sub("", first.content, count=1) if _LABEL.match(first.content) else first.content
                _write(tree, token.children or [])
            case "fence" | "code_block":
                tree.one("pre", token.content)
            case "html_block":
                _add_html(tree, token.content)
            case "blockquote_open":
                first = next((each for each in tokens[at : at + _DEEPEST] if each.type == "inline"), None)
                quotes.append(quotes[0] if quotes else "div" if first is not None and _is_label(first) else "blockquote")
                tree.begin(quotes[-1])
            case "blockquote_close":
                tree.end(quotes.pop())
            case "footnote_reference_open":
                tree.begin(NOTE, name=str(token.meta["label"]))
            case "list_item_open":
                tree.begin("li", Number=token.info or "-")
            case _ if token.nesting:
                tree.begin(token.tag) if token.nesting > 0 else tree.end()
    return tree


def _is_label(quote: Token) -> bool:
    """Return whether a block quote is a note with a label ("> **Note:** ...", "> [!NOTE]")."""
    types = [child.type for child in quote.children or [] if child.type != "text" or child.content]
    return quote.content.startswith("[!") or types[:1] == ["strong_open"]


def _add_html(tree: Tree, content: str) -> None:
    """Add HTML between paragraphs, by itself, so that it changes nothing else: readers of Markdown use no style sheets."""
    page = parse_page(f"<html><body>{content}</body></html>", "HTML")
    for sheet in list(page.iter("style", "link")):
        sheet.drop_tree()
    body = page.find("body")
    body = page if body is None else body
    body.tag = "div"
    for element in body.iter():
        set_line(element, tree.line)
    tree.add(body)
    tree.end()


def _write(tree: Tree, tokens: Sequence[Token]) -> None:  # noqa: PLR0912 -- a branch for each kind of token
    """Add what is within a block."""
    outside = len(tree)
    for token in tokens:
        match token.type:
            case "link_open":
                url, title = (str(token.attrGet(name) or "") for name in ("href", "title"))
                tree.end("a", outside)
                tree.begin("a", href=url, Label=str(token.meta.get("label", "")), Title=title)
            case "link_close":
                tree.end("a", outside)
            case "softbreak" | "hardbreak":
                tree.line += 1
                tree.one(LINE if token.type == "softbreak" else "br", " ")
            case "footnote_ref":
                tree.one(MARK, name=str(token.meta["label"]))
            case "bare_link":
                tree.one("a", token.content, href=token.content, Label="")
            case "code_inline":
                tree.one("code", token.content)
            case "myst_role" if "cite" in token.meta["name"]:
                for key in filter(None, map(str.strip, re.split("[,;]", token.content))):
                    tree.one(MARK, name=key)
            case "myst_role":
                tree.text(token.content)
            case "inline_note":
                tree.begin(FOOTNOTE, name=token.meta["name"])
                _write(tree, token.children or [])
                tree.end(FOOTNOTE)
            case "text":
                tree.text(token.content)
            case "s_open":
                tree.begin("s")
            case "s_close":
                tree.end("s", outside)
            case "html_inline":
                _write_tag(tree, token.content, outside)
        tree.line += token.content.count("\n")
    tree.close(outside)


def _write_tag(tree: Tree, written: str, outside: int) -> None:
    if written.startswith("<!--"):
        tree.one("template", written[4:-3])
    read = _TAG.match(written)
    if read is None:
        return
    # a style sheet is no text, but would be one of the page
    tag, href = "script" if read[2].lower() == "style" else read[2].lower(), unescape(read[3] or "")
    if tag == "br":
        tree.one("br")
    elif tag in _TAGS and (read[1] or tag in ("a", "sup")):
        tree.end(tag, outside)
    if tag in _TAGS and not read[1] and (tag != "a" or href):
        tree.begin(tag, **({"href": href, "Label": ""} if tag == "a" else {}))
