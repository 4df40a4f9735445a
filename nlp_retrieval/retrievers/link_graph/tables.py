"""Tables from texts to rows, in flat files.

Keys are stored as 64-bit hashes (BLAKE2b) in ascending order, so that a table is mapped, not loaded, and a look-up is a
binary search. Among ten million keys, the probability that any two collide is 3 in a million.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows, Scores, entries_of, offsets_of
from nlp_retrieval.core.files.columns import CURE, check_numbers, check_offsets, damaged, mapped
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.progress_bars import progress
from nlp_retrieval.core.queries import STOP_WORDS
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.text.surfaces import MOST_WORDS, Surface, grouped, is_mention, spans_of, words_of

Hashes = NDArray[np.uint64]
"""``[n]`` hashes of terms."""


def hash_of(key: str) -> int:
    """Return the 64-bit hash of a text that is valid Unicode.

    Examples:
        >>> hash_of("krill") == hash_of("krill")
        True
    """
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
        """Join tables of several segments, without the rows of deleted items, and without keys that only those rows have."""
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
        """Map a table that :meth:`write` wrote, and check it once."""
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
        is_there = np.zeros(len(hashes), bool)
        inside = places < len(self.hashes)
        is_there[inside] = self.hashes[places[inside]] == hashes[inside]
        return np.where(is_there, places, -1)

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
        """Return hashes of keys and the rows of the index that have them, without deleted items."""
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

    Examples:
        >>> check_rising(Path("hashes.npy"), np.array([1, 5, 9]))
    """
    if (numbers[1:] <= numbers[:-1]).any():
        raise damaged(path, "its numbers do not ascend")


# The terms of the passages of one segment in flat files: those of title and content, and those of the title.
#
# A term is a stemmed word (Porter), stored as a 32-bit hash. In a collection of a million terms, a given term collides with
# another with a probability of 1 in 4,000; a collision only changes a share of coverage.


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
        numbers_of_terms: dict[str, int] = {}
        hashes, titles = array("I"), array("I")
        counts, title_counts, keys = np.zeros((3, len(items)), np.int64)
        named = np.ones(len(items), np.float32)
        with progress("reading terms", len(items)) as advance:
            for row, item in enumerate(items.stream({"title"})):
                content, title = _terms_in(item.content, numbers_of_terms), _terms_in(item.title, numbers_of_terms)
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
        """Map the files that :meth:`write` wrote."""
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
    return crc32(stem_of(word).encode("utf-8", "surrogatepass")) or 1


def stem_of(word: str) -> str:
    """Return the Porter stem of a word in its compared form."""
    return _stemmer()(word)


def _terms_in(text: str, known: dict[str, int]) -> set[int]:
    return {known.get(word) or known.setdefault(word, term_of(word)) for word in words_of(text)}


@cache
def _stemmer() -> Callable[[str], str]:
    import Stemmer

    stem: Callable[[str], str] = Stemmer.Stemmer("porter").stemWord
    return stem


# The terms of the passages of an index, for the share of a query that one passage, or several together, cover.


_AT_ONCE = 1 << 20
_MARKED_BITS = 20
_MOST_ASKED = 2
_COMMON = 1 / 32
ASKED = frozenset(
    "also did do does from had has have he her his how its she that what when where which who whom whose were".split()
)
"""Words that ask or refer: a passage that happens to contain one does not answer the query by it."""


class PassageTerms:
    """The terms of every passage of an index.

    Args:
        segments: the segments of the index.
        files: the terms of each segment.

    Examples:
        >>> from nlp_retrieval.core import open_generation
        >>> report = Searcher(["bm25"]).index(items, "index")
        >>> Path("terms").mkdir()
        >>> PassageTerms.write(Path("terms"), open_generation("index").items)
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
        wanted = {term_of(word) for word in words_of(query) if word not in STOP_WORDS and word not in ASKED}
        terms = np.array(sorted(wanted), np.uint32)
        terms = terms[self._n_passages_with(terms) > 0]
        information = self.information_of(terms)
        return terms, information / (information.sum() or 1.0)

    def information_of(self, terms: Terms) -> Scores:
        """Return the inverse document frequency of each term, as BM25 defines it."""
        having = self._n_passages_with(terms)
        information: Scores = np.log1p((self._n_passages - having + 0.5) / (having + 0.5))
        return information

    def of_rows(self, rows: Rows) -> tuple[Terms, Rows]:
        """Return the terms of some passages, one passage after another, and how many each has."""
        return self._entries_of_rows(rows, "hashes", "offsets")

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
        terms, counts = self._entries_of_rows(rows, "title_hashes", "title_offsets")
        owner = np.repeat(np.arange(len(rows)), counts)
        n_shared = np.bincount(owner[np.isin(terms, wanted)], minlength=len(rows))
        return n_shared / np.maximum(counts, 1)

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
        terms_of_phrases: list[Terms] = []
        for terms in wanted:
            having = self._n_passages_with(terms)
            rarest = np.argsort(having, kind="stable")[:_MOST_ASKED]
            terms_of_phrases.append(terms[rarest][: 1 + np.count_nonzero(having[rarest[1:]] <= self._n_passages * _COMMON)])
        distinct = np.unique(np.concatenate([np.zeros(0, np.uint32), *terms_of_phrases]))
        begins, rows = self._postings(distinct)
        by_phrase = []
        for terms in terms_of_phrases:
            lists = [rows[begins[number] : begins[number + 1]] for number in np.searchsorted(distinct, terms).tolist()]
            lists.sort(key=len)
            rows_with_all = lists[0]
            for other in lists[1:]:
                rows_with_all = rows_with_all[np.isin(rows_with_all, other, assume_unique=True)]
            by_phrase.append(rows_with_all)
        return by_phrase

    def _by_segment(self, rows: Rows) -> Iterator[tuple[int, Rows]]:
        """The segments of some rows, by number, and the positions of the rows."""
        owner = np.searchsorted(self._starts, rows, "right") - 1
        for number in np.unique(owner).tolist():
            yield number, np.flatnonzero(owner == number)

    def _entries_of_rows(self, rows: Rows, hashes: str, offsets: str) -> tuple[Terms, Rows]:
        """Entries of a column of all segments for some rows, one row after another, and how many each has."""
        places, terms, counts = [np.zeros(0, np.int64)], [np.zeros(0, np.uint32)], np.zeros(len(rows), np.int64)
        for number, in_segment in self._by_segment(rows):
            files = self._files[number]
            entries, counts[in_segment] = entries_of(getattr(files, offsets), rows[in_segment] - self._starts[number])
            terms.append(getattr(files, hashes)[entries])
            places.append(np.repeat(in_segment, counts[in_segment]))
        order = np.argsort(np.concatenate(places), kind="stable") if len(terms) > 2 else slice(None)
        return np.concatenate(terms)[order], counts

    def _n_passages_with(self, terms: Terms) -> Scores:
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


# The titles of an index in flat files, for finding them in queries and texts.
#
# The table is mapped, not loaded. It also stores the beginnings of titles, so that the search for a title at a word of a text
# stops as soon as no title continues in this way.


_FEWEST_ALONE = 6
_TABLE, _PREFIXES = "title", "title_prefixes.npy"


@dataclass(frozen=True, eq=False)
class TitleMention:
    """Mention of a title in a query.

    Args:
        rows: the items that carry the title or alias.
        start: where in the query the mention begins, in characters.
        end: where it ends.
        text: the wording of the query there.
    """

    rows: Rows
    start: int
    end: int
    text: str


class TitleTable:
    """The surfaces of an index by their words, memory-mapped; opening it checks it once and loads nothing."""

    def __init__(self, table: HashedRows, prefixes: Hashes) -> None:
        self.table = table
        self._prefixes = prefixes

    @classmethod
    def of(cls, surfaces: Iterable[tuple[int, Surface]]) -> TitleTable:
        """Build a table from rows and their surfaces."""
        prefixes = array("Q")

        def pairs() -> Iterator[tuple[str, int]]:
            for row, surface in surfaces:
                for lower in (False, True) if surface.lower else (False,):
                    prefixes.extend(hash_of(_key(surface.words[:n], lower=lower)) for n in range(1, len(surface.words)))
                    yield _key(surface.words, lower=lower), row

        table = HashedRows.of(pairs())
        return cls(table, np.unique(np.array(prefixes, np.uint64)))

    def write(self, folder: Path) -> None:
        """Write four files ``title_*.npy`` into an existing folder. Equal surfaces give equal bytes."""
        self.table.write(folder, _TABLE)
        np.save(folder / _PREFIXES, self._prefixes, allow_pickle=False)

    @classmethod
    def open(cls, folder: Path, n_rows: int) -> TitleTable:
        """Map a table that :meth:`write` wrote."""
        prefixes: Hashes = mapped(folder / _PREFIXES, np.uint64)
        check_rising(folder / _PREFIXES, prefixes)
        return cls(HashedRows.open(folder, _TABLE, n_rows), prefixes)

    @classmethod
    def open_all(cls, segments: Sequence[SegmentFolder]) -> TitleTable:
        """Open the tables of all segments as one, with rows of the index that are not deleted.

        The table of a single segment without deleted items stays mapped; other tables are joined in memory.
        """
        tables = [cls.open(segment.folder, len(segment)) for segment in segments]
        if len(tables) == 1 and segments[0].live is None:
            return tables[0]
        return cls.joined([(table, part.first_row, part.live) for table, part in zip(tables, segments, strict=True)])

    @classmethod
    def joined(cls, parts: Sequence[tuple[TitleTable, int, Mask | None]]) -> TitleTable:
        """Join tables, each given with the first row of its segment and its rows that are not deleted (None for all)."""
        prefixes = np.unique(np.concatenate([part._prefixes for part, _, _ in parts]))  # prefixes of deleted titles do no harm
        return cls(HashedRows.joined([Placed(part.table, first_row, live) for part, first_row, live in parts]), prefixes)

    def renumbered(self, new_rows: Rows) -> TitleTable:
        """Return the table with each row replaced by ``new_rows[row]``; ``new_rows`` must ascend."""
        return TitleTable(self.table.renumbered(new_rows), self._prefixes)

    def find(self, query: str) -> list[TitleMention]:
        """Return the titles that a query mentions, in order, by the same rules as in texts.

        One rule differs: in a query without any upper-case letter, a mention of at least two words or six characters may
        begin in lower case.
        """
        (mentions,) = self._mentioned([query], has_case=any(map(str.isupper, query)))
        return [TitleMention(self.table.rows_of(number), start, end, query[start:end]) for number, start, end in mentions]

    def named_in(self, texts: Sequence[str]) -> list[set[int]]:
        """Return the numbers of the titles that each text mentions, like a matcher; meant for hundreds of texts at once."""
        return [{number for number, _, _ in mentions} for mentions in self._mentioned(texts, has_case=True)]

    def _mentioned(self, texts: Sequence[str], *, has_case: bool) -> list[list[tuple[int, int, int]]]:
        """The mentions in each text, in order: number of the title, and where the mention begins and ends."""
        words: list[str] = []
        lower_only: list[bool] = []  # whether a title of one word must begin in lower case to be mentioned here
        longer: list[bool] = []  # the same for a title of several words that begins here
        ends: list[int] = []
        spans = []
        for text in texts:
            spans.append(spans_of(text))
            words += words_of(text)
            ends += [len(words)] * len(spans[-1])
            for (start, _), word in zip(spans[-1], words[len(lower_only) :], strict=True):
                lower = text[start].islower()
                longer.append(lower and has_case)
                lower_only.append(lower and (has_case or len(word) < _FEWEST_ALONE))
        numbers, lasts = self._longest(words, np.array(ends, np.int64), lower_only, longer)
        first, mentions = 0, []
        for text, spans_of_text in zip(texts, spans, strict=True):
            part = slice(first, first + len(spans_of_text))
            mentions.append(list(_without_overlaps(text, spans_of_text, numbers[part], lasts[part], first)))
            first += len(spans_of_text)
        return mentions

    def _longest(self, words: list[str], ends: Rows, lower_only: list[bool], longer: list[bool]) -> tuple[list[int], list[int]]:
        """For each word, the number of the longest title that begins there (-1 for none), and the word after its last."""
        numbers, lasts = np.full(len(words), -1, np.int64), np.zeros(len(words), np.int64)
        single = list(zip(words, lower_only, strict=True)), list(zip(words, longer, strict=True))
        hashes = {(word, lower): hash_of(_key((word,), lower=lower)) for word, lower in {*single[0], *single[1]}}
        keys, beginnings = (np.array([hashes[pair] for pair in pairs], np.uint64) for pairs in single)
        places = np.arange(len(words))
        for width in range(1, MOST_WORDS + 1):
            entries = self.table.find(keys)
            numbers[places[entries >= 0]] = entries[entries >= 0]
            lasts[places[entries >= 0]] = places[entries >= 0] + width
            places = places[self._begins_title(beginnings) & (places + width < ends[places])]
            if len(places) == 0:
                break
            parts = [_key(words[begin : begin + width + 1], lower=longer[begin]) for begin in places.tolist()]
            keys = beginnings = np.array(list(map(hash_of, parts)), np.uint64)
        return numbers.tolist(), lasts.tolist()

    def _begins_title(self, hashes: Hashes) -> Mask:
        if len(self._prefixes) == 0:
            return np.zeros(len(hashes), bool)
        places = np.minimum(np.searchsorted(self._prefixes, hashes), len(self._prefixes) - 1)
        matches: Mask = self._prefixes[places] == hashes
        return matches


def _without_overlaps(
    text: str, spans: list[tuple[int, int]], numbers: list[int], lasts: list[int], offset: int
) -> Iterator[tuple[int, int, int]]:
    """Choose the mentions that do not overlap, from left to right."""
    free = 0
    for first, number in enumerate(numbers):
        if number < 0 or first < free:
            continue
        free = lasts[first] - offset
        if is_mention(text, spans, first, free):
            yield number, spans[first][0], spans[free - 1][1]


def _key(words: Sequence[str], *, lower: bool) -> str:
    return "\0".join(["lower" if lower else "", *words])
