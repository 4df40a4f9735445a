"""Conversion of items to rows of documents and chunks, and back.

The country is stored with the document, the rest of an item's metadata with its chunk, and every key is restored unchanged. In
tables of other programs, the document's country counts; if it is empty, the one in the chunk's data does.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nlp_retrieval import SearchableItem
from nlp_retrieval.core import find_lone_surrogate, lone_surrogate_message, parse_json
from nlp_retrieval.errors import ItemError, SourceError
from nlp_retrieval.loaders import make_item
from nlp_retrieval.systems.policy.chunk_tables.ids import chunk_uuid, document_uuid

__all__ = ["ChunkRow", "DocumentRow", "country_of", "item_of", "rows_of"]

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
    """A chunk.

    Args:
        key: its UUID.
        item: that it comes from.
        document: its document.
        data: its stored metadata.
    """

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
    told = f"item {item.item_id!r:.80}"
    if (half := find_lone_surrogate([item.item_id, item.content, item.metadata])) is not None:
        raise ItemError(lone_surrogate_message(told, half))
    for where, value in (("id", item.item_id), ("content", item.content), ("metadata", item.metadata)):
        if _holds_zero(value):
            raise ItemError(f"{told}: its {where} holds a zero character (U+0000), which PostgreSQL cannot store; leave it out")
    data = dict(item.metadata)
    if ID_KEY in data:
        raise ItemError(f"{told}: its metadata has a key {ID_KEY!r}, which these tables use themselves; call it something else")
    document, country = _name(told, data.pop(DOCUMENT_KEY, None), DOCUMENT_KEY), country_of(item)
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


def item_of(place: str, row: Mapping[str, Any]) -> SearchableItem:
    """Return the item of a row.

    Args:
        place: of the row, for messages.
        row: ``id``, ``content``, ``doc_id``, and as JSON text ``data`` and ``about``, of chunk and document; ``filename`` and
            ``country`` of the document.

    Raises:
        SourceError: it is not a valid item.
    """
    place = f"{place} {row['id']}"
    data = _object(place, "chunk_data", row["data"])
    item_id = own_id(row["id"], data.pop(ID_KEY, None))
    metadata = _object(place, "documents.metadata", row["about"]) | data
    metadata.pop(COUNTRY_KEY, None)
    document = row["filename"] if row["filename"] is not None else row["doc_id"]
    if document is not None and document != str(document_uuid(None, item_id)):
        metadata[DOCUMENT_KEY] = document
    if row["country"] is not None:
        metadata[COUNTRY_KEY] = row["country"]
    if row["content"] is None:
        raise SourceError(f"{place}: its content is NULL; a chunk needs a text, even an empty one")
    return make_item(place, item_id, row["content"], metadata)


def own_id(key: str, kept: Any) -> str:
    """Return the id of the item of a row: the stored one, if it maps to the row's own."""
    return kept if isinstance(kept, str) and str(chunk_uuid(kept)) == key else key


def _object(place: str, column: str, text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        value = parse_json(text)
    except ValueError as error:
        raise SourceError(f"{place}: {column} is not JSON ({error})") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise SourceError(f"{place}: {column} is {json.dumps(value)[:60]}, no object; keys with values are wanted")
    return value


def _name(told: str, value: object, key: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value or value != value.strip():
        raise ItemError(f"{told}: its {key} is {value!r:.80}; a text without space around it is wanted, or no such key")
    return value


def _holds_zero(value: object) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, Mapping):
        return any(_holds_zero(inner) for pair in value.items() for inner in pair)
    return isinstance(value, list | tuple) and any(map(_holds_zero, value))
