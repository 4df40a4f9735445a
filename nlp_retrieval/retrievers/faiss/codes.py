"""What the codes of sq8 and ivfpq indexes stand for, computed alike on every CPU."""

from __future__ import annotations

import math
from typing import Any

import faiss as _faiss
import numpy as np

from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.encoders.base import Vectors

faiss: Any = _faiss


def decoded(index: Any, rows: Rows) -> Vectors:
    """What the codes of an sq8 index keep of some vectors, ``[rows, dimension]``; FAISS's decoder rounds by the CPU's width."""
    codes = faiss.rev_swig_ptr(index.codes.data(), index.codes.size()).reshape(-1, index.d)
    lowest, width = _ranges_of(index)
    found: Vectors = (codes[rows].astype(np.float32) + np.float32(0.5)) / np.float32(255) * width + lowest
    return found


def _ranges_of(index: Any) -> Vectors:
    """Where the values of each dimension of an sq8 index begin, and how far they go, ``[2, dimension]``."""
    found: Vectors = faiss.vector_to_array(index.sq.trained).reshape(2, index.d)
    return found


def longest_of(index: Any) -> float:
    """What no vector is longer than that the codes of an index stand for."""
    if isinstance(index, faiss.IndexScalarQuantizer):
        lowest, width = _ranges_of(index).astype(np.float64)
        return float(np.linalg.norm(np.maximum(np.abs(lowest), np.abs(lowest + width))))
    parts = faiss.vector_to_array(index.pq.centroids).reshape(index.pq.M, index.pq.ksub, index.pq.dsub)
    residual = math.sqrt(np.square(parts, dtype=np.float64).sum(axis=2).max(axis=1).sum())
    lists = np.square(index.quantizer.reconstruct_n(0, index.nlist), dtype=np.float64).sum(axis=1)
    return math.sqrt(lists.max()) + residual
