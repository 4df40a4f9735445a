"""Mapping of ids of items and documents to UUIDs of rows, and back.

A canonical UUID stays unchanged. Any other id is mapped to its UUID of version 5, and rows of this package also store the id,
which counts only if it maps to the row's UUID.
"""

from __future__ import annotations

import uuid

__all__ = ["chunk_uuid", "document_uuid", "relation_uuid"]

_CHUNKS = uuid.UUID("6f1d8b0e-6f0c-5c0e-9a52-2b6c7f9f6d11")
_DOCUMENTS = uuid.UUID("0b8a6c1a-41c5-5f6e-8d57-6f4c2f0f9a2e")
_RELATIONS = uuid.UUID("c7a4e9e2-5a2b-5d0d-b1a0-9d3e5f6a7b8c")


def chunk_uuid(item_id: str) -> uuid.UUID:
    """Return the id of an item's row."""
    return _canonical(item_id) or uuid.uuid5(_CHUNKS, item_id)


def document_uuid(document: str | None, item_id: str) -> uuid.UUID:
    """Return the id of a document's row; an item without a document is one of its own.

    Args:
        document: its name.
        item_id: of one of its chunks.
    """
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
