"""Tables from texts to rows that live in flat files: the titles of an index, to be found in queries.

Keys are kept as 64-bit hashes (BLAKE2b) in ascending order, so that a table is mapped, never read, and a look-up is a
binary search. Of ten million keys two meet with a probability of 3 in a million.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.columns import CURE, check_offsets, mapped
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.graph.surfaces import Surface, grouped, spans_of, stands_alone, words_of

_FEWEST_ALONE = 6
_DTYPES = {"title_hashes": np.uint64, "title_offsets": np.int64, "title_rows": np.int64, "title_longest": np.int64}


def hash_of(key: str) -> int:
    """Return the 64-bit hash of a text that is valid Unicode."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "little")


@dataclass(frozen=True, eq=False)
class HashedRows:
    """Rows by key.

    Args:
        hashes: ``[keys]`` uint64, ascending.
        offsets: ``[keys + 1]`` int64; key number k has ``rows[offsets[k]:offsets[k + 1]]``.
        rows: int64, ascending within a key.
    """

    hashes: NDArray[np.uint64]
    offsets: Rows
    rows: Rows

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, int]]) -> HashedRows:
        """Build from keys and rows in any order."""
        hashes, rows = array("Q"), array("q")
        for key, row in pairs:
            hashes.append(hash_of(key))
            rows.append(row)
        return cls(*grouped(np.array(hashes, np.uint64), np.array(rows, np.int64)))

    def find(self, hashes: NDArray[np.uint64]) -> Rows:
        """Return the numbers of the keys with these hashes, -1 for those that are not there."""
        places = np.searchsorted(self.hashes, hashes)
        found = np.zeros(len(hashes), bool)
        inside = places < len(self.hashes)
        found[inside] = self.hashes[places[inside]] == hashes[inside]
        return np.where(found, places, -1)

    def rows_of(self, number: int) -> Rows:
        """Return the rows of a key."""
        return self.rows[self.offsets[number] : self.offsets[number + 1]]


@dataclass(frozen=True, eq=False)
class TitleMention:
    """Where a query names a title.

    Args:
        rows: the items that carry the title or alias.
        start: where in the query the mention begins, in characters.
        end: where it ends.
        text: what the query says there.
    """

    rows: Rows
    start: int
    end: int
    text: str


class TitleTable:
    """The surfaces of an index by their words, memory-mapped: opening it passes over it once, and keeps none of it.

    Args:
        table: rows by the words of a surface, and by whether a mention begins in lower case.
        longest: words of the longest surface.
    """

    def __init__(self, table: HashedRows, longest: int) -> None:
        self._table = table
        self._longest = longest

    @staticmethod
    def write(folder: Path, surfaces: Iterable[tuple[int, Surface]]) -> None:
        """Write a table.

        Args:
            folder: an existing one; receives four files ``title_*.npy``. Equal surfaces give equal bytes.
            surfaces: rows and their surfaces.
        """
        longest = np.zeros(1, np.int64)

        def pairs() -> Iterator[tuple[str, int]]:
            for row, surface in surfaces:
                longest[0] = max(longest[0], len(surface.words))
                yield _key(surface.words, lower=False), row
                if surface.lower:
                    yield _key(surface.words, lower=True), row

        table = HashedRows.of(pairs())
        for name, column in zip(_DTYPES, (table.hashes, table.offsets, table.rows, longest), strict=True):
            np.save(folder / f"{name}.npy", column, allow_pickle=False)

    @classmethod
    def open(cls, folder: Path) -> TitleTable:
        """Map a table that :meth:`write` wrote.

        Raises:
            IndexDamagedError: a file is missing, cut off or none of a table.
        """
        hashes, offsets, rows, longest = (mapped(folder / f"{name}.npy", dtype) for name, dtype in _DTYPES.items())
        if len(offsets) != len(hashes) + 1 or offsets[-1] != len(rows) or len(longest) != 1 or longest[0] < 0:
            raise IndexDamagedError(f"the title_*.npy in {folder} contradict one another; {CURE}")
        check_offsets(folder / "title_offsets.npy", offsets, len(rows))
        if (hashes[1:] <= hashes[:-1]).any():
            raise IndexDamagedError(f"{folder / 'title_hashes.npy'} is damaged: it does not rise; {CURE}")
        return cls(HashedRows(hashes, offsets, rows), int(longest[0]))

    def find(self, query: str) -> list[TitleMention]:
        """Return the titles that a query mentions, in order, by the rules for texts.

        A query without any upper-case letter has no case to go by: there a mention may begin in lower case, if it has
        at least two words or six characters.
        """
        spans, words = spans_of(query), words_of(query)
        has_case = any(map(str.isupper, query))
        places: list[tuple[int, int]] = []
        hashes = array("Q")
        for first, (start, _) in enumerate(spans):
            lower = query[start].islower()
            for last in range(first + 1, min(first + self._longest, len(words)) + 1):
                counts = last - first > 1 or len(words[first]) >= _FEWEST_ALONE
                hashes.append(hash_of(_key(words[first:last], lower=lower and (has_case or not counts))))
                places.append((first, last))
        numbers = self._table.find(np.array(hashes, np.uint64)).tolist()
        # of equal beginnings the longest comes last, and stays
        longest = {first: (last, number) for (first, last), number in zip(places, numbers, strict=True) if number >= 0}
        mentions: list[TitleMention] = []
        free = 0
        for first, (last, number) in longest.items():
            if first >= free and (last - first > 1 or stands_alone(query, spans, first)):
                start, end = spans[first][0], spans[last - 1][1]
                mentions.append(TitleMention(self._table.rows_of(number), start, end, query[start:end]))
                free = last
        return mentions


def _key(words: tuple[str, ...], *, lower: bool) -> str:
    return "\0".join(["lower" if lower else "", *words])
