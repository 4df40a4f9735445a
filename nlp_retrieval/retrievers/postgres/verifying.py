"""Reading whole tables of an index, and comparing them with its records."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nlp_retrieval.errors import ConfigurationError, IndexDamagedError
from nlp_retrieval.retrievers.postgres.connections import Connections
from nlp_retrieval.retrievers.postgres.embedded import EmbeddedServer
from nlp_retrieval.retrievers.postgres.engine import EMBEDDED
from nlp_retrieval.retrievers.postgres.record import TableRecord
from nlp_retrieval.retrievers.postgres.tables import check_table, extension_of

if TYPE_CHECKING:
    from nlp_retrieval.retrievers.postgres.connections import PostgresConnection


_MOST_SECONDS = 3600.0
"""Time limit for reading one table."""


def verify_tables(directory: Path, url: str | None = None) -> list[str]:
    """Compare every row of every table that the manifest of an index names with the checksums in the records.

    Args:
        directory: of the index.
        url: of the server; None for the embedded one.

    Returns:
        One message per damaged table; empty if there is none, or no table at all.

    Raises:
        IndexDamagedError: the manifest, or the record of a table, is damaged.
        ConfigurationError: the tables are on another server, and no URL is given.
        ServerError: the server cannot be asked.
    """
    records = TableRecord.of_index(directory)
    if not records:
        return []
    place = directory.absolute() / EMBEDDED
    if url is None and not place.is_dir():
        raise ConfigurationError(
            f"{directory}: {len(records)} tables of this index are on a server (database {records[0].database!r}), which was "
            "not asked; pass its URL with --url env:NAME"
        )
    server = EmbeddedServer(place) if url is None else None
    connections = Connections(url, server, statement_timeout=_MOST_SECONDS)
    damaged = []
    try:
        for record in records:
            try:
                connections.read(partial(_checked, record=record, shown=connections.shown))
            except IndexDamagedError as error:
                damaged.append(str(error))
    finally:
        connections.close()
        if server is not None:
            server.close()
    return damaged


def _checked(connection: PostgresConnection, record: TableRecord, shown: str) -> None:
    if record.column == "embedding":
        schema, _ = extension_of(connection, "vector")
        connection.execute("SELECT set_config('search_path', quote_ident(%s), false)", [schema])
    check_table(connection, record, shown, whole=True)
