"""The vector indexes of :class:`~nlp_retrieval.retrievers.faiss.retriever.FaissRetriever`: opening and searching them.

A FAISS file is read only after the index store has compared its checksum, because FAISS's own readers trust their input. An
opened index has as many vectors as its segment has items, of the same dimension, because native code relies on both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Hits, Mask, Rows, search_parts
from nlp_retrieval.core.files.columns import damaged, mapped
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.processes import in_threads, usable_cores
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.faiss.exact import Stack, exact_search, products_of, rounding
from nlp_retrieval.retrievers.faiss.types import FaissIndexType, faiss
from nlp_retrieval.retrievers.vectors import Matrix, search_past_ties

VECTORS_FILE = "vectors.npy"
ANN_FILE = "index.faiss"
SHAPE_FILE = "shape.npy"
"""Beside an index of FAISS: how many vectors it was trained and built for, and their dimension."""

_WORTH_DECODING = 24  # queries; decoding all codes takes as long as comparing them with this many on two cores
_DECODED_AT_ONCE = 2**22  # numbers, 16 MiB of them
_WORTH_A_THREAD = 2**14  # comparisons of a query and a row


class _Decoded(Stack):
    """The vectors that an index of FAISS decodes from its codes."""

    def __init__(self, index: Any) -> None:
        self._index, self.dimension = index, int(index.d)
        if isinstance(index, faiss.IndexIVF):
            index.make_direct_map()

    @cached_property
    def longest(self) -> float:
        """An upper bound on the length of the vectors."""
        index = self._index
        if isinstance(index, faiss.IndexScalarQuantizer):
            lowest, width = faiss.vector_to_array(index.sq.trained).reshape(2, index.d).astype(np.float64)
            return float(np.linalg.norm(np.maximum(np.abs(lowest), np.abs(lowest + width))))
        parts = faiss.vector_to_array(index.pq.centroids).reshape(index.pq.M, index.pq.ksub, index.pq.dsub)
        residual = math.sqrt(np.square(parts, dtype=np.float64).sum(axis=2).max(axis=1).sum())
        lists = np.square(index.quantizer.reconstruct_n(0, index.nlist), dtype=np.float64).sum(axis=1)
        return math.sqrt(lists.max()) + residual

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def pieces(self, size: int) -> Iterator[tuple[int, Vectors]]:
        at_once = max(1, min(size, _DECODED_AT_ONCE // self._index.d))
        for first in range(0, len(self), at_once):
            yield first, self.at(np.arange(first, min(first + at_once, len(self))))

    def at(self, rows: Rows) -> Vectors:
        with threads_for(1):
            vectors: Vectors = self._index.reconstruct_batch(np.ascontiguousarray(rows))
        return vectors


class AnnIndex:
    """An index of FAISS. If its search ends with fewer than k of the allowed items, all items are compared.

    FAISS only finds items, with rounding that depends on the other queries and rows. Their score is the product of the query
    and the vector, or the decoded vector, computed as in exact search.
    """

    def __init__(self, index: Any, index_type: FaissIndexType) -> None:
        whole = whole_vectors(index)
        self._index, self._type = index, index_type
        self._vectors = _Decoded(index) if whole is None else Stack(whole)
        self.n_items, self.dimension = int(index.ntotal), int(index.d)
        self._past_the_cut = 8 if whole is not None else None  # more are expensive in a graph and cheap with codes

    def search(self, queries: Vectors, k: int, allowed: Mask | None) -> Hits:
        if isinstance(self._index, faiss.IndexScalarQuantizer) and len(queries) >= _WORTH_DECODING:
            return exact_search(queries, self._vectors, k, allowed)
        selector = None if allowed is None else faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))

        def search(wanted: Rows, depth: int) -> Matrix:
            return self._nearest(queries[wanted], depth, selector)

        def score(owner: Rows, rows: Rows) -> NDArray[np.floating]:
            return products_of(queries, self._vectors.at, owner, rows)

        slack = rounding(queries, self._vectors.longest)
        past_the_cut = self._past_the_cut or max(8, k // 4)
        hits = search_past_ties(search, len(queries), k, self.n_items, score, slack, past_the_cut)
        most = min(k, self.n_items if allowed is None else int(np.count_nonzero(allowed)))
        short = np.flatnonzero(np.diff(hits.offsets) < most)
        if len(short) == 0:
            return hits
        full = exact_search(queries[short], self._vectors, k, allowed)
        return hits.with_lists({query: full.of(number) for number, query in enumerate(short.tolist())})

    def vectors_of(self, rows: Rows) -> Vectors:
        return self._vectors.at(rows)

    def _nearest(self, queries: Vectors, depth: int, selector: Any) -> Matrix:
        def search(selected: Any) -> Matrix:
            with threads_for(len(queries)):
                scores, rows = self._index.search(queries, depth, params=self._type.search_parameters(depth, selected))
            return rows, scores

        parts = self._parts(len(queries), selector)
        if len(parts) == 1:
            return search(parts[0])
        rows, scores = (np.concatenate(matrices, axis=1) for matrices in zip(*in_threads(search, parts), strict=True))
        best = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
        return np.take_along_axis(rows, best, axis=1), np.take_along_axis(scores, best, axis=1)

    def _parts(self, n_queries: int, selector: Any) -> list[Any]:
        """Selectors of the items that each thread compares: FAISS compares a query with all codes of sq8 in one thread."""
        is_divided = isinstance(self._index, faiss.IndexScalarQuantizer)
        n_parts = min(usable_cores(), self.n_items * n_queries // _WORTH_A_THREAD) if is_divided else 1
        if n_parts <= 1:
            return [selector]
        bounds = [self.n_items * number // n_parts for number in range(n_parts + 1)]
        parts = [faiss.IDSelectorRange(first, end) for first, end in pairwise(bounds)]
        return parts if selector is None else [faiss.IDSelectorAnd(part, selector) for part in parts]


class VectorIndex:
    """An approximate index of the first rows, if there is one, and further vectors, which are searched exactly."""

    def __init__(self, approximate: AnnIndex | None, whole: Stack) -> None:
        self._approximate, self._whole = approximate, whole
        self._split = approximate.n_items if approximate is not None else 0
        self.n_items, self.dimension = self._split + len(whole), whole.dimension

    def search(self, queries: Vectors, k: int, allowed: Mask | None) -> Hits:
        """Return at most k rows per query; ties at the cut go to the lowest rows."""
        if self._approximate is None:
            return exact_search(queries, self._whole, k, allowed)
        if len(self._whole) == 0:
            return self._approximate.search(queries, k, allowed)
        parts = [
            (slice(0, self._split), partial(self._approximate.search, queries)),
            (slice(self._split, self.n_items), partial(exact_search, queries, self._whole)),
        ]
        return search_parts(parts, len(queries), k, allowed)

    def vectors_of(self, rows: Rows) -> Vectors:
        """Return the vectors of these rows, decoded where the index stores codes."""
        if self._approximate is None:
            return self._whole.at(rows)
        vectors = np.empty((len(rows), self.dimension), np.float32)
        in_first = rows < self._split
        vectors[in_first] = self._approximate.vectors_of(rows[in_first])
        vectors[~in_first] = self._whole.at(rows[~in_first] - self._split)
        return vectors


@contextmanager
def threads_for(n_queries: int) -> Iterator[None]:
    """Use one thread for one query: FAISS divides queries among threads, and idle threads would only slow others down."""
    if n_queries > 1:
        yield
        return
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def whole_vectors(index: Any) -> Vectors | None:
    """The vectors that an HNSW index stores, ``[items, dimension]``, as a view of its memory; None for other indexes."""
    if not isinstance(index, faiss.IndexHNSWFlat):
        return None
    storage = faiss.downcast_index(index.storage)
    vectors: Vectors = faiss.rev_swig_ptr(storage.get_xb(), index.ntotal * index.d).reshape(index.ntotal, index.d)
    return vectors


def open_segments(segments: Sequence[SegmentFolder], index_type: FaissIndexType) -> VectorIndex:
    """Open all segments of an index as one, with the rows of the whole index."""
    first, *others = segments
    if not (first.folder / ANN_FILE).exists():
        dimension = dimension_of(first)
        return VectorIndex(None, Stack(*(_flat(segment, dimension) for segment in segments)))
    index = AnnIndex(read_ann(first.folder, len(first)), index_type)
    if dimension_of(first) != index.dimension:
        raise damaged(first.folder / SHAPE_FILE, f"the vectors of {ANN_FILE} have {index.dimension} numbers")
    none = np.zeros((0, index.dimension), np.float32)
    return VectorIndex(index, Stack(none, *(_flat(segment, index.dimension) for segment in others)))


def _flat(segment: SegmentFolder, dimension: int) -> Vectors:
    return mapped(segment.folder / VECTORS_FILE, np.float32, (len(segment), dimension))


def dimension_of(segment: SegmentFolder) -> int:
    """The dimension of the vectors of a segment."""
    if (segment.folder / ANN_FILE).exists():
        return int(mapped(segment.folder / SHAPE_FILE, np.int64, (2,))[1])
    return int(mapped(segment.folder / VECTORS_FILE, np.float32, (len(segment), None)).shape[1])


def read_ann(folder: Path, n_items: int) -> Any:
    """Read the FAISS index in a folder."""
    path = folder / ANN_FILE
    try:
        index = faiss.read_index(str(path))
    except RuntimeError as error:
        raise damaged(path, f"FAISS cannot read it ({str(error)[:200]})") from error
    if not isinstance(index, faiss.IndexHNSWFlat | faiss.IndexIVFPQ | faiss.IndexScalarQuantizer):
        raise damaged(path, f"it holds {type(index).__name__}, an unsupported index type")
    inner = faiss.downcast_index(index.storage if isinstance(index, faiss.IndexHNSW) else getattr(index, "quantizer", index))
    n_stored = inner.ntotal if isinstance(index, faiss.IndexHNSW) else index.ntotal
    if not index.ntotal == n_stored == n_items:
        raise damaged(path, f"it holds {index.ntotal:,} vectors, and {n_items:,} items are in it")
    if inner.d != index.d:
        raise damaged(path, f"dimension {index.d} outside, {inner.d} inside")
    if isinstance(index, faiss.IndexScalarQuantizer):
        expected = faiss.ScalarQuantizer.QT_8bit, 2 * index.d, index.d * index.ntotal
        if (index.sq.qtype, index.sq.trained.size(), index.codes.size()) != expected:
            raise damaged(path, "its codes are not of 8 bits, or not as many as it says")
    return index
