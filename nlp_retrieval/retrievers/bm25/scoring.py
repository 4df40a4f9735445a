"""Weights of postings, added up per query; those of BM25 are computed once per k1 and b.

numpy and a numba kernel that adds in the same order give the same bits. Compiling the kernel takes about a second, so
``auto`` compiles it once numpy has taken that long in this process, which is never much worse than the better choice.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Hits, Mask, Rows, Scores, top_k
from nlp_retrieval.core.processes import in_threads, usable_cores
from nlp_retrieval.errors import DependencyError
from nlp_retrieval.retrievers.bm25.postings import Postings, term_cuts

Backend = Literal["auto", "numpy", "numba"]

_COMPILING = 1.5
"""Seconds that numba takes to compile a loop."""


class CompiledLoops:
    """A loop in numpy and for numba: ``auto`` compiles it once numpy has taken as long as compiling does, in this process."""

    numpy_seconds = 0.0

    def chosen(self, backend: Backend) -> bool:
        """Return whether to run the loop that numba compiles; a DependencyError if it is asked for and not installed."""
        if backend == "numba" and not _has_numba():
            raise DependencyError("backend='numba' needs numba: pip install numba; or choose backend='numpy'")
        return backend == "numba" or (backend == "auto" and self.numpy_seconds > _COMPILING and _has_numba())

    @contextmanager
    def in_numpy(self) -> Iterator[None]:
        """Count the time of the block as spent in numpy."""
        begin = time.perf_counter()
        yield
        self.numpy_seconds += time.perf_counter() - begin


@cache
def _has_numba() -> bool:
    return importlib.util.find_spec("numba") is not None


_loops = CompiledLoops()
_QUERIES_PER_THREAD = 32
_POSTINGS_AT_ONCE = 2**20


class Scorer:
    """Scores queries against postings."""

    def __init__(
        self, rows: NDArray[np.int32], indptr: NDArray[np.int64], weights: NDArray[np.float32], n_items: int, backend: Backend
    ) -> None:
        _loops.chosen(backend)  # without numba, this is an error now and not at the first search
        self._backend: Backend = backend
        self._rows = np.ascontiguousarray(rows)
        self._indptr = np.append(indptr, indptr[-1])
        self._n_items = n_items
        self._weights = weights

    def search(
        self,
        counts: NDArray[np.integer],
        terms: NDArray[np.int32],
        k: int,
        allowed: Mask | None,
        factors: Scores | None = None,
    ) -> Hits:
        """Return the best k matching items per query; ties at the cut go to the lowest rows."""
        bounds = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=bounds[1:])
        if _loops.chosen(self._backend):
            return self._by_numba(bounds, terms, k, allowed, np.zeros(0) if factors is None else factors)
        with _loops.in_numpy():
            return Hits.from_lists(
                [
                    self._by_numpy(terms[start:end], k, allowed, None if factors is None else factors[start:end])
                    for start, end in pairwise(bounds)
                ]
            )

    def _by_numpy(self, terms: NDArray[np.int32], k: int, allowed: Mask | None, factors: Scores | None) -> tuple[Rows, Scores]:
        if len(terms) == 0:
            return np.zeros(0, np.int64), np.zeros(0)
        slices = [slice(self._indptr[term], self._indptr[term + 1]) for term in terms]
        rows = np.concatenate([self._rows[part] for part in slices])
        weights = np.concatenate([self._weights[part] for part in slices])
        if factors is not None:
            weights = weights * np.repeat(factors, [part.stop - part.start for part in slices])
        scores = np.bincount(rows, weights, self._n_items).astype(np.float64, copy=False)
        if allowed is not None:
            scores[~allowed] = 0.0
        matching = np.flatnonzero(scores)
        return top_k(matching, scores[matching], k)

    def _by_numba(self, bounds: Rows, terms: NDArray[np.int32], k: int, allowed: Mask | None, factors: Scores) -> Hits:
        n_queries = len(bounds) - 1
        rows, scores = np.full((n_queries, k), -1, np.int64), np.zeros((n_queries, k))
        mask = np.zeros(0, np.bool_) if allowed is None else allowed.view()
        mask.flags.writeable = False  # one type for all masks, or numba would compile again for the other
        from nlp_retrieval.retrievers.bm25.kernel import score_and_select

        def run(part: slice) -> None:
            score_and_select(
                bounds[part.start : part.stop + 1], terms, factors, self._indptr, self._rows, self._weights, self._n_items,
                mask, rows[part], scores[part],
            )  # fmt: skip

        n_parts = max(1, min(usable_cores(), n_queries // _QUERIES_PER_THREAD))
        cuts = np.linspace(0, n_queries, n_parts + 1).astype(int).tolist()
        in_threads(run, [slice(start, stop) for start, stop in pairwise(cuts)])  # the kernel releases the interpreter's lock
        return Hits.from_matrix(rows, scores)


def inverse_frequencies(n_containing: NDArray[np.integer], n_items: int) -> NDArray[np.float32]:
    """The weight of each term, as Lucene defines it."""
    weights: NDArray[np.float32] = np.log(1.0 + (n_items - n_containing + 0.5) / (n_containing + 0.5)).astype(np.float32)
    return weights


def length_norms(lengths: NDArray[np.integer], mean: float, k1: float, b: float) -> NDArray[np.float32]:
    """Return, per item, the sum that the divisor adds to the frequency of a term, with exact lengths."""
    norms: NDArray[np.float32] = (k1 * (1.0 - b + b * lengths / mean)).astype(np.float32)
    return norms


def bm25_weights(
    postings: Postings, inverse_frequencies: NDArray[np.float32], norms: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the BM25 score of every posting, as Lucene defines it."""
    weights = np.empty(len(postings.rows), np.float32)
    counts = np.diff(postings.indptr)
    for begin, end in pairwise(term_cuts(postings.indptr, _POSTINGS_AT_ONCE)):
        part = slice(postings.indptr[begin], postings.indptr[end])
        frequency = postings.frequencies[part].astype(np.float32)
        saturated = frequency / (frequency + norms[postings.rows[part]])
        weights[part] = np.repeat(inverse_frequencies[begin:end], counts[begin:end]) * saturated
    return weights
