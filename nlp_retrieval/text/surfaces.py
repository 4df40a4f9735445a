"""Surfaces: titles as a text would write them, and their mentions in texts and queries.

A surface is a title without the qualifier in parentheses at its end ("Heat (1995 film)" is "Heat"), as words without case,
accents and possessive endings; in scripts without spaces a character counts as a word. It begins with a lower-case letter only
if the title does ("iPod"). Of those that begin at a word the longest counts, and mentions do not overlap. A word of a longer
name ("Abraham Lincoln", "Lincoln-like") does not mention a one-word title: links are fewer, and retrieval is as good.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.text.mentions import FUNCTION_WORDS
from nlp_retrieval.text.words import HANGUL, UNSPACED, marks, unaccented

IntegerT = TypeVar("IntegerT", bound=np.integer)

MOST_WORDS = 32
"""Most words of a surface; longer titles have none. Matching reads at most this many words from any word, so it is linear."""

_WORD = re.compile(r"([^\W_]+)(?:['\u2019][sS](?![^\W_]))?")
_UNSPACED = re.compile(f"[{UNSPACED}{HANGUL}]")
_WITHIN_KOREAN = re.compile(f"[{HANGUL}]{{2}}")


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Slow patterns of a mark, of words with marks between and after letters, and of such words in scripts without spaces."""
    letter = rf"(?![{UNSPACED}{HANGUL}])[^\W_]"
    character = rf"(?=[^\W_])[{UNSPACED}{HANGUL}][{marks()}]*"
    marked = _WORD.pattern.replace(r"[^\W_]+", rf"[^\W_]+(?:[{marks()}]+[^\W_]*)*", 1)
    mixed = _WORD.pattern.replace(r"[^\W_]+", rf"{character}|(?:{letter})+(?:[{marks()}]+(?:{letter})*)*", 1)
    return re.compile(f"[{marks()}]"), re.compile(marked), re.compile(mixed)


def is_unspaced(word: str) -> bool:
    """Return whether a word, in its compared form, is a character of a script without spaces between words.

    Examples:
        >>> is_unspaced("日"), is_unspaced("day")
        (True, False)
    """
    return _UNSPACED.match(word) is not None


def _pattern(text: str) -> re.Pattern[str]:
    if text.isascii():
        return _WORD
    mark, marked, mixed = _patterns()
    if _UNSPACED.search(text):
        return mixed
    return marked if mark.search(text) else _WORD


@lru_cache(maxsize=2**16)
def _unaccented(word: str) -> str:
    return unaccented(word).casefold()


def compared(word: str) -> str:
    """Return a word of a text in its compared form."""
    return word.lower() if word.isascii() else _unaccented(word)


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text in their compared form.

    Examples:
        >>> words_of("The Café's twenty-one chairs")
        ('the', 'cafe', 'twenty', 'one', 'chairs')
    """
    return tuple(map(compared, written_words(text)))


def written_words(text: str) -> list[str]:
    """Return the words of a text as it writes them, without possessive endings."""
    return _pattern(text).findall(text)


def spans_of(text: str) -> list[tuple[int, int]]:
    """Return where the words of a text begin and end; a possessive ending does not belong to its word.

    Examples:
        >>> spans_of("Ada's mill")
        [(0, 3), (6, 10)]
    """
    return [match.span(1) for match in _pattern(text).finditer(text)]


def is_mention(text: str, spans: Sequence[tuple[int, int]], first: int, last: int) -> bool:
    """Return whether the words of a title, found in a text, mention it; a single one is to be no part of a longer name."""
    start, end = spans[first]
    if start and _WITHIN_KOREAN.match(text, start - 1):
        return False
    for neighbour in (first - 1, first + 1) if last - first == 1 else ():
        if 0 <= neighbour < len(spans):
            between = text[spans[neighbour][1] : start] if neighbour < first else text[end : spans[neighbour][0]]
            word = text[slice(*spans[neighbour])]
            is_name = (word[0].isupper() or word[0].isdecimal()) and compared(word) not in FUNCTION_WORDS
            if between == "-" or (between == " " and is_name):
                return False
    return True


@dataclass(frozen=True, slots=True)
class Surface:
    """A title as a text would write it."""

    words: tuple[str, ...]
    lower: bool = False


def surface_of(title: str, min_characters: int = 4) -> Surface | None:
    """Return the surface of a title; None if it would be mentioned by chance, or has no words or more than 32."""
    written = _pattern(title).findall(_without_qualifier(title))
    if not 1 <= len(written) <= MOST_WORDS:
        return None
    words = tuple(map(compared, written))
    if len(words) == 1:
        if len(words[0]) < min_characters and not (len(words[0]) >= 2 and written[0].isupper()):
            return None
        if words[0].isdecimal() or words[0] in FUNCTION_WORDS:
            return None
    return Surface(words, written[0][0].islower())


def _without_qualifier(title: str) -> str:
    whole = title.rstrip()
    depth = 0
    for position in range(len(whole) - 1, -1, -1):
        depth += (whole[position] in ")\uff09") - (whole[position] in "(\uff08")
        if depth <= 0:
            return whole[:position].rstrip() or whole if whole[position] in "(\uff08" else whole
    return whole


def surfaces_of(item: SearchableItem, aliases: str = "aliases", min_characters: int = 4) -> list[Surface]:
    """Return the surfaces of an item's title and aliases."""
    others = item.metadata.get(aliases)
    titles = [item.title, *(others if isinstance(others, list) else [others])]
    surfaces = (surface_of(title, min_characters) for title in titles if isinstance(title, str))
    return list(dict.fromkeys(surface for surface in surfaces if surface is not None))


class SurfaceMatcher:
    """Finds all mentions of many surfaces in texts, in time linear in the texts."""

    def __init__(self, surfaces: Iterable[tuple[int, Surface]]) -> None:
        self._words: dict[str, int] = {}
        # Two tries in one: surfaces that begin with a capital or a digit grow from state 0, those in lower case from 1.
        self._steps: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        numbers, rows = array("q"), array("q")
        for row, surface in surfaces:
            for state in (0, 1) if surface.lower else (0,):
                for word in surface.words:
                    key = state << 32 | self._words.setdefault(word, len(self._words))
                    state = self._steps.setdefault(key, len(self._steps) + 2)  # noqa: PLW2901
                numbers.append(self._ends.setdefault(state, len(self._ends)))
                rows.append(row)
        _, self.offsets, self.rows = grouped(np.array(numbers, np.int64), np.array(rows, np.int64))

    def mentions(self, text: str) -> list[tuple[int, int, int]]:
        """Return the mentions in a text, in order: number of the surface, and where it begins and ends."""
        spans = spans_of(text)
        return [
            (surface, spans[first][0], spans[last - 1][1])
            for surface, first, last in self._walk([text[start:end] for start, end in spans])
            if is_mention(text, spans, first, last)
        ]

    def _walk(self, words: list[str]) -> Iterator[tuple[int, int, int]]:
        known, step, ends = self._words.get, self._steps.get, self._ends.get
        numbers = [known(compared(word)) for word in words]
        numbers.append(None)
        free = 0
        for first, number in enumerate(numbers):
            if number is None or first < free:
                continue
            state = step(words[first][0].islower() << 32 | number)
            last, best = first, None
            while state is not None:
                last += 1
                surface = ends(state)
                if surface is not None:
                    best, free = surface, last
                following = numbers[last]
                state = None if following is None else step(state << 32 | following)
            if best is not None:
                yield best, first, free


def first_mention(text: str, surfaces: Iterable[Surface], others: Iterable[Surface] = ()) -> tuple[int, int] | None:
    """Return where a text first mentions one of some surfaces, or None."""
    matcher = SurfaceMatcher([*((0, surface) for surface in surfaces), *((1, surface) for surface in others)])
    for surface, start, end in matcher.mentions(text):
        if matcher.rows[matcher.offsets[surface] : matcher.offsets[surface + 1]].tolist() == [0]:
            return start, end
    return None


def grouped(keys: NDArray[IntegerT], rows: Rows) -> tuple[NDArray[IntegerT], Rows, Rows]:
    """Sort pairs of a key and a row, and drop repeated pairs."""
    order = np.lexsort((rows, keys))
    keys, rows = keys[order], rows[order]
    new_key = np.ones(len(keys), bool)
    new_key[1:] = keys[1:] != keys[:-1]
    new = new_key.copy()
    new[1:] |= rows[1:] != rows[:-1]
    starts = np.flatnonzero(new_key[new])
    return keys[new_key], np.append(starts, np.count_nonzero(new)), rows[new]
