"""Abbreviations that a text defines: "nationally determined contribution (NDC)", or "NDC (nationally determined contribution)".

The letters of the short form occur in the long form in their order, and the first of them begins a word (Schwartz and Hearst,
PSB 2003). The time is linear in the text.
"""

from __future__ import annotations

import re

_BRACKETED = re.compile(r"\(([^()\n]{2,120})\)")
_SHORT = re.compile(r"(?=[^\W\d_])[\w&/.-]{2,12}")
_SHORT_BEFORE = re.compile(r"[\w&/.-]{2,12}\s?\Z")
_CLAUSE_END = re.compile(r"[.;:!?]\s|[()\n]")
_QUOTES = "\"'\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb "
_REACH = 120
"""Characters before a bracket that the long form may take."""


def abbreviations_of(text: str) -> list[tuple[str, str]]:
    """Return the abbreviations that a text defines, each as its short and its long form, in order; plurals in the singular."""
    pairs = []
    for bracket in _BRACKETED.finditer(text):
        before, inside = text[max(0, bracket.start() - _REACH) : bracket.start()], bracket[1].strip()
        defined = re.split("[,;]", inside.removeprefix("the "))[0].strip(_QUOTES)
        pair = _defined(defined, _CLAUSE_END.split(before)[-1].rstrip())
        if pair is None and (short := _SHORT_BEFORE.search(before)) is not None:
            pair = _defined(short[0].strip(), inside, whole=True)
        if pair is not None:
            pairs.append(pair)
    return pairs


def _defined(short: str, text: str, *, whole: bool = False) -> tuple[str, str] | None:
    """Return a short form and its long form at the end of a text; the whole of it, if that is demanded."""
    if not _SHORT.fullmatch(short) or sum(letter.isupper() for letter in short) < 2:
        return None
    short = short[:-1] if short[-1] == "s" and short[-2].isupper() else short
    letters = [letter.lower() for letter in short if letter.isalpha()]
    words = text.split()[-min(len(letters) + 5, 2 * len(letters)) :]
    rest = " ".join(words)
    place = len(rest)
    for number, letter in enumerate(reversed(letters), start=1):
        place = rest.lower().rfind(letter, 0, place)
        while place > 0 and number == len(letters) and rest[place - 1].isalnum():
            place = rest.lower().rfind(letter, 0, place)
        if place < 0:
            return None
    start = rest.rfind(" ", 0, place) + 1
    long = rest[start:].strip(_QUOTES)
    return None if " " not in long or short in long.split() or (whole and start) else (short, long)
