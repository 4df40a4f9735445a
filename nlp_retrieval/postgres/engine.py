"""The base of engines whose data lives in a PostgreSQL server: connections, tables of segments, what becomes of orphans.

A segment's folder holds ``server.json`` alone (:mod:`nlp_retrieval.postgres.record`). A table is committed before the folder
that names it is published, so a killed build leaves a table that no folder names, and never a folder without its table; the
next write to the directory drops it (:mod:`nlp_retrieval.postgres.registry`). A table never changes. One that is missing, or
holds anything else than its record says, is an error and never an answer.
"""

from __future__ import annotations

import copy
import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np

from nlp_retrieval.core.candidates import Hits, Mask, offsets_of
from nlp_retrieval.core.forks import Lock
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.index.segments import SegmentFolder
from nlp_retrieval.core.ranking import joined_hits
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.errors import ConfigurationError, IndexDamagedError
from nlp_retrieval.postgres.connections import Connections, shown_url
from nlp_retrieval.postgres.embedded import EmbeddedServer
from nlp_retrieval.postgres.record import TableRecord, read_record, write_record
from nlp_retrieval.postgres.registry import named_records, settle
from nlp_retrieval.postgres.tables import check_table, make_table

if TYPE_CHECKING:
    from nlp_retrieval.postgres.connections import PostgresConnection

T = TypeVar("T")

EMBEDDED = ".postgres"
"""The folder of the embedded server, in the index directory."""

_LONGEST_NAME = 63
_AT_ONCE = 16
"""Queries in a statement: fewer round trips, and not so many that the time-out of one statement is no measure of a search."""


class PostgresRetriever(BaseRetriever):
    """What engines over PostgreSQL share; their constructors pass on these parameters.

    Args:
        url: of the server; see :mod:`nlp_retrieval.postgres.connections`. None for the embedded one.
        schema: where tables are made.
        statement_timeout: seconds a search may take.
        connections: how many at once.
    """

    survives_fork: ClassVar[bool] = False

    def __init__(self, url: str | None, schema: str, statement_timeout: float, connections: int) -> None:
        # config, repr and fingerprints use these arguments, and are written to disk and to W&B
        self._arguments["url"] = url if url is None else shown_url(url)
        size = len(schema.encode())
        if not 0 < size <= _LONGEST_NAME or {"\0", "%"} & {*schema} or schema.startswith("pg_"):
            raise ConfigurationError(
                f"{self.name}: schema={schema!r:.80} cannot be the name of a schema: 1 to {_LONGEST_NAME} bytes, without "
                "%, not beginning with pg_"
            )
        self.url = url
        self.schema = schema
        self.statement_timeout = statement_timeout
        self.connections = connections
        self._pools: dict[Path | None, Connections] = {}
        self._pooling = Lock()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return copy.copy(self)  # keeps the URL with its password, which the arguments do not hold

    # what an engine says

    @abstractmethod
    def search_table(
        self, connection: PostgresConnection, record: TableRecord, queries: Any, k: int, allowed: Mask | None
    ) -> Hits:
        """Search one table for what :meth:`prepared` made of queries, in one round trip.

        Args:
            connection: to the server.
            record: of the table.
            queries: distinct.
            k: at most as many rows per query, no more than there are.
            allowed: ``[rows of the table]``, or None.
        """

    def prepared(self, queries: list[str]) -> Any:
        """Return what :meth:`search_table` needs of queries; by default they themselves."""
        return queries

    def preparing(self) -> Callable[[PostgresConnection], None]:
        """Return what makes a new connection ready; it must not hold this object, which holds the connections."""
        return lambda _: None

    # what follows for all of them

    def load(self, folder: Path) -> None:
        rows = read_record(folder).rows
        self.load_segments([SegmentFolder(folder, 0, rows)])

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        self._records = [(segment, read_record(segment.folder, len(segment))) for segment in segments]
        self._server = self._connections(segments[0].folder.parent)

        def check(connection: PostgresConnection) -> None:
            for _, record in self._records:
                check_table(connection, record, self._server.shown)

        self._server.read(check)

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        return self.search_prepared(self.prepared(queries) if queries else [], k, allowed)

    def search_prepared(self, prepared: Any, k: int, allowed: Mask | None) -> Hits:
        """Search for what :meth:`prepared` returned, as :meth:`search_batch` does."""
        if len(prepared) == 0:
            return Hits.from_lists([])

        def search(connection: PostgresConnection, prepared: Any) -> Hits:
            found = []
            for segment, record in self._records:
                part = None if allowed is None else allowed[segment.rows]
                if part is not None and part.all():
                    part = None
                n_found = len(segment) if part is None else int(np.count_nonzero(part))
                if n_found:
                    hits = self.search_table(connection, record, prepared, min(k, n_found), part)
                    found.append(replace(hits, rows=hits.rows + segment.first_row))
            return joined_hits(found, len(prepared), k)

        parts = [prepared[first : first + _AT_ONCE] for first in range(0, len(prepared), _AT_ONCE)]
        hits = [self.reading(partial(search, prepared=part)) for part in parts]
        counts = np.concatenate([np.diff(some.offsets) for some in hits])
        rows, scores = (np.concatenate(columns) for columns in zip(*((some.rows, some.scores) for some in hits), strict=True))
        return Hits(offsets_of(counts), rows, scores)

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
        schemas = {self.schema, *(record.schema_name for record in named_records(directory))}
        if self.url is None and not (directory / EMBEDDED).exists():
            return
        connections = self._connections(directory)
        for schema in sorted(schemas):
            connections.write(partial(settle, schema=schema, directory=directory))

    def require_segments(self, segments: Sequence[SegmentFolder]) -> None:
        connections = self._connections(segments[0].folder.parent)
        for segment in segments:
            record = read_record(segment.folder, len(segment))
            connections.read(partial(check_table, record=record, shown=connections.shown))

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        self.require_segments(segments)
        super().extend(items, folder, segments, everything)

    def _make(self, folder: Path, items: ItemTable, column: tuple[str, str], **more: Any) -> None:
        """Make the table of a segment, and write its record into the folder."""
        connections = self._connections(folder.parent)
        directory = folder.parent.absolute()
        record = make_table(connections, directory, items, engine=self.name, schema=self.schema, column=column, **more)
        write_record(folder, record)

    def _connections(self, directory: Path) -> Connections:
        """The connections to the server of an index directory."""
        place = directory.absolute() if self.url is None else None
        with self._pooling:
            pool = self._pools.get(place)
            if pool is None or pool.process != os.getpid():
                embedded = EmbeddedServer(place / EMBEDDED) if place is not None else None
                self._pools[place] = pool = Connections(
                    self.url,
                    embedded,
                    statement_timeout=self.statement_timeout,
                    most=self.connections,
                    prepare=self.preparing(),
                )
            return pool
