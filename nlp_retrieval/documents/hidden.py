"""Removal of the parts of an HTML page that its readers do not see, before its text is read.

Left out is what browsers never show, and what the page itself hides: by ``hidden``, ``popover``, a closed ``dialog``, or styles
of its own: ``display:none``, ``visibility``, ``opacity:0``, letters without a size or in the background's colour, off the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

import tinycss2
from cssselect2 import ElementWrapper, Matcher, SelectorError, compile_selector_list
from tinycss2.color4 import parse_color

from nlp_retrieval.core import read_yaml
from nlp_retrieval.errors import SourceError

WORDS = {name: frozenset(words.split()) for name, words in read_yaml(Path(__file__).with_name("html.yaml")).items()}
"""Names of elements, roles and values that mean something to the reader of pages."""

# tag of elements to be removed together, since lxml refuses to move text with control characters; no author can write it
_LEFT_OUT = f"x-left-out-{token_hex(8)}"
_LENGTHS = ("font-size", "left", "right", "top", "bottom", "text-indent", "margin-left", "margin-top")
_PIXELS = {"px": 1.0, "pt": 4 / 3, "cm": 37.8, "mm": 3.78, "in": 96.0, "vw": 12.8, "vh": 7.2, "rem": 16.0}
_LETTER, _WIDTH = 16.0, 1280.0
_TINY, _FAINT, _FAR = 3.0, 0.05, 500.0
_NEAR = 12  # of 255: the largest difference in each component of two colours that look the same
_MOST_STEPS = 20_000_000  # elements and selectors that matching a page's style sheets may examine
Colour = tuple[float, float, float, float]
_WHITE, _BLACK, _BLUE = (255.0, 255.0, 255.0, 1.0), (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 238.0, 1.0)


class _Element(ElementWrapper):  # type: ignore[misc]  # cssselect2 has no types
    """An element that selectors are matched against; what matching examines is counted, for the whole page."""

    steps: list[int]
    where: str

    @property
    def ancestors(self) -> Any:
        self.charge(len(examined := super().ancestors))
        return examined

    @property
    def previous_siblings(self) -> Any:
        self.charge(len(examined := super().previous_siblings))
        return examined

    @property
    def etree_siblings(self) -> Any:
        self.charge(len(self._siblings) // 8)  # looked at quickly, as are children
        return self._siblings

    @etree_siblings.setter
    def etree_siblings(self, siblings: Any) -> None:
        self._siblings = siblings

    def iter_children(self) -> Any:
        self.charge(len(self.etree_element) // 8)
        return super().iter_children()

    def charge(self, n: int) -> None:
        self.steps[0] += 1 + n
        if self.steps[0] > _MOST_STEPS:
            raise SourceError(f"{self.where}: its style sheets are too complex to evaluate; save it as plain text")


@dataclass(frozen=True)
class _Look:
    """Look of the text of an element; its children start with the same."""

    letter: float = _LETTER
    ink: Colour = _BLACK
    paper: Colour | None = _WHITE  # behind it; None if that is a picture, or another file may decide it
    opacity: float = 1.0
    indent: float = 0.0
    is_visible: bool = True
    is_struck: bool = False

    @property
    def hides(self) -> str:
        """Return why its text is not to be read: "hidden", "struck", or nothing."""
        alpha = self.ink[3] * self.opacity
        is_paper = self.paper is not None and all(
            abs(one - other) * alpha <= _NEAR for one, other in zip(self.ink[:3], self.paper[:3], strict=True)
        )
        if not self.is_visible or self.letter < _TINY or self.indent <= -_FAR or alpha <= _FAINT or is_paper:
            return "hidden"
        return "struck" if self.is_struck else ""


def remove_hidden(page: Any, where: str) -> Counter[str]:
    """Remove the parts of a page that its readers do not see, in place."""
    from lxml import etree

    matcher = Matcher()
    sheets = [sheet for sheet in page.iter("style") if sheet.text and next(sheet.iterancestors("template"), None) is None]
    for sheet in sheets:
        _read(sheet.get("media", ""), tinycss2.parse_stylesheet(sheet.text, skip_comments=True, skip_whitespace=True), matcher)
    has_others = any("stylesheet" in (link.get("rel") or "").lower().split() for link in page.iter("link"))
    counts = Counter[str]()
    kind: Any = type("Element", (_Element,), {"steps": [0], "where": where})
    elements = {each.etree_element: each for each in kind.from_html_root(page).iter_subtree()} if sheets else {}
    pending: list[tuple[Any, _Look]] = [(page, _Look(paper=None if has_others else _WHITE))]
    while pending:
        node, look = pending.pop()
        style = _declared(matcher, elements.get(node), node)
        is_fallback = node.tag in WORDS["never_shown"] or (node.tag == "title" and node.getparent().tag != "head")
        is_dialog = node.tag == "dialog" and "open" not in node.attrib and "display" not in style
        if is_fallback or is_dialog or node.tag in WORDS["no_text"] or _is_gone(node, style):
            if node.tag not in WORDS["no_text"] and not look.hides and node.text_content().strip():
                counts["unrendered" if is_fallback or is_dialog else "hidden"] += 1
            node.tag = _LEFT_OUT
            continue
        if style or node.tag in WORDS["struck"] | {"a", "mark"}:
            look = _look(node, style, look)
        children = list(node)
        counts["unrendered"] += sum(1 for child in children if child.tag is etree.Comment and (child.text or "").strip())
        if look.hides:
            counts[look.hides] += any((text or "").strip() for text in (node.text, *(child.tail for child in children)))
            node.text = None
            for child in children:
                child.tail = None
        pending.extend((child, look) for child in reversed(children) if isinstance(child.tag, str))
    etree.strip_elements(page, _LEFT_OUT, etree.Comment, etree.ProcessingInstruction, with_tail=False)
    return +counts


def _read(media: str, rules: Sequence[Any], matcher: Matcher) -> None:
    """Read the rules for any screen; those for some widths or settings alone do not count."""
    if not any(part.strip().lower() in ("", "all", "screen", "only screen") for part in media.split(",")):
        return
    for rule in rules:
        if rule.type == "at-rule" and rule.lower_at_keyword == "media" and rule.content is not None:
            inner = tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True)
            _read(tinycss2.serialize(rule.prelude), [each for each in inner if each.type == "qualified-rule"], matcher)
        elif rule.type == "qualified-rule" and (declarations := _declarations(rule.content)):
            try:
                selectors = compile_selector_list(rule.prelude)
            except (SelectorError, RecursionError):
                continue
            for selector in selectors:
                matcher.add_selector(selector, declarations)


def _declarations(content: Any) -> list[tuple[bool, str, Any]]:
    """Return whether each declaration that can hide text is important, its property and its value, if it is valid."""
    declared = []
    for node in tinycss2.parse_blocks_contents(content, skip_comments=True, skip_whitespace=True):
        if node.type == "declaration":
            words = [word for word in node.value if word.type not in ("whitespace", "comment")]
            declared += [(bool(node.important), name, value) for name, value in _values(node.lower_name, words)]
    return declared


def _values(name: str, words: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the properties that a declaration sets, and their values: keywords, colours, numbers, or tokens of lengths."""
    idents = {word.lower_value for word in words if word.type == "ident"}
    if name.endswith("background-clip") or name in ("text-decoration", "text-decoration-line"):
        yield "background-clip" if name.endswith("clip") else "text-decoration", idents
    elif name in ("background", "background-color", "background-image"):
        if any(word.type in ("url", "function") and _colour(word) is None for word in words):
            yield "background", None  # a picture, or a gradient
        else:
            yield from (("background", colour) for word in words if (colour := _colour(word)) is not None)
    elif name == "font":
        sizes = (word for word in words[:4] if _length(word, 1, 1) is not None)
        yield from (("font-size", word) for word in sizes if word.type != "number" or word is words[0])
    elif len(words) != 1:
        return
    elif name == "color" and (ink := _colour(words[0])) is not None:
        yield name, ink
    elif name == "opacity" and words[0].type in ("number", "percentage"):
        yield name, max(0.0, min(1.0, words[0].value / (100 if words[0].type == "percentage" else 1)))
    elif (name in _LENGTHS and _length(words[0], 1, 1) is not None) or idents & WORDS.get(name, frozenset()):
        yield name, words[0] if name in _LENGTHS else words[0].lower_value


def _colour(token: Any) -> Colour | None:
    try:
        colour: Any = parse_color(token)
        red, green, blue = (255 * (part or 0.0) for part in colour.to("srgb").coordinates)
        return red, green, blue, float(colour.alpha)
    except (ValueError, TypeError, AttributeError, NotImplementedError):  # no colour, or "currentcolor"
        return None


def _length(token: Any, letter: float, whole: float) -> float | None:
    """Return a length in pixels; None if it is none that is known."""
    if token.type == "percentage":
        return float(token.value) * whole / 100
    if token.type == "dimension":
        unit = letter if token.lower_unit == "em" else _PIXELS.get(token.lower_unit)
        return None if unit is None else float(token.value) * unit
    return 0.0 if token.type == "number" and token.value == 0 else None


def _declared(matcher: Matcher, element: _Element | None, node: Any) -> dict[str, Any]:
    """Return the declarations that win for an element, by their property; inherited ones are not among them."""
    matching = [_declarations(node.get("style"))] if node.get("style") else []
    if element is not None:
        by_class = (matcher.class_selectors.get(name, ()) for name in element.classes)
        by_name = matcher.lower_local_name_selectors.get(element.local_name, ())
        element.charge(sum(map(len, (matcher.other_selectors, by_name, *by_class))))
        matching = [*(rules for *_, pseudo, rules in matcher.match(element) if pseudo is None), *matching]
        element.charge(sum(map(len, matching)))
    every = [declaration for declarations in matching for declaration in declarations]
    return {name: value for important in (False, True) for is_important, name, value in every if is_important == important}


def _look(node: Any, style: Mapping[str, Any], around: _Look) -> _Look:
    """Return the look of the text of an element, by its style and the look around it."""
    letter = _pixels(style, "font-size", around.letter, around.letter, default=around.letter)
    own = _BLUE if node.tag == "a" and "href" in node.attrib else _BLACK if node.tag == "mark" else around.ink
    paper = style.get("background", around.paper)
    if paper is not None and paper[3] < 1:  # what shines through
        paper = around.paper if paper[3] <= _FAINT else None
    is_cut_out = "text" in style.get("background-clip", ())
    is_root = node.tag in ("html", "body")
    shown = "inherit" if is_root else style.get("visibility", "inherit")
    return _Look(
        letter=letter,
        ink=_BLACK if is_cut_out else style.get("color", own),
        paper=None if is_cut_out else paper,
        opacity=around.opacity * (1.0 if is_root else style.get("opacity", 1.0)),
        indent=_pixels(style, "text-indent", letter, _WIDTH, default=around.indent),
        is_visible=around.is_visible if shown == "inherit" else shown in ("visible", "initial"),
        is_struck=around.is_struck or node.tag in WORDS["struck"] or "line-through" in style.get("text-decoration", ()),
    )


def _is_gone(node: Any, style: Mapping[str, Any]) -> bool:
    """Return whether nothing inside an element can be seen, whatever its own style."""
    if node.tag in ("html", "body"):
        return False
    sides = (("left", "right"), ("top", "bottom"))
    moves = [_pixels(style, f"margin-{side}", _LETTER, 400) for side, _ in sides]
    if style.get("position", "static") != "static":
        for at, (side, other) in enumerate(sides):
            from_other = _WIDTH - _pixels(style, other, _LETTER, _WIDTH, default=_WIDTH)
            moves[at] += _pixels(style, side, _LETTER, _WIDTH, default=from_other)
    default = "none" if "hidden" in node.attrib or "popover" in node.attrib else ""
    is_far = not all(-_FAR < move < 10 * _FAR for move in moves)  # true also of a sum that is no number
    return is_far or bool(style.get("display", default) == "none")


def _pixels(style: Mapping[str, Any], name: str, letter: float, whole: float, default: float = 0.0) -> float:
    return (_length(style[name], letter, whole) or 0.0) if name in style else default
