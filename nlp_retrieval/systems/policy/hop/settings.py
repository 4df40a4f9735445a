"""What a hop retriever takes where nothing else is said, and what it refuses."""

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
"""What a relation of each type is worth to a walk, where nothing else is said."""


def encoder_of(start: BaseRetriever | None, encoder: str | BaseEncoder | None) -> BaseEncoder:
    """Return the encoder of passages: the one that is given, that of the starting retriever, or all-MiniLM-L6-v2."""
    if encoder is None:
        encoder = start.encoder if isinstance(start, VectorRetriever) else "sentence-transformers/all-MiniLM-L6-v2"
    return SentenceTransformerEncoder(encoder) if isinstance(encoder, str) else encoder


def source_of(relations: object) -> ChunkTablesLoader | None:
    """Return the loader that tells relations; None where they are found.

    Raises:
        ConfigurationError: it is another one.
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
