"""Unicode: lone surrogates, which are refused on input, and normal forms in time linear in a text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from itertools import groupby
from pathlib import PurePath
from typing import Literal

_HALF = re.compile("[\ud800-\udfff]")


def find_lone_surrogate(value: object) -> str | None:
    r"""Return the first lone surrogate in a text, or in the texts of nested values, in escaped form; or None.

    Examples:
        >>> find_lone_surrogate(["fine", "broken " + chr(0xD800)])
        '\\ud800'
    """
    if isinstance(value, str | PurePath):
        text = str(value)
        match = None if text.isascii() else _HALF.search(text)
        return None if match is None else f"\\u{ord(match[0]):04x}"
    inner = [*value, *value.values()] if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return next((surrogate for part in inner if (surrogate := find_lone_surrogate(part)) is not None), None)


def refuse_lone_surrogates(value: object, what: str, error: type[Exception]) -> None:
    """Raise an error about ``what`` if a text, or one of the texts in nested values, holds a lone surrogate.

    Examples:
        >>> refuse_lone_surrogates({"text": "fine"}, "the item", ValueError)
    """
    if (surrogate := find_lone_surrogate(value)) is not None:
        raise error(
            f"{what} holds half of a surrogate pair ({surrogate}), which is not text; decode its source with errors='replace'"
        )


# Python sorts the marks after a letter by insertion, so a letter with 60,000 marks takes seconds, during which no other thread
# runs. Here, long runs of marks are sorted first; the result is the same (UAX 15, section 1.3, canonical ordering).

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

_LONG_RUN = re.compile(r"(?:[^\w\s\x00-\x7f]|[\uff9e\uff9f]){31,}")
r"""Marks are neither letters (``\w``, but for the half-width marks of kana) nor white space. No language has 30 on a letter
(UAX 15, stream-safe text format)."""


def normalize(form: Form, text: str) -> str:
    """Return a text in a normal form, as :func:`unicodedata.normalize` does, in time linear in its length.

    Examples:
        >>> normalize("NFC", "Cafe" + chr(0x301)) == "Caf" + chr(0xE9)
        True
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
