"""Texts analysed once: their words and matching features of a profile, as columns over slots.

Each text has a slot, by its content, and is found there when it is scored again. When there are too many texts, all are
forgotten and those in use are analysed again.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows, entries_of
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.rerankers.multi_signal.features import Features
from nlp_retrieval.text.words import Stems

__all__ = ["AnalysedTexts", "ListedPassages", "PassageSource", "Rarity", "TablePassages"]

_READ_AT_ONCE = 4096
_SAMPLED = 20_000
_MOST_TEXTS = 300_000
"""Most texts remembered, beyond those of one batch."""


@dataclass(frozen=True)
class Rarity:
    """Rarity of words in an index: ln((n + 1) / (d + 1/2)), of n texts of which d have the word.

    Args:
        n_texts: n.
        frequencies: d by the number of the word; a word of a higher number is in none.
    """

    n_texts: int
    frequencies: NDArray[np.int64]

    def of(self, word: int | None) -> float:
        """Return how rare a word is, above 0.

        Args:
            word: its number in the vocabulary; None for an unknown word.
        """
        known = word is not None and word < len(self.frequencies)
        return math.log((self.n_texts + 1) / ((int(self.frequencies[word]) if known else 0) + 0.5))


class PassageSource(ABC):
    """Source of the passages of a batch of candidates, by their positions in the batch."""

    def __init__(self, n_passages: int) -> None:
        self.n_passages = n_passages

    @abstractmethod
    def texts(self, positions: Rows) -> list[str]:
        """Return the texts of candidates."""

    @abstractmethod
    def slots(self, analysed: AnalysedTexts) -> Rows:
        """Return the slot of every candidate, ``[candidates]``; new texts are analysed."""

    def rarity(self, analysed: AnalysedTexts) -> Rarity | None:
        """Return the rarity of words in the passages' index; None if unknown."""
        del analysed
        return None

    @abstractmethod
    def values(self, key: str) -> list[object]:
        """Return a metadata value of every candidate; None if it has none."""


class ListedPassages(PassageSource):
    """Passages in memory.

    Args:
        items: ``[candidates]``.
    """

    def __init__(self, items: Sequence[SearchableItem]) -> None:
        super().__init__(len(items))
        self._items = items

    def texts(self, positions: Rows) -> list[str]:
        return [self._items[position].text for position in positions.tolist()]

    def slots(self, analysed: AnalysedTexts) -> Rows:
        return analysed.slots([item.text for item in self._items])

    def values(self, key: str) -> list[object]:
        return [item.metadata.get(key) for item in self._items]


class TablePassages(PassageSource):
    """Passages in rows of an index; only unknown ones are read.

    Args:
        table: the items of the index.
        rows: ``[candidates]``.
    """

    def __init__(self, table: ItemTable, rows: Rows) -> None:
        super().__init__(len(rows))
        self._table = table
        self._rows = rows

    def texts(self, positions: Rows) -> list[str]:
        return [item.text for item in self._table.items(self._rows[positions])]

    def slots(self, analysed: AnalysedTexts) -> Rows:
        return analysed.slots_of_rows(self._table, self._rows)

    def rarity(self, analysed: AnalysedTexts) -> Rarity:
        return analysed.rarity(self._table)

    def values(self, key: str) -> list[object]:
        found: list[object] = []
        for first in range(0, len(self._rows), _READ_AT_ONCE):
            items = self._table.items(self._rows[first : first + _READ_AT_ONCE])
            found += [item.metadata.get(key) for item in items]
        return found


class AnalysedTexts:
    """The words and matches of texts; not for several threads at once.

    Args:
        stems: splits texts into words.
        features: to look for; None for none.
    """

    def __init__(self, stems: Stems, features: Features | None) -> None:
        self._stems = stems
        self._features = features
        self.epoch = 0
        """Grows when all texts are forgotten; slots of an earlier epoch are invalid."""
        self.forget()

    def forget(self) -> None:
        """Forget all texts."""
        self.epoch += 1
        self._slots: dict[bytes, int] = {}
        self._rows: WeakKeyDictionary[ItemTable, Rows] = WeakKeyDictionary()
        self._rarities: WeakKeyDictionary[ItemTable, Rarity] = WeakKeyDictionary()
        self._numbers: dict[str, int] = {}
        self.vocabulary: list[str] = []
        self.words = _Lists()
        """Per slot, the distinct words, as numbers in the vocabulary."""
        self.features = _Lists()
        """Per slot, the features that match."""
        self.counts = _Lists()
        """Per slot, the number of matches of each."""

    def __len__(self) -> int:
        return len(self._slots)

    def slots(self, texts: Sequence[str]) -> Rows:
        """Return the slots of texts, ``[texts]``; new texts are analysed."""
        if len(self._slots) + len(texts) > _MOST_TEXTS and self._slots:
            self.forget()
        return self._add(texts)

    def slots_of_rows(self, table: ItemTable, rows: Rows) -> Rows:
        """Return the slots of the texts in some rows of an index, ``[rows]``."""
        known = self._rows.get(table)
        n_missing = len(rows) if known is None else int((known[rows] < 0).sum())
        if len(self._slots) + n_missing > _MOST_TEXTS and self._slots and n_missing:
            self.forget()
        return self._slots_of_rows(table, rows)

    def _slots_of_rows(self, table: ItemTable, rows: Rows) -> Rows:
        known = self._rows.get(table)
        if known is None:
            known = self._rows[table] = np.full(len(table), -1, np.int64)
        missing = np.unique(rows[known[rows] < 0])
        for first in range(0, len(missing), _READ_AT_ONCE):
            part = missing[first : first + _READ_AT_ONCE]
            known[part] = self._add([item.text for item in table.items(part)])
        found: Rows = known[rows]
        return found

    def number_of(self, word: str) -> int | None:
        """Return the number of a word in the vocabulary; None if no text has it."""
        return self._numbers.get(word)

    def rarity(self, table: ItemTable) -> Rarity:
        """Return the rarity of words in an index; in a large one, in 20,000 of its texts, evenly spread."""
        known = self._rarities.get(table)
        if known is None:
            rows = np.arange(len(table)) if table.live is None else np.flatnonzero(table.live)
            rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), _SAMPLED)).astype(np.int64)]
            words, _ = self.words.of(self._slots_of_rows(table, rows))
            known = self._rarities[table] = Rarity(len(rows), np.bincount(words, minlength=len(self.vocabulary)))
        return known

    def _add(self, texts: Sequence[str]) -> Rows:
        slots = np.empty(len(texts), np.int64)
        for place, text in enumerate(texts):
            key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
            slot = self._slots.get(key)
            if slot is None:
                slot = self._slots[key] = len(self._slots)
                self._analyse(text)
            slots[place] = slot
        return slots

    def _analyse(self, text: str) -> None:
        words = self._stems.words(text)
        numbers = self._numbers
        ids = []
        for word in dict.fromkeys(words):
            number = numbers.get(word)
            if number is None:
                number = numbers[word] = len(self.vocabulary)
                self.vocabulary.append(word)
            ids.append(number)
        self.words.append(ids)
        found = {} if self._features is None else self._features.find(words, text)
        self.features.append(list(found))
        self.counts.append(list(found.values()))


class _Lists:
    """Lists of whole numbers, one per slot, that grow at the end."""

    def __init__(self) -> None:
        self._pending: list[int] = []
        self._lengths: list[int] = []
        self._values: NDArray[np.int32] = np.zeros(0, np.int32)
        self._offsets: Rows = np.zeros(1, np.int64)
        self._owner: Rows = np.zeros(0, np.int64)

    def append(self, values: list[int]) -> None:
        """Add the list of the next slot."""
        self._pending += values
        self._lengths.append(len(values))

    def of(self, slots: Rows) -> tuple[NDArray[np.int32], Rows]:
        """Return the entries of some slots, one slot after another, and for each entry the position of its slot."""
        if self._lengths:
            self._values = np.concatenate([self._values, np.array(self._pending, np.int32)])
            ends = self._offsets[-1] + np.cumsum(np.array(self._lengths, np.int64))
            self._offsets = np.concatenate([self._offsets, ends])
            self._owner = np.repeat(np.arange(len(self._offsets) - 1), np.diff(self._offsets))
            self._pending, self._lengths = [], []
        n_slots = len(self._offsets) - 1
        if len(slots) == n_slots and np.array_equal(slots, np.arange(n_slots)):
            return self._values, self._owner
        entries, counts = entries_of(self._offsets, slots)
        return self._values[entries], np.repeat(np.arange(len(slots)), counts)
