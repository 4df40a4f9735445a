"""The registry of tables by index directory, so that tables which no folder names are dropped.

A table is registered as not published in the transaction that creates it. After every write to an index directory, its only
writer marks the tables that its folders name as published, and drops others of this directory:

* not published, and created for this path on this host: a build was killed, or failed;
* published, and of this same folder (its inode) with this path or this token: the folder that named it is gone.

A copied folder has another inode, so it never drops what the original uses; a moved one keeps its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nlp_retrieval.retrievers.postgres.record import TableRecord
from nlp_retrieval.retrievers.servers.records import inode_of, place_of

if TYPE_CHECKING:
    from psycopg.sql import Composed

    from nlp_retrieval.retrievers.postgres.connections import PostgresConnection

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
