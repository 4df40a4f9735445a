"""What a terminal or a page may show of a text: no character that either would obey.

An escape sequence in a title could recolour or rewrite what a terminal shows, or set its title or its clipboard.
"""

from __future__ import annotations

import unicodedata

_OBEYED = ("Cc", "Cs", "Zl", "Zp")


def printable(text: str) -> str:
    """Replace control characters (tabs among them), line ends of all kinds, and halves of surrogate pairs."""
    if text.isascii() and text.isprintable():
        return text
    return "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(char) in _OBEYED else char for char in text)
