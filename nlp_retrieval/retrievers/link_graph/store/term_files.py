"""The terms of the passages of one segment in flat files: those of title and content, and those of the title.

A term is a stemmed word (Porter), stored as a 32-bit hash. In a collection of a million terms, a given term collides with
another with a probability of 1 in 4,000; a collision only changes a share of coverage.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows, entries_of, offsets_of
from nlp_retrieval.core.files.columns import CURE, check_offsets, mapped
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.progress_bars import progress
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.retrievers.link_graph.store.hashed_rows import check_rising, hash_of
from nlp_retrieval.text.surfaces import words_of

Terms = NDArray[np.uint32]

_STEP = 1024
_DTYPES: dict[str, type[np.generic]] = {
    "term_hashes": np.uint32,
    "term_offsets": np.int64,
    "term_vocabulary": np.uint32,
    "term_passages": np.int32,
    "title_term_hashes": np.uint32,
    "title_term_offsets": np.int64,
    "title_keys": np.int64,
    "named": np.float32,
}


@dataclass(frozen=True, eq=False)
class TermFiles:
    """The terms of the passages of one segment, memory-mapped.

    Args:
        hashes: terms of title and content; passage i has ``hashes[offsets[i]:offsets[i + 1]]``, ascending, each once.
        offsets: ``[passages + 1]``.
        vocabulary: all terms, ascending.
        passages: for each term of the vocabulary, the number of passages that have it.
        title_hashes: the same for the titles alone.
        title_offsets: ``[passages + 1]``.
        title_keys: ``[passages]``, equal for equal titles; 0 without a title.
        named: ``[passages]``, the share of the title's terms in the content, 0 to 1; 1 without a title.
    """

    hashes: Terms
    offsets: Rows
    vocabulary: Terms
    passages: NDArray[np.int32]
    title_hashes: Terms
    title_offsets: Rows
    title_keys: NDArray[np.int64]
    named: NDArray[np.float32]

    @classmethod
    def read_from(cls, items: ItemTable) -> TermFiles:
        """Read all items, streamed; memory holds 4 bytes per term of a passage."""
        known: dict[str, int] = {}
        hashes, titles = array("I"), array("I")
        counts, title_counts, keys = np.zeros((3, len(items)), np.int64)
        named = np.ones(len(items), np.float32)
        with progress("reading terms", len(items)) as advance:
            for row, item in enumerate(items.stream({"title"})):
                content, title = _terms_in(item.content, known), _terms_in(item.title, known)
                hashes.extend(sorted(content | title))
                titles.extend(sorted(title))
                counts[row], title_counts[row] = len(content | title), len(title)
                if title:
                    keys[row], named[row] = (hash_of(item.title) >> 1) or 1, len(content & title) / len(title)
                if row % _STEP == _STEP - 1:
                    advance(_STEP)
        return cls.of(np.array(hashes, np.uint32), counts, np.array(titles, np.uint32), title_counts, keys, named)

    @classmethod
    def of(
        cls, hashes: Terms, counts: Rows, title_hashes: Terms, title_counts: Rows, keys: Rows, named: NDArray[np.float32]
    ) -> TermFiles:
        """Build from the terms of all passages, one passage after another, and how many terms each has."""
        vocabulary, passages = np.unique(hashes, return_counts=True)
        offsets, title_offsets = offsets_of(counts), offsets_of(title_counts)
        return cls(hashes, offsets, vocabulary, passages.astype(np.int32), title_hashes, title_offsets, keys, named)

    def write(self, folder: Path) -> None:
        """Write eight files into an existing folder."""
        columns: list[NDArray[np.generic]] = [self.hashes, self.offsets, self.vocabulary, self.passages]
        columns += [self.title_hashes, self.title_offsets, self.title_keys, self.named]
        for name, column in zip(_DTYPES, columns, strict=True):
            np.save(folder / f"{name}.npy", column, allow_pickle=False)

    @classmethod
    def open(cls, folder: Path, n_passages: int) -> TermFiles:
        """Map the files that :meth:`write` wrote.

        Raises:
            IndexDamagedError: a file is missing, cut off, or not such a file.
        """
        columns = {name: mapped(folder / f"{name}.npy", dtype) for name, dtype in _DTYPES.items()}
        files = cls(*columns.values())
        lengths = {len(files.offsets), len(files.title_offsets), len(files.title_keys) + 1, len(files.named) + 1}
        fits = len(files.vocabulary) == len(files.passages) and files.title_offsets[-1:].tolist() == [len(files.title_hashes)]
        fits = fits and lengths == {n_passages + 1}
        if not fits or files.passages.min(initial=1) < 1 or files.passages.sum(dtype=np.int64) != len(files.hashes):
            raise IndexDamagedError(
                f"the term files (*term*.npy, title_keys.npy, named.npy) in {folder} contradict one another; {CURE}"
            )
        check_offsets(folder / "term_offsets.npy", files.offsets, len(files.hashes))
        check_offsets(folder / "title_term_offsets.npy", files.title_offsets, len(files.title_hashes))
        check_rising(folder / "term_vocabulary.npy", files.vocabulary)
        if not ((files.named >= 0) & (files.named <= 1)).all():
            raise IndexDamagedError(f"{folder / 'named.npy'} holds a number that is no share; {CURE}")
        return files

    def terms_of(self, rows: Rows) -> Terms:
        """Return the terms of some passages, one passage after another."""
        return self.hashes[entries_of(self.offsets, rows)[0]]

    def title_terms_of(self, rows: Rows) -> Terms:
        """Return the terms of the titles of some passages, one passage after another."""
        return self.title_hashes[entries_of(self.title_offsets, rows)[0]]


def term_of(word: str) -> int:
    """Return the hash of a word in its compared form; never 0."""
    return crc32(_stemmer()(word).encode("utf-8", "surrogatepass")) or 1


def _terms_in(text: str, known: dict[str, int]) -> set[int]:
    return {known.get(word) or known.setdefault(word, term_of(word)) for word in words_of(text)}


@cache
def _stemmer() -> Callable[[str], str]:
    import Stemmer

    stem: Callable[[str], str] = Stemmer.Stemmer("porter").stemWord
    return stem
