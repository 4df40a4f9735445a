"""Whether a style hides what it applies to, as far as the style itself tells.

Read are the declarations of one ``style`` attribute, or of one rule of a page's own style sheet. What another file or a
program of the page does to an element is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

__all__ = ["colour", "declarations", "hides"]

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|([^\n]))")
_LENGTH = re.compile(r"([+-]?(?:[0-9]{1,9}\.?[0-9]{0,9}|\.[0-9]{1,9}))(px|pt|em|rem|ex|ch|vw|vh|%|cm|mm|in|pc|)")
_PIXELS = {"px": 1.0, "": 1.0, "pt": 1.33, "pc": 16.0, "in": 96.0, "cm": 37.8, "mm": 3.78}
_PIXELS |= {"em": 16.0, "rem": 16.0, "ex": 8.0, "ch": 8.0, "vw": 10.0, "vh": 8.0, "%": 0.16}
"""About how many pixels a unit has; a percentage is taken of a letter of 16 pixels."""

_FAR = -500.0
_TINY = 3.0
_FAINT = 0.05
_FUNCTION = re.compile(r"([a-z0-9]{1,12})\(([^()]{0,100})\)")
_HEX = re.compile(r"#([0-9a-f]{8}|[0-9a-f]{6}|[0-9a-f]{3,4})(?![0-9a-f])")
_NAMED = {
    "white": (255, 255, 255),
    "black": (0, 0, 0),
    "snow": (255, 250, 250),
    "ivory": (255, 255, 240),
    "ghostwhite": (248, 248, 255),
    "whitesmoke": (245, 245, 245),
    "floralwhite": (255, 250, 240),
    "azure": (240, 255, 255),
    "mintcream": (245, 255, 250),
    "red": (255, 0, 0),
    "lime": (0, 255, 0),
    "green": (0, 128, 0),
    "blue": (0, 0, 255),
    "navy": (0, 0, 128),
    "yellow": (255, 255, 0),
    "gray": (128, 128, 128),
    "grey": (128, 128, 128),
    "silver": (192, 192, 192),
}
_CLEAR = {"0", "0.0", ".0", "0%"}

Colour = tuple[int, int, int]


@lru_cache(maxsize=512)
def declarations(style: str) -> Mapping[str, str]:
    """Return the declarations of a style by name, in lower case, without comments and escapes; the last of a name counts.

    Args:
        style: as it stands in a ``style`` attribute, or between the braces of a rule.
    """
    plain = _ESCAPE.sub(_unescaped, _COMMENT.sub("", style)).lower()
    found: dict[str, str] = {}
    for declaration in plain.split(";"):
        name, colon, value = declaration.partition(":")
        if colon:
            found[name.strip()] = value.replace("!important", "").replace("! important", "").strip()
    return found


def _unescaped(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return escape[2]
    code = int(escape[1], 16)
    return chr(code) if 0 < code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else "\ufffd"


def hides(style: Mapping[str, str]) -> bool:
    """Whether declarations make what they apply to invisible.

    They do by ``display: none``; ``visibility``, ``content-visibility`` or ``opacity``; letters below 3 pixels; an indent,
    margin, position or shift of 500 pixels or more out of the page; a clip of nothing; or a box of at most a pixel that
    cuts off what is in it.

    Args:
        style: what :func:`declarations` returns.
    """
    if not style:
        return False
    return (
        style.get("display") == "none"
        or style.get("visibility") in {"hidden", "collapse"}
        or style.get("content-visibility") == "hidden"
        or _is_faint(style.get("opacity", ""))
        or _is_tiny(style)
        or _is_far(style)
        or _is_clipped(style)
    )


def _is_faint(value: str) -> bool:
    length = _LENGTH.fullmatch(value)
    return length is not None and float(length[1]) / (100 if length[2] == "%" else 1) <= _FAINT


def _is_tiny(style: Mapping[str, str]) -> bool:
    sizes = [style.get("font-size", ""), *style.get("font", "").partition("/")[0].split()[:6]]
    return any(
        (size := _pixels(value)) is not None and 0 <= size < _TINY for value in sizes if not value.isdigit() or value == "0"
    )


def _is_far(style: Mapping[str, str]) -> bool:
    names = ["text-indent", "margin-left", "margin-top", "margin-right"]
    if style.get("position") in {"absolute", "fixed", "relative"}:
        names += ["left", "top", "right", "bottom"]
    if any((size := _pixels(style.get(name, ""))) is not None and size <= _FAR for name in names):
        return True
    for function, arguments in _FUNCTION.findall(style.get("transform", "")):
        sizes = [_pixels(argument.strip()) for argument in arguments.split(",")]
        if function.startswith("translate") and any(size is not None and size <= _FAR for size in sizes):
            return True
        if function.startswith("scale") and 0.0 in sizes:
            return True
    return False


def _is_clipped(style: Mapping[str, str]) -> bool:
    for function, arguments in _FUNCTION.findall(style.get("clip", "") + style.get("clip-path", "")):
        parts = arguments.replace(",", " ").split()
        sizes = [_pixels(part) for part in parts]
        if function == "rect" and sizes and all(size is not None and abs(size) <= 1 for size in sizes):
            return True
        if function == "inset" and parts and parts[0] in {"50%", "100%"}:
            return True
        if function == "circle" and sizes and sizes[0] == 0:
            return True
    if not {"hidden", "clip"} & set(style.get("overflow", "").split()):
        return False
    sizes = [_pixels(style.get(name, "")) for name in ("width", "height", "max-width", "max-height")]
    return any(size is not None and 0 <= size <= 1 for size in sizes)


def _pixels(value: str) -> float | None:
    length = _LENGTH.fullmatch(value)
    return None if length is None else float(length[1]) * _PIXELS[length[2]]


def colour(value: str) -> Colour | None:
    """Return a colour as red, green and blue of 0 to 255; (-1, -1, -1) for one that cannot be seen, None for an unknown one.

    Args:
        value: of ``color``, ``background`` or ``background-color``, in lower case; a name, ``#fff``, ``rgb()`` or ``rgba()``.
    """
    if value.strip() == "transparent":
        return _NO_COLOUR
    if found := _HEX.search(value):
        digits = found[1] if len(found[1]) > 4 else "".join(digit * 2 for digit in found[1])
        if digits[6:] == "00":
            return _NO_COLOUR
        return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)
    for function, arguments in _FUNCTION.findall(value):
        parts = arguments.replace(",", " ").replace("/", " ").split()
        if function in {"rgb", "rgba", "hsl", "hsla"} and len(parts) == 4 and parts[3] in _CLEAR:
            return _NO_COLOUR
        if function in {"rgb", "rgba"} and len(parts) >= 3 and all(part.isascii() and part.isdigit() for part in parts[:3]):
            red, green, blue = (min(int(part[:4]), 255) for part in parts[:3])
            return red, green, blue
    return next((_NAMED[word] for word in value.split()[:8] if word in _NAMED), None)


_NO_COLOUR = (-1, -1, -1)
