"""The files of a splade index: memory-mapped postings with weights, written in bounded memory and checked when opened.

A term is a number in the vocabulary of the model, the same in all segments. Batches of passages are spooled as runs, and
merged a range of terms at a time, as postings of bm25s are; segments are joined by the same merge, without encoding anything.
They are checked beyond their checksums because compiled code uses their numbers as indices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, offsets_of
from nlp_retrieval.core.files.column_streams import Stream
from nlp_retrieval.core.files.columns import damaged, mapped
from nlp_retrieval.encoders.sparse_base import MOST_TERMS, TermWeights
from nlp_retrieval.retrievers.bm25s.build import Run, Spooled, merge_runs
from nlp_retrieval.retrievers.bm25s.files import INDPTR, ROWS, check_postings
from nlp_retrieval.retrievers.bm25s.scoring import found_in

WEIGHTS = "weights.npy"
_COUNTS = "counts.npy"
_SPOOL = "spool"


class WeightedPostings(NamedTuple):
    """The inverted index of a segment.

    Args:
        rows: item row of every posting, ascending within a term.
        weights: the weight of the term in the item, above 0.
        indptr: ``[terms + 1]``; term t has the postings ``indptr[t]:indptr[t + 1]``.
        counts: ``[items]``, how many terms each has.
    """

    rows: NDArray[np.int32]
    weights: NDArray[np.float32]
    indptr: NDArray[np.int64]
    counts: NDArray[np.int32]


def build_files(folder: Path, batches: Iterable[TermWeights], dimension: int) -> None:
    """Write the index of passages.

    Args:
        folder: an empty folder.
        batches: the weights of consecutive passages.
        dimension: how many terms there are.
    """
    runs: list[Run] = []
    counts = [np.zeros(0, np.int32)]
    first = 0
    with (folder / _SPOOL).open("wb") as spool:
        for offsets, terms, weights in batches:
            counts.append(np.diff(offsets).astype(np.int32))
            rows = np.repeat(np.arange(first, first + len(counts[-1]), dtype=np.int32), counts[-1])
            order = np.argsort(terms, kind="stable")  # rows ascend already
            present, per_term = np.unique(terms, return_counts=True)
            runs.append(Run(present, per_term, Spooled(spool, rows[order]), Spooled(spool, weights[order]), per_term))
            first += len(counts[-1])
    _write(folder, runs, dimension, np.concatenate(counts))
    (folder / _SPOOL).unlink()


def join_files(folder: Path, segments: Sequence[tuple[WeightedPostings, Mask | None]]) -> None:
    """Join several indexes into one, without deleted items and with consecutive rows.

    Args:
        folder: an empty folder.
        segments: opened files in the order of their rows, each with a mask of the items not deleted (None for all).
    """
    runs: list[Run] = []
    counts = [np.zeros(0, np.int32)]
    first = 0
    for (rows, weights, indptr, of_items), live in segments:
        is_live = np.ones(len(of_items), np.bool_) if live is None else live
        targets = np.where(is_live, np.cumsum(is_live) - 1 + first, -1).astype(np.int32)
        terms = np.arange(len(indptr) - 1, dtype=np.int32)
        runs.append(Run(terms, np.diff(indptr), rows, weights, found_in(rows, indptr, live), targets))
        counts.append(of_items[is_live])
        first += len(counts[-1])
    _write(folder, runs, len(segments[0][0].indptr) - 1, np.concatenate(counts))


def open_files(folder: Path, n_items: int | None = None) -> WeightedPostings:
    """Open an index.

    Args:
        folder: folder of its files.
        n_items: how many items it must have; None for any number.

    Raises:
        IndexDamagedError: a file is missing or holds something else, or the files contradict one another.
    """
    rows: NDArray[np.int32] = mapped(folder / ROWS, np.int32)
    weights: NDArray[np.float32] = mapped(folder / WEIGHTS, np.float32, rows.shape)
    indptr: NDArray[np.int64] = mapped(folder / INDPTR, np.int64)
    counts: NDArray[np.int32] = mapped(folder / _COUNTS, np.int32, (n_items,))
    if not 1 < len(indptr) <= MOST_TERMS:
        raise damaged(folder / INDPTR, f"it is of {len(indptr) - 1} terms")
    check_postings(folder, rows, indptr, len(counts))
    if not ((weights > 0) & (weights < np.inf)).all():
        raise damaged(folder / WEIGHTS, "a weight is not above 0 and finite")
    if not (np.bincount(rows, minlength=len(counts)) == counts).all():
        raise damaged(folder, f"{ROWS} and {_COUNTS} contradict one another")
    return WeightedPostings(rows, weights, indptr, counts)


def _write(folder: Path, runs: Sequence[Run], dimension: int, counts: NDArray[np.int32]) -> None:
    totals = np.zeros(dimension, np.int64)
    for run in runs:
        totals[run.terms] += run.kept
    indptr = offsets_of(totals)
    merge_runs(runs, indptr, folder / ROWS, folder / WEIGHTS, np.float32)
    for name, column in ((INDPTR, indptr), (_COUNTS, counts)):
        with Stream(folder / name, column.dtype) as stream:
            stream.write(column)
