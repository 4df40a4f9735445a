"""The interface of sparse encoders: a text becomes weights of terms, for learned sparse retrieval.

Two texts are compared by the inner product of their weights (SPLADE: Formal, Piwowarski and Clinchant, SIGIR 2021,
https://arxiv.org/abs/2107.05720).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.components.component import Component, Config
from nlp_retrieval.errors import ModelError

MOST_TERMS = 2**24
"""Limit of the numbers of terms, so that float32 holds each of them exactly."""


class TermWeights(NamedTuple):
    """The weights of a batch of texts.

    Args:
        offsets: ``[texts + 1]``; text i has the entries ``offsets[i]:offsets[i + 1]``.
        terms: numbers of terms, ascending within a text.
        weights: above 0.
    """

    offsets: Rows
    terms: NDArray[np.int32]
    weights: NDArray[np.float32]


class BaseSparseEncoder(Component, ABC):
    """Turns a text into weights of terms, which need not occur in it. A blank text has no terms."""

    kind: ClassVar[str] = "encoders"

    in_workers: ClassVar[bool] = True
    """Allow other processes to encode passages; pointless for an encoder that asks a server."""

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

    @abstractmethod
    def term_names(self, terms: list[int]) -> list[str]:
        """Return readable names of these terms."""

    @abstractmethod
    def model_fingerprint(self) -> str:
        """Return the identity of this model: a checksum of its files, or base URL and name of a hosted one."""

    def cut_passages(self, passages: list[str]) -> int:
        """Return how many passages are longer than the encoder reads; 0 if unknown."""
        del passages
        return 0

    def index_identity(self) -> Config:
        return super().index_identity() | {"model_fingerprint": self.model_fingerprint()}


def checked_terms(given: TermWeights, texts: list[str], encoder: BaseSparseEncoder) -> TermWeights:
    """Return the weights as int64, int32 and float32, after checking that they can be searched.

    Args:
        given: an encoder's result for ``texts``.
        texts: the encoded texts.
        encoder: named in messages.

    Raises:
        ModelError: the result is not such weights, terms are out of range, repeated or out of order, or a weight is not above
            0, NaN or infinite.
    """
    if not 0 < encoder.dimension < MOST_TERMS:
        raise ModelError(f"{encoder!r} has {encoder.dimension} terms; use a model with 1 to {MOST_TERMS - 1}")
    columns: list[NDArray[Any]] = list(given) if isinstance(given, tuple) else []
    if len(columns) != 3 or not all(isinstance(column, np.ndarray) and column.ndim == 1 for column in columns):
        raise ModelError(f"{encoder!r} returned {type(given).__name__}; TermWeights(offsets, terms, weights) were expected")
    offsets, terms, weights = columns
    sound = offsets.dtype.kind in "iu" and terms.dtype.kind in "iu" and weights.dtype.kind == "f"
    whole = len(offsets) == len(texts) + 1 and offsets[0] == 0 and (np.diff(offsets) >= 0).all()
    if not sound or not whole or not len(terms) == len(weights) == offsets[-1]:
        raise ModelError(
            f"{encoder!r} returned {len(offsets) - 1} texts with {len(terms)} terms of {terms.dtype} and {len(weights)} "
            f"weights of {weights.dtype} for {len(texts)} texts; one whole number and one real number per entry were expected"
        )
    if len(terms) and (terms.min() < 0 or terms.max() >= encoder.dimension):
        raise ModelError(f"{encoder!r} gave the terms {terms.min()}..{terms.max()}; it has {encoder.dimension}")
    rises = np.ones(len(terms) + 1, np.bool_)
    rises[1:-1] = terms[1:] > terms[:-1]
    rises[offsets] = True
    fault = None if rises.all() else (int(np.flatnonzero(~rises)[0]), "terms twice or out of order")
    with np.errstate(over="ignore", under="ignore"):
        single = np.ascontiguousarray(weights, np.float32)
    wrong = np.flatnonzero(~((single > 0) & (single < np.inf)))
    if len(wrong):
        fault = int(wrong[0]), f"the weight {weights[wrong[0]]:g}, and weights are finite and above 0"
    if fault is not None:
        text = texts[int(np.searchsorted(offsets, fault[0], side="right")) - 1]
        raise ModelError(f"{encoder!r} gave {fault[1]} (in {text[:80]!r}); use another model")
    return TermWeights(offsets.astype(np.int64), np.ascontiguousarray(terms, np.int32), single)
