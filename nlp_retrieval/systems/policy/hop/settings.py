"""Defaults of a hop retriever, and checks of its settings."""

from __future__ import annotations

from collections.abc import Mapping

from nlp_retrieval import SentenceTransformerEncoder
from nlp_retrieval.core import BaseRetriever
from nlp_retrieval.encoders import BaseEncoder
from nlp_retrieval.errors import ConfigurationError, nearest
from nlp_retrieval.retrievers import VectorRetriever
from nlp_retrieval.systems.policy.chunk_tables.loader import ChunkTablesLoader
from nlp_retrieval.systems.policy.relations.relation import RELATION_TYPES

__all__ = ["RELATION_WEIGHTS", "checked_weights", "encoder_of", "source_of"]

RELATION_WEIGHTS: Mapping[str, float] = {
    "SUPPORTS": 0.8, "EXPLAINS": 0.9, "CONTRADICTS": 0.7, "FOLLOWS": 0.9, "TEMPORAL_FOLLOWS": 0.7, "CAUSES": 0.9,
}  # fmt: skip
"""Default weights of relation types in a walk."""


def encoder_of(start: BaseRetriever | None, encoder: str | BaseEncoder | None) -> BaseEncoder:
    """Return the encoder of passages: the given one, that of the starting retriever, or all-MiniLM-L6-v2."""
    if encoder is None:
        encoder = start.encoder if isinstance(start, VectorRetriever) else "sentence-transformers/all-MiniLM-L6-v2"
    return SentenceTransformerEncoder(encoder) if isinstance(encoder, str) else encoder


def source_of(relations: object) -> ChunkTablesLoader | None:
    """Return the loader of relations; None if they are computed.

    Raises:
        ConfigurationError: it is another loader.
    """
    if relations is not None and not isinstance(relations, ChunkTablesLoader):
        name = getattr(relations, "name", type(relations).__name__)
        raise ConfigurationError(f"hop: relations: {name!r} tells no relations; the loader chunk_tables does")
    return relations


def checked_weights(weights: Mapping[str, float] | None) -> dict[str, float]:
    """Return weights of relation types.

    Raises:
        ConfigurationError: there is no such type.
    """
    for kind in weights or {}:
        if kind not in RELATION_TYPES:
            raise ConfigurationError(f"hop: relation_weights: there is no type {kind!r}; {nearest(kind, RELATION_TYPES)}")
    return dict(weights or {})
