"""Vectors in pgvector's text form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "as_floats", "as_text", "from_text"]

Floats = NDArray[np.float32]


def as_floats(vectors: object, names: Sequence[str] = ()) -> Floats:
    """Return vectors as an array; numbers too large for it become infinite.

    Args:
        vectors: ``[vectors, dimension]``.
        names: of the vectors, for the message.

    Raises:
        ValueError: they are not real numbers, or not of one length; the message names the first.
    """
    try:
        matrix = np.asarray(vectors)
    except ValueError:
        matrix = np.empty(0, object)
    if matrix.dtype.kind in "fiu":
        with np.errstate(over="ignore"):
            return matrix.astype(np.float32)
    rows = list(vectors) if isinstance(vectors, Iterable) else []
    for number, row in enumerate(rows):
        what = f"the vector of item {names[number]!r:.80}" if number < len(names) else f"vector {number + 1} of {len(rows)}"
        try:
            own = np.asarray(row)
        except ValueError:
            own = np.empty(0, object)
        if own.dtype.kind not in "fiu":
            first = next((value for value in np.ravel(own) if not isinstance(value, int | float)), None)
            raise ValueError(
                f"{what} holds {type(first).__name__} ({str(first)[:40]!r}), and not numbers; pass an array of floats"
            )
    raise ValueError("the vectors are no array of numbers, or not all of one length; pass an array of floats")


def as_text(vector: Floats) -> str:
    """Return a vector as text for pgvector; every float is restored exactly."""
    return f"[{','.join(map(repr, np.asarray(vector, np.float32).astype(float).tolist()))}]"


def from_text(text: str) -> Floats:
    """Return a vector from pgvector's text."""
    return np.array(text[1:-1].split(","), np.float32)
