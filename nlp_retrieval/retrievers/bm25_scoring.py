"""BM25 over postings: scores per term and item, computed once per k1 and b, then added up per query.

Two ways give the same bits: numpy, and a numba kernel that adds in the same order. Compiling the kernel takes about a
second, so ``auto`` compiles it when numpy has cost that much in this process: never much worse than the better choice.
"""

from __future__ import annotations

import importlib.util
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Hits, Mask, Rows, Scores
from nlp_retrieval.errors import DependencyError

_COMPILING_SECONDS = 1.5

_QUERIES_PER_THREAD = 32

_spent_in_numpy = 0.0


@dataclass(frozen=True)
class Postings:
    """The inverted index.

    Args:
        rows: item rows of every posting, ascending within a term.
        frequencies: how often the term stands in the item.
        indptr: ``[terms + 1]``; term t owns ``indptr[t]:indptr[t + 1]``.
        lengths: ``[items]``, in terms.
    """

    rows: NDArray[np.integer]
    frequencies: NDArray[np.integer]
    indptr: NDArray[np.int64]
    lengths: NDArray[np.integer]


class Scorer:
    """Scores queries against postings.

    Args:
        postings: the inverted index.
        k1: see :class:`~nlp_retrieval.retrievers.bm25s.Bm25sRetriever`.
        b: the same.
        backend: the same.
    """

    def __init__(self, postings: Postings, k1: float, b: float, backend: Literal["auto", "numpy", "numba"]) -> None:
        if backend == "numba" and importlib.util.find_spec("numba") is None:
            raise DependencyError("backend='numba' needs numba: pip install numba; or choose backend='numpy'")
        self._backend = backend
        self._rows = np.ascontiguousarray(postings.rows)
        self._indptr = np.ascontiguousarray(postings.indptr)
        self._n_items = len(postings.lengths)
        self._weights = _weights(postings, k1, b)

    def search(self, counts: NDArray[np.int32], terms: NDArray[np.int32], k: int, allowed: Mask | None) -> Hits:
        """Return the best k matching items per query; ties at the cut go to the lowest rows.

        Args:
            counts: per query, how many terms it has.
            terms: the terms of all queries, one after another; repeated terms count again.
            k: length of the lists.
            allowed: ``[items]``, or None.
        """
        bounds = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=bounds[1:])
        if self._compiled():
            return self._by_numba(bounds, terms, k, allowed)
        global _spent_in_numpy  # noqa: PLW0603 -- what the process as a whole has spent decides
        begin = time.perf_counter()
        lists = [self._by_numpy(terms[start:end], k, allowed) for start, end in pairwise(bounds)]
        _spent_in_numpy += time.perf_counter() - begin
        return Hits.from_lists(lists)

    def _compiled(self) -> bool:
        if self._backend != "auto":
            return self._backend == "numba"
        return _spent_in_numpy > _COMPILING_SECONDS and importlib.util.find_spec("numba") is not None

    def _by_numpy(self, terms: NDArray[np.int32], k: int, allowed: Mask | None) -> tuple[Rows, Scores]:
        if len(terms) == 0:
            return np.zeros(0, np.int64), np.zeros(0)
        slices = [slice(self._indptr[term], self._indptr[term + 1]) for term in terms]
        rows = np.concatenate([self._rows[part] for part in slices])
        weights = np.concatenate([self._weights[part] for part in slices])
        scores = np.bincount(rows, weights, self._n_items).astype(np.float64, copy=False)
        if allowed is not None:
            scores[~allowed] = 0.0
        matching = np.flatnonzero(scores)
        values = scores[matching]
        if len(matching) > k:
            keep = values >= np.partition(values, len(values) - k)[len(values) - k]
            matching, values = matching[keep], values[keep]
        order = np.lexsort((matching, -values))[:k]
        return matching[order].astype(np.int64), values[order]

    def _by_numba(self, bounds: Rows, terms: NDArray[np.int32], k: int, allowed: Mask | None) -> Hits:
        n_queries = len(bounds) - 1
        rows, scores = np.full((n_queries, k), -1, np.int64), np.zeros((n_queries, k))
        mask = np.zeros(0, np.bool_) if allowed is None else allowed
        from nlp_retrieval.retrievers.bm25_kernel import score_and_select

        def run(part: slice) -> None:
            score_and_select(
                bounds[part.start : part.stop + 1], terms, self._indptr, self._rows, self._weights, self._n_items, mask,
                rows[part], scores[part],
            )  # fmt: skip

        n_parts = min(os.cpu_count() or 1, n_queries // _QUERIES_PER_THREAD)
        if n_parts <= 1:
            run(slice(0, n_queries))
        else:
            cuts = np.linspace(0, n_queries, n_parts + 1).astype(int).tolist()
            with ThreadPoolExecutor(n_parts) as threads:  # the kernel lets go of the interpreter's lock
                list(threads.map(run, [slice(start, stop) for start, stop in pairwise(cuts)]))
        return Hits.from_matrix(rows, scores)


def _weights(postings: Postings, k1: float, b: float) -> NDArray[np.float32]:
    """The BM25 score of every posting, as Lucene defines it, but with exact document lengths."""
    n_items = len(postings.lengths)
    found = np.diff(postings.indptr)
    idf = np.log(1.0 + (n_items - found + 0.5) / (found + 0.5)).astype(np.float32)
    mean = max(float(postings.lengths.mean()), 1.0)
    norm = (k1 * (1.0 - b + b * postings.lengths / mean)).astype(np.float32)
    frequency = postings.frequencies.astype(np.float32)
    weights: NDArray[np.float32] = np.repeat(idf, found) * (frequency / (frequency + norm[postings.rows]))
    return weights
