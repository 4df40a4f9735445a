"""Removal of the parts of an HTML page that its readers do not see, before its text is read.

A page can hold text for programs alone: instructions to its readers, or claims that its visible text does not make. Removed
parts are counted, so that they can be reported. Text is visible if a browser without scripts shows it on a screen: the styles
in the page are computed, those in other files are unknown. Where the page does not decide it, as with white text on a picture,
the text stays and is marked as doubtful.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from nlp_retrieval.systems.evidence.reading.cleaning import clean_text
from nlp_retrieval.systems.evidence.reading.css_values import (
    Colour,
    colour_of,
    font_size,
    functions,
    keyword,
    length,
    share,
    words,
)
from nlp_retrieval.systems.evidence.reading.document import Removed
from nlp_retrieval.systems.evidence.reading.styles import Element, Sheets, Tokens, style_of

DOUBT, DOUBT_ENDS = "\ufdd0", "\ufdd1"
"""Marks around doubtful text: noncharacters, which were removed from the text before."""

_NO_TEXT = frozenset(
    "script style link meta base input img source track param col select option optgroup datalist textarea rp area".split()
)
_NEVER_SHOWN = frozenset(
    "template noframes noembed iframe object embed audio video progress meter desc metadata annotation annotation-xml "
    "defs symbol clippath pattern marker lineargradient radialgradient".split()
)
_STRUCK = frozenset(("del", "s", "strike"))
_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data dfn em font i ins kbd label mark nobr q ruby rt samp small span strong sub sup "  # noqa: E501
    "time tt u var".split()
)
BOX = "data-read-as-a-box"
"""Attribute of elements of a line that a style makes boxes of their own: the text beside them does not touch theirs."""

_BOX_DISPLAYS = frozenset("block flex grid table list-item flow-root table-cell table-row table-caption".split())
_LEFT_OUT = "left-out-of-the-text"
"""Tag of elements to be removed together: lxml refuses to move text with control characters from element to element."""

_WHITE, _BLACK, _BLUE = (255.0, 255.0, 255.0, 1.0), (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 238.0, 1.0)
_NEAR = 12
"""Largest difference, of 255, in each component of two colours that look the same."""

_FAINT = 0.05
_TINY = 3.0
_FAR, _FAR_AHEAD = -500.0, 5000.0
_NARROW = 3.0
_UPRIGHT = 0.02
"""Cosine of an angle at which only the edge of a surface is visible."""

_WIDTH, _HEIGHT = 1280.0, 720.0
_KEPT_WITHOUT_A_BOX = frozenset(("color", "font-size", "visibility", "text-indent", "-webkit-text-fill-color", "fill"))


@dataclass(frozen=True)
class _Look:
    """Look of the text of an element; its children start with the same."""

    letter: float = 16.0
    scale: float = 1.0
    opacity: float = 1.0
    indent: float = 0.0
    ink: Colour | None = _BLACK
    fill: Colour | None = None
    """Colour of letters, if it is not that of the text."""
    paper: Colour | None = _WHITE
    """Colour behind it; None if that is a picture, or another file may decide it."""
    sure: Colour = _WHITE
    """Last known colour behind it."""
    is_visible: bool = True
    is_gone: bool = False
    """True if nothing inside it can be seen, whatever its own style."""
    is_clipped: bool = False
    clip_is_placed: bool = False
    is_doubtful: bool = False
    is_struck: bool = False
    has_glyphs: bool = False
    """True if letters are drawn with its background, or with a shadow."""
    arranges: bool = False
    """True if the elements in it are boxes, as in a flex or grid container."""
    variables: Mapping[str, Tokens] | None = None
    origin: Any = None
    """Outermost element that hides this text."""

    @property
    def seen(self) -> str:
        """Return "seen", "doubtful", "hidden" or "struck"."""
        if self.is_gone or self.is_clipped or not self.is_visible or self.letter * self.scale < _TINY or self.opacity <= _FAINT:
            return "hidden"
        if self.indent <= _FAR:
            return "hidden"
        if self.is_struck:
            return "struck"
        return self._by_colour

    @property
    def _by_colour(self) -> str:
        ink = self.fill or self.ink
        doubtful = "doubtful" if self.is_doubtful else "seen"
        if ink is None or self.has_glyphs:
            return doubtful
        alpha = ink[3] * self.opacity
        if alpha <= _FAINT:
            return "hidden"
        behind = self.paper or self.sure
        if all(abs(one - other) * alpha <= _NEAR for one, other in zip(ink[:3], behind[:3], strict=True)):
            return "hidden" if self.paper is not None else "doubtful"
        return doubtful


def remove_hidden(page: Any) -> tuple[Removed, int, list[tuple[str, str]]]:
    """Remove the hidden parts of a page in place, and mark the doubtful ones.

    Text is hidden if a browser without scripts does not show it on a screen, as far as the page itself says: by attributes
    (``hidden``, ``popover``, a closed ``dialog``), and by styles (not displayed, transparent, in the colour of the
    background, without a size, off the page, clipped, masked or turned away), in ``style`` attributes, ``style`` elements
    and ``data:`` addresses. ``aria-hidden="true"`` counts as hidden too, but for the panels of tabs and
    accordions, which readers open. Never shown, and removed as well, are comments, processing instructions, scripts, style
    sheets, ``template``, the fallback text of media, and the fields of forms; and struck text
    (``del``, ``s``, ``strike``, ``line-through``), which its author retracts. ``noscript`` is shown.
    Attributes (``alt``, ``title``, ``content`` of ``meta``) are never read as text.

    Args:
        page: the root of the page, as lxml parsed it; the root and the body themselves never count as hidden, since many
            pages hide them until they have loaded.

    Returns:
        Counts of removed parts; the number of doubtful elements; and the removed texts, each after its kind.

    Raises:
        StylesTooCostlyError: the style sheets of the page take more work than those of ordinary pages.
    """
    from lxml import etree

    walk = _ShownPage(Sheets(page))
    walk.read()
    etree.strip_elements(page, _LEFT_OUT, etree.Comment, etree.ProcessingInstruction, with_tail=False)
    return walk.counted(), len(walk.doubtful), walk.listed


class _ShownPage:
    """One walk over a page that removes hidden parts."""

    def __init__(self, sheets: Sheets) -> None:
        self.sheets = sheets
        self.origins: dict[str, set[Any]] = {"hidden": set(), "struck": set()}
        self.unrendered = 0
        self.doubtful: set[Any] = set()
        self.listed: list[tuple[str, str]] = []

    def counted(self) -> Removed:
        """Return the counts of removed parts."""
        dialogs = sum(node.tag == "dialog" for node in self.origins["hidden"])
        hidden = len(self.origins["hidden"]) - dialogs
        return Removed(hidden=hidden, unrendered=self.unrendered + dialogs, struck=len(self.origins["struck"]))

    def read(self) -> None:
        """Remove the hidden parts."""
        from lxml.etree import Comment as comment  # noqa: N813 -- lxml's is a function

        pending: list[tuple[Element, _Look]] = [(self.sheets.root, _Look(variables={}))]
        while pending:
            element, around = pending.pop()
            node = element.etree_element
            reason = _never_shown(node)
            if reason is not None:
                self._drop(node, reason)
                continue
            look = self._look(element, around)
            text = node.text
            if (shown := self._shown(text, look)) is not text:  # only then: lxml refuses control characters
                node.text = shown
            pending.extend((child, look) for child in reversed(list(element.iter_children())))
            for child in node:
                if not isinstance(child.tag, str):
                    self._drop(child, "comment" if child.tag is comment else "instruction")
                tail = child.tail
                if (shown := self._shown(tail, look)) is not tail:
                    child.tail = shown

    def _drop(self, node: Any, reason: str) -> None:
        is_element = isinstance(node.tag, str)
        text = node.text_content() if is_element else node.text if reason == "comment" else ""
        if reason and text and text.strip():
            self.unrendered += 1
            self.listed.append(("not shown by browsers", " ".join(text.split())))
        if is_element:
            node.tag = _LEFT_OUT

    def _shown(self, text: str | None, look: _Look) -> str | None:
        """Return the visible part of a text; the same object if all of it is visible."""
        if not text or text.isspace():
            return text
        seen = look.seen
        if seen == "seen":
            return text
        if seen == "doubtful":
            self.doubtful.add(look.origin)
            return f"{DOUBT}{clean_text(text)[0]}{DOUBT_ENDS}"
        if look.origin not in self.origins[seen]:
            self.origins[seen].add(look.origin)
            self.listed.append((seen, ""))
        self.listed.append(("", " ".join(text.split())))
        return None

    def _look(self, element: Element, around: _Look) -> _Look:
        node = element.etree_element
        declared = self.sheets.declared(element)
        attributes = node.attrib
        if not declared and not attributes and node.tag not in _STYLED and not around.arranges:
            return around
        if "aria-hidden" in attributes and _is_panel(node):
            del attributes["aria-hidden"]
        style, variables = style_of(declared, around.variables or {})
        names = tuple(token.value for token in words(style.get("animation-name", ())) if token.type in ("ident", "string"))
        if names and any(keyword((token,)) in ("forwards", "both") for token in words(style.get("animation-fill-mode", ()))):
            for name in names:
                style |= self.sheets.keyframes.get(name, {})
        display = keyword(style.get("display", ()))
        if node.tag in _INLINE and (around.arranges or display in _BOX_DISPLAYS):
            node.set(BOX, "")
        look = _computed(node, style, replace(around, variables=variables, arranges=False), around, self.sheets.has_others)
        if look.seen != "seen" and (look.origin is None or around.seen == "seen"):
            look = replace(look, origin=node)
        return look


_STYLED = frozenset("a mark button dialog svg del s strike font body table".split())


def _never_shown(node: Any) -> str | None:
    """Return why an element is never shown: "unrendered", or empty if it has no text for people; None if it may be shown."""
    tag = node.tag
    if tag in _NO_TEXT:
        return ""
    if tag in _NEVER_SHOWN or (tag == "title" and node.getparent().tag != "head"):
        return "unrendered"
    return None


def _computed(node: Any, style: dict[str, Tokens], look: _Look, around: _Look, has_others: bool) -> _Look:
    """Return the look of an element, from its style, the look that it inherits, and that of its parent."""
    tag, attributes = node.tag, node.attrib
    is_root = tag in {"html", "body"}
    display = keyword(style.get("display", ()))
    if display in ("", "revert", "revert-layer", "unset", "inherit") and _hidden_by_attributes(tag, attributes):
        display = "none"
    if attributes.get("aria-hidden", "").strip().lower() == "true" and not is_root:
        display = "none"
    if (display == "none" or display.startswith("table-column")) and not is_root:
        return replace(look, is_gone=True)
    if display == "contents":
        style = {name: value for name, value in style.items() if name in _KEPT_WITHOUT_A_BOX}
    look = _inherited(tag, attributes, style, look, around)
    look = _background(attributes, style, look, around, has_others)
    if display == "contents":
        return look
    if tag in _STRUCK or any(keyword((token,)) == "line-through" for token in style.get("text-decoration-line", ())):
        look = replace(look, is_struck=True)
    if is_root:
        return look
    position = keyword(style.get("position", ()))
    is_placed = position in ("absolute", "fixed")
    inline = display in ("", "inline") and tag in _INLINE and not is_placed and not around.arranges
    inline = inline and keyword(style.get("float", ())) in ("", "none")
    look = replace(look, arranges=display.endswith(("flex", "grid")))
    if is_placed and look.is_clipped and not look.clip_is_placed:
        look = replace(look, is_clipped=False)
    look = _faded(style, look)
    look = _masked(style, look, is_placed)
    look = _moved(style, look, position, inline)
    if not inline:
        look = _turned(style, look)
        look = _boxed(style, look, position)
    index = style.get("z-index", ())
    if position and position != "static" and index and index[0].type == "number" and index[0].value < 0:
        look = replace(look, is_doubtful=True)
    if keyword(style.get("mix-blend-mode", ())) not in ("", "normal", "inherit", "initial", "unset"):
        look = replace(look, is_doubtful=True)
    return look


_MOST_PARTS = 32


def _is_panel(node: Any) -> bool:
    """Return whether an element that programs read aloud leave out is a panel of tabs or of an accordion."""
    if node.get("role", "").strip().lower() == "tabpanel":
        return True
    before = islice(node.itersiblings(preceding=True), 3)
    return any(part.get("aria-expanded") is not None for each in before for part in islice(each.iter("*"), _MOST_PARTS))


def _hidden_by_attributes(tag: str, attributes: Mapping[str, str]) -> bool:
    return "hidden" in attributes or "popover" in attributes or (tag == "dialog" and "open" not in attributes)


def _inherited(tag: str, attributes: Mapping[str, str], style: Mapping[str, Tokens], look: _Look, around: _Look) -> _Look:  # noqa: PLR0912
    """Return the look with the properties that children inherit."""
    if "font-size" in style and keyword(style["font-size"]) not in ("inherit", "unset", "revert", "revert-layer"):
        look = replace(look, letter=font_size(style["font-size"], around.letter))
    if "visibility" in style and tag not in {"html", "body"}:
        word = keyword(style["visibility"])
        if word not in ("inherit", "unset"):
            look = replace(look, is_visible=word not in ("hidden", "collapse"))
    if "text-indent" in style:
        indent = length([next(words(style["text-indent"]))], look.letter, _WIDTH)
        look = replace(look, indent=0.0 if indent is None else indent)
    if keyword(style.get("-webkit-text-security", ())) in ("disc", "circle", "square"):
        look = replace(look, is_gone=True)
    if tag == "a" and "href" in attributes:
        look = replace(look, ink=_BLUE)
    elif tag in ("mark", "button", "svg"):
        look = replace(look, ink=_BLACK)
    attribute = {"font": "color", "body": "text"}.get(tag)
    if attribute is not None and attribute in attributes:
        look = replace(look, ink=_legacy(attributes[attribute]) or look.ink)
    if "fill" in attributes:
        look = replace(look, ink=_ink((attributes["fill"],), look))
    for name in ("color", "fill"):
        if name in style and (name == "color" or _is_drawing(tag)):
            look = replace(look, ink=_ink(style[name], around), fill=look.fill)
    if "-webkit-text-fill-color" in style:
        value = style["-webkit-text-fill-color"]
        plain = keyword(value) in ("currentcolor", "initial", "unset", "inherit")
        look = replace(look, fill=None if plain else colour_of(value))
    if "text-shadow" in style and keyword(style["text-shadow"]) not in ("none", "initial", "inherit", "unset"):
        look = replace(look, has_glyphs=True, is_doubtful=look.is_doubtful or _is_clear(look.fill or look.ink))
    return look


def _is_drawing(tag: str) -> bool:
    return tag in ("text", "tspan", "textpath", "g", "svg")


def _ink(value: tuple[Any, ...], around: _Look) -> Colour | None:
    word = value[0].strip().lower() if isinstance(value[0], str) else keyword(value)
    if word in ("currentcolor", "inherit", "unset"):
        return around.ink
    if word in ("initial", "revert", "revert-layer"):
        return _BLACK
    if word == "none":
        return (0.0, 0.0, 0.0, 0.0)
    return colour_of(value[0] if isinstance(value[0], str) else value)


def _is_clear(colour: Colour | None) -> bool:
    return colour is not None and colour[3] <= _FAINT


def _legacy(value: str) -> Colour | None:
    return colour_of(value) or colour_of(f"#{value.strip().lstrip('#')}")


def _background(
    attributes: Mapping[str, str], style: Mapping[str, Tokens], look: _Look, around: _Look, has_others: bool
) -> _Look:
    colour = _legacy(attributes["bgcolor"]) if "bgcolor" in attributes else None
    unknown = False
    value = style.get("background-color", ())
    if value:
        word = keyword(value)
        colour = look.ink if word == "currentcolor" else around.paper if word == "inherit" else colour_of(value)
        unknown = colour is None and word not in ("initial", "unset", "revert", "revert-layer")
    images = [part for part in words(style.get("background-image", ())) if part != "," and keyword((part,)) == ""]
    clips = keyword(style.get("background-clip", ())) == "text"
    if clips and (images or colour):
        return replace(look, has_glyphs=True)
    if colour is not None and colour[3] > 0:
        alpha = colour[3]
        mixed = tuple(above * alpha + below * (1 - alpha) for above, below in zip(colour[:3], look.sure[:3], strict=True))
        painted: Colour = (mixed[0], mixed[1], mixed[2], 1.0)
        # a translucent colour over an unknown one stays unknown
        look = replace(look, sure=painted, paper=painted if look.paper is not None or alpha >= 1 else None)
    elif has_others and {"class", "id"} & set(attributes) and not value:
        unknown = True
    if "background" in attributes or unknown:
        look = replace(look, paper=None)
    if images:
        even = _single_colour(images)
        look = replace(look, paper=even, sure=even or look.sure)
    return look


def _single_colour(images: list[Any]) -> Colour | None:
    """Return the colour of a gradient that has only one."""
    colours: list[Colour] = []
    for name, parts in functions(images):
        if not name.endswith("gradient"):
            return None
        parsed = [colour_of((colour,)) for part in parts for colour in part]
        colours += [colour for colour in parsed if colour is not None]
    if len(colours) < 2 or any(image.type == "url" for image in images):
        return None
    first = colours[0]
    same = all(abs(mine - yours) <= _NEAR for colour in colours for mine, yours in zip(first[:3], colour[:3], strict=True))
    return first if same and all(colour[3] >= 1 for colour in colours) else None


def _faded(style: Mapping[str, Tokens], look: _Look) -> _Look:
    if "opacity" in style:
        opacity = share(list(words(style["opacity"]))) if keyword(style["opacity"]) == "" else None
        look = replace(look, opacity=look.opacity * (1.0 if opacity is None else max(0.0, min(1.0, opacity))))
    if keyword(style.get("content-visibility", ())) == "hidden":
        look = replace(look, is_gone=True)
    value = style.get("filter", ())
    if any(token.type == "url" for token in words(value)):
        look = replace(look, is_doubtful=True)
    for name, parts in functions(value):
        number = (share(parts[0]) if len(parts[0]) == 1 and parts[0][0].type != "dimension" else None) if parts else None
        amount = 1.0 if number is None else number
        if name == "opacity":
            look = replace(look, opacity=look.opacity * max(0.0, min(1.0, amount)))
        elif name == "blur" and parts[0] and (length(parts[0], look.letter, 0) or 0.0) >= look.letter / 4:
            look = replace(look, is_gone=True)
        elif name in ("brightness", "contrast") and not 0.2 <= amount <= 5:
            look = replace(look, is_gone=(name == "contrast" and amount <= _FAINT) or look.is_gone, is_doubtful=True)
        elif (name == "invert" and 0.3 < amount < 0.7) or name == "url":
            look = replace(look, is_doubtful=True)
    return look


def _masked(style: Mapping[str, Tokens], look: _Look, is_placed: bool) -> _Look:
    masks = list(words(style.get("mask-image", ())))
    if any(token.type == "url" or (token.type == "function" and not token.lower_name.endswith("gradient")) for token in masks):
        look = replace(look, is_doubtful=True)
    colours = [colour_of((token,)) for _, parts in functions(masks) for part in parts for token in part]
    drawn = [colour for colour in colours if colour is not None]
    if drawn and all(map(_is_clear, drawn)):
        look = replace(look, is_gone=True)
    shapes = list(functions(style.get("clip-path", ())))
    if any(token.type == "url" for token in words(style.get("clip-path", ()))):
        look = replace(look, is_doubtful=True)
    for name, parts in shapes:
        cuts = _cuts(name, parts)
        if cuts is None:
            look = replace(look, is_doubtful=True)
        elif cuts:
            look = replace(look, is_gone=True)
    if is_placed:
        for name, parts in functions(style.get("clip", ())):
            edges = [length([token], 16, 0) for part in parts for token in part]
            if name == "rect" and len(edges) == 4:
                top, right, bottom, left = edges
                tall = bottom is None or bottom - (top or 0.0) > 1
                wide = right is None or right - (left or 0.0) > 1
                look = replace(look, is_gone=look.is_gone or not (tall and wide))
    return look


def _cuts(name: str, parts: list[list[Any]]) -> bool | None:  # noqa: PLR0911
    """Return whether a shape leaves nothing of a box with sides of 100; None if unknown."""
    if name == "polygon":
        points = [[length([token], 0.16, 100) for token in part if token.type != "ident"] for part in parts]
        corners = [
            (point[0], point[1]) for point in points if len(point) == 2 and point[0] is not None and point[1] is not None
        ]
        if not corners:
            return None
        edges = zip(corners, corners[1:] + corners[:1], strict=True)
        area = abs(sum(x * next_y - next_x * y for (x, y), (next_x, next_y) in edges)) / 2
        outside = any(
            max(corner[side] for corner in corners) <= 0 or min(corner[side] for corner in corners) >= 1000 for side in (0, 1)
        )
        return area < 1 or outside
    sizes = [length([token], 16, 100) for token in parts[0] if token.type not in ("ident", "literal")] if parts else []
    numbers = [0.0 if size is None else size for size in sizes]
    if name == "inset":
        before = [token for token in parts[0] if token.type != "literal"] if parts else []
        rounded = next((position for position, token in enumerate(before) if keyword((token,)) == "round"), len(before))
        numbers = numbers[:rounded]
        if not numbers:
            return False
        top, right, bottom, left = (numbers * 4)[:4] if len(numbers) != 3 else [*numbers, numbers[1]]
        return top + bottom >= 99 or left + right >= 99
    if name in ("circle", "ellipse"):
        first = (
            next((position for position, token in enumerate(parts[0]) if keyword((token,)) == "at"), len(parts[0]))
            if parts
            else 0
        )
        return any(number <= 1 for number in numbers[:first])
    if name == "rect" and len(numbers) == 4:
        return numbers[2] - numbers[0] <= 1 or numbers[1] - numbers[3] <= 1
    if name == "xywh" and len(numbers) >= 4:
        return numbers[2] <= 1 or numbers[3] <= 1
    return None


def _moved(style: Mapping[str, Tokens], look: _Look, position: str, inline: bool) -> _Look:
    """Return the look of an element that may be moved off the page."""

    def pixels(name: str, whole: float) -> float | None:
        return length(list(words(style[name])), look.letter, whole) if name in style else None

    across = pixels("margin-left", 400) or 0.0
    down = pixels("margin-top", 400) or 0.0
    is_placed = position in ("absolute", "fixed")
    if position and position != "static":
        left, right = pixels("left", _WIDTH), pixels("right", _WIDTH)
        top, bottom = pixels("top", _HEIGHT), pixels("bottom", _HEIGHT)
        across += left if left is not None else -(right or 0.0)
        down += top if top is not None else -(bottom or 0.0)
    if not inline:
        own = 600.0 if is_placed else 400.0
        for name, parts in functions(style.get("transform", ())):
            moves = [length(part, look.letter, own) or 0.0 for part in parts]
            if name in ("translate", "translate3d"):
                across += moves[0]
                down += moves[1] if len(moves) > 1 else 0.0
            elif name == "translatex":
                across += moves[0]
            elif name == "translatey":
                down += moves[0]
            elif name in ("matrix", "matrix3d") and len(moves) in (6, 16):
                across += moves[-2] if len(moves) == 6 else moves[12]
                down += moves[-1] if len(moves) == 6 else moves[13]
        moves = [length([token], look.letter, own) or 0.0 for token in words(style.get("translate", ()))]
        across += moves[0] if moves else 0.0
        down += moves[1] if len(moves) > 1 else 0.0
    is_far = across <= _FAR or down <= _FAR or across >= _FAR_AHEAD or (down >= _FAR_AHEAD and bool(position or look.scale))
    if is_far or (pixels("margin-right", 400) or 0.0) <= -_FAR_AHEAD:
        look = replace(look, is_gone=True)
    return look


def _turned(style: Mapping[str, Tokens], look: _Look) -> _Look:
    """Return the look of an element that may be scaled to nothing, or seen from its edge."""
    scales: list[float] = []
    turned = 0.0
    for name, parts in functions(style.get("transform", ())):
        if name.startswith("scale"):
            factors = [share(part) if len(part) == 1 else None for part in parts]
            numbers = [1.0 if factor is None else factor for factor in factors]
            scales += numbers[:2] if name in ("scale", "scale3d") else numbers[:1] if name != "scalez" else []
        elif name == "matrix" and len(parts) == 6:
            a, b, c, d = (share(part) or 0.0 for part in parts[:4])
            scales.append(math.sqrt(abs(a * d - b * c)))
        elif name in ("rotatex", "rotatey", "skew", "skewx", "skewy"):
            angles = [_angle(part[0]) if part else 0.0 for part in parts]
            scales += [0.0 for angle in angles if abs(math.cos(angle)) < _UPRIGHT]
            turned += angles[0] if name.startswith("rotate") else 0.0
        elif name == "rotate3d" and len(parts) == 4 and parts[3]:
            axis = [share(part) or 0.0 for part in parts[:3]]
            angle = _angle(parts[3][0])
            if axis[2] == 0 and abs(math.cos(angle)) < _UPRIGHT:
                scales.append(0.0)
            turned += angle if axis[2] == 0 else 0.0
    scales += [
        share([token]) or 0.0 for token in words(style.get("scale", ())) if token.type in ("number", "percentage", "function")
    ][:2]
    rotation = list(words(style.get("rotate", ())))
    axis_word = keyword(rotation[:1])
    numbers = [token.value for token in rotation if token.type == "number"]
    if rotation and (axis_word in ("x", "y") or (len(numbers) == 3 and numbers[2] == 0)):
        angle = next((_angle(token) for token in rotation if token.type == "dimension"), 0.0)
        scales += [0.0] if abs(math.cos(angle)) < _UPRIGHT else []
        turned += angle
    if keyword(style.get("backface-visibility", ())) == "hidden" and math.cos(turned) < -_UPRIGHT:
        look = replace(look, is_gone=True)
    if "zoom" in style and keyword(style["zoom"]) == "":
        zoom = share(list(words(style["zoom"])))
        scales += [zoom] if zoom is not None and zoom > 0 else []
    least = 1.0
    for scale in scales:
        least *= min(1.0, abs(scale))
    return replace(look, scale=look.scale * least)


def _angle(token: Any) -> float:
    if token.type not in ("dimension", "number"):
        return 0.0
    unit = getattr(token, "lower_unit", "deg")
    return float(token.value) * {"rad": 1.0, "turn": 2 * math.pi, "grad": math.pi / 200}.get(unit, math.pi / 180)


def _boxed(style: Mapping[str, Tokens], look: _Look, position: str) -> _Look:
    """Return the look of an element that may be an empty box which cuts off its content."""
    cuts = [
        any(keyword((word,)) in ("hidden", "clip", "scroll", "auto") for word in words(style.get(f"overflow-{axis}", ())))
        for axis in "xy"
    ]
    if not any(cuts):
        return look

    def pixels(name: str) -> float | None:
        return length(list(words(style[name])), look.letter, 1000) if name in style else None

    def is_narrow(size: str, sides: tuple[str, str]) -> bool:
        lengths = [limit for limit in (pixels(size), pixels(f"max-{size}")) if limit is not None]
        padded = sum(pixels(f"padding-{side}") or 0.0 for side in sides)
        least = pixels(f"min-{size}") or 0.0
        return bool(lengths) and max(min(lengths), least) + padded <= _NARROW

    flat = is_narrow("height", ("top", "bottom"))
    if not flat and "height" not in style and "min-height" not in style and "line-height" in style:
        line = length(list(words(style["line-height"])), look.letter, look.letter)
        flat = line is not None and line <= 0.1 and not (pixels("padding-top") or pixels("padding-bottom"))
    if flat or is_narrow("width", ("left", "right")):
        placed = position in ("absolute", "fixed", "relative", "sticky")
        look = replace(look, is_clipped=True, clip_is_placed=placed or "transform" in style)
    elif look.indent >= 1000 and cuts[0]:
        look = replace(look, is_gone=True)
    return look
