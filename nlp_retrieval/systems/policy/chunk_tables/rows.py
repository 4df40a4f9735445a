"""Items and their rows: documents, chunks and relations, and what the tables tell about them.

The country is stored with the document, the rest of an item's metadata with its chunk, and every key is restored unchanged. In
tables of other programs, the document's country counts; if it is empty, the one in the chunk's data does.

A canonical UUID as an id stays unchanged. Any other id is mapped to its UUID of version 5, and rows of this package also store
the id, which counts only if it maps to the row's UUID.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from nlp_retrieval import SearchableItem
from nlp_retrieval.core import Scores, refuse_lone_surrogates
from nlp_retrieval.errors import ItemError, SourceError, nearest
from nlp_retrieval.loaders import make_item
from nlp_retrieval.text import printable

RELATION_TYPES = ("SUPPORTS", "EXPLAINS", "CONTRADICTS", "FOLLOWS", "TEMPORAL_FOLLOWS", "CAUSES")
"""Types of relations: the source FOLLOWS the target as the next passage of its document, TEMPORAL_FOLLOWS it in the next
edition, and SUPPORTS, EXPLAINS, CONTRADICTS or CAUSES what the target says."""

_CHUNKS = uuid.UUID("6f1d8b0e-6f0c-5c0e-9a52-2b6c7f9f6d11")
_DOCUMENTS = uuid.UUID("0b8a6c1a-41c5-5f6e-8d57-6f4c2f0f9a2e")
_RELATIONS = uuid.UUID("c7a4e9e2-5a2b-5d0d-b1a0-9d3e5f6a7b8c")


def chunk_uuid(item_id: str) -> uuid.UUID:
    """Return the id of an item's row."""
    return _canonical(item_id) or uuid.uuid5(_CHUNKS, item_id)


def document_uuid(document: str | None, item_id: str) -> uuid.UUID:
    """Return the id of a document's row; an item without a document is one of its own."""
    if document is None:
        return uuid.uuid5(_DOCUMENTS, f"of item {item_id}")
    return _canonical(document) or uuid.uuid5(_DOCUMENTS, f"document {document}")


def relation_uuid(source: uuid.UUID, target: uuid.UUID, relation_type: str) -> uuid.UUID:
    """Return the id of a relation's row."""
    return uuid.uuid5(_RELATIONS, f"{source} {relation_type} {target}")


def _canonical(text: str) -> uuid.UUID | None:
    try:
        parsed = uuid.UUID(text)
    except ValueError:
        return None
    return parsed if str(parsed) == text else None


DOCUMENT_KEY, COUNTRY_KEY, ID_KEY = "document", "country", "item_id"
"""Keys of metadata with a column of their own, and the key of an id that is not a UUID."""

Row = dict[str, Any]


@dataclass(frozen=True)
class DocumentRow:
    """A document.

    Args:
        key: its UUID.
        name: in the items' metadata; None if an item is a document of its own.
        country: None if its items have none.
    """

    key: uuid.UUID
    name: str | None
    country: str | None

    def row(self) -> Row:
        """Return it as a row of ``documents``."""
        return {"id": self.key, "filename": self.name, "country": self.country}


@dataclass(frozen=True)
class ChunkRow:
    """A chunk."""

    key: uuid.UUID
    item: SearchableItem
    document: DocumentRow
    data: Mapping[str, Any]

    def row(self) -> Row:
        """Return it as a row of ``doc_chunks``, without vectors."""
        return {"id": self.key, "content": self.item.content, "doc_id": self.document.key, "chunk_data": dict(self.data)}


def rows_of(item: SearchableItem) -> ChunkRow:
    """Return the rows of an item.

    Raises:
        ItemError: PostgreSQL cannot store it, or its document or country is not a string.
    """
    shown = f"item {item.item_id!r:.80}"
    refuse_lone_surrogates([item.item_id, item.content, item.metadata], shown, ItemError)
    for where, value in (("id", item.item_id), ("content", item.content), ("metadata", item.metadata)):
        if _holds_zero(value):
            raise ItemError(f"{shown}: its {where} holds a NUL character (U+0000), which PostgreSQL cannot store; remove it")
    data = dict(item.metadata)
    if ID_KEY in data:
        raise ItemError(f"{shown}: its metadata has a key {ID_KEY!r}, which the tables use themselves; rename it")
    document, country = _name(shown, data.pop(DOCUMENT_KEY, None), DOCUMENT_KEY), country_of(item)
    data.pop(COUNTRY_KEY, None)
    key = chunk_uuid(item.item_id)
    if str(key) != item.item_id:
        data[ID_KEY] = item.item_id
    return ChunkRow(key, item, DocumentRow(document_uuid(document, item.item_id), document, country), data)


def country_of(item: SearchableItem) -> str | None:
    """Return the country of an item; None if it has none.

    Raises:
        ItemError: it is not a string, or has white space around it.
    """
    return _name(f"item {item.item_id!r:.80}", item.metadata.get(COUNTRY_KEY), COUNTRY_KEY)


def item_of(where: str, row: Mapping[str, Any]) -> SearchableItem:
    """Return the item of a row.

    Args:
        where: the row, for messages.
        row: ``id``, ``content``, ``doc_id``, and as JSON text ``data`` and ``about``, of chunk and document; ``filename`` and
            ``country`` of the document.

    Raises:
        SourceError: it is not a valid item.
    """
    where = f"{where} {row['id']}"
    data = _object(where, "chunk_data", row["data"])
    item_id = own_id(row["id"], data.pop(ID_KEY, None))
    metadata = _object(where, "documents.metadata", row["about"]) | data
    metadata.pop(COUNTRY_KEY, None)
    document = row["filename"] if row["filename"] is not None else row["doc_id"]
    if document is not None and document != str(document_uuid(None, item_id)):
        metadata[DOCUMENT_KEY] = document
    if row["country"] is not None:
        metadata[COUNTRY_KEY] = row["country"]
    if row["content"] is None:
        raise SourceError(f"{where}: its content is NULL; a chunk needs text, which may be empty")
    return make_item(where, item_id, row["content"], metadata)


def own_id(key: str, kept: Any) -> str:
    """Return the id of the item of a row: the stored one, if it maps to the row's own."""
    return kept if isinstance(kept, str) and str(chunk_uuid(kept)) == key else key


def json_value(text: str) -> Any:
    """Return the value of a JSON column with its numbers as they were written; ``parse_json`` rounds large whole numbers.

    Raises:
        ValueError: the text is not JSON, or is nested too deeply.
    """
    try:
        value = json.loads(text)
        refuse_lone_surrogates(value, "it", ValueError)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def _object(where: str, column: str, text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        value = json_value(text)
    except ValueError as error:
        raise SourceError(f"{where}: {column} is not JSON ({error})") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise SourceError(f"{where}: {column} is {json.dumps(value)[:60]}, not an object; keys with values are expected")
    return value


def _name(where: str, value: object, key: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value or value != value.strip():
        raise ItemError(f"{where}: its {key} is {value!r:.80}; expected text without surrounding white space, or no such key")
    return value


_LONGEST_TYPE = 80
UNSPECIFIED = "UNSPECIFIED"
"""Type of relations whose table names none."""


def type_of(stored: object) -> str:
    """Return the type of a stored relation: one of the package's however it is spelt, else what the table says, in one line."""
    written = " ".join(printable(str(stored)).split()) if stored is not None else ""
    known = re.sub("[ -]", "_", written.upper())
    return known if known in RELATION_TYPES else written[:_LONGEST_TYPE] or UNSPECIFIED


def _holds_zero(value: object) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, Mapping):
        return any(_holds_zero(inner) for pair in value.items() for inner in pair)
    return isinstance(value, list | tuple) and any(map(_holds_zero, value))


@dataclass(frozen=True)
class ChunkCounts:
    """Numbers of rows in chunk tables, and of missing values.

    Args:
        documents: number of documents.
        chunks: number of chunks.
        relations: number of relations; 0 if there is no such table.
        without_vector: by column, number of chunks without a vector.
        without_country: number of chunks without a country.
        two_countries: number of chunks with another country than their document; the document's is used.

    Examples:
        >>> missing = {"transformer_embedding": 3}
        >>> counts = ChunkCounts(2, 40, relations=0, without_vector=missing, without_country=0, two_countries=0)
        >>> counts.chunks - counts.without_vector["transformer_embedding"]
        37
    """

    documents: int
    chunks: int
    relations: int
    without_vector: Mapping[str, int]
    without_country: int
    two_countries: int


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
        documents: number of documents; one whose items are not consecutive counts each time.
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
        ItemError: both ends are the same, its type is unknown, or its confidence out of range.

    Examples:
        >>> ChunkRelation("ostland-2019-power", "ostland-2024-power", "TEMPORAL_FOLLOWS", 0.9).type
        'TEMPORAL_FOLLOWS'
    """

    source_id: str
    target_id: str
    type: str
    confidence: float
    metadata: Mapping[str, Any] = field(default_factory=dict)

    _any_type: ClassVar[bool] = False

    def __post_init__(self) -> None:
        described = f"relation of {self.source_id!r:.80} with {self.target_id!r:.80}"
        if self.source_id == self.target_id:
            raise ItemError(f"{described}: both ends are the same chunk; a relation connects two")
        if self.type not in RELATION_TYPES and not self._any_type:
            raise ItemError(f"{described}: there is no type {self.type!r:.80}; {nearest(str(self.type), RELATION_TYPES)}")
        if not 0 <= self.confidence <= 1:
            raise ItemError(f"{described}: its confidence is {self.confidence!r}; expected 0 to 1")


class StoredRelation(ChunkRelation):
    """A relation as a table has it, of whatever type."""

    _any_type = True
