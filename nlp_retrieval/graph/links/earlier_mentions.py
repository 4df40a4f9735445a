"""Which passages of an index mention titles that join it, found without reading them all.

The terms of a passage say whether it may hold the words of a title; what it says there is then read, first whether the
words stand in a row at all, and where they do, by all titles. A title of which too many passages may speak is left to the
next ``compact``: else what joins a large collection would cost a part of it.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows
from nlp_retrieval.graph.links.joining import JoiningItems
from nlp_retrieval.text.surfaces import Surface, plain_part

_STEP = 1024
MOST_READ, ONE_IN = 1000, 500
"""A title is looked for in so many passages, or in one of so many of the collection, whichever is more."""
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def mentions_before(
    joining: JoiningItems, surfaces: Sequence[tuple[int, Surface]], is_new: Mask
) -> tuple[Rows, NDArray[np.int64]]:
    """Return rows of passages that were there before, and the new titles that their contents mention, each pair once.

    Args:
        joining: what comes; it knows the titles of all items.
        surfaces: of the items that come.
        is_new: by the numbers of all titles, whether an item that comes carries it.
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
    """Rows and contents of the passages in which the words of some surface stand in a row."""
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
        for place, (row, item) in enumerate(zip(part.tolist(), joining.everything.items(part), strict=True), first):
            if holds_one(item.content, phrases, numbers[bounds[place] : bounds[place + 1]].tolist()):
                kept[0].append(row)
                kept[1].append(item.content)
        yield kept


class Phrase:
    """The words of a surface, to be found in a row in a text without accents and case.

    Args:
        surface: what is looked for.
    """

    __slots__ = ("lower", "search")

    def __init__(self, surface: Surface) -> None:
        self.lower = surface.lower
        self.search = re.compile(r"(?:[\W_]s)?[\W_]+".join(map(re.escape, surface.words))).search


def holds_one(text: str, phrases: Sequence[Phrase], numbers: Iterable[int]) -> bool:
    """Whether a text may mention some of some phrases; what is not so is certain.

    Args:
        text: a content.
        phrases: of all surfaces.
        numbers: of those that count.
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


def _plain(found: re.Match[str]) -> str:
    return plain_part(found.group())
