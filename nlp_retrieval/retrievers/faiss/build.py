"""Writing vector indexes: from the vectors of a build, and from segments that are joined.

Vectors are read from disk in blocks; besides a block, memory holds the index itself, and a sample for training. The same
vectors give the same bytes, on any number of threads and any CPU of an architecture. While a graph is linked, vectors are
rounded to whole units, whose products are exact with any instructions (see ``exact_kmeans``), so the fastest ones can be used.
A graph stores the vectors themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import faiss as _faiss
import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.files.columns import Stream, damaged, mapped, read_blocks
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.core.progress_bars import progress
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import IndexWriteError
from nlp_retrieval.retrievers.exact_kmeans import (
    Numbers,
    best_products,
    directions,
    kmeans_by_distance,
    kmeans_by_product,
    less_half_square,
    units_per_length,
    with_one,
)
from nlp_retrieval.retrievers.faiss.index import (
    ANN_FILE,
    VECTORS_FILE,
    dimension_of,
    read_ann,
    whole_vectors,
)
from nlp_retrieval.retrievers.faiss.types import HNSW, IVFPQ, SQ8, FaissIndexType

# Training an ivfpq index and filling it (Jegou et al., 2011), in whole numbers: FAISS only keeps and searches it.
#
# The bytes of FAISS's own training depend on the CPU and, where it calls BLAS, on the number of threads. The steps here are
# the same: inverted lists by k-means with inner products, and a k-means by distance for each part of the residuals.


faiss: Any = _faiss

_LIST_ROUNDS, _CODE_ROUNDS = 10, 25  # as in FAISS
_CODE_SAMPLE = 2**16
_LIST_UNITS, _CODE_UNITS = 2**12, 2**10
_MOST = 2.0**24  # units of a residual; with more, float64 would no longer be exact


def train_ivfpq(index: Any, sample: Vectors, seed: int) -> None:
    """Train an empty index.

    Args:
        index: FAISS's object, for inner products and 8 bits per code.
        sample: ``[vectors, dimension]``, at least as many as there are lists and codes.
        seed: seed of the k-means.
    """
    units, scale = _in_units(sample, _LIST_UNITS)
    lists = (kmeans_by_product(units, index.nlist, seed, _LIST_ROUNDS) / np.float32(scale)).astype(np.float32)
    del units
    index.quantizer.add(lists)
    if len(sample) > _CODE_SAMPLE:
        sample = sample[np.sort(np.random.default_rng(seed).choice(len(sample), _CODE_SAMPLE, replace=False))]
    residuals = (sample - lists[_lists_of_vectors(sample, lists)]).reshape(len(sample), index.pq.M, index.pq.dsub)
    codes = np.empty((index.pq.M, index.pq.ksub, index.pq.dsub), np.float32)
    for part in range(index.pq.M):
        units, scale = _in_units(residuals[:, part], _CODE_UNITS)
        codes[part] = kmeans_by_distance(units, index.pq.ksub, seed, _CODE_ROUNDS) / np.float32(scale)
    faiss.copy_array_to_vector(codes.ravel(), index.pq.centroids)
    index.is_trained = True


def add_to_ivfpq(index: Any, vectors: Vectors) -> None:
    """Append vectors, ``[vectors, dimension]``, to a trained index."""
    lists = index.quantizer.reconstruct_n(0, index.nlist)
    numbers = _lists_of_vectors(vectors, lists)
    residuals = (vectors - lists[numbers]).reshape(len(vectors), index.pq.M, index.pq.dsub)
    parts = faiss.vector_to_array(index.pq.centroids).reshape(index.pq.M, index.pq.ksub, index.pq.dsub)
    size = index.coarse_code_size()
    codes = np.empty((len(vectors), size + index.pq.M), np.uint8)
    for byte in range(size):
        codes[:, byte] = (numbers >> (8 * byte)) & 255
    for part, (residuals_of_part, centroids) in enumerate(zip(residuals.swapaxes(0, 1), parts, strict=True)):
        codes[:, size + part] = _closest(residuals_of_part, centroids)
    index.add_sa_codes(codes, np.arange(index.ntotal, index.ntotal + len(vectors)))


def _lists_of_vectors(vectors: Vectors, lists: Vectors) -> Numbers:
    """The number of the list of each vector."""
    return best_products(directions(vectors), _in_units(lists, _LIST_UNITS)[0])[0]


def _closest(residuals: Vectors, centroids: Vectors) -> Numbers:
    """The closest centroid of one part of each residual; in exact float64, because a residual can have any length."""
    units, scale = _in_units(centroids, _CODE_UNITS)
    exact = np.clip(np.rint(residuals.astype(np.float64) * scale), -_MOST, _MOST)
    closest: Numbers = (with_one(exact) @ less_half_square(units.astype(np.float64)).T).argmax(axis=1)
    return closest


def _in_units(vectors: NDArray[np.floating], most: int) -> tuple[Vectors, float]:
    """Vectors in whole units, the longest of them just below ``most``, and the number of units in a length of 1."""
    exact = vectors.astype(np.float64)
    scale = units_per_length(math.sqrt(np.square(exact).sum(axis=1).max()), vectors.shape[1], most)
    return np.rint(exact * scale).astype(np.float32), scale


_AT_ONCE = 16_384
_TRAINED = "trained_at.npy"
"""Stores the number of items that an index had when its quantiser was trained."""
_OUTGROWN = 4
_MOST_UNLIKE = 8
"""Largest ratio of the longest vector to the shortest at which a graph is linked in whole units."""
_adding = Lock()
"""FAISS's choice of instructions applies to the whole process; concurrent searches are correct with any."""


def build_ann_index(folder: Path, index_type: FaissIndexType) -> None:
    """Replace the vectors in a folder by an index; if it is flat, they stay as they are.

    Args:
        folder: holds ``vectors.npy``, and receives the index.
        index_type: type of the index.

    Raises:
        ConfigurationError: there are too few vectors to train on, or ``pq_bytes`` does not divide the dimension.
    """
    path = folder / VECTORS_FILE
    n_items, dimension = mapped(path, np.float32, (None, None)).shape
    index = index_type.empty(n_items, dimension)
    if index is None:
        return
    if isinstance(index_type, IVFPQ | SQ8):
        sample = _sample(path, n_items, dimension, index_type)
        if isinstance(index, faiss.IndexIVFPQ):
            train_ivfpq(index, sample, index_type.seed)
        else:
            index.train(sample)
        np.save(folder / _TRAINED, np.array([n_items]), allow_pickle=False)
    _make_room(index, n_items)
    with progress(f"faiss: building {index_type.name}", n_items) as advance:
        scale = _scale_of(path, dimension) if isinstance(index_type, HNSW) else None
        for block in read_blocks(path, _AT_ONCE):
            _add(index, block, scale)
            advance(len(block))
    if scale is not None:
        _restore_vectors(index, path)
    path.unlink()
    _write(index, folder)


def has_outgrown(segment: SegmentFolder, n_items: int) -> bool:
    """Return whether an index has grown too large for the quantiser that was trained for it.

    Args:
        segment: a segment with codes.
        n_items: how many items the index now has.
    """
    return n_items > _OUTGROWN * int(mapped(segment.folder / _TRAINED, np.int64, (1,))[0])


def join_vectors(segments: Sequence[SegmentFolder], folder: Path) -> None:
    """Write the vectors of items that are not deleted as the ``vectors.npy`` of a build; the segments store whole vectors."""
    with Stream(folder / VECTORS_FILE, np.float32, dimension_of(segments[0])) as stream:
        for segment in segments:
            for block in _live_vectors(segment):
                stream.write(block)


def join_codes(segments: Sequence[SegmentFolder], folder: Path) -> None:
    """Write an index of codes, without deleted items, with the quantiser of the first segment.

    Args:
        segments: the first has codes, which its items keep; the others are flat.
        folder: receives the index.
    """
    first = segments[0]
    index = read_ann(first.folder, len(first))
    if first.live is not None:
        index.remove_ids(faiss.IDSelectorBitmap(np.packbits(~first.live, bitorder="little")))
        if isinstance(index, faiss.IndexIVF):  # other indexes number the rest from 0 themselves
            _renumber(index.invlists, np.cumsum(first.live) - 1)
    for segment in segments[1:]:
        for block in _live_vectors(segment):
            _add(index, block)
    np.save(folder / _TRAINED, mapped(first.folder / _TRAINED, np.int64, (1,)), allow_pickle=False)
    _write(index, folder)


def _add(index: Any, vectors: Vectors, scale: float | None = None) -> None:
    """Append vectors to a trained index; with a scale, in whole units."""
    if isinstance(index, faiss.IndexIVFPQ):
        add_to_ivfpq(index, vectors)
        return
    if scale is not None:
        index.add(np.rint(vectors * scale))
        return
    with _adding:
        level = faiss.SIMDConfig.get_level()
        faiss.SIMDConfig.set_level(faiss.SIMDLevel_NONE)  # other instructions round differently, which changes links and codes
        try:
            index.add(vectors)
        finally:
            faiss.SIMDConfig.set_level(level)


def _scale_of(path: Path, dimension: int) -> float | None:
    """Return the number of units in a length of 1 for linking a graph in whole units, which all CPUs add up alike.

    None if one vector is much shorter than another, and would have few units left.
    """
    longest, shortest = 0.0, math.inf
    for block in read_blocks(path, _AT_ONCE):
        squares = np.square(block, dtype=np.float64).sum(axis=1)
        longest, shortest = max(longest, squares.max()), min(shortest, squares[squares > 0].min(initial=math.inf))
    few = longest > shortest * _MOST_UNLIKE**2
    return None if few else units_per_length(math.sqrt(longest), dimension)


def _restore_vectors(index: Any, path: Path) -> None:
    """Let a graph store the vectors of a file instead of those in units."""
    stored, first = cast(Vectors, whole_vectors(index)), 0
    for block in read_blocks(path, _AT_ONCE):
        stored[first : first + len(block)] = block
        first += len(block)


def _live_vectors(segment: SegmentFolder) -> Iterator[Vectors]:
    """Yield the vectors of a segment's items that are not deleted, in order, in blocks; the segment stores whole vectors."""
    if (segment.folder / ANN_FILE).exists():
        index = read_ann(segment.folder, len(segment))
        vectors_of_index = whole_vectors(index)
        if vectors_of_index is None:
            raise damaged(segment.folder / ANN_FILE, "it holds codes instead of vectors")
        blocks: Iterator[Vectors] = (
            vectors_of_index[first : first + _AT_ONCE] for first in range(0, len(vectors_of_index), _AT_ONCE)
        )
        yield from _live_parts(blocks, segment)
    else:
        mapped(segment.folder / VECTORS_FILE, np.float32, (len(segment), None))
        yield from _live_parts(read_blocks(segment.folder / VECTORS_FILE, _AT_ONCE), segment)


def _live_parts(blocks: Iterator[Vectors], segment: SegmentFolder) -> Iterator[Vectors]:
    first = 0
    for block in blocks:
        yield block if segment.live is None else block[segment.live[first : first + len(block)]]
        first += len(block)


def _renumber(lists: Any, numbers: Rows) -> None:
    for number in range(lists.nlist):
        size = lists.list_size(number)
        if size:
            ids = faiss.rev_swig_ptr(lists.get_ids(number), size)
            ids[:] = numbers[ids]


def _sample(path: Path, n_items: int, dimension: int, settings: IVFPQ | SQ8) -> Vectors:
    """A sample of vectors for training, in the order of their rows."""
    count = min(settings.train_size, n_items)
    chosen = np.sort(np.random.default_rng(settings.seed).choice(n_items, count, replace=False))
    sample, first = np.empty((count, dimension), np.float32), 0
    for block in read_blocks(path, _AT_ONCE):
        begin, end = np.searchsorted(chosen, [first, first + len(block)])
        sample[begin:end] = block[chosen[begin:end] - first]
        first += len(block)
    return sample


def _make_room(index: Any, n_items: int) -> None:
    """Let an index allocate the memory for its vectors at once; growing would hold them twice."""
    flat = faiss.downcast_index(index.storage) if isinstance(index, faiss.IndexHNSW) else index
    if isinstance(flat, faiss.IndexFlatCodes):
        flat.codes.resize(n_items * flat.code_size)
        flat.codes.resize(0)


def _write(index: Any, folder: Path) -> None:
    try:
        faiss.write_index(index, str(folder / ANN_FILE))
    except RuntimeError as error:
        raise IndexWriteError(f"FAISS cannot write {folder / ANN_FILE}: {error}; is the disk full?") from error
