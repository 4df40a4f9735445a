"""Tables from texts to rows, in flat files.

Keys are stored as 64-bit hashes (BLAKE2b) in ascending order, so that a table is mapped, not loaded, and a look-up is a
binary search. Among ten million keys, the probability that any two collide is 3 in a million.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows, entries_of
from nlp_retrieval.core.files.columns import CURE, check_numbers, check_offsets, damaged, mapped
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.text.surfaces import grouped

Hashes = NDArray[np.uint64]


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

    hashes: Hashes
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

    @classmethod
    def joined(cls, placed: Sequence[Placed], keys: Hashes | None = None) -> HashedRows:
        """Join tables of several segments, without the rows of deleted items, and without keys that only those rows have.

        Args:
            placed: the tables.
            keys: the hashes to keep, distinct; None for all.
        """
        pairs = [part.pairs(keys) for part in placed]
        hashes = np.concatenate([np.zeros(0, np.uint64), *(hashes for hashes, _ in pairs)])
        return cls(*grouped(hashes, np.concatenate([np.zeros(0, np.int64), *(rows for _, rows in pairs)])))

    def renumbered(self, new_rows: Rows) -> HashedRows:
        """Return the table with each row replaced by ``new_rows[row]``; ``new_rows`` must ascend."""
        return HashedRows(self.hashes, self.offsets, new_rows[self.rows])

    def write(self, folder: Path, name: str) -> None:
        """Write three files ``<name>_*.npy`` into an existing folder. Equal tables give equal bytes."""
        for part, column in (("hashes", self.hashes), ("offsets", self.offsets), ("rows", self.rows)):
            np.save(folder / f"{name}_{part}.npy", column, allow_pickle=False)

    @classmethod
    def open(cls, folder: Path, name: str, n_rows: int) -> HashedRows:
        """Map a table that :meth:`write` wrote, and check it once.

        Args:
            folder: of the table.
            name: name of the table.
            n_rows: number of rows.

        Raises:
            IndexDamagedError: a file is missing, cut off or not part of a table, or names rows that do not exist.
        """
        hashes: Hashes = mapped(folder / f"{name}_hashes.npy", np.uint64)
        offsets: Rows = mapped(folder / f"{name}_offsets.npy", np.int64)
        rows: Rows = mapped(folder / f"{name}_rows.npy", np.int64)
        if len(offsets) != len(hashes) + 1:
            raise IndexDamagedError(f"the {name}_*.npy in {folder} contradict one another; {CURE}")
        check_offsets(folder / f"{name}_offsets.npy", offsets, len(rows))
        check_rising(folder / f"{name}_offsets.npy", offsets)
        check_rising(folder / f"{name}_hashes.npy", hashes)
        check_numbers(folder / f"{name}_rows.npy", rows, n_rows)
        return cls(hashes, offsets, rows)

    def find(self, hashes: Hashes) -> Rows:
        """Return the numbers of the keys with these hashes, -1 if there is no such key."""
        places = np.searchsorted(self.hashes, hashes)
        found = np.zeros(len(hashes), bool)
        inside = places < len(self.hashes)
        found[inside] = self.hashes[places[inside]] == hashes[inside]
        return np.where(found, places, -1)

    def rows_of(self, number: int) -> Rows:
        """Return the rows of a key."""
        return self.rows[self.offsets[number] : self.offsets[number + 1]]


class Placed(NamedTuple):
    """A table of one segment.

    Args:
        table: its rows count from 0.
        first_row: first row of the segment in the index.
        live: True for its rows that are not deleted; None if none is.
    """

    table: HashedRows
    first_row: int
    live: Mask | None = None

    def pairs(self, keys: Hashes | None = None) -> tuple[Hashes, Rows]:
        """Return hashes of keys and the rows of the index that have them, without deleted items.

        Args:
            keys: the hashes to keep, distinct; None for all.
        """
        table = self.table
        if keys is None:
            hashes, rows = np.repeat(table.hashes, np.diff(table.offsets)), table.rows
        else:
            numbers = table.find(keys)
            entries, counts = entries_of(table.offsets, numbers[numbers >= 0])
            hashes, rows = np.repeat(keys[numbers >= 0], counts), table.rows[entries]
        if self.live is not None:
            is_live = self.live[rows]
            hashes, rows = hashes[is_live], rows[is_live]
        return hashes, rows + self.first_row


def check_rising(path: Path, numbers: NDArray[np.integer]) -> None:
    """Check that each number is larger than the one before, as a binary search requires.

    Raises:
        IndexDamagedError: one is not; the message names ``path``.
    """
    if (numbers[1:] <= numbers[:-1]).any():
        raise damaged(path, "its numbers do not ascend")
