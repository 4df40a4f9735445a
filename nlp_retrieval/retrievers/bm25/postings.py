"""The files of a bm25 index: memory-mapped postings, checked to fit together when they are opened.

Checks go beyond checksums, because compiled code uses the numbers as indices.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedWriter
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask
from nlp_retrieval.core.files.columns import Stream, check_numbers, check_offsets, damaged, mapped, read_texts

ROWS = "rows.npy"
FREQUENCIES = "frequencies.npy"
INDPTR = "indptr.npy"
_LENGTHS = "lengths.npy"
_VOCABULARY = "vocabulary.json"
_POSTINGS_AT_ONCE = 2**20


@dataclass(frozen=True)
class Postings:
    """The inverted index.

    Args:
        rows: item row of every posting, ascending within a term.
        frequencies: how often the term occurs in the item.
        indptr: ``[terms + 1]``; term t has the postings ``indptr[t]:indptr[t + 1]``.
        lengths: ``[items]``, in terms.
    """

    rows: NDArray[np.int32]
    frequencies: NDArray[np.int32]
    indptr: NDArray[np.int64]
    lengths: NDArray[np.int32]


class PostingFiles(NamedTuple):
    """The opened files: the postings, and the numbers of their terms by stem, in the alphabetical order of the stems."""

    postings: Postings
    vocabulary: dict[str, int]


def open_files(folder: Path, n_items: int) -> PostingFiles:
    """Open an index."""
    terms = read_texts(folder / _VOCABULARY)
    if not all(term < following for term, following in pairwise(terms)):
        raise damaged(folder / _VOCABULARY, "its terms do not ascend")
    vocabulary = {term: number for number, term in enumerate(terms)}
    rows: NDArray[np.int32] = mapped(folder / ROWS, np.int32)
    frequencies: NDArray[np.int32] = mapped(folder / FREQUENCIES, np.int32, rows.shape)
    indptr: NDArray[np.int64] = mapped(folder / INDPTR, np.int64, (len(vocabulary) + 1,))
    lengths: NDArray[np.int32] = mapped(folder / _LENGTHS, np.int32, (n_items,))
    check_postings(folder, rows, indptr, len(lengths))
    if len(frequencies) and frequencies.min() < 1:
        raise damaged(folder / FREQUENCIES, f"a term occurs {frequencies.min()} times in an item")
    counted = np.zeros(len(lengths))
    for begin, end in pairwise([*range(0, len(rows), _POSTINGS_AT_ONCE), len(rows)]):
        counted += np.bincount(rows[begin:end], frequencies[begin:end], len(lengths))
    if not (counted == lengths).all():
        raise damaged(folder, f"{FREQUENCIES} and {_LENGTHS} contradict one another")
    return PostingFiles(Postings(rows, frequencies, indptr, lengths), vocabulary)


def check_postings(folder: Path, rows: NDArray[np.int32], indptr: NDArray[np.int64], n_items: int) -> None:
    """Check that postings can be searched: the terms follow one another, and their rows ascend."""
    check_offsets(folder / INDPTR, indptr, len(rows))
    check_numbers(folder / ROWS, rows, n_items)
    rising = np.ones(len(rows) + 1, np.bool_)
    np.greater(rows[1:], rows[:-1], out=rising[1:-1])
    rising[indptr] = True  # where the next term begins
    if not rising.all():
        raise damaged(folder / ROWS, "the rows of a term do not ascend")


def found_in(rows: NDArray[np.int32], indptr: NDArray[np.int64], live: Mask | None) -> NDArray[np.int64]:
    """The number of items in which each term occurs, not counting deleted ones."""
    counts = np.diff(indptr)
    if live is not None and not live.all():
        deleted = np.flatnonzero(~live[rows])
        terms = np.searchsorted(indptr, deleted, side="right") - 1
        counts -= np.bincount(terms, minlength=len(counts))
    return counts


def term_cuts(indptr: NDArray[np.int64], n_postings: int) -> list[int]:
    """Return cuts of the terms, from 0 to their number, so that a part has fewer than ``n_postings`` before its last term."""
    cuts: list[int] = np.unique([0, *np.searchsorted(indptr, np.arange(0, indptr[-1], n_postings)), len(indptr) - 1]).tolist()
    return cuts


# Writing a bm25 index in bounded memory: postings are spooled as sorted runs and then merged, a range of terms at a time.
#
# A run holds the postings of consecutive rows, by term. Runs come in the order of their rows, so in the merged index a term has
# its postings of the first run, then those of the second, and so on. The segments of an index are such runs too: the same merge
# joins them, without any text. Terms are numbered in alphabetical order, so the files depend on the items alone: joined
# segments have the same bytes as an index built at once.
#
# For the whole corpus, memory holds only the vocabulary, the lengths of the items, and 8 bytes per run and term in it.


Numbers = NDArray[np.int32]

_SPOOL = "spool"
_TOKENS_AT_ONCE = 2**20


class PostingColumn(Protocol):
    """Numbers read at a time."""

    def __getitem__(self, part: slice, /) -> NDArray[Any]: ...


@dataclass(frozen=True)
class Run:
    """Postings by term, with ascending rows within a term; ``terms`` are ascending numbers in the merged vocabulary."""

    terms: NDArray[np.integer]
    counts: NDArray[np.integer]
    """How many postings each term has."""
    rows: PostingColumn
    values: PostingColumn
    """Value of each posting: a frequency, or a weight."""
    kept: NDArray[np.integer]
    """How many postings of each term the merged index keeps."""
    targets: Numbers | None = None
    """For each row of the run its row in the merged index, -1 if it is dropped; None if all rows stay the same."""


def build_files(folder: Path, analyzed: Iterable[tuple[Numbers, Numbers]], vocabulary: dict[str, int], n_items: int) -> None:
    """Write the index of a corpus."""
    lengths = np.zeros(n_items, np.int32)
    spooled: list[tuple[Numbers, Numbers, Spooled, Spooled]] = []
    first = 0
    with (folder / _SPOOL).open("wb") as spool:
        for counts, terms in _joined_batches(analyzed):
            lengths[first : first + len(counts)] = counts
            spooled.append(_spool_run(spool, counts, terms, first, list(vocabulary)))
            first += len(counts)
    ordered = sorted(vocabulary)
    ranks = np.empty(len(ordered), np.int32)
    ranks[np.fromiter(map(vocabulary.__getitem__, ordered), np.int64, len(ordered))] = np.arange(len(ordered), dtype=np.int32)
    runs = [Run(ranks[numbers], counts, rows, times, counts) for numbers, counts, rows, times in spooled]
    del spooled
    _merge(folder, runs, ordered, lengths)
    (folder / _SPOOL).unlink()


def join_files(folder: Path, segments: Sequence[tuple[PostingFiles, Mask | None]]) -> None:
    """Join several indexes into one, without deleted items and with consecutive rows."""
    ordered = sorted(dict.fromkeys(chain.from_iterable(opened.vocabulary for opened, _ in segments)))
    ranks = {term: rank for rank, term in enumerate(ordered)}
    runs: list[Run] = []
    lengths: list[Numbers] = []
    first = 0
    for opened, live in segments:
        postings = opened.postings
        is_live = np.ones(len(postings.lengths), np.bool_) if live is None else live
        terms = np.fromiter(map(ranks.__getitem__, opened.vocabulary), np.int32, len(opened.vocabulary))
        targets = np.where(is_live, np.cumsum(is_live) - 1 + first, -1).astype(np.int32)
        counts, kept = np.diff(postings.indptr), found_in(postings.rows, postings.indptr, live)
        runs.append(Run(terms, counts, postings.rows, postings.frequencies, kept, targets))
        lengths.append(postings.lengths[is_live])
        first += len(lengths[-1])
    _merge(folder, runs, ordered, np.concatenate(lengths))


class Spooled:
    """Numbers in a file that is read, not mapped, so that they do not stay in memory."""

    def __init__(self, spool: BufferedWriter, numbers: NDArray[Any]) -> None:
        self._path, self._offset, self._dtype = Path(spool.name), spool.tell(), numbers.dtype
        spool.write(numbers.data)

    def __getitem__(self, part: slice, /) -> NDArray[Any]:
        begin = self._offset + part.start * self._dtype.itemsize
        return np.fromfile(self._path, self._dtype, part.stop - part.start, offset=begin)


def _joined_batches(analyzed: Iterable[tuple[Numbers, Numbers]]) -> Iterator[tuple[Numbers, Numbers]]:
    """Join batches until they hold enough for a run."""
    waiting: list[tuple[Numbers, Numbers]] = []
    n_tokens = 0
    for batch in analyzed:
        waiting.append(batch)
        n_tokens += len(batch[1])
        if n_tokens >= _TOKENS_AT_ONCE:
            yield _concatenated(waiting)
            waiting, n_tokens = [], 0
    if waiting:
        yield _concatenated(waiting)


def _concatenated(batches: Sequence[tuple[Numbers, Numbers]]) -> tuple[Numbers, Numbers]:
    return np.concatenate([counts for counts, _ in batches]), np.concatenate([terms for _, terms in batches])


def _spool_run(
    spool: BufferedWriter, counts: Numbers, terms: Numbers, first: int, texts: list[str]
) -> tuple[Numbers, Numbers, Spooled, Spooled]:
    """Append a run to the spool: its terms in the order of their texts, how many postings each has, and its columns."""
    distinct = np.flatnonzero(np.bincount(terms, minlength=len(texts))).tolist()
    numbers = np.array(sorted(distinct, key=texts.__getitem__), np.int32)
    places = np.zeros(len(texts), np.int64)
    places[numbers] = np.arange(len(numbers))
    bits = len(counts).bit_length()
    keys = places[terms]
    keys <<= bits
    keys |= np.repeat(np.arange(len(counts)), counts)
    keys.sort()
    begins = np.flatnonzero(np.diff(keys, prepend=-1))
    frequencies = np.diff(begins, append=len(keys)).astype(np.int32)
    pairs = keys[begins]
    rows = (pairs & ((1 << bits) - 1)) + first
    per_term = np.bincount(pairs >> bits, minlength=len(numbers)).astype(np.int32)
    return numbers, per_term, Spooled(spool, rows.astype(np.int32)), Spooled(spool, frequencies)


def _merge(folder: Path, runs: Sequence[Run], vocabulary: Sequence[str], lengths: Numbers) -> None:
    """Merge runs into the files of an index, without terms that have no postings."""
    totals = np.zeros(len(vocabulary), np.int64)
    for run in runs:
        totals[run.terms] += run.kept
    indptr, occurs = np.append(0, np.cumsum(totals)), totals > 0
    merge_runs(runs, indptr, folder / ROWS, folder / FREQUENCIES, np.int32)
    for name, column in ((INDPTR, indptr[np.append(True, occurs)]), (_LENGTHS, lengths)):
        np.save(folder / name, column, allow_pickle=False)
    kept = [term for term, is_kept in zip(vocabulary, occurs.tolist(), strict=True) if is_kept]
    (folder / _VOCABULARY).write_text(json.dumps(kept, ensure_ascii=False), "utf-8")


def merge_runs(
    runs: Sequence[Run], indptr: NDArray[np.int64], rows_file: Path, values_file: Path, dtype: type[np.generic]
) -> None:
    """Merge the postings of runs, a range of terms in memory at a time."""
    terms_read, postings_read = [0] * len(runs), [0] * len(runs)
    with Stream(rows_file, np.int32) as rows, Stream(values_file, dtype) as values:
        for begin, end in pairwise(term_cuts(indptr, _POSTINGS_AT_ONCE)):
            free = indptr[begin:end] - indptr[begin]
            size = indptr[end] - indptr[begin]
            merged = np.empty(size, np.int32), np.empty(size, dtype)
            for number, run in enumerate(runs):
                terms = slice(terms_read[number], int(np.searchsorted(run.terms, end)))
                part = slice(postings_read[number], postings_read[number] + int(run.counts[terms].sum()))
                terms_read[number], postings_read[number] = terms.stop, part.stop
                _copy_postings(run, terms, part, run.terms[terms] - begin, free, merged)
            rows.write(merged[0])
            values.write(merged[1])


def _copy_postings(
    run: Run,
    terms: slice,
    part: slice,
    targets: NDArray[np.integer],
    free: NDArray[np.int64],
    merged: tuple[NDArray[np.int32], NDArray[Any]],
) -> None:
    """Copy the postings of some terms of a run to their places in a block of the merged index."""
    rows, values = run.rows[part], run.values[part]
    if run.targets is not None:
        rows = run.targets[rows]
        is_live = rows >= 0
        rows, values = rows[is_live], values[is_live]
    live_counts = run.kept[terms]
    places = np.repeat(free[targets] + live_counts - np.cumsum(live_counts), live_counts)
    places += np.arange(len(places))
    merged[0][places], merged[1][places] = rows, values
    free[targets] += live_counts
