"""Removal of the parts of an HTML page that its readers do not see, before its text is read.

A page can hold text for programs alone: instructions to them, or claims that its visible text does not make. Left out is what
browsers never show, and what the page itself hides: by ``hidden``, ``popover`` or a closed ``dialog``, and by its own styles
(attributes and elements) with ``display:none``, ``visibility``, ``opacity:0``, letters without a size, a place off the page, or
the colour of the background. Style sheets in other files are never fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tinycss2
from cssselect2 import ElementWrapper, Matcher, SelectorError, compile_selector_list
from tinycss2.color4 import parse_color

from nlp_retrieval.documents.cleaning import Removed

_NO_TEXT = frozenset(
    "script style link meta base input img source track param col select option optgroup datalist textarea rp area".split()
)
_NEVER_SHOWN = frozenset(
    "template noframes noembed iframe object embed audio video progress meter desc metadata annotation annotation-xml "
    "defs symbol clippath pattern marker lineargradient radialgradient".split()
)
_STRUCK = frozenset(("del", "s", "strike"))
_LEFT_OUT = "left-out-of-the-text"
"""Tag of elements to be removed together: lxml refuses to move text with control characters from element to element."""

BOX = "data-read-as-a-box"
"""Attribute of elements of a line that a style makes boxes of their own: the text beside them does not touch theirs."""

_BOXES = frozenset("block flex grid table list-item flow-root table-cell table-row table-caption inline-block".split())
_DISPLAYS = _BOXES | {"none", "inline", "contents", "inline-flex", "inline-grid", "initial", "revert"}

Colour = tuple[float, float, float, float]
_WHITE, _BLACK, _BLUE = (255.0, 255.0, 255.0, 1.0), (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 238.0, 1.0)
_NEAR = 12
"""Largest difference, of 255, in each component of two colours that look the same."""

_FAINT = 0.05
_TINY = 3.0
_FAR, _FAR_AHEAD = -500.0, 5000.0
_PIXELS = {"px": 1.0, "pt": 4 / 3, "cm": 37.8, "mm": 3.78, "in": 96.0, "vw": 12.8, "vh": 7.2, "rem": 16.0}
_MOST_STEPS = 20_000_000
"""Elements and selectors that matching a page's style sheets may examine."""


class StylesTooCostlyError(Exception):
    """The style sheets of a page take more work than a page for people needs."""


class _Element(ElementWrapper):  # type: ignore[misc]  # cssselect2 has no types
    """An element that selectors are matched against; counts the steps of matching, for the whole page."""

    steps: list[int]

    @property
    def ancestors(self) -> Iterator[_Element]:
        return self._charged(super().ancestors)

    @property
    def previous_siblings(self) -> Iterator[_Element]:
        return self._charged(super().previous_siblings)

    @property
    def etree_siblings(self) -> list[Any]:
        siblings: list[Any] = self._siblings
        self.charge(len(siblings) // 8)
        return siblings

    @etree_siblings.setter
    def etree_siblings(self, siblings: list[Any]) -> None:
        self._siblings = siblings

    def iter_children(self) -> Iterator[_Element]:
        return self._charged(super().iter_children())

    def _charged(self, elements: Iterable[_Element]) -> Iterator[_Element]:
        for element in elements:
            self.charge(1)
            yield element

    def charge(self, steps: int) -> None:
        self.steps[0] += steps
        if self.steps[0] > _MOST_STEPS:
            raise StylesTooCostlyError


@dataclass(frozen=True)
class _Look:
    """Look of the text of an element; its children start with the same."""

    letter: float = 16.0
    ink: Colour = _BLACK
    paper: Colour | None = _WHITE
    """Colour behind it; None if that is a picture, or another file may decide it."""
    opacity: float = 1.0
    indent: float = 0.0
    is_visible: bool = True
    is_gone: bool = False
    """True if nothing inside it can be seen, whatever its own style."""
    is_struck: bool = False
    origin: Any = None
    """Outermost element that hides this text."""

    @property
    def seen(self) -> str:
        """Return "seen", "hidden" or "struck"."""
        alpha = self.ink[3] * self.opacity
        by_size = self.letter < _TINY or self.indent <= _FAR
        by_colour = alpha <= _FAINT or (
            self.paper is not None
            and all(abs(one - other) * alpha <= _NEAR for one, other in zip(self.ink[:3], self.paper[:3], strict=True))
        )
        if self.is_gone or not self.is_visible or by_size or by_colour:
            return "hidden"
        return "struck" if self.is_struck else "seen"


def remove_hidden(page: Any) -> tuple[Removed, list[tuple[str, str]]]:
    """Remove the parts of a page that its readers do not see, in place.

    Struck text (``del``, ``s``, ``line-through``), which its author retracts, is removed as well. ``noscript`` is shown.
    Attributes (``alt``, ``title``, ``content`` of ``meta``) are never text.

    Args:
        page: the root of the page, as lxml parsed it. The root and the body themselves never count as hidden, since many pages
            hide them until they have loaded.

    Returns:
        Counts of removed parts, and the removed texts, each after its kind.

    Raises:
        StylesTooCostlyError: the style sheets of the page take more work than those of ordinary pages.
    """
    from lxml import etree

    sheets, has_others = _sheets(page)
    hidden: dict[str, set[Any]] = {"hidden": set(), "struck": set()}
    listed: list[tuple[str, str]] = []
    unrendered = 0
    kind: Any = type("Element", (_Element,), {"steps": [0]})
    pending: list[tuple[_Element, _Look]] = [(kind.from_html_root(page), _Look(paper=None if has_others else _WHITE))]
    while pending:
        element, around = pending.pop()
        node = element.etree_element
        is_fallback = node.tag in _NEVER_SHOWN or (node.tag == "title" and node.getparent().tag != "head")
        if is_fallback or node.tag in _NO_TEXT:
            if is_fallback and (text := " ".join(node.text_content().split())):
                unrendered += 1
                listed.append(("not shown by browsers", text))
            node.tag = _LEFT_OUT
            continue
        look = _look(node, _declared(sheets, element), around)
        comments = [child for child in node if not isinstance(child.tag, str)]
        for comment in (child for child in comments if child.tag is etree.Comment and (child.text or "").strip()):
            unrendered += 1
            listed.append(("not shown by browsers", " ".join(comment.text.split())))
        seen = look.seen
        if seen != "seen":
            for holder, part in [(node, "text"), *((child, "tail") for child in node)]:
                if (text := getattr(holder, part)) and not text.isspace():
                    if look.origin not in hidden[seen]:
                        hidden[seen].add(look.origin)
                        listed.append((seen, ""))
                    listed.append(("", " ".join(text.split())))
                    setattr(holder, part, None)
        pending.extend((child, look) for child in reversed(list(element.iter_children())))
    etree.strip_elements(page, _LEFT_OUT, etree.Comment, etree.ProcessingInstruction, with_tail=False)
    dialogs = sum(node.tag == "dialog" for node in hidden["hidden"])
    removed = Removed(len(hidden["hidden"]) - dialogs, unrendered + dialogs, struck=len(hidden["struck"]))
    return removed, listed


# The declarations that apply to an element, by the cascade.


def _sheets(page: Any) -> tuple[Matcher, bool]:
    """Return the rules of the style sheets in a page, and whether it loads others."""
    matcher = Matcher()
    for sheet in page.iter("style"):
        if sheet.text and _is_for_screens(sheet.get("media", "")) and next(sheet.iterancestors("template"), None) is None:
            _read(tinycss2.parse_stylesheet(sheet.text, skip_comments=True, skip_whitespace=True), matcher)
    others = any("stylesheet" in (link.get("rel") or "").lower().split() for link in page.iter("link"))
    return matcher, others


def _read(rules: Sequence[Any], matcher: Matcher) -> None:
    for rule in rules:
        if rule.type == "at-rule" and rule.lower_at_keyword == "media" and rule.content is not None:
            if _is_for_screens(tinycss2.serialize(rule.prelude)):
                inner = tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True)
                _read([each for each in inner if each.type == "qualified-rule"], matcher)
        elif rule.type == "qualified-rule" and (declarations := _declarations(rule.content)):
            try:
                selectors = compile_selector_list(rule.prelude)
            except (SelectorError, RecursionError):
                continue
            for selector in selectors:
                matcher.add_selector(selector, declarations)


def _is_for_screens(media: str) -> bool:
    """Return whether a style sheet applies to any screen; what holds for some widths or settings alone does not."""
    return any(part.strip().lower() in ("", "all", "screen", "only screen") for part in media.split(","))


def _declarations(content: Any) -> list[tuple[bool, str, Any]]:
    """Return whether each declaration that can hide text is important, its property and its value, if it is valid."""
    found = []
    for node in tinycss2.parse_blocks_contents(content, skip_comments=True, skip_whitespace=True):
        if node.type == "declaration":
            words = [word for word in node.value if word.type not in ("whitespace", "comment")]
            found += [(bool(node.important), name, value) for name, value in _values(node.lower_name, words)]
    return found


def _values(name: str, words: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the properties that a declaration sets, and their values: keywords, colours, numbers, or tokens of lengths."""
    word = words[0].lower_value if len(words) == 1 and words[0].type == "ident" else ""
    if name == "display":
        yield from [(name, word)] if word in _DISPLAYS else []
    elif name in ("visibility", "position", "background-clip", "-webkit-background-clip"):
        yield from [(name.removeprefix("-webkit-"), word)] if word else []
    elif name == "opacity" and len(words) == 1 and words[0].type in ("number", "percentage"):
        yield name, words[0].value / (100 if words[0].type == "percentage" else 1)
    elif name == "color":
        colour = _colour(words[0]) if len(words) == 1 else None
        yield from [(name, colour)] if colour is not None else []
    elif name in ("background", "background-color"):
        if any(part.type in ("url", "function") and _colour(part) is None for part in words):
            yield "background-color", None  # a picture, or a gradient
        else:
            yield from (("background-color", colour) for part in words if (colour := _colour(part)) is not None)
    elif name == "font":
        yield from (("font-size", part) for part in words[:4] if _length(part, 16, 16) is not None and part.type != "number")
        yield from (("font-size", part) for part in words[:1] if part.type == "number" and part.value == 0)
    elif name in ("font-size", "left", "right", "top", "bottom", "text-indent", "margin-left", "margin-top"):
        yield from [(name, words[0])] if len(words) == 1 and _length(words[0], 16, 1000) is not None else []
    elif name in ("text-decoration", "text-decoration-line"):
        yield "text-decoration", {part.lower_value for part in words if part.type == "ident"}


def _colour(token: Any) -> Colour | None:
    try:
        parsed = parse_color(token)
        if parsed is None or isinstance(parsed, str):
            return None
        red, green, blue = (255 * (part or 0.0) for part in parsed.to("srgb").coordinates)
        return red, green, blue, float(parsed.alpha)
    except (ValueError, TypeError, AttributeError, NotImplementedError):
        return None


def _length(token: Any, letter: float, whole: float) -> float | None:
    """Return a length in pixels; None if it is none that is known."""
    if token.type == "percentage":
        return float(token.value) * whole / 100
    if token.type == "dimension":
        unit = letter if token.lower_unit == "em" else _PIXELS.get(token.lower_unit)
        return None if unit is None else float(token.value) * unit
    return 0.0 if token.type == "number" and token.value == 0 else None


def _declared(matcher: Matcher, element: _Element) -> dict[str, Any]:
    """Return the declarations that win for an element, by their property; inherited ones are not among them."""
    tried = [matcher.other_selectors, matcher.lower_local_name_selectors.get(element.local_name, ())]
    element.charge(8 + sum(map(len, tried)) + sum(len(matcher.class_selectors.get(name, ())) for name in element.classes))
    matching = [rules for *_, pseudo, rules in sorted(matcher.match(element), key=lambda one: one[:2]) if pseudo is None]
    if (style := element.etree_element.get("style")) is not None:
        matching.append(_declarations(style))
    every = [declaration for declarations in matching for declaration in declarations]
    element.charge(len(every))
    return {name: value for important in (False, True) for is_important, name, value in every if is_important == important}


def _look(node: Any, style: Mapping[str, Any], around: _Look) -> _Look:
    """Return the look of the text of an element, by its attributes, its style and the look around it."""
    attributes = node.attrib
    is_root = node.tag in ("html", "body")
    closed = "hidden" in attributes or "popover" in attributes or (node.tag == "dialog" and "open" not in attributes)
    display = style.get("display", "none" if closed else "")
    if display in _BOXES:
        node.set(BOX, "")
    letter = _length(style["font-size"], around.letter, around.letter) if "font-size" in style else None
    letter = around.letter if letter is None else letter
    ink = _BLUE if node.tag == "a" and "href" in attributes else _BLACK if node.tag in ("mark", "button") else around.ink
    legacy = {"font": "color", "body": "text"}.get(node.tag, "")
    ink = style.get("color") or (_colour(attributes.get(legacy, "")) if legacy else None) or ink
    paper = style.get("background-color", _colour(attributes.get("bgcolor", "")) or around.paper)
    if paper is not None and paper[3] < 1:  # what shines through
        paper = around.paper if paper[3] <= _FAINT else None
    if style.get("background-clip") == "text":
        paper, ink = None, _BLACK
    indent = _length(style["text-indent"], letter, 1280) if "text-indent" in style else around.indent
    look = replace(
        around,
        letter=letter,
        ink=ink,
        paper=paper,
        indent=indent or 0.0,
        is_struck=around.is_struck or node.tag in _STRUCK or "line-through" in style.get("text-decoration", ()),
    )
    if not is_root:
        shown = style.get("visibility", "inherit")
        look = replace(
            look,
            opacity=around.opacity * max(0.0, min(1.0, style.get("opacity", 1.0))),
            is_visible=around.is_visible if shown == "inherit" else shown not in ("hidden", "collapse"),
            is_gone=around.is_gone or display == "none" or _is_off_the_page(style, letter),
        )
    if look.seen != "seen" and (look.origin is None or around.seen == "seen"):
        look = replace(look, origin=node)
    return look


def _is_off_the_page(style: Mapping[str, Any], letter: float) -> bool:
    def pixels(name: str, whole: float) -> float:
        return (_length(style[name], letter, whole) or 0.0) if name in style else 0.0

    across, down = pixels("margin-left", 400), pixels("margin-top", 400)
    if style.get("position", "static") != "static":
        across += pixels("left", 1280) if "left" in style else -pixels("right", 1280)
        down += pixels("top", 720) if "top" in style else -pixels("bottom", 720)
    return not _FAR < across < _FAR_AHEAD or not _FAR < down < _FAR_AHEAD
