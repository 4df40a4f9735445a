"""Finding a quotation in a text: the result is the text's own wording, or nothing.

Only white space, the shape of brackets, quotation marks and dashes, and invisible characters may differ: a fence changes these,
and people and models vary them.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from nlp_retrieval.core.unicode import normalize
from nlp_retrieval.text.printing import is_unseen
from nlp_retrieval.text.sentences import sentences_of

Span = tuple[int, int]

SHORTEST = 12
"""Shortest quotation, in characters, that is not a whole sentence; shorter ones say nothing."""

_QUOTES = '\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f\uff02\uff07"'
_MARKS = " '`"
_AROUND = _MARKS + "\u2026."
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_SHAPES = str.maketrans("\uff3b\uff3d\uff1c\uff1e" + _QUOTES + _DASHES, "[]<>" + "'" * len(_QUOTES) + "-" * len(_DASHES))


class FoldedText(NamedTuple):
    """A text, its form for comparing quotations, and the position of each character of that form in the text.

    Examples:
        >>> fold("It  said “yes”.").folded
        "It said 'yes'."
    """

    text: str
    folded: str
    places: list[int]


@lru_cache(maxsize=4)
def fold(text: str) -> FoldedText:
    """Return a text prepared for comparing quotations with it.

    Args:
        text: the whole text.

    Examples:
        >>> fold("The Café   is OPEN").folded
        'The Café is OPEN'
    """
    return FoldedText(text, *_folded(text))


def places_of(
    quote: str, source: FoldedText, begin: int = 0, end: int | None = None, shortest: int = SHORTEST
) -> Iterator[Span]:
    """Yield each place of a quotation in a text, where it begins and ends with whole words and numbers.

    Args:
        quote: as written by a person or model; quotation marks and dots around it need not be in the text.
        source: the text.
        begin: start of the search, in characters.
        end: end of the search; by default the end of the text.
        shortest: fewest characters of a quotation that is not a whole sentence.

    Examples:
        >>> list(places_of("the red fox", fold("The red fox saw the red fox."), shortest=5))
        [(16, 27)]
    """
    text, folded, places = source
    written = [_folded(form)[0] for form in (quote, normalize("NFC", quote))]
    first_place, last_place = bisect_left(places, begin), len(places) if end is None else bisect_left(places, end)
    for wanted in dict.fromkeys(form.strip(around) for around in (" ", _MARKS, _AROUND) for form in written):
        start = folded.find(wanted, first_place, last_place) if wanted else -1
        while start >= 0:
            first, last = places[start], places[start + len(wanted) - 1]
            whole = not _cuts(text, first) and not _cuts(text, last + 1)
            if whole and (len(wanted) >= shortest or _is_sentence((first, last + 1), text)):
                yield first, last + 1
            start = folded.find(wanted, start + 1, last_place)


def located(quote: str, text: str, begin: int = 0, end: int | None = None, shortest: int = SHORTEST) -> Span | None:
    """Return the span of a quotation in a text: the first place where it begins and ends with whole words and numbers.

    Args:
        quote: as written by a person or model; quotation marks and dots around it need not be in the text.
        text: the whole text.
        begin: start of the search, in characters.
        end: end of the search; by default the end of the text.
        shortest: fewest characters of a quotation that is not a whole sentence.

    Returns:
        A span of the text; None if the quotation is not in it word by word, or is too short.

    Examples:
        >>> text = "He said: the line has 40 stations today."
        >>> begin, end = located("the line has 40  stations", text)
        >>> text[begin:end]
        'the line has 40 stations'
    """
    return next(places_of(quote, fold(text), begin, end, shortest), None)


def _is_sentence(span: Span, text: str) -> bool:
    around = sentences_around(span, text)
    whole, part = (_folded(text[slice(*one)])[0].strip(_AROUND) for one in (around, span))
    return whole == part != ""


def sentences_around(span: Span, text: str) -> Span:
    """Return the span of the whole sentences in which another lies.

    Args:
        span: of the text.
        text: the whole text.

    Examples:
        >>> text = "One is here. Two is there. Three."
        >>> begin, end = sentences_around((13, 16), text)
        >>> text[begin:end]
        'Two is there.'
    """
    sentences = sentences_of(text)
    starts = [start for start, _ in sentences]
    first = sentences[max(0, bisect_right(starts, span[0]) - 1)]
    last = sentences[max(0, bisect_right(starts, span[1] - 1) - 1)]
    return min(first[0], span[0]), max(last[1], span[1])


def _folded(text: str) -> tuple[str, list[int]]:
    """A text without invisible characters, with single spaces, and the position of each of its characters."""
    chars: list[str] = []
    places: list[int] = []
    for position, char in enumerate(text.translate(_SHAPES)):
        if char.isspace() or unicodedata.category(char) == "Cc":
            if chars and chars[-1] != " ":
                chars.append(" ")
                places.append(position)
        elif not is_unseen(char):
            chars.append(char)
            places.append(position)
    return "".join(chars), places


def _cuts(text: str, position: int) -> bool:
    """Return whether a place cuts a word or a number; "2.4" is one number, and scripts without spaces have no such places."""
    if not 0 < position < len(text):
        return False
    before, after = text[position - 1], text[position]
    if before.isalnum() and after.isalnum():
        return not any(unicodedata.east_asian_width(char) in ("W", "F") for char in (before, after))
    if unicodedata.combining(after):
        return True
    return (
        after.isdigit() and before in ".,-\u2212" and (before in "-\u2212" or (position > 1 and text[position - 2].isdigit()))
    ) or (before.isdigit() and after in ".," and position + 1 < len(text) and text[position + 1].isdigit())
