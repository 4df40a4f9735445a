"""Search over the token vectors of a ColBERT index, whole or compressed.

Over compressed tokens it goes in steps, each more expensive and on fewer passages (PLAID; Santhanam et al., CIKM 2022,
https://arxiv.org/abs/2205.09707). All centroids are compared with the query once. Candidates are the passages in the lists of
the centroids closest to each query token. They are scored by centroids alone, first without tokens whose centroid is far from
the whole query, then the best with all their tokens. The best of those are decoded and scored by MaxSim.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Hits, Mask, Rows, Scores, entries_of, offsets_of, top_k
from nlp_retrieval.core.processes import in_threads, usable_cores
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.colbert.codec import UNIT
from nlp_retrieval.retrievers.colbert.files import CompressedFiles, ExactFiles, blocks_of

_PRUNED_TO = 4  # times the number of passages that are scored exactly, as in PLAID
_WORTH_A_THREAD = 4096  # tokens; handing work to a thread costs as much as some hundred


class CompressedIndex:
    """Search over centroids and residuals of all segments; a passage that is scored has the same score in any of them."""

    def __init__(self, segments: Sequence[CompressedFiles]) -> None:
        self._segments = segments
        self._has_tokens = np.concatenate([np.diff(files.offsets) > 0 for files in segments])

    def search(self, queries: list[Vectors], k: int, allowed: Mask | None, nprobe: int, rescored: int, prune: float) -> Hits:
        """Return at most k passages that have tokens per query, which has one too, best first; ties go to the lowest rows."""
        present = self._has_tokens if allowed is None else self._has_tokens & allowed
        threads, wanted = usable_cores() if len(queries) == 1 else 1, max(rescored, 2 * k)

        def search(query: Vectors) -> tuple[Rows, Scores]:
            scores: dict[int, Vectors] = {}  # of each codec, which segments share
            all_rows, all_sums = [np.zeros(0, np.int64)], [np.zeros(0)]
            first = 0
            for files in self._segments:
                in_segment = present[first : first + len(files.offsets) - 1]
                rows = np.flatnonzero(in_segment)
                if len(rows) > wanted:
                    if id(files.codec) not in scores:
                        scores[id(files.codec)] = _centroid_scores(query, files.codec.floats, threads)
                    rows = _candidates(files, scores[id(files.codec)], in_segment, wanted, nprobe, prune, threads)
                all_rows.append(rows + first)
                all_sums.append(_maxsim(query, files, rows, threads))
                first += len(in_segment)
            return top_k(np.concatenate(all_rows), np.concatenate(all_sums), k)

        return Hits.from_lists(in_threads(search, queries))


def _candidates(
    files: CompressedFiles, scores: Vectors, present: Mask, wanted: int, nprobe: int, prune: float, threads: int
) -> Rows:
    """The passages of a segment to score exactly, ascending, by the scores ``[centroids, query tokens]``; more are present."""
    bounds, by_token = files.list_offsets, np.ascontiguousarray(scores.T)
    nprobe = min(nprobe, len(scores))
    while True:
        probed = np.logical_or.reduce([top_k_mask(of_token, nprobe) for of_token in by_token])
        listed = np.zeros(len(present), np.bool_)
        for centroid in np.flatnonzero(probed).tolist():
            listed[files.list_rows[bounds[centroid] : bounds[centroid + 1]]] = True
        rows = np.flatnonzero(listed & present)
        if len(rows) >= wanted or nprobe == len(scores):
            break
        nprobe = min(4 * nprobe, len(scores))
    close = probed | (by_token.max(axis=0) >= np.float32(prune) * UNIT)
    for kept, most in ((close, wanted * _PRUNED_TO), (np.ones_like(close), wanted)):
        if len(rows) > most:
            rows = rows[top_k_mask(_interaction(scores, kept, files, rows, threads), most)]
    return rows


# The compiled steps, divided among threads by the number of tokens that they read; results do not depend on the division.


def _centroid_scores(query: Vectors, centroids: Vectors, threads: int) -> Vectors:
    """Return ``[centroids, query tokens]``, their inner products."""
    from nlp_retrieval.retrievers.colbert import kernel

    scores = np.empty((len(centroids), len(query)), np.float32)
    numbers = np.arange(len(centroids) + 1)
    in_threads(lambda part: kernel.multiply(centroids[part], query, scores[part]), parts_of(numbers[:-1], numbers, threads))
    return scores


def _interaction(scores: Vectors, kept: Mask, files: CompressedFiles, rows: Rows, threads: int) -> Scores:
    """Score passages by the centroids of their tokens."""
    from nlp_retrieval.retrievers.colbert import kernel

    sums = np.zeros(len(rows))
    in_threads(
        lambda part: kernel.interaction(scores, kept, files.codes, files.offsets, rows[part], sums[part]),
        parts_of(rows, files.offsets, threads),
    )
    return sums


def _maxsim(query: Vectors, files: CompressedFiles, rows: Rows, threads: int) -> Scores:
    """Score passages by their decoded tokens."""
    from nlp_retrieval.retrievers.colbert import kernel

    sums, codec = np.zeros(len(rows)), (files.codec.floats, files.codec.table)
    in_threads(
        lambda part: kernel.maxsim(query, *codec, files.codes, files.residuals, files.offsets, rows[part], sums[part]),
        parts_of(rows, files.offsets, threads),
    )
    return sums


def parts_of(rows: Rows, offsets: Rows, threads: int) -> list[slice]:
    """Cut a list of passages into slices with about as many tokens each: as many as there are threads, if they pay off."""
    ends = np.cumsum(offsets[rows + 1] - offsets[rows])
    count = min(threads, int(ends[-1]) // _WORTH_A_THREAD) if len(rows) else 0
    if count < 2:
        return [slice(0, len(rows))]
    cuts = np.searchsorted(ends, ends[-1] * np.arange(1, count) // count, side="right").tolist()
    return [slice(begin, end) for begin, end in pairwise([0, *cuts, len(rows)])]


# Exact search: MaxSim with every passage of an uncompressed index.
#
# Vectors are rounded to multiples of 2**-22. Products and the sums of up to 500 of them are then exact in float64, in any
# order, so that a score is the same to the last bit in any batch.

_EXACT_UNITS = 2.0**22
_TOKENS_AT_ONCE = 2**14
_QUERY_TOKENS_AT_ONCE = 512
_SCORES_AT_ONCE = 16 * 2**20


class ExactIndex:
    """Search over the uncompressed tokens of all segments."""

    def __init__(self, segments: Sequence[ExactFiles]) -> None:
        self._segments = segments
        self._has_tokens = np.concatenate([np.diff(files.offsets) > 0 for files in segments])

    def search(self, queries: list[Vectors], k: int, allowed: Mask | None) -> Hits:
        """Search as :meth:`CompressedIndex.search` does."""
        rows = np.flatnonzero(self._has_tokens if allowed is None else self._has_tokens & allowed)
        longest = max(map(len, queries), default=1)
        size = max(1, min(_QUERY_TOKENS_AT_ONCE // longest, _SCORES_AT_ONCE // max(len(rows), 1)))
        parts = (self._scores(queries[first : first + size], rows) for first in range(0, len(queries), size))
        return Hits.from_lists([top_k(rows, scores, k) for part in parts for scores in part])

    def _scores(self, queries: list[Vectors], rows: Rows) -> Scores:
        """``[queries, rows]``."""
        query_tokens = _in_exact_units(np.concatenate(queries))
        bounds = offsets_of([len(query) for query in queries])[:-1]
        scores = np.zeros((len(queries), len(rows)))
        first = 0
        for files in self._segments:
            begin, end = np.searchsorted(rows, [first, first + len(files.offsets) - 1]).tolist()
            local_rows = rows[begin:end] - first
            for block in blocks_of(local_rows, files.offsets, _TOKENS_AT_ONCE):
                positions, counts = entries_of(files.offsets, local_rows[block])
                products = query_tokens @ _in_exact_units(files.tokens[positions]).T
                best = np.maximum.reduceat(products, offsets_of(counts)[:-1], axis=1)
                scores[:, begin + block.start : begin + block.stop] = np.add.reduceat(best, bounds, axis=0)
            first += len(files.offsets) - 1
        return scores / _EXACT_UNITS**2


def _in_exact_units(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    units: NDArray[np.float64] = np.trunc(vectors.astype(np.float64) * _EXACT_UNITS)
    return units


def top_k_mask(scores: NDArray[np.floating], k: int) -> Mask:
    """Return the mask of the k highest scores, ties by lower position; faster than sorting them."""
    cut = np.partition(scores, len(scores) - k)[len(scores) - k]
    chosen: Mask = scores > cut
    chosen[np.flatnonzero(scores == cut)[: k - np.count_nonzero(chosen)]] = True
    return chosen
