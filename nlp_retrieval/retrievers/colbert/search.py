"""Search over compressed tokens in steps, each more expensive and on fewer passages (PLAID; Santhanam et al., CIKM 2022,
https://arxiv.org/abs/2205.09707).

All centroids are compared with the query, once. Candidates are the passages in the lists of the centroids closest to each
of its tokens. They are scored by their centroids alone, first without tokens whose centroid is far from the whole query,
then the best of them with all their tokens. The best of those are decoded and scored by MaxSim.
"""  # noqa: D205 -- the address of the paper

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from nlp_retrieval.core.backend import Backend, CompiledLoops
from nlp_retrieval.core.candidates import Hits, Mask, Rows, Scores
from nlp_retrieval.core.cores import usable_cores
from nlp_retrieval.core.ranking import among_best, best_of
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.colbert import steps as colbert_steps
from nlp_retrieval.retrievers.colbert.codec import Codec, in_units
from nlp_retrieval.retrievers.colbert.divided import DividedSteps, Steps
from nlp_retrieval.retrievers.colbert.files import Compressed
from nlp_retrieval.retrievers.exact_kmeans import units_of

_loops = CompiledLoops(compiling_seconds=3.0)
_PRUNED_TO = 4  # times the number of passages that are scored exactly, as in PLAID


@dataclass(frozen=True)
class SearchSettings:
    """How widely a search looks; see :class:`~nlp_retrieval.retrievers.colbert.retriever.ColbertRetriever`."""

    nprobe: int
    rescored: int
    prune: float
    backend: Backend


class CompressedIndex:
    """Search over centroids and residuals.

    Candidates are chosen in each segment separately; a passage that is scored has the same score in any segment.

    Args:
        segments: for each, offsets ``[passages + 1]``, where passage p has the tokens ``offsets[p]:offsets[p + 1]``, and
            compressed tokens and inverted lists. Rows of passages run through all segments.
    """

    def __init__(self, segments: Sequence[tuple[Rows, Compressed]]) -> None:
        codecs: list[Codec] = []
        self._segments: list[tuple[Rows, Compressed, int]] = []
        for offsets, columns in segments:
            number = next((n for n, codec in enumerate(codecs) if codec.equals(columns.codec)), len(codecs))
            codecs += [columns.codec] if number == len(codecs) else []
            self._segments.append((offsets, columns, number))
        self._centroids = [codec.centroids.astype(np.float32) for codec in codecs]
        self._tables = [codec.table() for codec in codecs]
        self._squared_unit = units_of(segments[0][1].codec.dimension) ** 2
        self._has_tokens = np.concatenate([np.diff(offsets) > 0 for offsets, _ in segments])

    def search(self, queries: list[Vectors], k: int, allowed: Mask | None, settings: SearchSettings) -> Hits:
        """Return at most k passages that have tokens per query, best first; ties go to the lowest rows.

        Args:
            queries: ``[tokens, dimension]`` each, at least one token.
            k: at most this many.
            allowed: ``[passages]``, or None.
            settings: how widely to look.
        """
        present = self._has_tokens if allowed is None else self._has_tokens & allowed
        loops = _steps(settings.backend)

        def search(query: Vectors, steps: DividedSteps) -> tuple[Rows, Scores]:
            return self._search(in_units(query), k, present, settings, steps)

        if loops is colbert_steps:
            with _loops.in_numpy():
                return Hits.from_lists([search(query, DividedSteps(loops)) for query in queries])
        count = usable_cores()
        with ThreadPoolExecutor(count) as threads:  # compiled steps release the interpreter's lock
            if len(queries) == 1:
                return Hits.from_lists([search(queries[0], DividedSteps(loops, threads, count))])
            return Hits.from_lists(list(threads.map(search, queries, repeat(DividedSteps(loops)))))

    def _search(
        self, query: Vectors, k: int, present: Mask, settings: SearchSettings, steps: DividedSteps
    ) -> tuple[Rows, Scores]:
        by_dimension = np.ascontiguousarray(query.T)
        wanted = max(settings.rescored, 2 * k)
        scores: dict[int, Vectors] = {}
        all_rows, all_sums = [np.zeros(0, np.int64)], [np.zeros(0)]
        first = 0
        for offsets, columns, number in self._segments:
            here = present[first : first + len(offsets) - 1]
            rows = np.flatnonzero(here)
            if len(rows) > wanted:
                if number not in scores:
                    scores[number] = steps.centroid_scores(by_dimension, self._centroids[number])
                rows = self._candidates(offsets, columns, scores[number], here, wanted, settings, steps)
            if len(rows):
                codec = self._centroids[number], self._tables[number]
                all_rows.append(rows + first)
                all_sums.append(steps.maxsim(by_dimension, *codec, columns, offsets, rows))
            first += len(here)
        return best_of(np.concatenate(all_rows), np.concatenate(all_sums) / self._squared_unit, k)

    def _candidates(
        self,
        offsets: Rows,
        columns: Compressed,
        scores: Vectors,
        present: Mask,
        wanted: int,
        settings: SearchSettings,
        steps: DividedSteps,
    ) -> Rows:
        """The passages of a segment to score exactly, ascending; for a segment with more than are wanted.

        Args:
            offsets: offsets of the segment.
            columns: columns of the segment.
            scores: ``[centroids, query tokens]``.
            present: ``[passages]``, those that may be found.
            wanted: how many passages to score.
            settings: how widely to look.
            steps: the inner loops.
        """
        bounds, listed = columns.list_offsets, columns.list_rows
        probed = np.zeros(len(scores), np.bool_)
        nprobe = min(settings.nprobe, len(scores))
        while True:
            steps.steps.closest_centroids(scores, nprobe, probed)
            listed_passages = np.zeros(len(present), np.bool_)
            for centroid in np.flatnonzero(probed).tolist():
                listed_passages[listed[bounds[centroid] : bounds[centroid + 1]]] = True
            rows = np.flatnonzero(listed_passages & present)
            if len(rows) >= wanted or nprobe == len(scores):
                break
            nprobe = min(4 * nprobe, len(scores))
        close = probed.copy()
        steps.steps.close_centroids(scores, np.float32(settings.prune * self._squared_unit), close)
        for kept, most in ((close, wanted * _PRUNED_TO), (np.ones_like(close), wanted)):
            if len(rows) > most:
                rows = rows[among_best(steps.interaction(scores, kept, columns, offsets, rows), most)]
        return rows


def _steps(backend: Backend) -> Steps:
    if not _loops.chosen(backend):
        return colbert_steps
    from nlp_retrieval.retrievers.colbert import kernel

    return kernel
