"""Learned sparse retrieval: weights of terms by a model, in an inverted index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Hits, Mask, MergeRule, offsets_of, search_parts
from nlp_retrieval.core.components.trust_rules import may_set, reads_model
from nlp_retrieval.core.context import stage
from nlp_retrieval.core.files.columns import Stream, damaged, mapped
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.progress_bars import tracked
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.encoders.base import MOST_TERMS, BaseSparseEncoder, TermWeights, checked_terms
from nlp_retrieval.encoders.passages import encoded_terms
from nlp_retrieval.encoders.splade import SpladeEncoder
from nlp_retrieval.errors import ModelError
from nlp_retrieval.retrievers.bm25.postings import INDPTR, ROWS, Run, Spooled, check_postings, found_in, merge_runs
from nlp_retrieval.retrievers.bm25.scoring import Backend, Scorer
from nlp_retrieval.retrievers.vectors import warn_of_cut

# The files of a splade index: memory-mapped postings with weights, written in bounded memory and checked when opened, because
# compiled code uses their numbers as indices.
#
# A term is a number in the vocabulary of the model, the same in all segments. Batches of passages are spooled as runs, and
# merged a range of terms at a time, as postings of bm25 are; segments are joined by the same merge, without encoding anything.

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
    """Write the index of consecutive passages."""
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
    """Join several indexes into one, without deleted items and with consecutive rows."""
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


def open_files(folder: Path, n_items: int) -> WeightedPostings:
    """Open an index."""
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


# Learned sparse retrieval: a model weighs the terms of passages and queries, and an inverted index finds passages that share
# them.
#
# A score is the inner product of the weights, added up in the order of the terms (SPLADE: Formal, Piwowarski and Clinchant,
# SIGIR 2021, https://arxiv.org/abs/2107.05720). It depends on the weights of query and passage and on nothing else, so segments
# are searched side by side, and joined without encoding anything.

_BATCH = 1024


class SpladeRetriever(BaseRetriever):
    """Finds passages by the weights that a model gives to terms, including terms that are not in the text.

    The score of a passage is the inner product of its weights and the query's, exact for every passage that shares a term. A
    posting takes 8 bytes. Added passages are searched together with the earlier ones, with the scores of an index built at
    once, and joining segments encodes nothing. An explanation names the terms that gave most of a score.

    Args:
        encoder: a model's hub name, a local folder, or a sparse encoder.
        merge: how sub-queries of one query are merged: ``alternate``, ``max``, ``rrf`` or ``round_robin``.
        backend: ``numpy``, ``numba``, or ``auto``: numba, once searching has taken longer than compiling would. All give the
            same results.

    Examples:
        >>> Searcher([SpladeRetriever("naver/splade-cocondenser-ensembledistil")])
        Searcher(retrievers=[SpladeRetriever(encoder=SpladeEncoder())])
    """

    name = "splade"
    manifest_may_set = may_set("merge", "backend", encoder=reads_model)
    search_only = frozenset({"merge", "backend"})

    def __init__(
        self,
        encoder: str | BaseSparseEncoder = "naver/splade-cocondenser-ensembledistil",
        merge: MergeRule = "alternate",
        backend: Backend = "auto",
    ) -> None:
        self.encoder = SpladeEncoder(encoder) if isinstance(encoder, str) else encoder
        self.merge = merge
        self.backend: Backend = backend
        self._arguments["encoder"] = self.encoder  # a name and its encoder are the same configuration

    def build(self, items: ItemTable, folder: Path) -> None:
        build_files(folder, self._encoded(items), self.encoder.dimension)

    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        """Merge the postings of segments; nothing is encoded."""
        del items
        join_files(folder, [(open_files(segment.folder, len(segment)), segment.live) for segment in segments])

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        self._postings = [open_files(segment.folder, len(segment)) for segment in segments]
        self._rows = [segment.rows for segment in segments]
        self._scorers = [
            Scorer(postings.rows, postings.indptr, postings.weights, len(postings.counts), self.backend)
            for postings in self._postings
        ]

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        with stage(f"{self.name}.encode"):
            weights = self.encode(queries)
        return self.search_weights(weights, k, allowed)

    def encode(self, queries: list[str]) -> TermWeights:
        """Return the weights of queries; for an opened retriever.

        Raises:
            ModelError: the encoder gave weights that cannot be searched, or has another number of terms than the index.
        """
        indexed = len(self._postings[0].indptr) - 1
        if self.encoder.dimension != indexed:
            raise ModelError(
                f"{self.encoder!r} has {self.encoder.dimension} terms, and the index {indexed}; use the model that was "
                "indexed, or index again"
            )
        slices = [queries[first : first + _BATCH] for first in range(0, len(queries), _BATCH)]
        parts = [
            checked_terms(self.encoder.encode_queries(part), part, self.encoder)
            for part in tracked("splade: encoding queries", slices, len(queries))
        ]
        counts = np.concatenate([np.zeros(1, np.int64), *(np.diff(part.offsets) for part in parts)])
        terms = np.concatenate([np.zeros(0, np.int32), *(part.terms for part in parts)])
        return TermWeights(np.cumsum(counts), terms, np.concatenate([np.zeros(0, np.float32), *(p.weights for p in parts)]))

    def search_weights(self, weights: TermWeights, k: int, allowed: Mask | None) -> Hits:
        """Search for queries that :meth:`encode` encoded, as :meth:`search_batch` does."""
        counts, factors = np.diff(weights.offsets), weights.weights.astype(np.float64)
        parts = [
            (rows, partial(scorer.search, counts, weights.terms, factors=factors))
            for rows, scorer in zip(self._rows, self._scorers, strict=True)
        ]
        return search_parts(parts, len(counts), k, allowed)

    def _encoded(self, items: ItemTable) -> Iterator[TermWeights]:
        n_cut = 0
        for weights, n in encoded_terms(self.encoder, tracked("splade: encoding", items.texts(_BATCH), len(items)), len(items)):
            n_cut += n
            yield weights
        warn_of_cut(self.name, n_cut, len(items))
