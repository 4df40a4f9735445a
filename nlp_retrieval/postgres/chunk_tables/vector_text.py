"""Vectors in the form in which pgvector writes and reads them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "as_text", "from_text"]

Floats = NDArray[np.float32]


def as_text(vector: Floats) -> str:
    """Return a vector as pgvector reads it; every float is read back as it was."""
    return f"[{','.join(map(repr, np.asarray(vector, np.float32).astype(float).tolist()))}]"


def from_text(text: str) -> Floats:
    """Return the vector that pgvector wrote."""
    return np.array(text[1:-1].split(","), np.float32)
