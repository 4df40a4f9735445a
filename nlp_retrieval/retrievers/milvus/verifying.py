"""Reading whole collections of an index, and comparing them with its records."""

from __future__ import annotations

from pathlib import Path

from nlp_retrieval.errors import ConfigurationError, IndexDamagedError
from nlp_retrieval.retrievers.milvus.client import MilvusConnections
from nlp_retrieval.retrievers.milvus.collections import check_collection
from nlp_retrieval.retrievers.milvus.embedded import EMBEDDED, MilvusLiteServer
from nlp_retrieval.retrievers.milvus.record import CollectionRecord

_MOST_SECONDS = 3600.0
"""Time limit of one request."""


def verify_collections(directory: Path, url: str | None = None, token: str | None = None) -> list[str]:
    """Compare every row of every collection that the manifest of an index names with the checksums in the records.

    Args:
        directory: of the index.
        url: of the server; None for the embedded one.
        token: ``env:NAME``, for the server.

    Returns:
        One message per damaged collection; empty if there is none, or no collection at all.

    Raises:
        IndexDamagedError: the manifest, or the record of a collection, is damaged.
        ConfigurationError: the collections are on another server, and no URL is given.
        ServerError: the server cannot be asked.
    """
    records = CollectionRecord.of_index(directory)
    if not records:
        return []
    place = directory.absolute() / EMBEDDED
    if url is None and not place.is_dir():
        raise ConfigurationError(
            f"{directory}: {len(records)} collections of this index are on a server (database "
            f"{records[0].database or 'default'!r}), which was not asked; pass its URL with --url env:NAME"
        )
    server = MilvusLiteServer(place) if url is None else None
    connections = MilvusConnections(url, token, server, timeout=_MOST_SECONDS, retries=1)
    damaged = []
    try:
        for record in records:
            try:
                check_collection(connections, record, whole=True)
            except IndexDamagedError as error:
                damaged.append(str(error))
    finally:
        connections.close()
        if server is not None:
            server.close()
    return damaged
