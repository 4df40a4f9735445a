"""What characters are to words: marks on letters, and scripts that put no space between words."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from nlp_retrieval.core.unicode_forms import normalize

__all__ = ["ACCENTS", "HAN", "HANGUL", "POINTS", "UNSPACED", "marks", "unaccented"]

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, kana, Han, as ranges of a pattern."""

HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Chinese characters, as ranges of a pattern."""

HANGUL = "\u1100-\u11ff\ua960-\ua97f\uac00-\ud7ff"
"""Korean, which puts spaces between phrases: a particle is written together with its word."""

ACCENTS = "\u0300-\u036f"
"""The marks that accents are, on Latin, Greek and Cyrillic letters."""

POINTS = "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0652\u0670"
"""Hebrew points, Arabic short vowels and the stroke that stretches a word: one text has them, another leaves them out."""

_ACCENT_OR_POINT = re.compile(f"[{ACCENTS}{POINTS}]")


@cache
def marks() -> str:
    r"""Return the characters that are written on or beside a letter (Unicode's Mn and Mc), as ranges of a pattern.

    ``\w`` matches none of them, so that a word of Hindi or Thai would fall into pieces; without Unicode's selectors of how
    a character is drawn.
    """
    numbers = [number for number in range(0x300, 0x10000) if unicodedata.category(chr(number)) in ("Mn", "Mc")]
    runs: list[list[int]] = []
    for number in numbers:
        if 0xFE00 <= number <= 0xFE0F:
            continue
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in runs)


def unaccented(text: str) -> str:
    """Return a text without accents and points, in compatibility form; marks that make another letter of one are kept."""
    return normalize("NFC", _ACCENT_OR_POINT.sub("", normalize("NFKD", text)))
