"""The interface of encoders: batches of texts to vectors, and a fingerprint that tells two models apart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.components.component import Component, Config, parameters_of
from nlp_retrieval.errors import ModelError

Vectors = NDArray[np.float32]
"""``[texts, dimension]``, float32; of a token encoder ``[tokens, dimension]`` for each text."""

LONGEST_VECTOR = 1e18
"""Largest length of a vector: the inner product of any two such vectors is far below the limit of float32."""


class BaseEncoder(Component, ABC):
    """Turns texts into vectors. Vectors are compared by inner product; an encoder that means cosine normalises them."""

    kind: ClassVar[str] = "encoders"

    in_workers: ClassVar[bool] = True
    """Allow other processes to encode passages; pointless for an encoder that asks a server."""

    @abstractmethod
    def encode_queries(self, queries: list[str]) -> Vectors:
        """Return ``[queries, dimension]``, float32."""

    @abstractmethod
    def encode_passages(self, passages: list[str]) -> Vectors:
        """Return ``[passages, dimension]``, float32."""

    def cut_passages(self, passages: list[str]) -> int:
        """Return how many passages are longer than the encoder reads; 0 if unknown."""
        del passages
        return 0

    @abstractmethod
    def model_fingerprint(self) -> str:
        """Return the identity of this model: a checksum of its files, or base URL and name of a hosted one."""

    def index_identity(self) -> Config:
        return super().index_identity() | {"model_fingerprint": self.model_fingerprint()}


def checked_vectors(vectors: Vectors, texts: list[str], encoder: BaseEncoder, dimension: int | None) -> Vectors:
    """Return ``vectors`` as float32 after checking that they can be searched.

    Args:
        vectors: an encoder's result for ``texts``.
        texts: the encoded texts.
        encoder: named in messages.
        dimension: required of the vectors; None for any.

    Raises:
        ModelError: wrong number, shape or kind of vectors, vectors of dimension 0, or one with NaN or infinity, or so long that
            its scores would overflow.
    """
    if not isinstance(vectors, np.ndarray):
        expected = _expected(len(texts), dimension)
        raise ModelError(f"{encoder!r} returned {type(vectors).__name__}; an array of {expected} was expected")
    require_shape(vectors, len(texts), encoder, dimension)
    if vectors.shape[1] == 0:
        raise ModelError(f"{encoder!r} returned vectors of dimension 0, which cannot be told apart; use another model")
    single = real_numbers(vectors, encoder)
    lengths = np.sqrt(np.einsum("ij,ij->i", single, single, dtype=np.float64))
    wrong = np.flatnonzero(~(lengths <= LONGEST_VECTOR))
    if len(wrong):
        fault = "NaN or infinity" if not np.isfinite(lengths[wrong]).all() else f"vectors longer than {LONGEST_VECTOR:g}"
        raise ModelError(
            f"{encoder!r} gave {fault} for {len(wrong)} of {len(texts)} texts "
            f"(the first: {texts[wrong[0]][:80]!r}); {more_exact(encoder)}"
        )
    return single


def scale_to_length_one(vectors: Vectors) -> None:
    """Divide vectors by their lengths, in place; zero vectors stay, and those whose length overflows become NaN.

    Divided by infinity they would be zeros, which silently find nothing.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(lengths > 0, np.where(np.isinf(lengths), np.nan, lengths), 1.0)


def require_shape(vectors: Vectors, n_texts: int, encoder: BaseEncoder, dimension: int | None) -> None:
    """Raise a :class:`ModelError` unless there is a vector for each text, of this dimension where one is given."""
    if vectors.ndim != 2 or len(vectors) != n_texts or (dimension is not None and vectors.shape[1] != dimension):
        raise ModelError(
            f"{encoder!r} returned an array of shape {vectors.shape}; {_expected(n_texts, dimension)} were expected"
        )


def _expected(n_texts: int, dimension: int | None) -> str:
    return f"{n_texts} vectors" + (f" of dimension {dimension}" if dimension else "")


def more_exact(encoder: Component) -> str:
    """Return advice about vectors that are not finite."""
    return "try precision='float32', or another model" if "precision" in parameters_of(type(encoder)) else "take another model"


def real_numbers(numbers: NDArray[Any], encoder: Component) -> Vectors:
    """Return an array as contiguous float32; numbers too large for that become infinite.

    Raises:
        ModelError: it holds something other than real numbers.
    """
    if numbers.dtype.kind not in "fiu":
        raise ModelError(f"{encoder!r} returned an array of {numbers.dtype}; vectors are made of real numbers, in float32")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(numbers, np.float32)
