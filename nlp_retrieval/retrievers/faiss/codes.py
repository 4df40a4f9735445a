"""Decoding the codes of sq8 and ivfpq indexes, with the same results on every CPU."""

from __future__ import annotations

import math
from typing import Any

import faiss as _faiss
import numpy as np

from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.encoders.base import Vectors

faiss: Any = _faiss


def decoded(index: Any, rows: Rows) -> Vectors:
    """Return decoded vectors of an sq8 index, ``[rows, dimension]``; FAISS's own decoder rounds differently on some CPUs."""
    codes = faiss.rev_swig_ptr(index.codes.data(), index.codes.size()).reshape(-1, index.d)
    lowest, width = _ranges_of(index)
    vectors: Vectors = (codes[rows].astype(np.float32) + np.float32(0.5)) / np.float32(255) * width + lowest
    return vectors


def _ranges_of(index: Any) -> Vectors:
    """The lowest value of each dimension of an sq8 index, and the width of its range, ``[2, dimension]``."""
    ranges: Vectors = faiss.vector_to_array(index.sq.trained).reshape(2, index.d)
    return ranges


def longest_of(index: Any) -> float:
    """An upper bound on the length of the vectors that the codes of an index stand for."""
    if isinstance(index, faiss.IndexScalarQuantizer):
        lowest, width = _ranges_of(index).astype(np.float64)
        return float(np.linalg.norm(np.maximum(np.abs(lowest), np.abs(lowest + width))))
    parts = faiss.vector_to_array(index.pq.centroids).reshape(index.pq.M, index.pq.ksub, index.pq.dsub)
    residual = math.sqrt(np.square(parts, dtype=np.float64).sum(axis=2).max(axis=1).sum())
    lists = np.square(index.quantizer.reconstruct_n(0, index.nlist), dtype=np.float64).sum(axis=1)
    return math.sqrt(lists.max()) + residual
