"""Which terms a passage has, from which follows how much of a query one passage, or several together, cover.

A term is a stemmed word (Porter), stored as a 32-bit hash. In a collection of a million terms, a given term collides with
another with a probability of 1 in 4,000; a collision changes a share of coverage and nothing else.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows, Scores, entries_of, offsets_of
from nlp_retrieval.core.files.columns import CURE, check_offsets, mapped
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.index.segments import SegmentFolder
from nlp_retrieval.core.progress import tracked
from nlp_retrieval.core.queries import STOP_WORDS
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.graph.store.hashed_rows import check_rising
from nlp_retrieval.text.surfaces import words_of

Terms = NDArray[np.uint32]

_BATCH = 1024
_AT_ONCE = 1 << 20
_MARKED_BITS = 20
_MOST_ASKED = 2
_COMMON = 1 / 32
_ASKED = frozenset(
    "also did do does from had has have he her his how its she that what when where which who whom whose were".split()
)
"""Words that ask or refer: a passage that happens to contain one does not answer the query by it."""

_DTYPES: dict[str, type[np.generic]] = {
    "term_hashes": np.uint32,
    "term_offsets": np.int64,
    "term_vocabulary": np.uint32,
    "term_passages": np.int32,
}


@dataclass(frozen=True, eq=False)
class TermFiles:
    """The terms of the passages of one segment, memory-mapped.

    Args:
        hashes: terms; passage i has ``hashes[offsets[i]:offsets[i + 1]]``, ascending, each once.
        offsets: ``[passages + 1]``.
        vocabulary: all terms, ascending.
        passages: for each term of the vocabulary, how many passages have it.
    """

    hashes: Terms
    offsets: Rows
    vocabulary: Terms
    passages: NDArray[np.int32]

    @classmethod
    def of(cls, hashes: Terms, counts: Rows) -> TermFiles:
        """Build from the terms of all passages, one passage after another, and how many terms each has."""
        vocabulary, passages = np.unique(hashes, return_counts=True)
        return cls(hashes, offsets_of(counts), vocabulary, passages.astype(np.int32))

    def write(self, folder: Path) -> None:
        """Write four files ``term_*.npy`` into an existing folder."""
        columns: list[NDArray[np.integer]] = [self.hashes, self.offsets, self.vocabulary, self.passages]
        for name, column in zip(_DTYPES, columns, strict=True):
            np.save(folder / f"{name}.npy", column, allow_pickle=False)

    @classmethod
    def open(cls, folder: Path, n_passages: int) -> TermFiles:
        """Map what :meth:`write` wrote.

        Raises:
            IndexDamagedError: a file is missing, cut off, or not such a file.
        """
        hashes, offsets, vocabulary, passages = (mapped(folder / f"{name}.npy", dtype) for name, dtype in _DTYPES.items())
        fits = len(vocabulary) == len(passages) and len(offsets) == n_passages + 1
        if not fits or passages.min(initial=1) < 1 or passages.sum(dtype=np.int64) != len(hashes):
            raise IndexDamagedError(f"the term_*.npy in {folder} contradict one another; {CURE}")
        check_offsets(folder / "term_offsets.npy", offsets, len(hashes))
        check_rising(folder / "term_vocabulary.npy", vocabulary)
        return cls(hashes, offsets, vocabulary, passages)

    def terms_of(self, rows: Rows) -> Terms:
        """Return the terms of some passages, one passage after another."""
        return self.hashes[entries_of(self.offsets, rows)[0]]


class PassageTerms:
    """The terms of every passage of an index.

    Args:
        segments: the segments of the index.
        files: the terms of each segment.
    """

    def __init__(self, segments: Sequence[SegmentFolder], files: Sequence[TermFiles]) -> None:
        self._segments = segments
        self._files = files
        self._starts = np.array([segment.first_row for segment in segments], np.int64)
        self._n_passages = sum(len(segment) if segment.live is None else int(segment.live.sum()) for segment in segments)
        if len(files) == 1 and segments[0].live is None:
            self._vocabulary, self._passages = files[0].vocabulary, files[0].passages.astype(np.int64)
        else:
            self._vocabulary, self._passages = _counted(segments, files)

    @staticmethod
    def write(folder: Path, items: ItemTable) -> None:
        """Write the terms of all items, title and content, as four files ``term_*.npy``.

        Args:
            folder: where to write; it must exist.
            items: streamed, not held in memory.
        """
        known: dict[str, int] = {}
        counts, parts = np.zeros(len(items), np.int64), []
        row = 0
        for texts in tracked("reading terms", items.texts(_BATCH), len(items)):
            batch = array("I")
            for text in texts:
                terms = sorted({known.get(word) or known.setdefault(word, _hash(word)) for word in words_of(text)})
                batch.extend(terms)
                counts[row] = len(terms)
                row += 1
            parts.append(np.array(batch, np.uint32))
        TermFiles.of(np.concatenate([np.zeros(0, np.uint32), *parts]), counts).write(folder)

    @classmethod
    def open_all(cls, segments: Sequence[SegmentFolder]) -> PassageTerms:
        """Open the terms of all segments of an index; deleted passages do not count.

        Raises:
            IndexDamagedError: a file is missing, cut off, or not such a file.
        """
        return cls(segments, [TermFiles.open(segment.folder, len(segment)) for segment in segments])

    def write_joined(self, folder: Path) -> None:
        """Write the terms of the passages that are not deleted as those of one segment."""
        parts, counts = [np.zeros(0, np.uint32)], [np.zeros(0, np.int64)]
        for segment, files in zip(self._segments, self._files, strict=True):
            rows = np.arange(len(segment)) if segment.live is None else np.flatnonzero(segment.live)
            parts.append(files.terms_of(rows))
            counts.append(np.diff(files.offsets)[rows])
        TermFiles.of(np.concatenate(parts), np.concatenate(counts)).write(folder)

    def of_query(self, query: str) -> tuple[Terms, Scores]:
        """Return the terms of a query that at least one passage has, and the share of its information that each carries.

        The information of a term is its inverse document frequency as BM25 defines it; stop words carry none. Shares sum
        to 1 if there are any terms.
        """
        wanted = {_hash(word) for word in words_of(query) if word not in STOP_WORDS and word not in _ASKED}
        terms = np.array(sorted(wanted), np.uint32)
        having = self._having(terms)
        terms, having = terms[having > 0], having[having > 0]
        information = np.log1p((self._n_passages - having + 0.5) / (having + 0.5))
        return terms, information / (information.sum() or 1.0)

    def covered(self, terms: Terms, rows: Rows) -> NDArray[np.bool_]:
        """Return ``[rows, terms]``: whether each passage has each term.

        Args:
            terms: ascending.
            rows: rows of the passages.
        """
        covered = np.zeros((len(rows), len(terms)), bool)
        if len(terms) == 0:
            return covered
        owner = np.searchsorted(self._starts, rows, "right") - 1
        for number, files in enumerate(self._files):
            here = np.flatnonzero(owner == number)
            entries, counts = entries_of(files.offsets, rows[here] - self._starts[number])
            hashes = files.hashes[entries]
            places = np.minimum(np.searchsorted(terms, hashes), len(terms) - 1)
            hit = terms[places] == hashes
            covered[np.repeat(here, counts)[hit], places[hit]] = True
        return covered

    def holding(self, phrases: Sequence[Sequence[str]]) -> list[Rows]:
        """Return for each phrase the passages that may contain all its words, ascending, in one pass over all terms.

        Only the two rarest words of a phrase are looked up, and the second only if at most one of 32 passages has it.

        Args:
            phrases: the words of each as they are compared, at least one.
        """
        wanted = [np.array(sorted({_hash(word) for word in words}), np.uint32) for words in phrases]
        asked: list[Terms] = []
        for terms in wanted:
            having = self._having(terms)
            rarest = np.argsort(having, kind="stable")[:_MOST_ASKED]
            asked.append(terms[rarest][: 1 + np.count_nonzero(having[rarest[1:]] <= self._n_passages * _COMMON)])
        distinct = np.unique(np.concatenate([np.zeros(0, np.uint32), *asked]))
        begins, rows = self._postings(distinct)
        by_phrase = []
        for terms in asked:
            lists = [rows[begins[number] : begins[number + 1]] for number in np.searchsorted(distinct, terms).tolist()]
            lists.sort(key=len)
            held = lists[0]
            for other in lists[1:]:
                held = held[np.isin(held, other, assume_unique=True)]
            by_phrase.append(held)
        return by_phrase

    def _having(self, terms: Terms) -> Scores:
        """How many passages have each term."""
        if len(self._vocabulary) == 0:
            return np.zeros(len(terms))
        places = np.minimum(np.searchsorted(self._vocabulary, terms), len(self._vocabulary) - 1)
        return np.where(self._vocabulary[places] == terms, self._passages[places], 0).astype(np.float64)

    def _postings(self, terms: Terms) -> tuple[Rows, Rows]:
        """The passages that have each of some terms: where each list begins, and all lists."""
        marked = np.zeros(1 << _MARKED_BITS, bool)
        marked[terms >> (32 - _MARKED_BITS)] = True
        numbers, rows = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for segment, files in zip(self._segments, self._files, strict=True):
            for first in range(0, len(files.hashes), _AT_ONCE):
                part = files.hashes[first : first + _AT_ONCE]
                entries = np.flatnonzero(marked[part >> (32 - _MARKED_BITS)])
                places = np.minimum(np.searchsorted(terms, part[entries]), max(len(terms) - 1, 0))
                hit = terms[places] == part[entries]
                local = np.searchsorted(files.offsets, entries[hit] + first, "right") - 1
                is_live = np.ones(len(local), bool) if segment.live is None else segment.live[local]
                numbers.append(places[hit][is_live])
                rows.append(local[is_live] + segment.first_row)
        owner = np.concatenate(numbers)
        order = np.argsort(owner, kind="stable")
        return offsets_of(np.bincount(owner, minlength=len(terms))), np.concatenate(rows)[order]


def _counted(segments: Sequence[SegmentFolder], files: Sequence[TermFiles]) -> tuple[Terms, NDArray[np.int64]]:
    """All terms, and how many of the passages that are not deleted have each."""
    vocabulary = np.unique(np.concatenate([part.vocabulary for part in files]))
    passages = np.zeros(len(vocabulary), np.int64)
    for segment, part in zip(segments, files, strict=True):
        passages[np.searchsorted(vocabulary, part.vocabulary)] += part.passages
        if segment.live is not None:
            deleted = part.terms_of(np.flatnonzero(~segment.live))
            deleted = deleted[np.isin(deleted, vocabulary)]  # a damaged file may hold others
            passages -= np.bincount(np.searchsorted(vocabulary, deleted), minlength=len(vocabulary))
    return vocabulary[passages > 0], passages[passages > 0]


def _hash(word: str) -> int:
    return crc32(_stemmer()(word).encode("utf-8", "surrogatepass")) or 1


@cache
def _stemmer() -> Callable[[str], str]:
    import Stemmer

    stem: Callable[[str], str] = Stemmer.Stemmer("porter").stemWord
    return stem
