"""The tables of segments: created in one transaction, and checked against the segments' records before use."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString

from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.errors import EngineError, IndexDamagedError, ServerError
from nlp_retrieval.retrievers.postgres.checksums import quick_check, whole_check
from nlp_retrieval.retrievers.postgres.connections import Connections
from nlp_retrieval.retrievers.postgres.record import TableRecord
from nlp_retrieval.retrievers.postgres.registry import create_registry, register
from nlp_retrieval.retrievers.servers.checksums import ids_sum

if TYPE_CHECKING:
    from psycopg.sql import Composed

    from nlp_retrieval.retrievers.postgres.connections import PostgresConnection

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
        made = _new_record(connection, directory, items, engine, schema, column, approximate)
        table = table_of(made)
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
        register(connection, made, directory)
        content = _content_of(connection, made, connections.shown)
        connection.execute(SQL("ANALYZE {}").format(table))
        return made.model_copy(update={"content": content})

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
    found = connection.execute("SELECT (pg_control_system()).system_identifier::text, current_database()").fetchone()
    server, database = found or ("0", "")
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


def _content_of(connection: PostgresConnection, made: TableRecord, shown: str) -> str:
    """The checksum of the content of a new table, which must hold all rows that were sent."""
    rows, first, last, ids, content = _whole_state(connection, made, made.type)
    if (rows, first, last, ids) != (made.rows, 0, made.rows - 1, made.ids):
        raise EngineError(f"{shown}: {made.shown} holds {rows:,} other rows than the {made.rows:,} that were sent")
    return str(content)


def _whole_state(connection: PostgresConnection, record: TableRecord, kind: str) -> tuple[Any, ...]:
    """Return how many rows a table holds, the lowest and the highest, and the checksums of ids and content; reads all of it."""
    from psycopg.sql import SQL

    check = whole_check(kind.partition("(")[0])
    found = connection.execute(SQL("SELECT {} FROM {}").format(check, table_of(record))).fetchone()
    return found or (0, None, None, "0", "0")


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
    found = connection.execute(
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = to_regclass(%s) AND attname = %s AND NOT attisdropped",
        [quoted, record.column],
    ).fetchone()
    if found is None:
        raise IndexDamagedError(
            f"{shown}: there is no {record.shown} with a column {record.column!r}, which the index needs (it was built on the "
            f"server {record.server}, database {record.database!r}); {_CURE}"
        )
    kind = str(found[0]).rpartition(".")[2].replace('"', "")
    if kind != record.type:
        raise IndexDamagedError(f"{shown}: {record.shown} holds {kind} and not {record.type}; {_CURE}")
    wanted: tuple[object, ...] = (record.rows, 0, record.rows - 1, record.ids)
    if whole or record.rows <= CHECKED_WHOLE:
        state = _whole_state(connection, record, kind)
        wanted = (*wanted, record.content)
    else:
        state = connection.execute(quick_check(table)).fetchone() or ()
    if state != wanted:
        rows = state[0] if state else 0
        what = f"{rows:,} rows" if rows != record.rows else "other rows"
        raise IndexDamagedError(
            f"{shown}: {record.shown} holds {what}, and not the {record.rows:,} of the index: it was changed; {_CURE}"
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
    found = connection.execute(query, [name]).fetchone()
    if found is None:
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
        found = connection.execute(query, [name]).fetchone()
    if found is None:
        raise ServerError(f"the database has no extension {name!r}")
    return found[0], tuple(int(part) for part in found[1].split(".") if part.isdigit())
