"""Text that is safe to show on a terminal or a page: no character that either would obey.

An escape sequence in a title could recolour or rewrite what a terminal shows, or set its title or its clipboard.
"""

from __future__ import annotations

import unicodedata

_OBEYED = ("Cc", "Cs", "Zl", "Zp")
_JOINERS = "\u200c\u200d"


def printable(text: str) -> str:
    """Replace control characters (tabs among them), line ends of all kinds, and halves of surrogate pairs."""
    if text.isascii() and text.isprintable():
        return text
    return "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(char) in _OBEYED else char for char in text)


def visible(text: str) -> str:
    """Replace control characters and the like by spaces, and name invisible characters: ``"[U+202E]"`` turns text around.

    Joiners between joined characters (Persian, emoji) stay.
    """
    if text.isascii() and text.isprintable():
        return text
    shown = []
    for place, char in enumerate(text):
        category = unicodedata.category(char)
        if category == "Cf" and not (char in _JOINERS and place and not text[place - 1].isascii()):
            shown.append(f"[U+{ord(char):04X}]")
        elif category == "Cs":
            shown.append("\N{REPLACEMENT CHARACTER}")
        elif category in _OBEYED:
            shown.append(" " if char.isspace() else "\N{REPLACEMENT CHARACTER}")
        else:
            shown.append(char)
    return "".join(shown)
