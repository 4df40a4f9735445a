"""Normal forms of Unicode in time linear in a text.

Normalising sorts the marks after a letter by insertion, so a letter with 60,000 marks takes seconds, during which no other
thread runs. Here, long runs of marks are sorted first; the result is the same (UAX 15, section 1.3, canonical ordering).
"""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby
from typing import Literal

__all__ = ["normalize"]

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

_LONG_RUN = re.compile(r"(?:[^\w\s\x00-\x7f]|[\uff9e\uff9f]){31,}")
r"""Marks are neither letters (``\w``, but for the half-width marks of kana) nor white space. No language has 30 on a letter
(UAX 15, stream-safe text format)."""


def normalize(form: Form, text: str) -> str:
    """Return a text in a normal form, as :func:`unicodedata.normalize` does.

    Args:
        form: NFC, NFD, NFKC or NFKD.
        text: text of any length.
    """
    if not text.isascii() and _LONG_RUN.search(text):
        spread: Form = "NFKD" if "K" in form else "NFD"
        text = _LONG_RUN.sub(lambda run: _with_sorted_marks("".join(unicodedata.normalize(spread, c) for c in run[0])), text)
    return unicodedata.normalize(form, text)


def _with_sorted_marks(text: str) -> str:
    parts: list[str] = []
    for is_mark, group in groupby(text, key=lambda character: unicodedata.combining(character) > 0):
        run = list(group)
        parts += sorted(run, key=unicodedata.combining) if is_mark else run
    return "".join(parts)
