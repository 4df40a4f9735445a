"""Which terms a passage has: what tells how much of a query one passage, or several together, cover.

A term is a stemmed word (Porter), kept as a 32-bit hash. A term meets another of a collection that has a
million of them with a probability of 1 in 4,000; that moves a share of coverage and nothing else.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import cache
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows, Scores, entries_of, offsets_of
from nlp_retrieval.core.columns import CURE, check_offsets, mapped
from nlp_retrieval.core.items import ItemTable
from nlp_retrieval.core.progress import tracked
from nlp_retrieval.core.queries import STOP_WORDS
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.graph.surfaces import words_of

_BATCH = 1024
_ASKED = frozenset(
    "also did do does from had has have he her his how its she that what when where which who whom whose were".split()
)
"""Words that ask or refer; passages that hold one of them by chance do not answer it."""

_DTYPES: dict[str, type[np.generic]] = {
    "term_hashes": np.uint32,
    "term_offsets": np.int64,
    "term_vocabulary": np.uint32,
    "term_passages": np.int32,
}


class PassageTerms:
    """The terms of every passage, memory-mapped.

    Args:
        hashes: the terms of passage i are ``hashes[offsets[i]:offsets[i + 1]]``, ascending, each once.
        offsets: ``[passages + 1]``.
        vocabulary: all terms, ascending.
        passages: per term of the vocabulary, how many passages have it.
    """

    def __init__(
        self, hashes: NDArray[np.uint32], offsets: Rows, vocabulary: NDArray[np.uint32], passages: NDArray[np.int32]
    ) -> None:
        self._hashes = hashes
        self._offsets = offsets
        self._vocabulary = vocabulary
        self._passages = passages

    @staticmethod
    def write(folder: Path, items: ItemTable) -> None:
        """Write the terms of all items, title and content, as four files ``term_*.npy``.

        Args:
            folder: an existing one.
            items: streamed.
        """
        known: dict[str, int] = {}
        counts, parts = np.zeros(len(items), np.int64), []
        row = 0
        for texts in tracked("reading terms", items.texts(_BATCH), len(items)):
            batch = array("I")
            for text in texts:
                found = sorted({known.get(word) or known.setdefault(word, _hash(word)) for word in words_of(text)})
                batch.extend(found)
                counts[row] = len(found)
                row += 1
            parts.append(np.array(batch, np.uint32))
        hashes = np.concatenate([np.zeros(0, np.uint32), *parts])
        vocabulary, passages = np.unique(hashes, return_counts=True)
        columns: list[NDArray[np.integer]] = [hashes, offsets_of(counts), vocabulary, passages.astype(np.int32)]
        for name, column in zip(_DTYPES, columns, strict=True):
            np.save(folder / f"{name}.npy", column, allow_pickle=False)

    @classmethod
    def open(cls, folder: Path) -> PassageTerms:
        """Map what :meth:`write` wrote.

        Raises:
            IndexDamagedError: a file is missing, cut off, or none of these.
        """
        hashes, offsets, vocabulary, passages = (mapped(folder / f"{name}.npy", dtype) for name, dtype in _DTYPES.items())
        if len(vocabulary) != len(passages) or passages.min(initial=1) < 1 or passages.sum(dtype=np.int64) != len(hashes):
            raise IndexDamagedError(f"the term_*.npy in {folder} contradict one another; {CURE}")
        check_offsets(folder / "term_offsets.npy", offsets, len(hashes))
        if (vocabulary[1:] <= vocabulary[:-1]).any():
            raise IndexDamagedError(f"{folder / 'term_vocabulary.npy'} is damaged: it does not rise; {CURE}")
        return cls(hashes, offsets, vocabulary, passages)

    def of_query(self, query: str) -> tuple[NDArray[np.uint32], Scores]:
        """Return the terms of a query that some passage has, and the share of its information that each carries.

        The information of a term is its inverse document frequency as BM25 defines it; stop words carry none. Shares sum
        to 1, unless the query has no such term.
        """
        wanted = {_hash(word) for word in words_of(query) if word not in STOP_WORDS and word not in _ASKED}
        terms = np.array(sorted(wanted), np.uint32)
        places = np.minimum(np.searchsorted(self._vocabulary, terms), max(len(self._vocabulary) - 1, 0))
        there = self._vocabulary[places] == terms if len(self._vocabulary) else np.zeros(len(terms), bool)
        terms, places = terms[there], places[there]
        having = self._passages[places].astype(np.float64)
        information = np.log1p((len(self._offsets) - 1 - having + 0.5) / (having + 0.5))
        return terms, information / (information.sum() or 1.0)

    def covered(self, terms: NDArray[np.uint32], rows: Rows) -> NDArray[np.bool_]:
        """Return ``[rows, terms]``: whether each passage has each term.

        Args:
            terms: ascending.
            rows: of the passages.
        """
        found = np.zeros((len(rows), len(terms)), bool)
        if len(terms) == 0:
            return found
        entries, counts = entries_of(self._offsets, rows)
        hashes = self._hashes[entries]
        places = np.minimum(np.searchsorted(terms, hashes), len(terms) - 1)
        hit = terms[places] == hashes
        found[np.repeat(np.arange(len(rows)), counts)[hit], places[hit]] = True
        return found


def _hash(word: str) -> int:
    return crc32(_stemmer()(word).encode("utf-8", "surrogatepass")) or 1


@cache
def _stemmer() -> Callable[[str], str]:
    import Stemmer

    stem: Callable[[str], str] = Stemmer.Stemmer("porter").stemWord
    return stem
