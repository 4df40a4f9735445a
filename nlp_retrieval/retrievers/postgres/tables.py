"""The tables of segments: created in one transaction, and checked against the segments' records before use."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, LiteralString

import numpy as np
from pydantic import Field

from nlp_retrieval.core.candidates import Mask
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.errors import EngineError, IndexDamagedError, ServerError
from nlp_retrieval.retrievers.postgres.connections import Connections
from nlp_retrieval.retrievers.servers.retriever import ServerRecord, ids_sum, inode_of, place_of

if TYPE_CHECKING:
    from psycopg.sql import SQL, Composed

    from nlp_retrieval.core.index.generation import SegmentFolder
    from nlp_retrieval.retrievers.postgres.connections import PostgresConnection


# ``server.json``, the only file in the folder of a segment of an index whose data lives in PostgreSQL.


TABLE_NAME = r"^nlpr_[a-z_]{1,30}_[0-9a-f]{16}$"


class TableRecord(ServerRecord):
    """A table of a segment.

    Args:
        format: of this record.
        server: the system identifier of the server that it was built on; a replica has the same, a restored copy may not.
        database: its name there.
        schema_name: of the table.
        table: its name, never used again.
        column: name of the column that is searched.
        type: of that column, with the dimension.
        content: checksum of the searched column and its rows.
        approximate: whether the column has an index that finds nearest neighbours approximately.
    """

    format: Literal[1] = 1
    server: str = Field(pattern=r"^\d{1,20}$")
    database: str = Field(max_length=63)
    schema_name: str = Field(min_length=1, max_length=63, pattern=r"^[^\x00%]+$")
    table: str = Field(pattern=TABLE_NAME)
    column: Literal["embedding", "words"]
    type: str = Field(max_length=40, pattern=r"^(tsvector|vector\(\d{1,5}\)|halfvec\(\d{1,5}\))$")
    content: str = Field(pattern=r"^-?\d{1,30}$")
    approximate: bool = False

    @property
    def dimension(self) -> int:
        """Dimension of the vectors; 0 without."""
        return int("".join(char for char in self.type if char.isdigit()) or 0)

    @property
    def shown(self) -> str:
        """Return its name in messages."""
        return f'table "{self.schema_name}"."{self.table}"'


# The checksums of rows, as PostgreSQL computes them from its tables.


CONTENT = {
    "tsvector": "convert_to(words::text, 'UTF8')",
    "vector": "vector_send(embedding)",
    "halfvec": "halfvec_send(embedding)",
}
"""SQL for the bytes of the searched column, by its type."""


_ROW_SUM = "('x' || left(md5(row || ':' || md5({})), 16))::bit(64)::bigint"
_ID_BYTES = "convert_to(item_id, 'UTF8')"
ID_SUM = _ROW_SUM.format(_ID_BYTES)
"""SQL for a row's part of the checksum of the ids, from its columns ``row`` and ``item_id``."""


def _sum_of(value: str) -> str:
    return f"coalesce(sum({_ROW_SUM.format(value)}), 0)::text"


def whole_check(kind: str) -> SQL:
    """The columns of a SELECT from a table: its rows, the lowest and highest, and the checksums of ids and content.

    Args:
        kind: the type of the searched column, without a dimension.
    """
    from psycopg.sql import SQL

    return SQL(f"count(*), min(row), max(row), {_sum_of(_ID_BYTES)}, {_sum_of(CONTENT[kind])}")


def quick_check(table: Composed) -> Composed:
    """A SELECT that reads the index of the rows alone: their number, the lowest and highest, and the checksum of the ids."""
    from psycopg.sql import SQL

    return SQL("SELECT count(*), min(row), max(row), coalesce(sum(id_sum), 0)::text FROM {}").format(table)


# The registry of tables by index directory, so that tables which no folder names are dropped.
#
# A table is registered as not published in the transaction that creates it. After every write to an index directory, its only
# writer marks the tables that its folders name as published, and drops others of this directory:
#
# * not published, and created for this path on this host: a build was killed, or failed; * published, and of this same folder
# (its inode) with this path or this token: the folder that named it is gone.
#
# A copied folder has another inode, so it never drops what the original uses; a moved one keeps its own.


REGISTRY = "nlp_retrieval_tables"
_WAITED = "5s"


def registry_of(schema: str) -> Composed:
    """The quoted name of the registry."""
    from psycopg.sql import SQL, Identifier

    return SQL("{}").format(Identifier(schema, REGISTRY))


def create_registry(connection: PostgresConnection, schema: str) -> None:
    """Create the schema and its registry if they do not exist."""
    from psycopg.sql import SQL, Identifier

    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"{REGISTRY} {schema}"])
    # without the right to create schemas, IF NOT EXISTS is refused even where there is one
    if connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema]).fetchone() is None:
        connection.execute(SQL("CREATE SCHEMA IF NOT EXISTS {}").format(Identifier(schema)))
    if connection.execute("SELECT to_regclass(%s)", [registry_of(schema).as_string(connection)]).fetchone() == (None,):
        connection.execute(
            SQL(
                "CREATE TABLE {} (table_name text PRIMARY KEY, token text NOT NULL, place text NOT NULL, inode text NOT NULL, "
                "published boolean NOT NULL DEFAULT false, created timestamptz NOT NULL DEFAULT now())"
            ).format(registry_of(schema))
        )


def register(connection: PostgresConnection, record: TableRecord, directory: Path) -> None:
    """Note, in the transaction that creates a table, the index directory that it is for."""
    from psycopg.sql import SQL

    connection.execute(
        SQL("INSERT INTO {} (table_name, token, place, inode) VALUES (%s, %s, %s, %s)").format(registry_of(record.schema_name)),
        [record.table, record.token, place_of(directory), inode_of(directory)],
    )


def settle(connection: PostgresConnection, schema: str, directory: Path) -> list[str]:
    """Mark the tables that the folders of a directory name, and drop its others; called by its only writer.

    Returns:
        The dropped tables.
    """
    from psycopg.sql import SQL, Identifier

    registry = registry_of(schema)
    if connection.execute("SELECT to_regclass(%s)", [registry.as_string(connection)]).fetchone() == (None,):
        return []
    connection.execute(SQL("SET LOCAL lock_timeout = {}").format(_WAITED))
    records = [record for record in TableRecord.named(directory) if record.schema_name == schema]
    values = {
        "named": [record.table for record in records],
        "tokens": [record.token for record in records],
        "place": place_of(directory),
        "inode": inode_of(directory),
    }
    own = SQL("published AND inode = %(inode)s AND (place = %(place)s OR token = ANY(%(tokens)s))")
    new = SQL("NOT published AND place = %(place)s")
    connection.execute(
        SQL("UPDATE {} SET published = true, place = %(place)s, inode = %(inode)s WHERE table_name = ANY(%(named)s) ").format(
            registry
        )
        + SQL("AND (({}) OR ({})) AND NOT (published AND place = %(place)s)").format(own, new),
        values,
    )
    orphans = connection.execute(
        SQL("DELETE FROM {} WHERE table_name <> ALL(%(named)s) AND (({}) OR ({})) RETURNING table_name").format(
            registry, own, new
        ),
        values,
    ).fetchall()
    for (table,) in orphans:
        connection.execute(SQL("DROP TABLE IF EXISTS {}").format(Identifier(schema, table)))
    return [table for (table,) in orphans]


CHECKED_WHOLE = 10_000
"""Largest table that is read whole when it is opened; of larger ones, only the index of the rows is read."""

_CURE = "index again with replace=True, or correct the url"

Fill = Callable[["PostgresConnection", "Composed"], None]
"""Writes the rows of a new table (row, item_id, id_sum and the searched column), in the transaction that creates it."""


def table_of(record: TableRecord) -> Composed:
    """The quoted name of a table."""
    from psycopg.sql import SQL, Identifier

    return SQL("{}").format(Identifier(record.schema_name, record.table))


def make_table(
    connections: Connections,
    directory: Path,
    items: ItemTable,
    *,
    engine: str,
    schema: str,
    column: tuple[str, str],
    more: LiteralString = "",
    fill: Fill,
    indexed: tuple[LiteralString, ...] = (),
    approximate: bool = False,
    settings: dict[str, str] | None = None,
) -> TableRecord:
    """Create the table of a segment, in one transaction; it is published by the manifest that names its record.

    Args:
        connections: to the server.
        directory: of the index.
        items: of the segment.
        engine: registry name.
        schema: created if it does not exist.
        column: name and type of the searched column.
        more: further columns, as SQL.
        fill: writes the rows.
        indexed: the index to create after all rows, as SQL (``USING gin (words)``).
        approximate: whether that index finds nearest neighbours approximately.
        settings: of the server, for this transaction.

    Raises:
        ServerError, IndexWriteError: nothing was written.
        EngineError: the server holds other rows than were sent.
    """
    from psycopg.sql import SQL, Identifier

    def make(connection: PostgresConnection) -> TableRecord:
        for setting, value in (settings or {}).items():
            connection.execute("SELECT set_config(%s, %s, true)", [setting, value])
        create_registry(connection, schema)
        record = _new_record(connection, directory, items, engine, schema, column, approximate)
        table = table_of(record)
        name, kind = column
        connection.execute(
            SQL(
                "CREATE TABLE {} (row integer NOT NULL, item_id text NOT NULL, id_sum bigint NOT NULL, {} {} NOT NULL{})"
            ).format(table, Identifier(name), SQL(kind), SQL(more))
        )
        fill(connection, table)
        connection.execute(SQL("ALTER TABLE {} ADD PRIMARY KEY (row) INCLUDE (id_sum)").format(table))
        for index in indexed:
            connection.execute(SQL("CREATE INDEX ON {} ").format(table) + SQL(index))
        register(connection, record, directory)
        content = _content_of(connection, record, connections.shown)
        connection.execute(SQL("ANALYZE {}").format(table))
        return record.model_copy(update={"content": content})

    return connections.write(make)


def _new_record(
    connection: PostgresConnection,
    directory: Path,
    items: ItemTable,
    engine: str,
    schema: str,
    column: tuple[str, str],
    approximate: bool,
) -> TableRecord:
    """The record of a table that is about to be created; the checksum of its content is not known yet."""
    identity = connection.execute("SELECT (pg_control_system()).system_identifier::text, current_database()").fetchone()
    server, database = identity or ("0", "")
    name, kind = column
    return TableRecord(
        server=str(int(server) % 2**64),
        database=database,
        schema_name=schema,
        table=f"nlpr_{engine}_{secrets.token_hex(8)}",
        token=TableRecord.token_of(directory),
        column=name,  # type: ignore[arg-type]
        type=kind,
        rows=len(items),
        ids=ids_sum(items.ids()),
        content="0",
        approximate=approximate,
    )


def _content_of(connection: PostgresConnection, record: TableRecord, shown: str) -> str:
    """The checksum of the content of a new table, which must hold all rows that were sent."""
    rows, first, last, ids, content = _table_state(connection, record, record.type)
    if (rows, first, last, ids) != (record.rows, 0, record.rows - 1, record.ids):
        raise EngineError(f"{shown}: {record.shown} holds {rows:,} other rows than the {record.rows:,} that were sent")
    return str(content)


def _table_state(connection: PostgresConnection, record: TableRecord, kind: str) -> tuple[Any, ...]:
    """Return how many rows a table holds, the lowest and the highest, and the checksums of ids and content; reads all of it."""
    from psycopg.sql import SQL

    check = whole_check(kind.partition("(")[0])
    state = connection.execute(SQL("SELECT {} FROM {}").format(check, table_of(record))).fetchone()
    return state or (0, None, None, "0", "0")


def check_table(connection: PostgresConnection, record: TableRecord, shown: str, *, whole: bool = False) -> None:
    """Compare a table with its record.

    Args:
        connection: to the server.
        record: of the segment.
        shown: the server, for messages.
        whole: read all of it, even if it is large.

    Raises:
        IndexDamagedError: it is missing or holds something else.
    """
    table = table_of(record)
    quoted = table.as_string(connection)
    column = connection.execute(
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = to_regclass(%s) AND attname = %s AND NOT attisdropped",
        [quoted, record.column],
    ).fetchone()
    if column is None:
        raise IndexDamagedError(
            f"{shown}: there is no {record.shown} with a column {record.column!r}, which the index needs (it was built on the "
            f"server {record.server}, database {record.database!r}); {_CURE}"
        )
    kind = str(column[0]).rpartition(".")[2].replace('"', "")
    if kind != record.type:
        raise IndexDamagedError(f"{shown}: {record.shown} holds {kind} and not {record.type}; {_CURE}")
    wanted: tuple[object, ...] = (record.rows, 0, record.rows - 1, record.ids)
    if whole or record.rows <= CHECKED_WHOLE:
        state = _table_state(connection, record, kind)
        wanted = (*wanted, record.content)
    else:
        state = connection.execute(quick_check(table)).fetchone() or ()
    if state != wanted:
        rows = state[0] if state else 0
        holds = f"{rows:,} rows" if rows != record.rows else "other rows"
        raise IndexDamagedError(
            f"{shown}: {record.shown} holds {holds}, and not the {record.rows:,} of the index: it was changed; {_CURE}"
        )


def extension_of(connection: PostgresConnection, name: str) -> tuple[str, tuple[int, ...]]:
    """Return the schema and version of an extension, which is created if that is allowed.

    Raises:
        ServerError: it is not installed; the message gives advice.
    """
    import psycopg
    from psycopg.sql import SQL, Identifier

    query = (
        "SELECT nspname, extversion FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = %s"
    )
    extension = connection.execute(query, [name]).fetchone()
    if extension is None:
        try:
            connection.execute(SQL("CREATE EXTENSION IF NOT EXISTS {}").format(Identifier(name)))
        except psycopg.Error as error:
            installed = "is not available" not in str(error)
            reason = (
                f"run CREATE EXTENSION {name} as a superuser"
                if installed
                else "install pgvector on the server (Debian: apt install postgresql-<version>-pgvector), then run CREATE "
                f"EXTENSION {name} as a superuser"
            )
            raise ServerError(
                f"the database has no extension {name!r}; {reason}, or use url=None, the embedded server"
            ) from None
        extension = connection.execute(query, [name]).fetchone()
    if extension is None:
        raise ServerError(f"the database has no extension {name!r}")
    return extension[0], tuple(int(part) for part in extension[1].split(".") if part.isdigit())


# Filters pushed down to the server: the rows of a table that a search may find, as a list of few rows or one bit per row.
#
# Both are exact: the server never cuts a list before the filter is applied.


FEW = 20_000
"""Most rows that are listed, and fetched by the index of the rows."""


def condition_of(allowed: Mask | None) -> tuple[SQL, dict[str, Any]]:
    """A condition on the column ``row``, and its parameters.

    Args:
        allowed: ``[rows of the table]``; None for all.
    """
    from psycopg.sql import SQL

    if allowed is None:
        return SQL("true"), {}
    rows = np.flatnonzero(allowed)
    if len(rows) <= FEW:
        return SQL("row = ANY(%(rows)s::integer[])"), {"rows": "{" + ",".join(map(str, rows.tolist())) + "}"}
    return SQL("get_bit(%(mask)s::bytea, row) = 1"), {"mask": np.packbits(allowed, bitorder="little").tobytes()}


# Tables of segments that are joined into one, on the server: nothing is encoded or sent again.


def filled_by_joining(segments: Sequence[tuple[SegmentFolder, TableRecord]], columns: LiteralString) -> Fill:
    """Fill a table from others, without the rows of deleted items, and renumber the rows.

    Args:
        segments: and their tables.
        columns: to copy, separated by commas.
    """

    def fill(connection: PostgresConnection, table: Composed) -> None:
        from psycopg.sql import SQL

        first = 0
        for segment, record in segments:
            live = np.ones(len(segment), np.bool_) if segment.live is None else segment.live
            condition, values = condition_of(live)
            statement = SQL(
                "INSERT INTO {} (row, item_id, id_sum, {columns}) SELECT row, item_id, {id_sum}, {columns} FROM ("
                "SELECT (%(first)s + row_number() OVER (ORDER BY old.row) - 1)::integer AS row, item_id, {columns} "
                "FROM {} AS old WHERE {} ORDER BY old.row) AS kept"
            ).format(table, table_of(record), condition, columns=SQL(columns), id_sum=SQL(ID_SUM))
            connection.execute(statement, values | {"first": first})
            first += int(np.count_nonzero(live))

    return fill
