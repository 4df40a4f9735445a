"""Training an ivfpq index and filling it (Jegou et al., 2011), in whole numbers: FAISS only keeps and searches it.

The bytes of FAISS's own training depend on the CPU and, where it calls BLAS, on the number of threads. The steps here are
the same: inverted lists by k-means with inner products, and a k-means by distance for each part of the residuals.
"""

from __future__ import annotations

import math
from typing import Any

import faiss as _faiss
import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.encoders.base import Vectors
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
    residuals = (sample - lists[_lists_of(sample, lists)]).reshape(len(sample), index.pq.M, index.pq.dsub)
    codes = np.empty((index.pq.M, index.pq.ksub, index.pq.dsub), np.float32)
    for part in range(index.pq.M):
        units, scale = _in_units(residuals[:, part], _CODE_UNITS)
        codes[part] = kmeans_by_distance(units, index.pq.ksub, seed, _CODE_ROUNDS) / np.float32(scale)
    faiss.copy_array_to_vector(codes.ravel(), index.pq.centroids)
    index.is_trained = True


def add_to_ivfpq(index: Any, vectors: Vectors) -> None:
    """Append vectors, ``[vectors, dimension]``, to a trained index."""
    lists = index.quantizer.reconstruct_n(0, index.nlist)
    numbers = _lists_of(vectors, lists)
    residuals = (vectors - lists[numbers]).reshape(len(vectors), index.pq.M, index.pq.dsub)
    parts = faiss.vector_to_array(index.pq.centroids).reshape(index.pq.M, index.pq.ksub, index.pq.dsub)
    size = index.coarse_code_size()
    codes = np.empty((len(vectors), size + index.pq.M), np.uint8)
    for byte in range(size):
        codes[:, byte] = (numbers >> (8 * byte)) & 255
    for part, (residuals_of_part, centroids) in enumerate(zip(residuals.swapaxes(0, 1), parts, strict=True)):
        codes[:, size + part] = _closest(residuals_of_part, centroids)
    index.add_sa_codes(codes, np.arange(index.ntotal, index.ntotal + len(vectors)))


def _lists_of(vectors: Vectors, lists: Vectors) -> Numbers:
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
