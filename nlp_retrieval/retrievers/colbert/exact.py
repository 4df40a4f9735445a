"""MaxSim with every passage of an index: the exact search that a compressed one is compared with.

Vectors are rounded to multiples of 2**-22. Products and the sums of up to 500 of them are then exact in float64, in any
order, so that a score is the same to the last bit whatever else is in the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Hits, Mask, Rows, Scores, entries_of, offsets_of
from nlp_retrieval.core.ranking import best_of
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.colbert.blocks import blocks_of

_UNITS = 2.0**22
_TOKENS_AT_ONCE = 2**14
_QUERY_TOKENS_AT_ONCE = 512
_SCORES_AT_ONCE = 16 * 2**20


class ExactIndex:
    """Search over tokens as they are.

    Args:
        segments: for each, offsets ``[passages + 1]``, where passage p has the tokens ``offsets[p]:offsets[p + 1]``, and
            tokens ``[tokens, dimension]``. Rows of passages run through all segments.
    """

    def __init__(self, segments: Sequence[tuple[Rows, NDArray[np.float16]]]) -> None:
        self._segments = segments
        self._has_tokens = np.concatenate([np.diff(offsets) > 0 for offsets, _ in segments])

    def search(self, queries: list[Vectors], k: int, allowed: Mask | None) -> Hits:
        """Return at most k passages that have tokens per query, best first; ties go to the lowest rows.

        Args:
            queries: ``[tokens, dimension]`` each, at least one token.
            k: at most this many.
            allowed: ``[passages]``, or None.
        """
        rows = np.flatnonzero(self._has_tokens if allowed is None else self._has_tokens & allowed)
        lists: list[tuple[Rows, Scores]] = []
        chunk: list[Vectors] = []
        for number, query in enumerate(queries):
            chunk.append(query)
            following = len(queries[number + 1]) if number + 1 < len(queries) else _QUERY_TOKENS_AT_ONCE
            too_long = sum(map(len, chunk)) + following > _QUERY_TOKENS_AT_ONCE
            if too_long or (len(chunk) + 1) * len(rows) > _SCORES_AT_ONCE:
                lists += [best_of(rows, scores, k) for scores in self._scores(chunk, rows)]
                chunk = []
        return Hits.from_lists(lists)

    def _scores(self, queries: list[Vectors], rows: Rows) -> Scores:
        """``[queries, rows]``."""
        query_tokens = _in_units(np.concatenate(queries))
        bounds = offsets_of([len(query) for query in queries])[:-1]
        scores = np.zeros((len(queries), len(rows)))
        first = 0
        for offsets, tokens in self._segments:
            begin, end = np.searchsorted(rows, [first, first + len(offsets) - 1]).tolist()
            here = rows[begin:end] - first
            for block in blocks_of(here, offsets, _TOKENS_AT_ONCE):
                part = here[block]
                products = query_tokens @ _in_units(tokens[entries_of(offsets, part)[0]]).T
                starts = offsets_of(offsets[part + 1] - offsets[part])[:-1]
                best = np.maximum.reduceat(products, starts, axis=1)
                scores[:, begin + block.start : begin + block.stop] = np.add.reduceat(best, bounds, axis=0)
            first += len(offsets) - 1
        return scores / _UNITS**2


def _in_units(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    whole: NDArray[np.float64] = np.trunc(vectors.astype(np.float64) * _UNITS)
    return whole
