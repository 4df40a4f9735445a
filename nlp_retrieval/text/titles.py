"""Equality of titles; :mod:`nlp_retrieval.text.surfaces` decides when a text mentions one.

Titles of gold and corpus differ in case, white space, dashes, quotation marks, punctuation, encoding and HTML entities; these
differences are removed, and no others. Deleting the articles too, as the evaluation of HoVer does, would make 29 groups of 59
of 31,857 different Wikipedia titles equal, against 10 groups of 20 here.
"""

from __future__ import annotations

import re
import unicodedata
from html import unescape

from nlp_retrieval.core.unicode import normalize

# With the semicolon only: html.unescape alone would read "&copy" in "cut&copy" as a sign.
_ENTITY = re.compile(r"&(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,8}|[A-Za-z][A-Za-z0-9]{0,32});")
_MOST_ESCAPED = 9
_QUALIFIER = re.compile(r"[(\uff08]([^()\uff08\uff09]*)[)\uff09]\s*\Z")
# "Web 2.0" is not "Web 20", while "F.C." is "FC".
_FULL_STOP = re.compile(r"(?<!\d)\.|\.(?!\d)")

_MEANINGFUL = frozenset("#&%@")
"""Punctuation in Unicode that belongs to a name: C# is not C, R&B is not RB."""

_APOSTROPHES = frozenset("`\u00b4\u02b9\u02bb\u02bc\u02bd")
"""Letters and symbols in Unicode (acute accent, Hawaiian okina, ...) that are typed for an apostrophe."""

_SEPARATORS = frozenset("/\\:;\u2212")


class _Punctuation(dict[int, str]):
    """The replacement of each character, by code point, decided when it first occurs."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        if character in _MEANINGFUL or character == ".":
            kept = character
        elif character in _SEPARATORS or category in ("Pd", "Pc", "Ps", "Pe", "Cc") or character.isspace():
            # A space, not nothing: "9/11" is not "911", and an en dash may stand for a spaced hyphen.
            kept = " "
        elif category[0] == "P" or category == "Cf" or character in _APOSTROPHES:
            kept = ""
        else:
            kept = character
        self[code] = kept
        return kept


_PUNCTUATION = _Punctuation()


def normalize_title(title: str) -> str:
    """Return the form in which titles are compared; equal forms mean one title.

    Compatibility forms and accents are left alone: ``U²`` is not ``U2``, *Pelé* not *Pele*. A qualifier in parentheses at its
    end keeps them. Punctuation stays if there is nothing else: the band *!!!* is not the empty title.

    Args:
        title: as in the corpus or the gold.

    Returns:
        The normalised title; empty only if ``title`` holds nothing visible. Normalising it again changes nothing.

    Examples:
        >>> normalize_title("Blade Runner (film)")
        'blade runner (film)'
        >>> normalize_title("the_Blade Runner") == normalize_title("The Blade  Runner")
        True
    """
    text = _unescape(title)
    # Composed at the end, so that an accent is part of its letter wherever Unicode has the letter.
    text = text.lower() if text.isascii() else normalize("NFC", normalize("NFD", text).casefold())
    qualifier = _QUALIFIER.search(text)
    if qualifier:
        head, inner = _words(text[: qualifier.start()]), _words(qualifier.group(1))
        if head and inner:
            return f"{head} ({inner})"
    return _words(text)


def _unescape(title: str) -> str:
    """Resolve HTML entities, even if escaped several times (``&amp;amp;``, as in dumps of dumps)."""
    for _ in range(_MOST_ESCAPED):
        resolved = _ENTITY.sub(lambda entity: unescape(entity[0]), title)
        if resolved == title:
            break
        title = resolved
    return title


def _words(text: str) -> str:
    """Drop punctuation, unless there is nothing else."""
    bare = " ".join(_FULL_STOP.sub("", text.translate(_PUNCTUATION)).split())
    return normalize("NFC", bare) if bare else " ".join(text.split())
