"""Search over compressed tokens in steps, each on fewer passages and dearer (PLAID; Santhanam et al., CIKM 2022,
https://arxiv.org/abs/2205.09707).

All centroids are compared with the query, once. Candidates are the passages in the lists of the centroids closest to each
of its tokens. They are scored by their centroids alone, first without tokens whose centroid is far from the whole query,
then the best of them with all their tokens. The best of those are decoded and scored by MaxSim.
"""  # noqa: D205 -- the address of the paper

from __future__ import annotations

import importlib.util
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Hits, Mask, Rows, Scores
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import DependencyError
from nlp_retrieval.retrievers import colbert_steps
from nlp_retrieval.retrievers.colbert_codec import Codes, in_units, units_of
from nlp_retrieval.retrievers.colbert_files import Compressed
from nlp_retrieval.retrievers.colbert_runs import best_of

Backend = Literal["auto", "numpy", "numba"]

_COMPILING_SECONDS = 3.0
_PRUNED_TO = 4  # as many times the passages that are scored exactly, as in PLAID

_spent_in_numpy = 0.0


@dataclass(frozen=True)
class SearchSettings:
    """How widely a search looks; see :class:`~nlp_retrieval.retrievers.colbert.ColbertRetriever`."""

    nprobe: int
    rescored: int
    prune: float
    backend: Backend


class Steps(Protocol):
    """What is there in numpy and compiled; see :mod:`nlp_retrieval.retrievers.colbert_steps`."""

    def closest_centroids(self, scores: Vectors, nprobe: int, probed: Mask) -> None: ...

    def interaction(self, scores: Vectors, kept: Mask, codes: Codes, offsets: Rows, rows: Rows, sums: Scores) -> None: ...

    def maxsim(
        self,
        query: Vectors,
        centroids: Vectors,
        table: Vectors,
        codes: Codes,
        residuals: NDArray[np.uint8],
        offsets: Rows,
        rows: Rows,
        sums: Scores,
    ) -> None: ...


class CompressedIndex:
    """Search over centroids and residuals.

    Args:
        offsets: ``[passages + 1]``; passage p owns ``offsets[p]:offsets[p + 1]`` of the tokens.
        columns: the compressed tokens and the inverted lists.
    """

    def __init__(self, offsets: Rows, columns: Compressed) -> None:
        self._offsets = offsets
        self._columns = columns
        self._centroids = columns.codec.centroids.astype(np.float32)
        self._table = columns.codec.table()
        self._squared_unit = units_of(columns.codec.dimension) ** 2
        self._spoken = np.diff(offsets) > 0

    def search(self, queries: list[Vectors], k: int, allowed: Mask | None, settings: SearchSettings) -> Hits:
        """Return at most k passages that have tokens per query, best first; ties go to the lowest rows.

        Args:
            queries: ``[tokens, dimension]`` each, at least one token.
            k: at most this many.
            allowed: ``[passages]``, or None.
            settings: how widely to look.
        """
        global _spent_in_numpy  # noqa: PLW0603 -- what the process as a whole has spent decides
        present = self._spoken if allowed is None else self._spoken & allowed
        steps = _steps(settings.backend)
        begin = time.perf_counter()

        def search(query: Vectors) -> tuple[Rows, Scores]:
            return self._search(in_units(query), k, present, settings, steps)

        if steps is colbert_steps or len(queries) == 1:
            lists = [search(query) for query in queries]
        else:
            with ThreadPoolExecutor(min(os.cpu_count() or 1, len(queries))) as threads:
                lists = list(threads.map(search, queries))  # compiled steps let go of the interpreter's lock
        if steps is colbert_steps:
            _spent_in_numpy += time.perf_counter() - begin
        return Hits.from_lists(lists)

    def _search(self, query: Vectors, k: int, present: Mask, settings: SearchSettings, steps: Steps) -> tuple[Rows, Scores]:
        columns = self._columns
        by_dimension = np.ascontiguousarray(query.T)
        rows = np.flatnonzero(present)
        wanted = max(settings.rescored, 2 * k)
        if len(rows) > wanted:
            rows = self._candidates(self._centroids @ by_dimension, present, wanted, settings, steps)
        sums = np.zeros(len(rows))
        steps.maxsim(by_dimension, self._centroids, self._table, columns.codes, columns.residuals, self._offsets, rows, sums)
        return best_of(rows, sums / self._squared_unit, k)

    def _candidates(self, scores: Vectors, present: Mask, wanted: int, settings: SearchSettings, steps: Steps) -> Rows:
        """The passages to score exactly, ascending: as many as are wanted; more are present.

        Args:
            scores: ``[centroids, query tokens]``.
            present: ``[passages]``, those that may be found.
            wanted: how many.
            settings: how widely to look.
            steps: what to do it with.
        """
        bounds, listed = self._columns.list_offsets, self._columns.list_rows
        probed = np.zeros(len(scores), np.bool_)
        nprobe = min(settings.nprobe, len(scores))
        while True:
            steps.closest_centroids(scores, nprobe, probed)
            found = np.zeros(len(present), np.bool_)
            for centroid in np.flatnonzero(probed).tolist():
                found[listed[bounds[centroid] : bounds[centroid + 1]]] = True
            rows = np.flatnonzero(found & present)
            if len(rows) >= wanted or nprobe == len(scores):
                break
            nprobe = min(4 * nprobe, len(scores))
        kept = probed | (scores.max(axis=1) >= settings.prune * self._squared_unit)
        rows = self._best_by_centroids(scores, kept, rows, wanted * _PRUNED_TO, steps)
        return self._best_by_centroids(scores, np.ones_like(kept), rows, wanted, steps)

    def _best_by_centroids(self, scores: Vectors, kept: Mask, rows: Rows, wanted: int, steps: Steps) -> Rows:
        if len(rows) <= wanted:
            return rows
        sums = np.zeros(len(rows))
        steps.interaction(scores, kept, self._columns.codes, self._offsets, rows, sums)
        return np.sort(best_of(rows, sums, wanted)[0])


def _steps(backend: Backend) -> Steps:
    """The compiled steps where they are asked for, or once numpy has cost as much as compiling them does."""
    there = backend != "numpy" and importlib.util.find_spec("numba") is not None
    if backend == "numba" and not there:
        raise DependencyError("backend='numba' needs numba: pip install numba; or choose backend='numpy'")
    if there and (backend == "numba" or _spent_in_numpy > _COMPILING_SECONDS):
        from nlp_retrieval.retrievers import colbert_kernel

        return colbert_kernel
    return colbert_steps
