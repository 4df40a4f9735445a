"""Tables from texts to rows, in flat files.

Keys are stored as 64-bit hashes (BLAKE2b) in ascending order, so that a table is mapped, not loaded, and a look-up is a
binary search. Among ten million keys, the probability that any two collide is 3 in a million. Tables of several segments are
joined in memory, without deleted items.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import blake2b
from itertools import accumulate, chain
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
from nlp_retrieval.text.surfaces import MOST_WORDS, Surface, compared, grouped, is_mention, spans_of, words_of, written_words

Hashes = NDArray[np.uint64]
"""``[n]`` hashes of terms."""

_STEP = 1024


def hash_of(key: str) -> int:
    """Return the 64-bit hash of a text that is valid Unicode.

    Examples:
        >>> hash_of("krill") == hash_of("krill")
        True
    """
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "little")


@dataclass(frozen=True, eq=False)
class HashedRows:
    """Rows by key: key number k has the hash ``hashes[k]``, ascending, and ``rows[offsets[k]:offsets[k + 1]]``, ascending."""

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
    def joined(cls, tables: Sequence[tuple[HashedRows, int, Mask | None]], keys: Hashes | None = None) -> HashedRows:
        """Join tables of segments, each with the segment's first row and mask of rows that are not deleted (None for all)."""
        hashes, rows = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
        for table, first_row, live in tables:
            numbers = np.arange(len(table.hashes)) if keys is None else table.find(keys)
            entries, counts = entries_of(table.offsets, numbers := numbers[numbers >= 0])
            kept = np.ones(len(entries), bool) if live is None else live[table.rows[entries]]
            hashes.append(np.repeat(table.hashes[numbers], counts)[kept])
            rows.append(table.rows[entries][kept] + first_row)
        return cls(*grouped(np.concatenate(hashes), np.concatenate(rows)))

    def write(self, folder: Path, name: str) -> None:
        """Write three files ``<name>_*.npy`` into an existing folder. Equal tables give equal bytes."""
        for part, column in (("hashes", self.hashes), ("offsets", self.offsets), ("rows", self.rows)):
            np.save(folder / f"{name}_{part}.npy", column, allow_pickle=False)

    @classmethod
    def open(cls, folder: Path, name: str, n_rows: int) -> HashedRows:
        """Map a table that :meth:`write` wrote, and check it once."""
        hashes: Hashes = mapped(folder / f"{name}_hashes.npy", np.uint64)
        offsets: Rows = mapped(folder / f"{name}_offsets.npy", np.int64, (len(hashes) + 1,))
        rows: Rows = mapped(folder / f"{name}_rows.npy", np.int64)
        check_offsets(folder / f"{name}_offsets.npy", offsets, len(rows))
        check_rising(folder / f"{name}_offsets.npy", offsets)
        check_rising(folder / f"{name}_hashes.npy", hashes)
        check_numbers(folder / f"{name}_rows.npy", rows, n_rows)
        return cls(hashes, offsets, rows)

    def find(self, hashes: Hashes) -> Rows:
        """Return the numbers of the keys with these hashes, -1 if there is no such key."""
        return places_in(self.hashes, hashes)

    def rows_of(self, number: int) -> Rows:
        """Return the rows of a key."""
        return self.rows[self.offsets[number] : self.offsets[number + 1]]


def places_in(ascending: NDArray[Any], wanted: NDArray[Any]) -> Rows:
    """Return where each wanted number is among ascending ones; -1 if it is not there."""
    if len(ascending) == 0:
        return np.full(len(wanted), -1)
    places = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    return np.where(ascending[places] == wanted, places, -1)


def check_rising(path: Path, numbers: NDArray[np.integer]) -> None:
    """Check that each number is larger than the one before, as a binary search requires.

    Raises:
        IndexDamagedError: one is not; the message names ``path``.

    Examples:
        >>> check_rising(Path("hashes.npy"), np.array([1, 5, 9]))
    """
    if (numbers[1:] <= numbers[:-1]).any():
        raise damaged(path, "its numbers do not ascend")


# The terms of passages: those of title and content, and those of the title.
#
# A term is a stemmed word (Porter), stored as a 32-bit hash. In a collection of a million terms, a given term collides with
# another with a probability of 1 in 4,000; a collision only changes a share of coverage.


Terms = NDArray[np.uint32]

_AT_ONCE = 1 << 20
_MARKED_BITS = 20
_COMMON = 1 / 32
ASKED = frozenset(
    "also did do does from had has have he her his how its she that what when where which who whom whose were".split()
)
"""Words that ask or refer: a passage that happens to contain one does not answer the query by it."""


def term_of(word: str) -> int:
    """Return the hash of a word in its compared form; never 0."""
    return crc32(stem_of(word).encode("utf-8", "surrogatepass")) or 1


def stem_of(word: str) -> str:
    """Return the Porter stem of a word in its compared form."""
    return _stemmer()(word)


@cache
def _stemmer() -> Callable[[str], str]:
    import Stemmer

    stem: Callable[[str], str] = Stemmer.Stemmer("porter").stemWord
    return stem


def _terms_in(text: str, known: dict[str, int]) -> set[int]:
    return {known.get(word) or known.setdefault(word, term_of(word)) for word in words_of(text)}


@dataclass(frozen=True, eq=False)
class PassageTerms:
    """The terms of every passage; a deleted one has none. The files of a single segment stay mapped.

    Args:
        hashes: terms of title and content; passage i has ``hashes[offsets[i]:offsets[i + 1]]``, ascending, each once.
        offsets: ``[passages + 1]``.
        vocabulary: all terms, ascending.
        passages: for each term of the vocabulary, the number of passages that have it.
        title_hashes: the same as ``hashes`` for the titles alone.
        title_offsets: ``[passages + 1]``.
        title_keys: ``[passages]``, equal for equal titles; 0 without a title.
        shares: ``[passages]``, the share of the title's terms in the content, 0 to 1; 1 without a title.
        n_passages: number of passages that are not deleted.
    """

    hashes: Terms
    offsets: Rows
    vocabulary: Terms
    passages: NDArray[np.int32]
    title_hashes: Terms
    title_offsets: Rows
    title_keys: NDArray[np.int64]
    shares: NDArray[np.float32]
    n_passages: int

    @classmethod
    def of(cls, items: ItemTable) -> PassageTerms:
        """Read all items, streamed; memory holds 4 bytes per term of a passage."""
        known: dict[str, int] = {}
        hashes, titles = array("I"), array("I")
        counts, title_counts, keys = np.zeros((3, len(items)), np.int64)
        shares = np.ones(len(items), np.float32)
        with progress("reading terms", len(items)) as advance:
            for row, item in enumerate(items.stream({"title"})):
                content, title = _terms_in(item.content, known), _terms_in(item.title, known)
                hashes.extend(sorted(content | title))
                titles.extend(sorted(title))
                counts[row], title_counts[row] = len(content | title), len(title)
                if title:
                    keys[row], shares[row] = (hash_of(item.title) >> 1) or 1, len(content & title) / len(title)
                if row % _STEP == _STEP - 1:
                    advance(_STEP)
        of_passages, of_titles = np.array(hashes, np.uint32), np.array(titles, np.uint32)
        vocabulary, passages = np.unique(of_passages, return_counts=True)
        offsets, title_offsets = offsets_of(counts), offsets_of(title_counts)
        ones = passages.astype(np.int32)
        return cls(of_passages, offsets, vocabulary, ones, of_titles, title_offsets, keys, shares, len(items))

    def write(self, folder: Path) -> None:
        """Write eight files ``terms_*.npy`` into an existing folder."""
        for name in _TERM_COLUMNS:
            np.save(folder / f"terms_{name}.npy", getattr(self, name), allow_pickle=False)

    @classmethod
    def open_all(cls, segments: Sequence[SegmentFolder]) -> PassageTerms:
        """Open the files that :meth:`write` wrote for each segment of an index.

        Raises:
            IndexDamagedError: a file is missing, cut off, or not such a file.
        """
        parts = [_opened_terms(segment) for segment in segments]
        if len(parts) == 1:
            return parts[0]

        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(part, name) for part in parts])

        def offsets(name: str) -> Rows:
            return offsets_of(np.concatenate([np.diff(getattr(part, name)) for part in parts]))

        vocabulary, number = np.unique(joined("vocabulary"), return_inverse=True)
        passages = np.bincount(number, joined("passages"), len(vocabulary)).astype(np.int32)
        of_titles = joined("title_hashes"), offsets("title_offsets"), joined("title_keys"), joined("shares")
        n_passages = sum(part.n_passages for part in parts)
        return cls(joined("hashes"), offsets("offsets"), vocabulary, passages, *of_titles, n_passages)

    def without(self, deleted: Mask) -> PassageTerms:
        """Return the terms without those of deleted passages, ``[passages]``."""
        kept, title_kept = ~np.repeat(deleted, np.diff(self.offsets)), ~np.repeat(deleted, np.diff(self.title_offsets))
        gone = self.hashes[~kept]
        gone = gone[np.isin(gone, self.vocabulary)]  # a damaged file may hold other values
        passages = self.passages - np.bincount(np.searchsorted(self.vocabulary, gone), minlength=len(self.vocabulary))
        return PassageTerms(
            self.hashes[kept],
            offsets_of(np.where(deleted, 0, np.diff(self.offsets))),
            self.vocabulary[passages > 0],
            passages[passages > 0].astype(np.int32),
            self.title_hashes[title_kept],
            offsets_of(np.where(deleted, 0, np.diff(self.title_offsets))),
            np.where(deleted, 0, self.title_keys),
            self.shares,
            self.n_passages - int(deleted.sum()),
        )

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
        information: Scores = np.log1p((self.n_passages - having + 0.5) / (having + 0.5))
        return information

    def of_rows(self, rows: Rows) -> tuple[Terms, Rows]:
        """Return the terms of some passages, one passage after another, and how many each has."""
        entries, counts = entries_of(self.offsets, rows)
        return self.hashes[entries], counts

    def named(self, rows: Rows) -> Scores:
        """Return for each passage the extent to which it is about its title: 0 to 1, and 1 without a title.

        This is twice the share of the title's terms that its content has, at most 1 (for the parts of a document with one
        title, the greatest of their shares).
        """
        named: Scores = np.minimum(1.0, 2.0 * self._greatest_shares[rows].astype(np.float64))
        return named

    @cached_property
    def bearers(self) -> Rows:
        """``[rows]``: equal for passages with the same title; each passage without one has a number of its own, below 0."""
        return np.where(self.title_keys > 0, self.title_keys, -1 - np.arange(len(self.title_keys)))

    @cached_property
    def _greatest_shares(self) -> NDArray[np.float32]:
        """``[rows]``: the greatest share of all passages with the same title."""
        order = np.argsort(self.bearers, kind="stable")
        begins = np.flatnonzero(np.diff(self.bearers[order], prepend=np.iinfo(np.int64).min))
        shares = np.empty(len(order), np.float32)
        shares[order] = np.repeat(np.maximum.reduceat(self.shares[order], begins), np.diff(begins, append=len(order)))
        return shares

    def title_shares(self, query: str, rows: Rows) -> Scores:
        """Return for each passage the share of its title's terms in a query; 0 without a title."""
        wanted = np.array([term_of(word) for word in words_of(query)], np.uint32)
        entries, counts = entries_of(self.title_offsets, rows)
        owner = np.repeat(np.arange(len(rows)), counts)
        n_shared = np.bincount(owner[np.isin(self.title_hashes[entries], wanted)], minlength=len(rows))
        return n_shared / np.maximum(counts, 1)

    def covered(self, terms: Terms, rows: Rows) -> NDArray[np.bool_]:
        """Return ``[rows, terms]``: whether each passage has each term; ``terms`` are ascending."""
        covered = np.zeros((len(rows), len(terms)), bool)
        hashes, counts = self.of_rows(rows)
        places = places_in(terms, hashes)
        covered[np.repeat(np.arange(len(rows)), counts)[places >= 0], places[places >= 0]] = True
        return covered

    def holding(self, phrases: Sequence[Sequence[str]]) -> list[Rows]:
        """Return for each phrase the passages that may contain all its words, ascending, in one pass over all terms.

        Only the two rarest words of a phrase are looked up, and the second only if at most one of 32 passages has it.
        """
        asked: list[Terms] = []
        for words in phrases:
            terms = np.array(sorted(map(term_of, {*words})), np.uint32)
            having = self._n_passages_with(terms)
            rarest = np.argsort(having, kind="stable")[:2]
            asked.append(terms[rarest][: 1 + np.count_nonzero(having[rarest[1:]] <= self.n_passages * _COMMON)])
        distinct = np.unique(np.concatenate([np.zeros(0, np.uint32), *asked]))
        begins, rows = self._postings(distinct)
        holding = []
        for terms in asked:
            lists = [rows[begins[number] : begins[number + 1]] for number in np.searchsorted(distinct, terms).tolist()]
            holding.append(lists[0] if len(lists) == 1 else np.intersect1d(lists[0], lists[1], assume_unique=True))
        return holding

    def _n_passages_with(self, terms: Terms) -> Scores:
        places, counts = places_in(self.vocabulary, terms), np.zeros(len(terms))
        counts[places >= 0] = self.passages[places[places >= 0]]
        return counts

    def _postings(self, terms: Terms) -> tuple[Rows, Rows]:
        """The passages that have each of some ascending terms: the offsets of the lists, and all lists."""
        marked = np.zeros(1 << _MARKED_BITS, bool)
        marked[terms >> (32 - _MARKED_BITS)] = True
        parts = [np.zeros(0, np.int64)]
        for first in range(0, len(self.hashes), _AT_ONCE):
            parts.append(first + np.flatnonzero(marked[self.hashes[first : first + _AT_ONCE] >> (32 - _MARKED_BITS)]))
        entries = np.concatenate(parts)
        entries = entries[np.isin(self.hashes[entries], terms)]
        number = np.searchsorted(terms, self.hashes[entries])
        rows = np.searchsorted(self.offsets, entries, "right") - 1
        return offsets_of(np.bincount(number, minlength=len(terms))), rows[np.argsort(number, kind="stable")]


_TERM_COLUMNS: dict[str, type[np.generic]] = {
    "hashes": np.uint32,
    "offsets": np.int64,
    "vocabulary": np.uint32,
    "passages": np.int32,
    "title_hashes": np.uint32,
    "title_offsets": np.int64,
    "title_keys": np.int64,
    "shares": np.float32,
}


def _opened_terms(segment: SegmentFolder) -> PassageTerms:
    path = {name: segment.folder / f"terms_{name}.npy" for name in _TERM_COLUMNS}
    columns = {name: mapped(path[name], dtype) for name, dtype in _TERM_COLUMNS.items()}
    terms = PassageTerms(**columns, n_passages=len(segment))
    lengths = {len(terms.offsets), len(terms.title_offsets), len(terms.title_keys) + 1, len(terms.shares) + 1}
    fits = len(terms.vocabulary) == len(terms.passages) and lengths == {len(segment) + 1}
    if not fits or terms.passages.min(initial=1) < 1 or terms.passages.sum(dtype=np.int64) != len(terms.hashes):
        raise IndexDamagedError(f"the files terms_*.npy in {segment.folder} contradict one another; {CURE}")
    check_offsets(path["offsets"], terms.offsets, len(terms.hashes))
    check_offsets(path["title_offsets"], terms.title_offsets, len(terms.title_hashes))
    check_rising(path["vocabulary"], terms.vocabulary)
    if not ((terms.shares >= 0) & (terms.shares <= 1)).all():
        raise damaged(path["shares"], "it holds a number that is no share")
    return terms if segment.live is None else terms.without(~segment.live)


# The titles of an index, for finding them in queries and texts.
#
# The key of a title is a polynomial of the hashes of its words; it begins with _LOWER where a mention may begin in lower case.
# The beginnings of titles are stored too, so that the search at a word stops as soon as no title continues in this way.


_FEWEST_ALONE = 6
_TIMES, _LOWER, _BITS = 0x9E3779B97F4A7C15, 1, (1 << 64) - 1
_TABLE, _PREFIXES = "title", "title_prefixes.npy"


class TitleMention(NamedTuple):
    """Mention of a title in a query: the items that carry it, and where it begins and ends, in characters."""

    rows: Rows
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class TitleTable:
    """The surfaces of an index by their words, and the hashes of their beginnings, ascending."""

    table: HashedRows
    prefixes: Hashes

    @classmethod
    def of(cls, surfaces: Iterable[tuple[int, Surface]]) -> TitleTable:
        """Build a table from rows and their surfaces."""
        prefixes, keys, rows = array("Q"), array("Q"), array("q")
        for row, surface in surfaces:
            words = list(map(hash_of, surface.words))
            for begin in (0, _LOWER) if surface.lower else (0,):
                *beginnings, key = accumulate(words, lambda before, word: (before * _TIMES + word) & _BITS, initial=begin)
                prefixes.extend(beginnings[1:])
                keys.append(key)
                rows.append(row)
        table = HashedRows(*grouped(np.array(keys, np.uint64), np.array(rows, np.int64)))
        return cls(table, np.unique(np.array(prefixes, np.uint64)))

    def write(self, folder: Path) -> None:
        """Write four files ``title_*.npy`` into an existing folder. Equal surfaces give equal bytes."""
        self.table.write(folder, _TABLE)
        np.save(folder / _PREFIXES, self.prefixes, allow_pickle=False)

    @classmethod
    def open_all(cls, segments: Sequence[SegmentFolder]) -> TitleTable:
        """Open the tables of all segments as one; that of a single segment without deleted items stays mapped."""
        tables = []
        for segment in segments:
            prefixes: Hashes = mapped(segment.folder / _PREFIXES, np.uint64)
            check_rising(segment.folder / _PREFIXES, prefixes)
            tables.append(
                (cls(HashedRows.open(segment.folder, _TABLE, len(segment)), prefixes), segment.first_row, segment.live)
            )
        return tables[0][0] if len(tables) == 1 and segments[0].live is None else cls.joined(tables)

    @classmethod
    def joined(cls, parts: Sequence[tuple[TitleTable, int, Mask | None]]) -> TitleTable:
        """Join tables, each given with the first row of its segment and its rows that are not deleted (None for all)."""
        prefixes = np.unique(np.concatenate([part.prefixes for part, _, _ in parts]))  # prefixes of deleted titles do no harm
        return cls(HashedRows.joined([(part.table, first_row, live) for part, first_row, live in parts]), prefixes)

    def find(self, query: str) -> list[TitleMention]:
        """Return the titles that a query mentions, in order, by the same rules as in texts."""
        (mentions,) = self._mentioned([query], has_case=any(map(str.isupper, query)))
        return [TitleMention(self.table.rows_of(number), start, end) for number, start, end in mentions]

    def named_in(self, texts: Sequence[str]) -> list[set[int]]:
        """Return the numbers of the titles that each text mentions; meant for hundreds of texts at once."""
        return [{number for number, _, _ in mentions} for mentions in self._mentioned(texts, has_case=True)]

    def _mentioned(self, texts: Sequence[str], *, has_case: bool) -> Iterator[Iterator[tuple[int, int, int]]]:
        """The mentions in each text, in order: number of the title, and where the mention begins and ends."""
        known: dict[str, int] = {}
        words = [[known.setdefault(word, len(known)) for word in written_words(text)] for text in texts]
        ends = offsets_of([len(words_of_text) for words_of_text in words])
        numbers, lasts = self._longest(list(known), np.array([*chain(*words)], np.int64), ends, has_case)
        hits = np.flatnonzero(numbers >= 0)
        bounds = np.searchsorted(hits, ends)
        for text, first, begin, end in zip(texts, ends.tolist(), bounds.tolist(), bounds[1:].tolist(), strict=False):
            part = hits[begin:end]
            columns = part - first, lasts[part] - first, numbers[part]
            yield _without_overlaps(text, zip(*(column.tolist() for column in columns), strict=True))

    def _longest(self, known: list[str], words: Rows, ends: Rows, has_case: bool) -> tuple[Rows, Rows]:
        """For each word of some texts, the number of the longest title that begins there (-1 for none), and the next word."""
        folded = list(map(compared, known))
        hashes = np.array(list(map(hash_of, folded)), np.uint64)
        lower = np.array([word[0].islower() for word in known], bool)
        short = np.array([len(word) < _FEWEST_ALONE for word in folded], bool)
        in_lower_case = np.uint64(_LOWER * _TIMES & _BITS)
        alone = hashes + in_lower_case * (lower & (short | has_case))
        begins = hashes + in_lower_case * (lower & has_case)
        numbers, lasts = self.table.find(alone)[words], np.arange(1, len(words) + 1)
        end_of = np.repeat(ends[1:], np.diff(ends))
        places = np.flatnonzero(self._continues(begins)[words])
        keys = begins[words[places]]
        for width in range(2, MOST_WORDS + 1):
            inside = places + width <= end_of[places]
            places, keys = places[inside], keys[inside]
            if len(places) == 0:
                break
            keys = keys * np.uint64(_TIMES) + hashes[words[places + width - 1]]
            entries = self.table.find(keys)
            numbers[places[entries >= 0]] = entries[entries >= 0]
            lasts[places[entries >= 0]] = places[entries >= 0] + width
            goes_on = self._continues(keys)
            places, keys = places[goes_on], keys[goes_on]
        return numbers, lasts

    def _continues(self, hashes: Hashes) -> Mask:
        """Whether a title begins with each of some words and goes on."""
        matches: Mask = places_in(self.prefixes, hashes) >= 0
        return matches


def _without_overlaps(text: str, mentions: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """Choose the mentions that do not overlap, from left to right."""
    spans: list[tuple[int, int]] = []
    free = 0
    for first, last, number in mentions:
        spans = spans or spans_of(text)
        if first >= free:
            free = last
            if is_mention(text, spans, first, last):
                yield number, spans[first][0], spans[last - 1][1]
