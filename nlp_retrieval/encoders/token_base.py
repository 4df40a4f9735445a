"""The interface of token encoders: a text becomes one vector per token, for late interaction.

Two texts are compared by MaxSim: for each token of the query the largest inner product with any token of the passage, and
the sum of these (Khattab and Zaharia, SIGIR 2020, https://arxiv.org/abs/2004.12832).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np

from nlp_retrieval.core.components.component import Component, Config
from nlp_retrieval.encoders.base import Vectors, more_exact, real_numbers
from nlp_retrieval.errors import ConfigurationError, ModelError

_LENGTH_TOLERANCE = 1e-2


class BaseTokenEncoder(Component, ABC):
    """Turns a text into a matrix with a row of length 1 for each token that counts. A blank text has no rows."""

    kind: ClassVar[str] = "encoders"

    in_workers: ClassVar[bool] = True
    """Allow other processes to encode passages; pointless for an encoder that asks a server."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Dimension of every vector."""

    @abstractmethod
    def encode_queries(self, queries: list[str]) -> list[Vectors]:
        """Return ``[tokens, dimension]`` float32 per query."""

    @abstractmethod
    def encode_passages(self, passages: list[str]) -> list[Vectors]:
        """Return ``[tokens, dimension]`` float32 per passage."""

    @abstractmethod
    def model_fingerprint(self) -> str:
        """Return the identity of this model: a checksum of its files, or base URL and name of a hosted one."""

    def cut_queries(self, queries: list[str]) -> int:
        """Return how many queries are longer than the encoder reads."""
        del queries
        return 0

    def cut_passages(self, passages: list[str]) -> int:
        """Return how many passages are longer than the encoder reads."""
        del passages
        return 0

    def projection_matrix(self) -> Vectors | None:
        """``[dimension of the model, dimension]``, if vectors are multiplied by a matrix that is not in the model's files.

        It is saved with an index, and handed back to :meth:`with_projection` when the index is opened.
        """
        return None

    def with_projection(self, matrix: Vectors) -> Self:
        """Return an encoder like this one that multiplies by ``matrix``.

        Raises:
            ConfigurationError: this encoder has no such matrix.
        """
        raise ConfigurationError(f"{self!r} has no projection; it cannot take one of shape {matrix.shape}")

    def index_identity(self) -> Config:
        return super().index_identity() | {"model_fingerprint": self.model_fingerprint()}


def checked_tokens(returned: list[Vectors], texts: list[str], encoder: BaseTokenEncoder) -> list[Vectors]:
    """Return the matrices as float32, scaled once more to length 1, after checking that they can be searched.

    Args:
        returned: an encoder's result for ``texts``.
        texts: the encoded texts.
        encoder: named in messages.

    Raises:
        ModelError: wrong number, shape or kind of matrices, dimension 0, NaN or infinity, or vectors not of length 1.
    """
    if encoder.dimension < 1:
        raise ModelError(f"{encoder!r} has vectors of dimension {encoder.dimension}; use another model")
    if len(returned) != len(texts):
        raise ModelError(f"{encoder!r} returned {len(returned)} matrices for {len(texts)} texts")
    for matrix, text in zip(returned, texts, strict=True):
        if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or matrix.shape[1] != encoder.dimension:
            shape = matrix.shape if isinstance(matrix, np.ndarray) else type(matrix).__name__
            raise ModelError(
                f"{encoder!r} returned {shape} for {text[:80]!r}; an array [tokens, {encoder.dimension}] was expected"
            )
    counts = [len(matrix) for matrix in returned]
    matrices = [real_numbers(matrix, encoder) for matrix in returned]
    stacked = np.concatenate([*matrices, np.zeros((0, encoder.dimension), np.float32)])
    lengths = np.sqrt(np.square(stacked, dtype=np.float64).sum(axis=1))  # row by row, so the same in any batch
    wrong = np.flatnonzero(~(np.abs(lengths - 1.0) <= _LENGTH_TOLERANCE))
    if len(wrong):
        text = texts[int(np.searchsorted(np.cumsum(counts), wrong[0], side="right"))]
        if not np.isfinite(lengths[wrong[0]]):
            raise ModelError(f"{encoder!r} gave NaN or infinity for a token of {text[:80]!r}; {more_exact(encoder)}")
        raise ModelError(
            f"{encoder!r} gave a vector of length {lengths[wrong[0]]:.3g} for a token of {text[:80]!r}; a token encoder scales "
            "its vectors to length 1"
        )
    stacked /= lengths[:, None].astype(np.float32)  # a length of 1 in a model's 16 bits may be 1.004
    return np.split(stacked, np.cumsum(counts)[:-1]) if counts else []
