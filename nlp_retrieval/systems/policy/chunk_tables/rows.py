"""Items and their rows: documents, chunks and relations, and what the tables tell about them.

An item's metadata are kept whole in ``chunk_data``; document and country stand in ``documents`` too. A canonical UUID as an id
stays unchanged. Any other id is mapped to its UUID of version 5, and kept in ``chunk_data``, where it counts only if it maps to
the row's UUID.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nlp_retrieval import SearchableItem
from nlp_retrieval.core import Scores, refuse_lone_surrogates
from nlp_retrieval.errors import ItemError, SourceError
from nlp_retrieval.loaders import make_item
from nlp_retrieval.text import printable

RELATION_TYPES = ("SUPPORTS", "EXPLAINS", "CONTRADICTS", "FOLLOWS", "TEMPORAL_FOLLOWS", "CAUSES")
"""Types of relations: the source FOLLOWS the target as the next passage of its document, TEMPORAL_FOLLOWS it in the next
edition, and SUPPORTS, EXPLAINS, CONTRADICTS or CAUSES what the target says."""

UNSPECIFIED = "UNSPECIFIED"
"""Type of relations whose table names none."""

_CHUNKS = uuid.UUID("6f1d8b0e-6f0c-5c0e-9a52-2b6c7f9f6d11")
_DOCUMENTS = uuid.UUID("0b8a6c1a-41c5-5f6e-8d57-6f4c2f0f9a2e")
_RELATIONS = uuid.UUID("c7a4e9e2-5a2b-5d0d-b1a0-9d3e5f6a7b8c")
_DOCUMENT, _COUNTRY, _ID = "document", "country", "item_id"
_LONGEST_TYPE = 80


def chunk_uuid(item_id: str) -> uuid.UUID:
    """Return the id of an item's row."""
    return _canonical(item_id) or uuid.uuid5(_CHUNKS, item_id)


def document_uuid(document: object, item_id: str) -> uuid.UUID:
    """Return the id of a document's row; an item without a document is one of its own."""
    if document is None:
        return uuid.uuid5(_DOCUMENTS, f"of item {item_id}")
    return _canonical(str(document)) or uuid.uuid5(_DOCUMENTS, f"document {document}")


def relation_uuid(source: uuid.UUID, target: uuid.UUID, relation_type: str) -> uuid.UUID:
    """Return the id of a relation's row."""
    return uuid.uuid5(_RELATIONS, f"{source} {relation_type} {target}")


def _canonical(text: str) -> uuid.UUID | None:
    try:
        parsed = uuid.UUID(text)
    except ValueError:
        return None
    return parsed if str(parsed) == text else None


def own_id(key: str, kept: object) -> str:
    """Return the id of the item of a row: the stored one, if it maps to the row's own."""
    return kept if isinstance(kept, str) and str(chunk_uuid(kept)) == key else key


def document_row(item: SearchableItem) -> tuple[uuid.UUID, str | None, str | None]:
    """Return ``id``, ``filename`` and ``country`` of the document of an item."""
    document, country = item.metadata.get(_DOCUMENT), item.metadata.get(_COUNTRY)
    name = None if document is None else str(document)
    return document_uuid(document, item.item_id), name, country if isinstance(country, str) else None


def chunk_row(item: SearchableItem) -> tuple[uuid.UUID, str, uuid.UUID, str]:
    """Return ``id``, ``content``, ``doc_id`` and ``chunk_data`` of an item."""
    if _ID in item.metadata:
        raise ItemError(f"item {item.item_id!r:.80}: the tables use the metadata key {_ID!r} themselves; rename it")
    key = chunk_uuid(item.item_id)
    kept = {} if str(key) == item.item_id else {_ID: item.item_id}
    data = json.dumps(item.metadata | kept, allow_nan=False)
    return key, item.content, document_uuid(item.metadata.get(_DOCUMENT), item.item_id), data


def item_of(where: str, row: Mapping[str, Any]) -> SearchableItem:
    """Return the item of a row."""
    where = f"{where} {row['id']}"
    metadata = _object(where, "documents.metadata", row["about"]) | _object(where, "chunk_data", row["data"])
    item_id = own_id(row["id"], metadata.pop(_ID, None))
    document = row["filename"] if row["filename"] is not None else row["doc_id"]
    if _DOCUMENT not in metadata and document is not None and row["doc_id"] != str(document_uuid(None, item_id)):
        metadata[_DOCUMENT] = document
    if row["country"] is not None and isinstance(metadata.get(_COUNTRY, ""), str):
        metadata[_COUNTRY] = row["country"]
    elif not metadata.get(_COUNTRY):
        metadata.pop(_COUNTRY, None)
    if row["content"] is None:
        raise SourceError(f"{where}: its content is NULL; a chunk needs text, which may be empty")
    return make_item(where, item_id, row["content"], metadata)


def _object(where: str, column: str, text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text or "null")
        refuse_lone_surrogates(value, "it", ValueError)
    except RecursionError:
        raise SourceError(f"{where}: {column} is nested too deeply") from None
    except ValueError as error:
        raise SourceError(f"{where}: {column} is not JSON ({error})") from None
    if not isinstance(value, dict | None):
        raise SourceError(f"{where}: {column} is {json.dumps(value)[:60]}, not an object; keys with values are expected")
    return value or {}


def type_of(stored: object) -> str:
    """Return the type of a stored relation: one of the package's however it is spelt, else what the table says, in one line."""
    written = " ".join(printable(str(stored)).split()) if stored is not None else ""
    known = re.sub("[ -]", "_", written.upper())
    return known if known in RELATION_TYPES else written[:_LONGEST_TYPE] or UNSPECIFIED


@dataclass(frozen=True)
class ChunkCounts:
    """Numbers of rows in chunk tables, and of missing values.

    Args:
        documents: number of documents.
        chunks: number of chunks.
        relations: number of relations; 0 if there is no such table.
        without_vector: by column, number of chunks without a vector.
        without_country: number of chunks without a country.

    Examples:
        >>> counts = ChunkCounts(2, 40, relations=0, without_vector={"transformer_embedding": 3}, without_country=0)
        >>> counts.chunks - counts.without_vector["transformer_embedding"]
        37
    """

    documents: int
    chunks: int
    relations: int
    without_vector: Mapping[str, int]
    without_country: int


@dataclass(frozen=True)
class ChunkSimilarities:
    """The chunks nearest to a vector.

    Args:
        item_ids: nearest first, ties by the id of the row.
        similarities: cosines, -1 to 1.

    Examples:
        >>> import numpy as np
        >>> nearest = ChunkSimilarities(["ostland-2024-power", "ile-2024-power"], np.array([0.83, 0.31]))
        >>> nearest.item_ids[0], float(nearest.similarities[0])
        ('ostland-2024-power', 0.83)
    """

    item_ids: list[str]
    similarities: Scores


@dataclass(frozen=True)
class WrittenChunks:
    """Counts of written rows.

    Args:
        documents: number of documents.
        chunks: number of chunks.
        without_vector: by column, number of chunks stored without a vector, because theirs is zero.

    Examples:
        >>> WrittenChunks(documents=2, chunks=40, without_vector={}).chunks
        40
    """

    documents: int
    chunks: int
    without_vector: Mapping[str, int]


@dataclass(frozen=True)
class ChunkRelation:
    """Relation from one chunk to another.

    Args:
        source_id: id of the item that the relation leaves.
        target_id: id of the item that it reaches.
        type: one of ``SUPPORTS``, ``EXPLAINS``, ``CONTRADICTS``, ``FOLLOWS``, ``TEMPORAL_FOLLOWS``, ``CAUSES``; of a relation
            that is read, what its table says.
        confidence: 0 to 1.
        metadata: JSON values, such as ``evidence`` and ``method``.

    Raises:
        ItemError: both ends are the same, or its confidence is out of range.

    Examples:
        >>> ChunkRelation("ostland-2019-power", "ostland-2024-power", "TEMPORAL_FOLLOWS", 0.9).type
        'TEMPORAL_FOLLOWS'
    """

    source_id: str
    target_id: str
    type: str
    confidence: float
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        described = f"relation of {self.source_id!r:.80} with {self.target_id!r:.80}"
        if self.source_id == self.target_id:
            raise ItemError(f"{described}: both ends are the same chunk; a relation connects two")
        if not 0 <= self.confidence <= 1:
            raise ItemError(f"{described}: its confidence is {self.confidence!r}; expected 0 to 1")
