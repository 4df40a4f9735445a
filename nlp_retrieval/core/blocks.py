"""Blocks of passages to encode, in this process or by workers, and their results."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A block is a batch cut by its retriever, and it is encoded in one call, wherever that happens: a model's vectors depend on
# which texts are encoded together, so equal blocks give equal bytes.


@dataclass(frozen=True)
class EncodedBatch:
    """Vectors of a batch of texts.

    Args:
        rows: ``[rows, dimension]``, vectors of all texts, in order.
        counts: ``[texts]``, how many rows each text has.
        n_cut: how many texts were longer than the encoder's limit.
    """

    rows: NDArray[Any]
    counts: NDArray[np.uint32]
    n_cut: int = 0


def chained(before: bytes, parts: Iterable[bytes | memoryview]) -> bytes:
    """The digest of parts, and of a digest before them."""
    digest = hashlib.sha256(before)
    for part in parts:
        digest.update(part)
    return digest.digest()


def digest_of(texts: Sequence[str]) -> bytes:
    """A digest of texts that also covers where each text ends."""
    encoded = (text.encode("utf-8", "surrogatepass") for text in texts)
    return chained(b"", (part for text in encoded for part in (len(text).to_bytes(8, "little"), text)))
