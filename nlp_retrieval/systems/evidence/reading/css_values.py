"""Values of the CSS properties that can hide text: their validity, and their meaning in pixels, as a share, or as a colour.

Sources: https://www.w3.org/TR/css-values-4/, https://www.w3.org/TR/css-color-5/
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from tinycss2.color5 import parse_color

CUSTOM = "--"
"""Prefix of the names of variables."""

Colour = tuple[float, float, float, float]
"""Red, green and blue, 0 to 255, and opacity, 0 to 1."""

_DEEPEST = 20
_UNITS = {"px": 1.0, "pt": 4 / 3, "pc": 16.0, "in": 96.0, "cm": 96 / 2.54, "mm": 96 / 25.4, "q": 96 / 101.6}
_UNITS |= dict.fromkeys(("vw", "svw", "lvw", "dvw", "vi"), 12.8) | dict.fromkeys(("vh", "svh", "lvh", "dvh", "vb"), 7.2)
_UNITS |= {"vmin": 7.2, "vmax": 12.8}
_OF_LETTERS = {"em": 1.0, "ex": 0.5, "ch": 0.5, "cap": 0.7, "ic": 1.0, "lh": 1.2}
_OF_ROOT = {"rem": 16.0, "rex": 8.0, "rch": 8.0, "rcap": 11.2, "ric": 16.0, "rlh": 19.2}
_WIDE = frozenset(("inherit", "initial", "unset", "revert", "revert-layer"))
_SIZES = {"xx-small": 9, "x-small": 10, "small": 13, "medium": 16, "large": 18, "x-large": 24, "xx-large": 32, "xxx-large": 48}
_BOXES = frozenset("content-box padding-box border-box margin-box fill-box stroke-box view-box".split())

_KEYWORDS = {
    "display": (
        "none contents block inline inline-block flow flow-root flex inline-flex grid inline-grid table inline-table ruby "
        "table-row-group table-header-group table-footer-group table-row table-cell table-column-group table-column "
        "table-caption ruby-base ruby-text ruby-base-container ruby-text-container list-item run-in math "
        "-webkit-box -webkit-inline-box -webkit-flex -webkit-inline-flex"
    ),
    "visibility": "visible hidden collapse",
    "content-visibility": "visible auto hidden",
    "float": "none left right inline-start inline-end",
    "text-decoration-line": "none underline overline line-through blink",
    "position": "static relative absolute fixed sticky -webkit-sticky",
    "overflow-x": "visible hidden clip scroll auto overlay",
    "overflow-y": "visible hidden clip scroll auto overlay",
    "backface-visibility": "visible hidden",
    "background-clip": "border-box padding-box content-box text border-area",
    "mix-blend-mode": (
        "normal multiply screen overlay darken lighten color-dodge color-burn hard-light soft-light difference exclusion hue "
        "saturation color luminosity plus-darker plus-lighter"
    ),
    "-webkit-text-security": "none disc circle square",
    "animation-fill-mode": "none forwards backwards both",
}
_VALUES = {name: frozenset(allowed.split()) for name, allowed in _KEYWORDS.items()}
_LENGTHS = {
    "font-size": frozenset((*_SIZES, "larger", "smaller", "math")),
    "text-indent": frozenset(("hanging", "each-line")),
    "line-height": frozenset(("normal",)),
    **dict.fromkeys(("left", "top", "right", "bottom"), frozenset(("auto",))),
    **dict.fromkeys(("margin-left", "margin-top", "margin-right", "margin-bottom"), frozenset(("auto",))),
    **dict.fromkeys(("padding-left", "padding-top", "padding-right", "padding-bottom"), frozenset[str]()),
    **dict.fromkeys(
        ("width", "height", "min-width", "min-height", "max-width", "max-height"),
        frozenset("auto none min-content max-content fit-content stretch -webkit-fill-available".split()),
    ),
}
_POSITIVE = frozenset(("font-size", "line-height", "padding-left", "padding-top", "padding-right", "padding-bottom"))
_FUNCTIONS = {
    "transform": frozenset(
        "matrix matrix3d translate translatex translatey translatez translate3d scale scalex scaley scalez scale3d rotate "
        "rotatex rotatey rotatez rotate3d skew skewx skewy perspective".split()
    ),
    "filter": frozenset("blur brightness contrast drop-shadow grayscale hue-rotate invert opacity saturate sepia url".split()),
    "clip-path": frozenset("inset circle ellipse polygon path rect xywh shape url".split()),
    "clip": frozenset(("rect",)),
    "mask-image": frozenset(
        "url linear-gradient radial-gradient conic-gradient repeating-linear-gradient repeating-radial-gradient "
        "repeating-conic-gradient image image-set -webkit-gradient -webkit-linear-gradient".split()
    ),
}
_FUNCTIONS["background-image"] = _FUNCTIONS["mask-image"]
_NUMBERS = frozenset(("opacity", "zoom"))
_COLOURS = frozenset(("color", "background-color", "-webkit-text-fill-color", "fill"))
_OTHERS = frozenset(("scale", "translate", "rotate", "z-index", "animation-name", "text-shadow", "all"))
VALID = frozenset((*_VALUES, *_LENGTHS, *_FUNCTIONS, *_NUMBERS, *_COLOURS, *_OTHERS))
"""The properties whose values are known here."""

_ALIASES = {
    "-webkit-transform": "transform",
    "-webkit-filter": "filter",
    "-webkit-clip-path": "clip-path",
    "-webkit-mask-image": "mask-image",
    "-webkit-background-clip": "background-clip",
    "-webkit-animation-name": "animation-name",
    "-webkit-opacity": "opacity",
    "-webkit-backface-visibility": "backface-visibility",
    "inline-size": "width",
    "block-size": "height",
    "min-inline-size": "min-width",
    "min-block-size": "min-height",
    "max-inline-size": "max-width",
    "max-block-size": "max-height",
    "inset-inline-start": "left",
    "inset-inline-end": "right",
    "inset-block-start": "top",
    "inset-block-end": "bottom",
    "margin-inline-start": "margin-left",
    "margin-inline-end": "margin-right",
    "margin-block-start": "margin-top",
    "margin-block-end": "margin-bottom",
    "overflow-inline": "overflow-x",
    "overflow-block": "overflow-y",
}
_SIDES = ("top", "right", "bottom", "left")
_FOUR = {
    "margin": tuple(f"margin-{side}" for side in _SIDES),
    "padding": tuple(f"padding-{side}" for side in _SIDES),
    "inset": _SIDES,
}
_TWO = {
    "margin-inline": ("margin-left", "margin-right"),
    "margin-block": ("margin-top", "margin-bottom"),
    "inset-inline": ("left", "right"),
    "inset-block": ("top", "bottom"),
    "overflow": ("overflow-x", "overflow-y"),
}
_MIXED = {
    "background": ("background-color", "background-image", "background-clip"),
    "mask": ("mask-image",),
    "-webkit-mask": ("mask-image",),
    "font": ("font-size",),
    "text-decoration": ("text-decoration-line",),
    "animation": ("animation-name", "animation-fill-mode"),
    "-webkit-animation": ("animation-name", "animation-fill-mode"),
}
_OTHER_PROPERTIES = frozenset(
    "gap grid grid-area grid-template grid-template-areas grid-template-columns grid-template-rows flex flex-wrap "
    "flex-direction order float clear align-items align-content align-self justify-content justify-items justify-self "
    "columns column-count column-width object-fit object-position aspect-ratio border border-radius box-shadow outline "
    "text-align text-transform text-overflow white-space word-break overflow-wrap hyphens cursor "
    "pointer-events user-select transition list-style vertical-align box-sizing font-family font-weight font-style "
    "font-variation-settings letter-spacing line-clamp -webkit-line-clamp backdrop-filter -webkit-backdrop-filter contain "
    "container-type scroll-behavior scroll-snap-type will-change writing-mode direction resize appearance "
    "-webkit-appearance accent-color color-scheme touch-action overscroll-behavior text-wrap -webkit-text-stroke "
    "-webkit-overflow-scrolling shape-outside isolation perspective transform-style".split()
)
"""Known properties that hide nothing."""


def longhands(name: str, value: Sequence[Any], pending: bool = False) -> dict[str, tuple[Any, ...]]:
    """Return a declaration as one of each property that it sets; empty if it is invalid, so that it does not apply.

    Args:
        name: of the property, in lower case.
        value: its component values.
        pending: whether its variables are not replaced yet, so that its value is not checked.
    """
    name = _ALIASES.get(name, name)
    several = _FOUR.get(name) or _TWO.get(name) or _MIXED.get(name)
    value = tuple(value)
    if several is None:
        return {name: value} if name in VALID and (pending or is_valid(name, value)) else {}
    if pending or keyword(value) in _WIDE:
        return dict.fromkeys(several, value)
    parts = list(words(value))
    if name in _MIXED:
        return _mixed(name, parts)
    most = 4 if name in _FOUR else 2
    if not 0 < len(parts) <= most:
        return {}
    spread = (parts + parts[-1:] if len(parts) == 3 and most == 4 else parts * most)[:most]
    if len(parts) == 3:
        spread = [parts[0], parts[1], parts[2], parts[1]]
    declarations = {longhand: (part,) for longhand, part in zip(several, spread, strict=True)}
    return declarations if all(is_valid(longhand, part) for longhand, part in declarations.items()) else {}


def _mixed(name: str, parts: list[Any]) -> dict[str, tuple[Any, ...]]:  # noqa: PLR0911
    if not parts:
        return {}
    if name == "font":
        sizes = [part for part in parts[:6] if part.type in ("dimension", "percentage", "function") or part.type == "number"]
        size = next((part for part in sizes if is_valid("font-size", (part,)) and not _is_weight(part)), None)
        size = size or next(
            (part for part in parts if keyword((part,)) in _SIZES or keyword((part,)) in ("larger", "smaller")), None
        )
        known = keyword(parts[:1]) in ("caption", "icon", "menu", "message-box", "small-caption", "status-bar")
        return {"font-size": (size,)} if size is not None else {"font-size": ()} if known else {}
    if name.endswith("animation"):
        fill = next((part for part in parts if keyword((part,)) in ("forwards", "both")), None)
        names = tuple(part for part in parts if part.type in ("ident", "string"))
        return {"animation-name": names, "animation-fill-mode": (fill,) if fill is not None else ()}
    if name == "text-decoration":
        return {"text-decoration-line": tuple(part for part in parts if keyword((part,)) in _VALUES["text-decoration-line"])}
    images = tuple(part for part in parts if part.type == "url" or getattr(part, "lower_name", "") in _FUNCTIONS["mask-image"])
    if name.endswith("mask"):
        return {"mask-image": images}
    colours = [part for part in parts if colour_of((part,)) is not None or keyword((part,)) == "currentcolor"]
    clipped = tuple(part for part in parts if keyword((part,)) == "text")
    known = bool(images or colours) or all(part.type != "ident" or keyword((part,)) in _IN_BACKGROUND for part in parts)
    if not known or len(colours) > 1:
        return {}
    return {"background-color": tuple(colours), "background-image": images, "background-clip": clipped}


_IN_BACKGROUND = frozenset(
    "none repeat repeat-x repeat-y no-repeat space round scroll fixed local left right top bottom center cover contain auto "
    "text border-box padding-box content-box".split()
)


def _is_weight(token: Any) -> bool:
    return bool(token.type == "number" and token.value != 0)


def is_valid(name: str, value: Sequence[Any]) -> bool:  # noqa: PLR0911
    """Return whether a browser accepts a value of a property; a rejected value leaves the previous one in place."""
    name = _ALIASES.get(name, name)
    parts = list(words(value))
    if not parts:
        return False
    word = keyword(value)
    if word in _WIDE:
        return True
    if name in _FOUR or name in _TWO or name in _MIXED:
        return bool(longhands(name, value))
    if name in _VALUES:
        return all(keyword((part,)) in _VALUES[name] for part in parts if part != ",") and len(parts) <= 3
    if name in _LENGTHS:
        return _is_length(name, parts)
    if name in _NUMBERS:
        return len(parts) == 1 and (word in ("normal", "reset") if word else share(parts) is not None)
    if name in _COLOURS:
        return len(parts) == 1 and (word == "currentcolor" or _is_colour(parts[0]) or (name, word) == ("fill", "none"))
    if name in _FUNCTIONS:
        return all(
            part == "," or part.type == "url" or keyword((part,)) in {"none", "auto", *_BOXES}
            or getattr(part, "lower_name", "") in _FUNCTIONS[name]
            for part in parts
        )  # fmt: skip
    if name == "scale":
        return word == "none" or all(share([part]) is not None for part in parts)
    if name == "translate":
        return word == "none" or all(length([part], 16, 1000) is not None for part in parts)
    return name in _OTHERS or name in _OTHER_PROPERTIES


def _is_length(name: str, parts: list[Any]) -> bool:
    sizes = [token for token in parts if keyword((token,)) not in _LENGTHS[name]]
    if len(parts) > (3 if name == "text-indent" else 1):
        return False
    if name == "line-height" and len(sizes) == 1 and sizes[0].type == "number":
        return float(sizes[0].value) >= 0
    lengths = [length([token], 16, 1000) if token.type != "number" or token.value == 0 else None for token in sizes]
    return all(size is not None and (size >= 0 or name not in _POSITIVE) for size in lengths)


def words(value: Sequence[Any]) -> Iterator[Any]:
    """Yield component values without the white space between them."""
    return (part for part in value if part.type not in ("whitespace", "comment"))


def keyword(value: Sequence[Any]) -> str:
    """Return the only word of a value, in lower case; empty if it is anything else."""
    parts = list(words(value))
    return str(parts[0].lower_value) if len(parts) == 1 and parts[0].type == "ident" else ""


def functions(value: Sequence[Any]) -> Iterator[tuple[str, list[list[Any]]]]:
    """Yield the functions of a value by name, with their arguments split at commas, each without white space."""
    for part in words(value):
        if part.type == "function":
            yield part.lower_name, split(part.arguments)


def split(value: Sequence[Any]) -> list[list[Any]]:
    """Return the parts of a value between commas, each without white space."""
    parts: list[list[Any]] = [[]]
    for part in words(value):
        if part == ",":
            parts.append([])
        else:
            parts[-1].append(part)
    return parts


def share(value: Sequence[Any]) -> float | None:
    """Return a number, or a percentage as a share of 1; None if it is neither."""
    (token,) = value
    if token.type == "number":
        return float(token.value)
    if token.type == "percentage":
        return float(token.value) / 100
    return length([token], 1, 1) if token.type == "function" else None


def length(value: Sequence[Any], letter: float, whole: float, depth: int = 0) -> float | None:  # noqa: PLR0911
    """Return a length in pixels; None if it is not a length.

    Args:
        value: one component value.
        letter: pixels of a letter, for ``em``.
        whole: 100%, in pixels.
        depth: number of functions around it.
    """
    if len(value) != 1 or depth > _DEEPEST:
        return None
    (token,) = value
    if token.type == "number":
        return _finite(token.value)
    if token.type == "percentage":
        return _finite(token.value * whole / 100)
    if token.type == "dimension":
        unit = token.lower_unit
        known = _UNITS.get(unit) or _OF_ROOT.get(unit) or (_OF_LETTERS[unit] * letter if unit in _OF_LETTERS else None)
        return None if known is None else _finite(token.value * known)
    if token.type == "() block":
        return _sum(list(words(token.content)), letter, whole, depth + 1)
    if token.type != "function":
        return None
    if token.lower_name in ("calc", "-webkit-calc"):
        return _sum(list(words(token.arguments)), letter, whole, depth + 1)
    if token.lower_name not in ("min", "max", "clamp"):
        return None
    values = [_sum(part, letter, whole, depth + 1) for part in split(token.arguments)]
    known_values = [known_value for known_value in values if known_value is not None]
    if len(known_values) != len(values) or not values:
        return None
    if token.lower_name == "clamp":
        return max(known_values[0], min(known_values[1], known_values[2])) if len(known_values) == 3 else None
    return (min if token.lower_name == "min" else max)(known_values)


def _finite(value: float) -> float:
    return max(-1e9, min(1e9, float(value)))


def _sum(tokens: list[Any], letter: float, whole: float, depth: int) -> float | None:
    """Return the value of a sum of products."""
    total, sign, at = 0.0, 1.0, 0
    while at < len(tokens):
        product = length(tokens[at : at + 1], letter, whole, depth)
        at += 1
        while product is not None and at + 1 < len(tokens) and tokens[at] in ("*", "/"):
            factor = length(tokens[at + 1 : at + 2], letter, whole, depth)
            if factor is None or (tokens[at] == "/" and factor == 0):
                return None
            product = product * factor if tokens[at] == "*" else product / factor
            at += 2
        if product is None:
            return None
        total += sign * _finite(product)
        if at < len(tokens):
            if tokens[at] not in ("+", "-") or at + 1 == len(tokens):
                return None
            sign = 1.0 if tokens[at] == "+" else -1.0
            at += 1
    return total if tokens else None


def font_size(value: Sequence[Any], size: float) -> float:
    """Return the size of letters in pixels, by a value of ``font-size`` and the size of the letters around it."""
    word = keyword(value)
    if word in ("larger", "smaller"):
        return size * 1.2 if word == "larger" else size / 1.2
    if word in _SIZES:
        return float(_SIZES[word])
    if not value:
        return 16.0
    pixels = length(list(words(value)), size, size)
    return size if pixels is None else pixels


_SYSTEM = {
    **dict.fromkeys(("canvas", "field", "window", "-webkit-canvas"), "white"),
    **dict.fromkeys(("canvastext", "fieldtext", "buttontext", "windowtext", "-webkit-text", "infotext", "menutext"), "black"),
    "buttonface": "#efefef", "graytext": "#808080", "linktext": "#0000ee", "highlight": "#b5d5ff", "highlighttext": "black",
    "mark": "yellow", "marktext": "black", "visitedtext": "#551a8b", "activetext": "red",
}  # fmt: skip


def _is_colour(token: Any) -> bool:
    known = ("color-mix", "rgb", "rgba", "hsl", "hsla", "lab", "lch", "oklab", "oklch", "color", "hwb", "light-dark")
    return colour_of((token,)) is not None or getattr(token, "lower_name", "") in known


def colour_of(value: Sequence[Any] | str) -> Colour | None:
    """Return a colour; None if it cannot be computed."""
    if isinstance(value, str):
        token: Any = value
    else:
        parts = list(words(value))
        if len(parts) != 1:
            return None
        token = parts[0]
    word = value.strip().lower() if isinstance(value, str) else keyword(parts)
    if word in _SYSTEM:
        token = _SYSTEM[word]
    try:
        parsed = parse_color(token)
        if parsed is None or isinstance(parsed, str):
            return _mixture(token) if getattr(token, "lower_name", "") == "color-mix" else None
        if parsed.space in ("lab", "lch"):  # relative to another white, a difference of a few parts in 255
            red, green, blue = _from_xyz([x * y for x, y in zip(parsed.to("xyz-d50").coordinates, _OTHER_WHITE, strict=True)])
        elif parsed.space in ("oklab", "oklch", "xyz-d65", "xyz"):
            red, green, blue = _from_xyz(parsed.to("xyz-d65").coordinates)
        else:
            red, green, blue = parsed.to("srgb").coordinates
    except (ValueError, TypeError, IndexError, AttributeError, NotImplementedError, OverflowError, ZeroDivisionError):
        return None
    parts_of = [max(0.0, min(255.0, 255 * (component or 0.0))) for component in (red, green, blue)]
    alpha = max(0.0, min(1.0, float(parsed.alpha)))
    return (*parts_of, alpha) if all(map(math.isfinite, parts_of)) else None  # type: ignore[return-value]


_OTHER_WHITE = (0.9856, 1.0, 1.3196)


def _from_xyz(xyz: Sequence[float]) -> tuple[float, ...]:
    x, y, z = xyz
    linear = (
        3.2409699 * x - 1.5373832 * y - 0.4986108 * z,
        -0.9692436 * x + 1.8759675 * y + 0.0415551 * z,
        0.0556301 * x - 0.2039770 * y + 1.0569715 * z,
    )
    return tuple(12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055 for c in linear)


def _mixture(token: Any) -> Colour | None:
    """Return ``color-mix()`` of two colours, mixed in sRGB, which is accurate enough to tell whether text can be seen."""
    colours, shares = [], []
    for part in split(token.arguments)[1:]:
        parsed = [colour_of((value,)) for value in part if value.type != "percentage"]
        if len(parsed) != 1 or parsed[0] is None:
            return None
        colours.append(parsed[0])
        shares.append(next((max(0.0, value.value) / 100 for value in part if value.type == "percentage"), None))
    if len(colours) != 2:
        return None
    first, second = shares
    if first is None:
        first = 0.5 if second is None else 1 - second
    second = 1 - first if second is None else second
    total = first + second
    if total <= 0:
        return None
    one_colour, other_colour = colours
    red, green, blue, alpha = (
        (mine * first + yours * second) / total for mine, yours in zip(one_colour, other_colour, strict=True)
    )
    return red, green, blue, alpha
