"""The vector indexes of :class:`~nlp_retrieval.retrievers.faiss.retriever.FaissRetriever`: opening and searching them.

A FAISS file is read only after the index store has compared its checksum, because FAISS's own readers trust their input. An
opened index has as many vectors as its segment has items, of the same dimension, because native code relies on both.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import faiss as _faiss
import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Hits, Mask, Matrix, Rows, search_parts, search_past_ties
from nlp_retrieval.core.files.columns import CURE, damaged, mapped
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.processes import Lock, in_threads, usable_cores
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.retrievers.faiss.exact import Stack, exact_search, products_of, rounding

# The number of threads that FAISS uses for a search.


faiss: Any = _faiss


@contextmanager
def threads_for(n_queries: int) -> Iterator[None]:
    """Use one thread for one query: FAISS divides queries among threads, and idle threads would only slow others down.

    OpenMP keeps the number per calling thread, so other searches running at the same time are not affected.
    """
    if n_queries > 1:
        yield
        return
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


# Exact search over vectors of eight bits a number.
#
# FAISS compares a query with all codes in one thread. Here each thread compares it with a part of the rows, and many queries
# use matrix products of decoded blocks, which takes a third of the time (``python -m bench.scale DATA sq8 1000000``).


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
        rows, scores = (np.concatenate(matrices, axis=1) for matrices in zip(*in_threads(compare, parts), strict=True))
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


"""FAISS has types only for a part of its Python interface, and wrong ones."""

SearchSettings = dict[str, int]

VECTORS_FILE = "vectors.npy"
ANN_FILE = "index.faiss"

_HEADER = struct.Struct("<4siq")  # kind, dimension, number of vectors: what every FAISS index file begins with


class VectorIndex(Protocol):
    """An index that finds vectors by inner product."""

    dimension: int
    n_items: int

    def search(self, queries: Vectors, k: int, allowed: Mask | None, settings: SearchSettings) -> Hits:
        """Return at most k rows per query; ties at the cut go to the lowest rows."""

    def vectors_of(self, rows: Rows) -> Vectors:
        """Return the vectors of these rows, decoded where the index stores codes."""


class FlatIndex:
    """Exact search over memory-mapped files of vectors.

    Args:
        vectors: vectors of the items.
    """

    def __init__(self, vectors: Stack) -> None:
        self.vectors = vectors
        self.n_items, self.dimension = len(vectors), vectors.dimension

    def search(self, queries: Vectors, k: int, allowed: Mask | None, settings: SearchSettings) -> Hits:
        del settings  # exact search has none
        return exact_search(queries, self.vectors, k, allowed)

    def vectors_of(self, rows: Rows) -> Vectors:
        return self.vectors.at(rows)


class AnnIndex:
    """A graph or inverted lists. If its search ends with fewer than k of the allowed items, all items are compared.

    FAISS only finds items, with rounding that depends on the CPU. Their score is the product of the query and the vector,
    or the decoded vector, computed as in exact search.

    Args:
        index: FAISS's own object.
    """

    def __init__(self, index: Any) -> None:
        self._index = index
        self._mapping = Lock()
        self._mapped = False
        self.n_items, self.dimension = int(index.ntotal), int(index.d)
        stored = whole_vectors(index)
        self._whole = None if stored is None else Stack(stored)

    @cached_property
    def _longest(self) -> float:
        """Length of the longest vector, or an upper bound."""
        return _longest_decoded(self._index) if self._whole is None else self._whole.longest

    def search(self, queries: Vectors, k: int, allowed: Mask | None, settings: SearchSettings) -> Hits:
        selector = None
        if allowed is not None:
            selector = faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))
        hits = self._search(queries, k, selector, settings)
        wanted = min(k, self.n_items if allowed is None else int(np.count_nonzero(allowed)))
        short = np.flatnonzero(np.diff(hits.offsets) < wanted)
        if len(short) == 0:
            return hits
        if self._whole is not None:
            full_hits = exact_search(queries[short], self._whole, k, allowed)
        else:
            full_hits = self._search(queries[short], k, selector, settings | {"nprobe": self.n_items})
        lists = _lists_of(hits)
        for number, full_list in zip(short.tolist(), _lists_of(full_hits), strict=True):
            lists[number] = full_list
        return Hits.from_lists(lists)

    def vectors_of(self, rows: Rows) -> Vectors:
        if self._whole is not None:
            return self._whole.at(rows)
        with self._mapping:  # created at first use, because it takes 8 bytes per item; several threads may do so at once
            if not self._mapped:
                self._index.set_direct_map_type(faiss.DirectMap.NoMap)  # a fork may have left a partial one
                self._index.make_direct_map()
                self._mapped = True
        with threads_for(1):
            vectors: Vectors = self._index.reconstruct_batch(np.ascontiguousarray(rows))
        return vectors

    def _search(self, queries: Vectors, k: int, selector: Any, settings: SearchSettings) -> Hits:
        def search(wanted: Rows, depth: int) -> tuple[NDArray[np.integer], NDArray[np.floating]]:
            parameters = self._parameters(selector, depth, settings)
            with threads_for(len(wanted)):
                scores, rows = self._index.search(queries[wanted], depth, params=parameters)
            return rows, scores

        def score(owner: Rows, rows: Rows) -> NDArray[np.floating]:
            return products_of(queries, self.vectors_of, owner, rows)

        slack = rounding(queries, self._longest)
        past_the_cut = 8 if self._whole is not None else max(8, k // 4)  # more are expensive in a graph and cheap with codes
        return search_past_ties(search, len(queries), k, self.n_items, score, slack, past_the_cut)

    def _parameters(self, selector: Any, depth: int, settings: SearchSettings) -> Any:
        if isinstance(self._index, faiss.IndexHNSW):
            return faiss.SearchParametersHNSW(sel=selector, efSearch=max(settings["ef_search"], depth))
        if isinstance(self._index, faiss.IndexIVF):
            return faiss.SearchParametersIVF(sel=selector, nprobe=min(settings["nprobe"], self._index.nlist))
        return faiss.SearchParameters(sel=selector)


class ExtendedIndex:
    """An approximate index of the first rows, and the vectors that joined it, which are searched exactly.

    Args:
        first: the index of the first rows.
        joined: the vectors of the other rows.
    """

    def __init__(self, first: VectorIndex, joined: Stack) -> None:
        self._first, self._joined = first, FlatIndex(joined)
        self.n_items, self.dimension = first.n_items + len(joined), first.dimension

    def search(self, queries: Vectors, k: int, allowed: Mask | None, settings: SearchSettings) -> Hits:
        def search(index: VectorIndex, depth: int, part: Mask | None) -> Hits:
            return index.search(queries, depth, part, settings)

        split = self._first.n_items
        parts = [
            (slice(0, split), partial(search, self._first)),
            (slice(split, self.n_items), partial(search, self._joined)),
        ]
        return search_parts(parts, len(queries), k, allowed)

    def vectors_of(self, rows: Rows) -> Vectors:
        vectors = np.empty((len(rows), self.dimension), np.float32)
        in_first = rows < self._first.n_items
        vectors[in_first] = self._first.vectors_of(rows[in_first])
        vectors[~in_first] = self._joined.vectors_of(rows[~in_first] - self._first.n_items)
        return vectors


def whole_vectors(index: Any) -> Vectors | None:
    """The vectors that an HNSW index stores, ``[items, dimension]``, as a view of its memory; None for other indexes."""
    if not isinstance(index, faiss.IndexHNSWFlat):
        return None
    storage = faiss.downcast_index(index.storage)
    vectors: Vectors = faiss.rev_swig_ptr(storage.get_xb(), index.ntotal * index.d).reshape(index.ntotal, index.d)
    return vectors


def _longest_decoded(index: Any) -> float:
    """An upper bound on the length of the vectors decoded from the codes of an ivfpq index."""
    parts = faiss.vector_to_array(index.pq.centroids).reshape(index.pq.M, index.pq.ksub, index.pq.dsub)
    residual = math.sqrt(np.square(parts, dtype=np.float64).sum(axis=2).max(axis=1).sum())
    lists = np.square(index.quantizer.reconstruct_n(0, index.nlist), dtype=np.float64).sum(axis=1)
    return math.sqrt(lists.max()) + residual


def _searchable(index: Any) -> VectorIndex:
    return Sq8Index(index) if isinstance(index, faiss.IndexScalarQuantizer) else AnnIndex(index)


def open_index(folder: Path) -> VectorIndex:
    """Open an index whose files have been checked.

    Raises:
        IndexDamagedError: there is no such index.
    """
    if (folder / ANN_FILE).exists():
        return _searchable(read_ann(folder, None))
    return FlatIndex(Stack(mapped(folder / VECTORS_FILE, np.float32, (None, None))))


def open_segments(segments: Sequence[SegmentFolder]) -> VectorIndex:
    """Open all segments of an index as one, with the rows of the whole index.

    Raises:
        IndexDamagedError: a segment contradicts its number of rows, or the first segment.
    """
    first = segments[0]
    dimension = dimension_of(first)
    is_ann = (first.folder / ANN_FILE).exists()
    flat = [mapped(s.folder / VECTORS_FILE, np.float32, (len(s), dimension)) for s in segments[1 if is_ann else 0 :]]
    if not is_ann:
        return FlatIndex(Stack(*flat))
    index = _searchable(read_ann(first.folder, len(first)))
    return ExtendedIndex(index, Stack(*flat)) if flat else index


def dimension_of(segment: SegmentFolder) -> int:
    """The dimension of the vectors of a segment.

    Raises:
        IndexDamagedError: it holds no index, or one with a different number of vectors.
    """
    path = segment.folder / ANN_FILE
    if not path.exists():
        vectors = mapped(segment.folder / VECTORS_FILE, np.float32, (len(segment), None))
        return int(vectors.shape[1])
    try:
        with path.open("rb") as file:
            _, dimension, n_items = _HEADER.unpack(file.read(_HEADER.size))
    except (OSError, struct.error) as error:
        raise IndexDamagedError(f"{path} is missing or damaged ({error}); {CURE}") from error
    _check_size(path, n_items, len(segment))
    return int(dimension)


def read_ann(folder: Path, n_items: int | None) -> Any:
    """Read the FAISS index in a folder.

    Args:
        folder: a folder whose files have been checked.
        n_items: number of vectors that the index must hold; None if unknown.

    Raises:
        IndexDamagedError: its type is never written here, or it holds a different number of vectors.
    """
    path = folder / ANN_FILE
    try:
        index = faiss.read_index(str(path))
    except RuntimeError as error:
        raise damaged(path, f"FAISS cannot read it ({str(error)[:200]})") from error
    if not isinstance(index, faiss.IndexHNSWFlat | faiss.IndexIVFPQ | faiss.IndexScalarQuantizer):
        raise damaged(path, f"it holds {type(index).__name__}, an unsupported index type")
    _check_size(path, index.ntotal, n_items)
    inner = faiss.downcast_index(index.storage if isinstance(index, faiss.IndexHNSW) else getattr(index, "quantizer", index))
    if inner is not index and inner.d != index.d:
        raise damaged(path, f"dimension {index.d} outside, {inner.d} inside")
    if isinstance(index, faiss.IndexHNSWFlat):
        _check_size(path, inner.ntotal, index.ntotal)
    elif isinstance(index, faiss.IndexScalarQuantizer):
        quantizer = index.sq
        expected = faiss.ScalarQuantizer.QT_8bit, 2 * index.d, index.d * index.ntotal
        if (quantizer.qtype, quantizer.trained.size(), index.codes.size()) != expected:
            raise damaged(path, "its codes are not of 8 bits, or not as many as it says")
    return index


def _check_size(path: Path, size: int, expected: int | None) -> None:
    if expected is not None and size != expected:
        raise damaged(path, f"it holds {size:,} vectors, and {expected:,} items are in it")


def _lists_of(hits: Hits) -> list[tuple[Rows, NDArray[np.float64]]]:
    bounds = hits.offsets.tolist()
    return [(hits.rows[begin:end], hits.scores[begin:end]) for begin, end in pairwise(bounds)]
