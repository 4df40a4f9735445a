"""The base of engines whose data lives in a PostgreSQL server: connections, tables of segments, and dropping of orphans.

A table is committed before the folder that names it is published, and never changes
(:mod:`nlp_retrieval.retrievers.servers.retriever`); the next write to the directory drops those that no folder names
(:mod:`nlp_retrieval.retrievers.postgres.tables`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.errors import ConfigurationError, IndexDamagedError
from nlp_retrieval.loaders.database import hide_secrets
from nlp_retrieval.retrievers.postgres.connections import Connections
from nlp_retrieval.retrievers.postgres.embedded import EmbeddedServer
from nlp_retrieval.retrievers.postgres.tables import TableRecord, check_table, extension_of, make_table, settle
from nlp_retrieval.retrievers.servers.retriever import ServerRetriever

if TYPE_CHECKING:
    from nlp_retrieval.retrievers.postgres.connections import PostgresConnection


T = TypeVar("T")

EMBEDDED = ".postgres"
"""The folder of the embedded server, in the index directory."""

_LONGEST_NAME = 63


class PostgresRetriever(ServerRetriever[TableRecord, Connections]):
    """Base of engines over PostgreSQL; their constructors pass on these parameters.

    Args:
        url: of the server; see :mod:`nlp_retrieval.retrievers.postgres.connections`. None for the embedded one.
        schema: of the tables.
        statement_timeout: seconds a search may take.
        connections: how many at once.
    """

    record = TableRecord

    def __init__(self, url: str | None, schema: str, statement_timeout: float, connections: int) -> None:
        super().__init__(url, url if url is None else hide_secrets(url))
        size = len(schema.encode())
        if not 0 < size <= _LONGEST_NAME or {"\0", "%"} & {*schema} or schema.startswith("pg_"):
            raise ConfigurationError(
                f"{self.name}: schema={schema!r:.80} cannot be the name of a schema: 1 to {_LONGEST_NAME} bytes, without "
                "%, not beginning with pg_"
            )
        self.schema = schema
        self.statement_timeout = statement_timeout
        self.connections = connections

    def preparing(self) -> Callable[[PostgresConnection], None]:
        """Return a function that prepares a new connection; it must not hold this object, which holds the connections."""
        return lambda _: None

    def connect(self, directory: Path | None) -> Connections:
        return Connections(
            self.url,
            EmbeddedServer(directory / EMBEDDED) if directory is not None else None,
            statement_timeout=self.statement_timeout,
            most=self.connections,
            prepare=self.preparing(),
        )

    def check(self, connections: Connections, record: TableRecord) -> None:
        connections.read(partial(check_table, record=record, shown=connections.shown))

    def reading(self, work: Callable[[PostgresConnection], T]) -> T:
        """Read from the tables of the opened index.

        Raises:
            IndexDamagedError: one of them is gone.
            ServerError: see :meth:`Connections.read`.
        """
        from psycopg import errors

        def guarded(connection: PostgresConnection) -> T:
            try:
                return work(connection)
            except (errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName) as error:
                reason = " ".join(str(error).split())[:200]
                raise IndexDamagedError(
                    f"{self._server.shown}: a table of the index was dropped or changed since it was opened ({reason}); index "
                    "again with replace=True"
                ) from None

        return self._server.read(guarded)

    def settle(self, directory: Path) -> None:
        schemas = {self.schema, *(record.schema_name for record in TableRecord.named(directory))}
        if self.url is None and not (directory / EMBEDDED).exists():
            return
        connections = self.pool_of(directory)
        for schema in sorted(schemas):
            connections.write(partial(settle, schema=schema, directory=directory))

    def _make(self, folder: Path, items: ItemTable, column: tuple[str, str], **more: Any) -> None:
        """Create the table of a segment, and write its record into the folder."""
        connections = self.pool_of(folder.parent)
        directory = folder.parent.absolute()
        record = make_table(connections, directory, items, engine=self.name, schema=self.schema, column=column, **more)
        record.write(folder)


# Reading whole tables of an index, and comparing them with its records.


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
    server_folder = directory.absolute() / EMBEDDED
    if url is None and not server_folder.is_dir():
        raise ConfigurationError(
            f"{directory}: {len(records)} tables of this index are on a server (database {records[0].database!r}), which was "
            "not asked; pass its URL with --url env:NAME"
        )
    server = EmbeddedServer(server_folder) if url is None else None
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
