"""Exact search over vectors of eight bits a number.

FAISS compares a query with all codes in one thread. Here each thread compares it with a part of the rows, and many queries use
matrix products of decoded blocks, which takes a third of the time (``python -m bench.scale DATA sq8 1000000``).
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from typing import Any

import faiss as _faiss
import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Hits, Mask, Matrix, Rows, search_past_ties
from nlp_retrieval.core.processes import usable_cores
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.faiss.exact import exact_search, products_of, rounding
from nlp_retrieval.retrievers.faiss.threads import threads_for

faiss: Any = _faiss

_WORTH_DECODING = 24  # queries; decoding all codes takes as long as comparing them with this many on two cores
_DECODED_AT_ONCE = 2**22  # numbers, 16 MiB of them
_WORTH_A_THREAD = 2**14  # comparisons of a query and a row


class Sq8Index:
    """An index of codes. Scores are products with decoded vectors, computed as in exact search.

    Args:
        index: FAISS's own object, an ``IndexScalarQuantizer`` of eight bits.
    """

    def __init__(self, index: Any) -> None:
        self._index = index
        self.n_items, self.dimension = int(index.ntotal), int(index.d)
        self._vectors = _Decoded(index)

    def search(self, queries: Vectors, k: int, allowed: Mask | None, settings: dict[str, int]) -> Hits:
        del settings  # exact search has none
        if len(queries) >= _WORTH_DECODING:
            return exact_search(queries, self._vectors, k, allowed)
        selector = None if allowed is None else faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))

        def search(wanted: Rows, depth: int) -> Matrix:
            n_parts = min(usable_cores(), self.n_items * len(wanted) // _WORTH_A_THREAD)
            return self._compared(queries[wanted], depth, selector, max(1, n_parts))

        def score(owner: Rows, rows: Rows) -> NDArray[np.floating]:
            return products_of(queries, self._vectors.at, owner, rows)

        slack = rounding(queries, self._vectors.longest)
        return search_past_ties(search, len(queries), k, self.n_items, score, slack, max(8, k // 4))

    def vectors_of(self, rows: Rows) -> Vectors:
        return self._vectors.at(rows)

    def _compared(self, queries: Vectors, depth: int, selector: Any, n_parts: int) -> Matrix:
        def compare(selected: Any) -> Matrix:
            with threads_for(1):
                scores, rows = self._index.search(queries, depth, params=faiss.SearchParameters(sel=selected))
            return rows, scores

        if n_parts == 1:
            return compare(selector)
        bounds = [self.n_items * number // n_parts for number in range(n_parts + 1)]
        parts = [faiss.IDSelectorRange(first, end) for first, end in pairwise(bounds)]
        if selector is not None:
            parts = [faiss.IDSelectorAnd(part, selector) for part in parts]
        with ThreadPoolExecutor(n_parts) as threads:
            found = list(threads.map(compare, parts))
        rows, scores = (np.concatenate(matrices, axis=1) for matrices in zip(*found, strict=True))
        best = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
        return np.take_along_axis(rows, best, axis=1), np.take_along_axis(scores, best, axis=1)


class _Decoded:
    """The vectors decoded from codes, the same on every CPU; FAISS's own decoder rounds differently on some."""

    def __init__(self, index: Any) -> None:
        self._index = index  # the owner of the codes
        self._codes = faiss.rev_swig_ptr(index.codes.data(), index.codes.size()).reshape(-1, index.d)
        self._lowest, self._width = faiss.vector_to_array(index.sq.trained).reshape(2, index.d)

    @cached_property
    def longest(self) -> float:
        """An upper bound on the length of the vectors."""
        lowest, width = self._lowest.astype(np.float64), self._width.astype(np.float64)
        return float(np.linalg.norm(np.maximum(np.abs(lowest), np.abs(lowest + width))))

    def pieces(self, size: int) -> Iterator[tuple[int, Vectors]]:
        """Yield all vectors in order, at most ``size`` at a time, each piece with the number of its first row.

        This takes fewer steps than :meth:`at`, and rounds differently: the vectors only find candidates, within ``rounding``.
        """
        steps = self._width / np.float32(255)
        lowest = self._lowest + steps / np.float32(2)  # a code is the middle of its step
        at_once = max(1, min(size, _DECODED_AT_ONCE // len(steps)))
        for first in range(0, len(self._codes), at_once):
            piece = self._codes[first : first + at_once].astype(np.float32)
            piece *= steps
            piece += lowest
            yield first, piece

    def at(self, rows: Rows) -> Vectors:
        """Return some of the vectors, ``[rows, dimension]``."""
        codes = self._codes[rows].astype(np.float32)
        vectors: Vectors = (codes + np.float32(0.5)) / np.float32(255) * self._width + self._lowest
        return vectors
