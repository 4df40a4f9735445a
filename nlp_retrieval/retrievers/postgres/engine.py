"""The base of engines whose data lives in a PostgreSQL server: connections, tables of segments, and dropping of orphans.

A table is committed before the folder that names it is published, and never changes
(:mod:`nlp_retrieval.retrievers.servers.retriever`); the next write to the directory drops those that no folder names
(:mod:`nlp_retrieval.retrievers.postgres.registry`).
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
from nlp_retrieval.retrievers.postgres.record import TableRecord
from nlp_retrieval.retrievers.postgres.registry import settle
from nlp_retrieval.retrievers.postgres.tables import check_table, make_table
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

    def connect(self, place: Path | None) -> Connections:
        return Connections(
            self.url,
            EmbeddedServer(place / EMBEDDED) if place is not None else None,
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
