"""Finding earlier passages of an index that mention the titles of joining items, without reading every passage.

The stored terms of a passage tell whether it can contain the words of a new title. Only such passages are read: first to check
whether the words are adjacent, and if so, to find every title that the passage mentions. A title whose words occur in too many
passages waits for the next ``compact``; otherwise each addition would reread a part of the collection.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows
from nlp_retrieval.retrievers.link_graph.links.joining import JoiningItems
from nlp_retrieval.text.surfaces import Surface, is_unspaced, plain_part

_STEP = 1024
MOST_READ, ONE_IN = 1000, 500
"""A title is searched for in at most MOST_READ passages, or in one of ONE_IN of the collection, whichever is more."""
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def mentions_before(
    joining: JoiningItems, surfaces: Sequence[tuple[int, Surface]], is_new: Mask
) -> tuple[Rows, NDArray[np.int64]]:
    """Return the mentions of new titles in earlier passages: rows of the passages and numbers of the titles, each pair once.

    Args:
        joining: the items that join, with the titles of all items.
        surfaces: those of the joining items.
        is_new: ``[titles]``, whether a joining item carries the title.
    """
    sources, mentioned = array("q"), array("q")
    titles = joining.titles
    if titles is not None:
        for rows, texts in _read(joining, list(dict.fromkeys(surface for _, surface in surfaces))):
            for row, found in zip(rows, titles.named_in(texts), strict=True):
                new = [number for number in found if is_new[number]]
                mentioned.extend(new)
                sources.extend([row] * len(new))
    return np.array(sources, np.int64), np.array(mentioned, np.int64)


def _read(joining: JoiningItems, surfaces: list[Surface]) -> Iterator[tuple[list[int], list[str]]]:
    """Rows and contents of the passages in which the words of any surface are adjacent."""
    phrases = [Phrase(surface) for surface in surfaces]
    held = joining.terms.holding([surface.words for surface in surfaces])
    most = max(MOST_READ, joining.first_row // ONE_IN)
    held = [rows if len(rows) <= most else rows[:0] for rows in held]
    owner = np.repeat(np.arange(len(held)), [len(rows) for rows in held])
    rows = np.concatenate([np.zeros(0, np.int64), *held])
    order = np.argsort(rows, kind="stable")
    distinct, begins = np.unique(rows[order], return_index=True)
    bounds = [*begins.tolist(), len(rows)]
    numbers = owner[order]
    for first in range(0, len(distinct), _STEP):
        part = distinct[first : first + _STEP]
        kept: tuple[list[int], list[str]] = ([], [])
        for number, (row, item) in enumerate(zip(part.tolist(), joining.everything.items(part), strict=True), first):
            if holds_one(item.content, phrases, numbers[bounds[number] : bounds[number + 1]].tolist()):
                kept[0].append(row)
                kept[1].append(item.content)
        yield kept


class Phrase:
    """The words of a surface, to be found adjacent in a text without accents and case.

    Args:
        surface: to find.
    """

    __slots__ = ("lower", "search")

    def __init__(self, surface: Surface) -> None:
        self.lower = surface.lower
        self.search = re.compile("".join(_joined(surface.words))).search


def _joined(words: Sequence[str]) -> Iterator[str]:
    """The pattern of each word with its separator, which may be empty beside a character of a script without spaces."""
    for place, word in enumerate(words):
        if place:
            yield r"(?:[\W_]s)?[\W_]" + ("*" if is_unspaced(word) or is_unspaced(words[place - 1]) else "+")
        yield re.escape(word)


def holds_one(text: str, phrases: Sequence[Phrase], numbers: Iterable[int]) -> bool:
    """Return whether a text may mention any of some phrases; only False is certain.

    Args:
        text: the content of a passage.
        phrases: those of all surfaces.
        numbers: of the phrases to look for.
    """
    plain = text if text.isascii() else _NOT_ASCII.sub(_plain, text)
    folded = plain.casefold()
    aligned = len(folded) == len(plain)
    for number in numbers:
        phrase = phrases[number]
        match = phrase.search(folded)
        while match is not None:
            if phrase.lower or not aligned or not plain[match.start()].islower():
                return True
            match = phrase.search(folded, match.start() + 1)
    return False


def _plain(match: re.Match[str]) -> str:
    return plain_part(match.group())
