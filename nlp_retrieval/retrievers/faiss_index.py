"""The vector indexes of :class:`~nlp_retrieval.retrievers.faiss.FaissRetriever`: building, opening, searching.

A FAISS file is read only after its checksum was compared, by the index store; FAISS's own readers trust their input.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import faiss as _faiss
import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Hits, Mask, Rows
from nlp_retrieval.core.columns import mapped
from nlp_retrieval.core.ties import search_past_ties
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import ConfigurationError, IndexWriteError
from nlp_retrieval.retrievers.exact_search import exact_search

if TYPE_CHECKING:
    from nlp_retrieval.retrievers.faiss import FaissRetriever

faiss: Any = _faiss
"""FAISS types its Python side in part only, and wrongly where it does."""

IndexType = Literal["flat", "hnsw", "ivfpq", "sq8"]
SearchSettings = dict[str, int]

_FILE = "index.faiss"
_ADDED_AT_ONCE = 16_384


class VectorIndex(Protocol):
    """What finds vectors by inner product."""

    dimension: int
    n_items: int

    def search(self, queries: Vectors, k: int, allowed: Mask | None, settings: SearchSettings) -> Hits:
        """Return at most k rows per query; ties at the cut go to the lowest rows."""

    def vectors_of(self, rows: Rows) -> Vectors:
        """Return the vectors of these rows, as far as the index keeps them."""


class FlatIndex:
    """Exact search over a memory-mapped file of vectors.

    Args:
        vectors: ``[items, dimension]``.
    """

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors
        self.n_items, self.dimension = vectors.shape

    def search(self, queries: Vectors, k: int, allowed: Mask | None, settings: SearchSettings) -> Hits:
        del settings  # exact search has none
        return exact_search(queries, self._vectors, k, allowed)

    def vectors_of(self, rows: Rows) -> Vectors:
        found: Vectors = np.asarray(self._vectors[rows])
        return found


@contextmanager
def _threads_for(n_queries: int) -> Iterator[None]:
    """One query is searched by one thread: FAISS shares out queries, and idle threads would only spin against others.

    OpenMP keeps the number per calling thread, so searches that run beside this one are not touched.
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


class AnnIndex:
    """A FAISS index object.

    Args:
        index: as FAISS read it.
    """

    def __init__(self, index: Any) -> None:
        self._index = index
        self._mapping = threading.Lock()
        self.n_items, self.dimension = index.ntotal, index.d

    def search(self, queries: Vectors, k: int, allowed: Mask | None, settings: SearchSettings) -> Hits:
        selector = None
        if allowed is not None:
            selector = faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))

        def search(wanted: Rows, depth: int) -> tuple[NDArray[np.integer], NDArray[np.floating]]:
            parameters = self._parameters(selector, depth, settings)
            with _threads_for(len(wanted)):
                scores, rows = self._index.search(queries[wanted], depth, params=parameters)
            return rows, scores

        return search_past_ties(search, len(queries), k, self.n_items)

    def vectors_of(self, rows: Rows) -> Vectors:
        if isinstance(self._index, faiss.IndexIVF):
            with self._mapping:  # made when it is first needed, for it takes 8 bytes an item; threads may meet here
                if self._index.direct_map.no():
                    self._index.make_direct_map()
        found: Vectors = self._index.reconstruct_batch(np.ascontiguousarray(rows))
        return found

    def _parameters(self, selector: Any, depth: int, settings: SearchSettings) -> Any:
        if isinstance(self._index, faiss.IndexHNSW):
            return faiss.SearchParametersHNSW(sel=selector, efSearch=max(settings["ef_search"], depth))
        if isinstance(self._index, faiss.IndexIVF):
            return faiss.SearchParametersIVF(sel=selector, nprobe=min(settings["nprobe"], self._index.nlist))
        return faiss.SearchParameters(sel=selector)


def build_ann_index(vectors: Vectors, index_type: IndexType, settings: FaissRetriever, folder: Path) -> None:
    """Build an index that is not flat, and write it.

    Args:
        vectors: ``[items, dimension]``, on disk.
        index_type: which.
        settings: its parameters.
        folder: receives the file.

    Raises:
        ConfigurationError: there are too few vectors to train on, or ``pq_bytes`` does not divide the dimension.
    """
    n_items, dimension = vectors.shape
    index = _empty_index(index_type, n_items, dimension, settings)
    if not index.is_trained:
        sample = np.random.default_rng(settings.seed).choice(n_items, min(settings.train_size, n_items), replace=False)
        index.train(np.ascontiguousarray(vectors[np.sort(sample)]))
    for first in range(0, n_items, _ADDED_AT_ONCE):
        index.add(np.ascontiguousarray(vectors[first : first + _ADDED_AT_ONCE]))
    try:
        faiss.write_index(index, str(folder / _FILE))
    except RuntimeError as error:
        raise IndexWriteError(f"FAISS cannot write {folder / _FILE}: {error}; is the disk full?") from error


def _empty_index(index_type: IndexType, n_items: int, dimension: int, settings: FaissRetriever) -> Any:
    metric = faiss.METRIC_INNER_PRODUCT
    if index_type == "hnsw":
        index = faiss.IndexHNSWFlat(dimension, settings.hnsw_m, metric)
        index.hnsw.efConstruction = settings.ef_construction
        return index
    if index_type == "sq8":
        return faiss.IndexScalarQuantizer(dimension, faiss.ScalarQuantizer.QT_8bit, metric)
    if dimension % settings.pq_bytes:
        fitting = [size for size in range(1, dimension + 1) if dimension % size == 0]
        raise ConfigurationError(
            f"faiss: pq_bytes={settings.pq_bytes} does not divide the dimension {dimension}; these do: {fitting}"
        )
    nlist = settings.nlist or max(1, int(4 * math.sqrt(n_items)))
    bits = 8
    sampled = min(settings.train_size, n_items)
    if sampled < max(nlist, 2**bits) <= n_items:
        raise ConfigurationError(
            f"faiss: train_size={settings.train_size} is too small to train {nlist} lists and {2**bits} centroids; raise it"
        )
    if sampled < max(nlist, 2**bits):
        raise ConfigurationError(
            f"faiss: {n_items} items are too few to train ivfpq with {nlist} lists and {2**bits} centroids; "
            "use index_type='flat'"
        )
    quantizer = faiss.IndexFlatIP(dimension)
    index = faiss.IndexIVFPQ(quantizer, dimension, nlist, settings.pq_bytes, bits, metric)
    index.cp.seed = settings.seed
    index.cp.min_points_per_centroid = 1  # FAISS warns on standard error below 39; the size was checked above
    index.pq.cp.min_points_per_centroid = 1
    return index


def open_index(folder: Path) -> VectorIndex:
    """Open what a build wrote; its files were checked."""
    if (folder / _FILE).exists():
        return AnnIndex(faiss.read_index(str(folder / _FILE)))
    return FlatIndex(mapped(folder / "vectors.npy", np.float32, (None, None)))
