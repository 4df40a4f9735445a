"""Passages read once: their words as numbers of a vocabulary, and the features of a profile that they have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.rerankers.multi_signal.features import Features
from nlp_retrieval.text.quantities import Quantity, quantities_of
from nlp_retrieval.text.words import Stems

Numbers = NDArray[np.int64]

_SAMPLED = 20_000
_MOST_TEXTS = 300_000
"""Most texts remembered, beyond those of one batch."""

_READ_AT_ONCE = 4096


@dataclass(eq=False)
class KnownText:
    """A passage."""

    text: str
    words: Numbers
    features: Numbers
    counts: Numbers
    vectors: dict[str, Vectors] = field(default_factory=dict)

    @cached_property
    def quantities(self) -> list[Quantity]:
        """Its numbers with a unit."""
        return quantities_of(self.text)


class Rarity(NamedTuple):
    """Rarity of words in an index: ln((n + 1) / (d + 1/2)), of n texts of which d (``frequencies``) have the word."""

    n_texts: int
    frequencies: Numbers

    def of(self, word: int | None) -> float:
        """Return how rare a word is, above 0; None is an unknown word."""
        is_known = word is not None and word < len(self.frequencies)
        return math.log((self.n_texts + 1) / ((int(self.frequencies[word]) if is_known else 0) + 0.5))


class Passages(NamedTuple):
    """The passages of a batch: rows of an index, or items with or without an index that knows the rarity of their words."""

    table: ItemTable | None
    rows: Rows | None = None
    items: Sequence[SearchableItem] = ()

    def values(self, key: str) -> list[object]:
        """Return a metadata value of every passage; None if it has none."""
        if self.table is None or self.rows is None:
            return [item.metadata.get(key) for item in self.items]
        parts = (self.rows[first : first + _READ_AT_ONCE] for first in range(0, len(self.rows), _READ_AT_ONCE))
        return [item.metadata.get(key) for part in parts for item in self.table.items(part)]


class KnownTexts:
    """The passages read so far; when they become too many, all are forgotten. Not for several threads at once."""

    def __init__(self, stems: Stems, features: Features | None) -> None:
        self._stems = stems
        self._features = features
        self.forget()

    def forget(self) -> None:
        """Forget all texts, their words, and all that is known of these."""
        self._by_text: dict[str, KnownText] = {}
        self._by_row: WeakKeyDictionary[ItemTable, dict[int, KnownText]] = WeakKeyDictionary()
        self._rarities: WeakKeyDictionary[ItemTable, Rarity] = WeakKeyDictionary()
        self.vocabulary: list[str] = []
        self.numbers: dict[str, int] = {}
        """The number of each word of the vocabulary."""
        self.similar: dict[str, tuple[Numbers, Scores, int]] = {}
        """Words like a term, their likeness, and how much of the vocabulary was compared."""

    def __len__(self) -> int:
        return len(self._by_text)

    def of(self, passages: Passages) -> list[KnownText]:
        """Return passages in their order, reading those that are new."""
        if passages.table is None or passages.rows is None:
            texts = [item.text for item in passages.items]
            self._make_room(sum(text not in self._by_text for text in texts))
            return [self._read(text) for text in texts]
        known = self._by_row.get(passages.table, {})
        self._make_room(sum(row not in known for row in np.unique(passages.rows).tolist()))
        return self._of_rows(passages.table, passages.rows)

    def rarity(self, table: ItemTable) -> Rarity:
        """Return the rarity of words in an index; in a large one, in 20,000 of its texts, evenly spread."""
        rarity = self._rarities.get(table)
        if rarity is None:
            rows = np.arange(len(table)) if table.live is None else np.flatnonzero(table.live)
            rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), _SAMPLED)).astype(np.int64)]
            distinct = [np.unique(text.words) for text in self._of_rows(table, rows)]
            words = np.concatenate([np.zeros(0, np.int64), *distinct])
            rarity = self._rarities[table] = Rarity(len(rows), np.bincount(words, minlength=len(self.vocabulary)))
        return rarity

    def _make_room(self, n_new: int) -> None:
        if n_new and len(self) and len(self) + n_new > _MOST_TEXTS:
            self.forget()

    def _of_rows(self, table: ItemTable, rows: Rows) -> list[KnownText]:
        known = self._by_row.setdefault(table, {})
        missing = np.array([row for row in np.unique(rows).tolist() if row not in known], np.int64)
        for first in range(0, len(missing), _READ_AT_ONCE):
            part = missing[first : first + _READ_AT_ONCE]
            known.update((row, self._read(item.text)) for row, item in zip(part.tolist(), table.items(part), strict=True))
        return [known[row] for row in rows.tolist()]

    def _read(self, text: str) -> KnownText:
        read = self._by_text.get(text)
        if read is None:
            stems = self._stems.words(text)
            for stem in stems:
                if stem not in self.numbers:
                    self.numbers[stem] = len(self.vocabulary)
                    self.vocabulary.append(stem)
            words = np.array([self.numbers[stem] for stem in stems], np.int64)
            counted = {} if self._features is None else self._features.find(stems, text)
            features, counts = (np.array(list(column), np.int64) for column in (counted, counted.values()))
            read = self._by_text[text] = KnownText(text, words, features, counts)
        return read


def joined(parts: Iterable[Numbers]) -> tuple[Numbers, Rows]:
    """Return lists of numbers one after another, and for each number the position of its list."""
    lists = list(parts)
    lengths = [len(part) for part in lists]
    return np.concatenate([np.zeros(0, np.int64), *lists]), np.repeat(np.arange(len(lists)), lengths)
