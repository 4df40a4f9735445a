"""The interfaces of encoders: batches of texts to vectors, to vectors of tokens, or to weights of terms.

A fingerprint distinguishes models.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Self
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.components.component import Component, Config, component_of_object
from nlp_retrieval.errors import ConfigurationError, ModelError

Vectors = NDArray[np.float32]
"""``[texts, dimension]``, float32; of a token encoder ``[tokens, dimension]`` for each text."""

LONGEST_VECTOR = 1e18
"""Largest length of a vector: the inner product of any two such vectors is far below the limit of float32."""


class _Encoder(Component, ABC):
    """What encoders of all kinds have."""

    kind: ClassVar[str] = "encoders"

    in_workers: ClassVar[bool] = True
    """Allow other processes to encode passages; pointless for an encoder that asks a server."""

    @abstractmethod
    def model_fingerprint(self) -> str:
        """Return the identity of this model: a checksum of its files, or base URL and name of a hosted one."""

    def cut_passages(self, passages: list[str]) -> int:
        """Return how many passages are longer than the encoder reads; 0 if unknown."""
        del passages
        return 0

    def index_identity(self) -> Config:
        return super().index_identity() | {"model_fingerprint": self.model_fingerprint()}


class BaseEncoder(_Encoder):
    """Turns texts into vectors. Vectors are compared by inner product; an encoder that means cosine normalises them.

    Where an encoder is asked for, any object with a method ``encode(texts)`` and a ``dimension`` is one, too. An index of it is
    known by the object's class, dimension and, if it has one, ``model_name``.
    """

    @abstractmethod
    def encode_queries(self, queries: list[str]) -> Vectors:
        """Return ``[queries, dimension]``, float32."""

    @abstractmethod
    def encode_passages(self, passages: list[str]) -> Vectors:
        """Return ``[passages, dimension]``, float32."""

    @classmethod
    def of_value(cls, value: object) -> BaseEncoder | None:
        """Return an object with ``encode`` and ``dimension`` as an encoder, one for each; None for anything else."""
        if isinstance(value, type | Component) or not callable(getattr(value, "encode", None)):
            return None
        if not isinstance(getattr(value, "dimension", None), int):
            return None
        return component_of_object(cls.kind, value, lambda: _object_encoder(value))


class ObjectEncoder(BaseEncoder):
    """An object with ``encode`` and ``dimension`` as an encoder; made by :meth:`BaseEncoder.of_value`."""

    name = "object"
    only_in_memory = True
    in_workers = False
    object: Any

    def __init__(self, model: str) -> None:
        self.model = model

    def encode_queries(self, queries: list[str]) -> Vectors:
        vectors = self.object.encode(queries)
        try:
            array = np.asarray(vectors, np.float32)
            iter(array)  # None becomes an array of no dimension
        except (TypeError, ValueError) as error:
            returned = f"{type(self.object).__name__}.encode returned {type(vectors).__name__}"
            raise ModelError(f"{returned}, no array [texts, dimension] for {len(queries)} texts: {error}") from None
        shape = len(queries), self.object.dimension
        return array.reshape(shape) if array.ndim != 2 and array.size == shape[0] * shape[1] else array

    def encode_passages(self, passages: list[str]) -> Vectors:
        return self.encode_queries(passages)

    def model_fingerprint(self) -> str:
        kind = type(self.object)
        return f"{getattr(self.object, 'model_name', '')} {kind.__module__}.{kind.__qualname__} {self.object.dimension}".strip()

    def index_identity(self) -> Config:
        return super().index_identity() | {"model": type(self.object).__qualname__}

    def __reduce__(self) -> tuple[Any, ...]:
        return _object_encoder, (self.object,)

    def __deepcopy__(self, memo: dict[int, Any]) -> ObjectEncoder:
        return self


def _object_encoder(value: Any) -> ObjectEncoder:
    made = ObjectEncoder(f"{type(value).__qualname__}-{uuid4().hex[:12]}")
    made.object = value
    return made


def checked_vectors(vectors: Vectors, texts: list[str], encoder: BaseEncoder, dimension: int | None) -> Vectors:
    """Return ``vectors`` as float32 after checking that they can be searched."""
    require_shape(vectors, len(texts), encoder, dimension)
    single = _real_numbers(vectors, encoder)
    lengths = np.sqrt(np.einsum("ij,ij->i", single, single, dtype=np.float64))
    wrong = np.flatnonzero(~(lengths <= LONGEST_VECTOR))
    if len(wrong):
        raise ModelError(
            f"{encoder!r} gave NaN, infinity or vectors longer than {LONGEST_VECTOR:g} for {len(wrong)} of {len(texts)} texts "
            f"(the first: {texts[wrong[0]][:80]!r}); {_CURE}"
        )
    return single


def scale_to_length_one(vectors: Vectors) -> None:
    """Divide vectors by their lengths, in place; zero vectors stay, and those whose length overflows become NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(lengths > 0, np.where(np.isinf(lengths), np.nan, lengths), 1.0)


def require_shape(vectors: Vectors, n_texts: int, encoder: Component, dimension: int | None) -> None:
    """Raise a :class:`ModelError` unless there is a vector for each text, of this dimension where one is given."""
    shape = vectors.shape if isinstance(vectors, np.ndarray) else ()
    if len(shape) != 2 or shape[0] != n_texts or shape[1] == 0 or dimension not in (None, shape[1]):
        given = f"an array {shape}" if shape else type(vectors).__name__
        raise ModelError(f"{encoder!r} returned {given}; an array ({n_texts}, {dimension or 'dimension'}) was expected")


_CURE = "take another model, or precision='float32' where one is chosen"


def _real_numbers(numbers: NDArray[Any], encoder: Component) -> Vectors:
    """An array as contiguous float32; numbers too large for that become infinite."""
    if numbers.dtype.kind not in "fiu":
        raise ModelError(f"{encoder!r} returned an array of {numbers.dtype}; vectors are made of real numbers, in float32")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(numbers, np.float32)


class BaseTokenEncoder(_Encoder):
    """Turns a text into a matrix with a row of length 1 for each token that counts. A blank text has no rows.

    Two texts are compared by MaxSim: for each token of the query the largest inner product with any token of the passage, and
    the sum of these (Khattab and Zaharia, SIGIR 2020, https://arxiv.org/abs/2004.12832).
    """

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

    def cut_queries(self, queries: list[str]) -> int:
        """Return how many queries are longer than the encoder reads."""
        del queries
        return 0

    def projection_matrix(self) -> Vectors | None:
        """``[dimension of the model, dimension]``, if vectors are multiplied by a matrix that is not in the model's files.

        It is saved with an index, handed back to :meth:`with_projection` when that is opened, and part of :meth:`extra_state`.
        """
        return None

    def with_projection(self, matrix: Vectors) -> Self:
        """Return an encoder like this one that multiplies by ``matrix``."""
        raise ConfigurationError(f"{self!r} has no projection; it cannot take one of shape {matrix.shape}")


def checked_tokens(returned: list[Vectors], texts: list[str], encoder: BaseTokenEncoder) -> list[Vectors]:
    """Return the matrices as float32, scaled once more to length 1, after checking that they can be searched."""
    if len(returned) != len(texts):
        raise ModelError(f"{encoder!r} returned {len(returned)} matrices for {len(texts)} texts")
    for matrix, text in zip(returned, texts, strict=True):
        shape = matrix.shape if isinstance(matrix, np.ndarray) else type(matrix).__name__
        if not isinstance(shape, tuple) or len(shape) != 2 or shape[1] != encoder.dimension:
            raise ModelError(
                f"{encoder!r} returned {shape} for {text[:80]!r}; an array [tokens, {encoder.dimension}] was expected"
            )
    matrices = [_real_numbers(matrix, encoder) for matrix in returned]
    ends = np.cumsum([len(matrix) for matrix in matrices])
    stacked = np.concatenate([*matrices, np.zeros((0, encoder.dimension), np.float32)])
    lengths = np.sqrt(np.square(stacked, dtype=np.float64).sum(axis=1))  # row by row, so the same in any batch
    wrong = np.flatnonzero(~(np.abs(lengths - 1.0) <= 0.01))
    if len(wrong):
        text = texts[int(np.searchsorted(ends, wrong[0], side="right"))]
        raise ModelError(
            f"{encoder!r} gave a vector of length {lengths[wrong[0]]:.3g}, not 1, for a token of {text[:80]!r}; {_CURE}"
        )
    stacked /= lengths[:, None].astype(np.float32)  # a length of 1 in a model's 16 bits may be 1.004
    return np.split(stacked, ends[:-1]) if texts else []


MOST_TERMS = 2**24
"""Limit of the numbers of terms, so that float32 holds each of them exactly."""


class TermWeights(NamedTuple):
    """The weights of a batch of texts, which are compared by their inner product (SPLADE: Formal et al., SIGIR 2021).

    Args:
        offsets: ``[texts + 1]``; text i has the entries ``offsets[i]:offsets[i + 1]``.
        terms: numbers of terms, ascending within a text.
        weights: above 0.

    Examples:
        >>> weights = TermWeights(np.array([0, 2]), np.array([7, 19], np.int32), np.array([0.5, 1.2], np.float32))
        >>> weights.terms.tolist()
        [7, 19]
    """

    offsets: Rows
    terms: NDArray[np.int32]
    weights: NDArray[np.float32]


class BaseSparseEncoder(_Encoder):
    """Turns a text into weights of terms, which need not occur in it. A blank text has no terms."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Return the number of terms; they are numbered from 0."""

    @abstractmethod
    def encode_queries(self, queries: list[str]) -> TermWeights:
        """Return the weights of queries."""

    @abstractmethod
    def encode_passages(self, passages: list[str]) -> TermWeights:
        """Return the weights of passages."""


def checked_terms(encoded: TermWeights, texts: list[str], encoder: BaseSparseEncoder) -> TermWeights:
    """Return the weights as int64, int32 and float32, after checking that they can be searched."""
    columns = encoded if isinstance(encoded, tuple) else ()
    kinds = [column.dtype.kind for column in columns if isinstance(column, np.ndarray) and column.ndim == 1]
    if "".join(kinds).replace("u", "i") != "iif":
        raise ModelError(f"{encoder!r} returned {type(encoded).__name__}; TermWeights(offsets, terms, weights) were expected")
    offsets, terms, weights = encoded
    fits = len(offsets) == len(texts) + 1 and offsets[0] == 0 and (np.diff(offsets) >= 0).all()
    if not fits or not len(terms) == len(weights) == offsets[-1]:
        raise ModelError(
            f"{encoder!r} returned {len(offsets)} offsets, {len(terms)} terms and {len(weights)} weights for {len(texts)} "
            "texts, which do not fit together"
        )
    if len(terms) and not 0 <= terms.min() <= terms.max() < min(encoder.dimension, MOST_TERMS):
        raise ModelError(f"{encoder!r} gave the terms {terms.min()}..{terms.max()}; it has {encoder.dimension}")
    rises = np.ones(len(terms) + 1, np.bool_)
    rises[1:-1] = terms[1:] > terms[:-1]
    rises[offsets] = True
    with np.errstate(over="ignore", under="ignore"):
        single = np.ascontiguousarray(weights, np.float32)
    wrong = ~rises[:-1] | ~((single > 0) & (single < np.inf))
    if wrong.any():
        text = texts[int(np.searchsorted(offsets, np.argmax(wrong), side="right")) - 1]
        raise ModelError(f"{encoder!r} gave terms twice or out of order, or a weight that is not above 0, in {text[:80]!r}")
    return TermWeights(offsets.astype(np.int64), np.ascontiguousarray(terms, np.int32), single)
