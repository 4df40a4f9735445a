"""The terms of the passages of an index, for the share of a query that one passage, or several together, cover."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows, Scores, entries_of, offsets_of
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.queries import STOP_WORDS
from nlp_retrieval.retrievers.link_graph.store.term_files import TermFiles, Terms, term_of
from nlp_retrieval.text.surfaces import words_of

_AT_ONCE = 1 << 20
_MARKED_BITS = 20
_MOST_ASKED = 2
_COMMON = 1 / 32
_ASKED = frozenset(
    "also did do does from had has have he her his how its she that what when where which who whom whose were".split()
)
"""Words that ask or refer: a passage that happens to contain one does not answer the query by it."""


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
        """Write the terms of all items, title and content, as files of :class:`TermFiles` into an existing folder."""
        TermFiles.read_from(items).write(folder)

    @classmethod
    def read_from(cls, items: ItemTable) -> PassageTerms:
        """Read the terms of all items into memory."""
        return cls([SegmentFolder(Path(), 0, len(items))], [TermFiles.read_from(items)])

    @classmethod
    def open_all(cls, segments: Sequence[SegmentFolder]) -> PassageTerms:
        """Open the terms of all segments of an index; deleted passages do not count.

        Raises:
            IndexDamagedError: a file is missing, cut off, or not such a file.
        """
        return cls(segments, [TermFiles.open(segment.folder, len(segment)) for segment in segments])

    def write_joined(self, folder: Path) -> None:
        """Write the terms of passages that are not deleted as one segment."""
        parts: list[list[NDArray[Any]]] = []
        for segment, files in zip(self._segments, self._files, strict=True):
            rows = np.arange(len(segment)) if segment.live is None else np.flatnonzero(segment.live)
            counts, title_counts = np.diff(files.offsets)[rows], np.diff(files.title_offsets)[rows]
            parts.append(
                [
                    files.terms_of(rows),
                    counts,
                    files.title_terms_of(rows),
                    title_counts,
                    files.title_keys[rows],
                    files.named[rows],
                ]
            )
        TermFiles.of(*(np.concatenate(column) for column in zip(*parts, strict=True))).write(folder)

    def of_query(self, query: str) -> tuple[Terms, Scores]:
        """Return the terms of a query that at least one passage has, and the share of its information that each carries.

        The information of a term is its inverse document frequency as BM25 defines it; stop words carry none. Shares sum
        to 1 if there are any terms.
        """
        wanted = {term_of(word) for word in words_of(query) if word not in STOP_WORDS and word not in _ASKED}
        terms = np.array(sorted(wanted), np.uint32)
        terms = terms[self._having(terms) > 0]
        information = self.information_of(terms)
        return terms, information / (information.sum() or 1.0)

    def information_of(self, terms: Terms) -> Scores:
        """Return the inverse document frequency of each term, as BM25 defines it."""
        having = self._having(terms)
        information: Scores = np.log1p((self._n_passages - having + 0.5) / (having + 0.5))
        return information

    def of_rows(self, rows: Rows) -> tuple[Terms, Rows]:
        """Return the terms of some passages, one passage after another, and how many each has."""
        return self._gathered(rows, "hashes", "offsets")

    def named(self, rows: Rows) -> Scores:
        """Return for each passage the extent to which it is about its title: 0 to 1, and 1 without a title.

        This is twice the share of the title's terms that its content has, at most 1 (for the parts of a document with one
        title, the greatest of their shares).
        """
        named: Scores = np.minimum(1.0, 2.0 * self._named[rows].astype(np.float64))
        return named

    @cached_property
    def bearers(self) -> Rows:
        """``[rows]``: equal for passages with the same title; each passage without one has a number of its own, below 0."""
        keys = np.concatenate([np.zeros(0, np.int64), *(files.title_keys for files in self._files)])
        return np.where(keys > 0, keys, -1 - np.arange(len(keys)))

    @cached_property
    def _named(self) -> NDArray[np.float32]:
        """``[rows]``: the share of the title's terms in a passage, or the greatest of all passages with the same title."""
        named = np.concatenate([np.zeros(0, np.float32), *(files.named for files in self._files)])
        for segment in self._segments:
            if segment.live is not None:
                named[segment.rows][~segment.live] = 0.0  # deleted passages do not count for the others
        keys = self.bearers
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        begins = np.flatnonzero(np.append(np.ones(min(1, len(keys)), bool), ordered[1:] != ordered[:-1]))
        most = np.maximum.reduceat(named[order], begins) if len(order) else named
        named[order] = np.repeat(most, np.diff(begins, append=len(order)))
        return named

    def title_shares(self, query: str, rows: Rows) -> Scores:
        """Return for each passage the share of its title's terms in a query; 0 without a title."""
        wanted = np.array([term_of(word) for word in words_of(query)], np.uint32)
        terms, counts = self._gathered(rows, "title_hashes", "title_offsets")
        owner = np.repeat(np.arange(len(rows)), counts)
        found = np.bincount(owner[np.isin(terms, wanted)], minlength=len(rows))
        return found / np.maximum(counts, 1)

    def covered(self, terms: Terms, rows: Rows) -> NDArray[np.bool_]:
        """Return ``[rows, terms]``: whether each passage has each term.

        Args:
            terms: ascending.
            rows: rows of the passages.
        """
        covered = np.zeros((len(rows), len(terms)), bool)
        if len(terms) == 0:
            return covered
        hashes, counts = self.of_rows(rows)
        places = np.minimum(np.searchsorted(terms, hashes), len(terms) - 1)
        hit = terms[places] == hashes
        covered[np.repeat(np.arange(len(rows)), counts)[hit], places[hit]] = True
        return covered

    def holding(self, phrases: Sequence[Sequence[str]]) -> list[Rows]:
        """Return for each phrase the passages that may contain all its words, ascending, in one pass over all terms.

        Only the two rarest words of a phrase are looked up, and the second only if at most one of 32 passages has it.

        Args:
            phrases: the words of each as they are compared, at least one.
        """
        wanted = [np.array(sorted({term_of(word) for word in words}), np.uint32) for words in phrases]
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

    def _by_segment(self, rows: Rows) -> Iterator[tuple[int, Rows]]:
        """The segments of some rows, by number, and the positions of the rows."""
        owner = np.searchsorted(self._starts, rows, "right") - 1
        for number in np.unique(owner).tolist():
            yield number, np.flatnonzero(owner == number)

    def _gathered(self, rows: Rows, hashes: str, offsets: str) -> tuple[Terms, Rows]:
        """Entries of a column of all segments for some rows, one row after another, and how many each has."""
        places, terms, counts = [np.zeros(0, np.int64)], [np.zeros(0, np.uint32)], np.zeros(len(rows), np.int64)
        for number, here in self._by_segment(rows):
            files = self._files[number]
            entries, counts[here] = entries_of(getattr(files, offsets), rows[here] - self._starts[number])
            terms.append(getattr(files, hashes)[entries])
            places.append(np.repeat(here, counts[here]))
        order = np.argsort(np.concatenate(places), kind="stable") if len(terms) > 2 else slice(None)
        return np.concatenate(terms)[order], counts

    def _having(self, terms: Terms) -> Scores:
        """Return how many passages have each term."""
        if len(self._vocabulary) == 0:
            return np.zeros(len(terms))
        places = np.minimum(np.searchsorted(self._vocabulary, terms), len(self._vocabulary) - 1)
        return np.where(self._vocabulary[places] == terms, self._passages[places], 0).astype(np.float64)

    def _postings(self, terms: Terms) -> tuple[Rows, Rows]:
        """The passages that have each of some terms: the offsets of the lists, and all lists."""
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
    """All terms, and the number of passages that have each, without deleted ones."""
    vocabulary = np.unique(np.concatenate([part.vocabulary for part in files]))
    passages = np.zeros(len(vocabulary), np.int64)
    for segment, part in zip(segments, files, strict=True):
        passages[np.searchsorted(vocabulary, part.vocabulary)] += part.passages
        if segment.live is not None:
            deleted = part.terms_of(np.flatnonzero(~segment.live))
            deleted = deleted[np.isin(deleted, vocabulary)]  # a damaged file may hold other values
            passages -= np.bincount(np.searchsorted(vocabulary, deleted), minlength=len(vocabulary))
    return vocabulary[passages > 0], passages[passages > 0]
