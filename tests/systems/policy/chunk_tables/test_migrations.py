"""Tables are made and upgraded whole or not at all, by whoever may, and never by a program that does not know them."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql as names

import nlp_retrieval
from nlp_retrieval import SearchableItem
from nlp_retrieval.errors import ConfigurationError, IndexMismatchError, OutputError, SourceError
from nlp_retrieval.systems.policy.chunk_tables import layout as migration
from nlp_retrieval.systems.policy.chunk_tables.layout import DIMENSIONS
from nlp_retrieval.systems.policy.chunk_tables.server import ChunkServer
from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTables

ITEM = SearchableItem(item_id="a", content="text", metadata={"document": "d", "country": "Kenya"})
_roles = count()


def tables_in(sql: psycopg.Connection, schema: str) -> set[str]:
    found = sql.execute(
        "SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = %s AND relkind IN ('r', 'v')",
        [schema],
    )
    return {row[0] for row in found.fetchall()}


ALL = {"documents", "doc_chunks", "logical_relationships", "chunk_tables_version", "doc_chunks_with_country"}


def test_a_schema_that_is_not_there_is_named_with_those_that_may_hold_tables(dsn: str, schema: str) -> None:
    with pytest.raises(
        SourceError, match=r"there is no schema '.*' in the database; .*; or create them in Python: ChunkTables"
    ) as refused:
        ChunkTables(dsn, schema=schema)
    assert "public" in str(refused.value)
    assert "information_schema" not in str(refused.value)


def test_tables_are_made_once(dsn: str, schema: str, sql: psycopg.Connection) -> None:
    with pytest.raises(SourceError, match="there is no schema"):
        ChunkTables(dsn, schema=schema)
    made = ChunkTables(dsn, schema=schema, create=True)
    assert tables_in(sql, schema) == ALL
    assert made.dimensions == {"transformer_embedding": 768, "word2vec_embedding": 300, "hoprag_embedding": 384}
    made.write([ITEM])
    again = ChunkTables(dsn, schema=schema, create=True)
    assert list(again.stream()) == [ITEM]


def test_an_older_version_is_upgraded_when_one_says_so(dsn: str, schema: str, sql: psycopg.Connection) -> None:
    server = ChunkServer(dsn)
    server.write(lambda connection: migration.upgrade(connection, schema, DIMENSIONS, "here", adopt=False, to="1"))
    assert tables_in(sql, schema) == ALL - {"doc_chunks_with_country"}
    with pytest.raises(IndexMismatchError, match=r"are of version '1', and this program writes '2'; call migrate\(\)"):
        ChunkTables(dsn, schema=schema)
    tables = ChunkTables.migrate(dsn, schema=schema)
    assert tables_in(sql, schema) == ALL
    tables.write([ITEM])
    assert list(tables.stream()) == [ITEM]


def test_a_newer_version_is_refused(dsn: str, tables: ChunkTables, schema: str, sql: psycopg.Connection) -> None:
    version = names.SQL("UPDATE {} SET version_num = '99'").format(names.Identifier(schema, "chunk_tables_version"))
    sql.execute(version)
    for attempt in (ChunkTables, ChunkTables.migrate, lambda *a, **k: ChunkTables(*a, create=True, **k)):
        with pytest.raises(IndexMismatchError, match=r"version '99', which this program does not know .*upgrade nlp_retrieval"):
            attempt(dsn, schema=schema)


@pytest.mark.parametrize("fails_at", ["1", "2"])
def test_an_upgrade_that_is_interrupted_leaves_what_was_there(
    dsn: str, schema: str, sql: psycopg.Connection, fails_at: str
) -> None:
    """The process dies inside the transaction, with no chance to clean up."""
    script = """
import os, sys
from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTables
from alembic.runtime import migration as running
stamp = running.HeadMaintainer.update_to_step
def dying(self, step):
    stamp(self, step)
    if sys.argv[3] in step.to_revisions:
        os._exit(9)
running.HeadMaintainer.update_to_step = dying
ChunkTables(sys.argv[1], schema=sys.argv[2], create=True)
"""
    command = [sys.executable, "-c", script, dsn, schema, fails_at]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=300, cwd=Path(nlp_retrieval.__file__).parents[1]
    )
    assert done.returncode == 9, done.stderr
    assert tables_in(sql, schema) == set()
    assert sql.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema]).fetchall() == []
    ChunkTables(dsn, schema=schema, create=True).write([ITEM])


def test_several_may_make_the_tables_at_once(dsn: str, schema: str, sql: psycopg.Connection) -> None:
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda _: ChunkTables(dsn, schema=schema, create=True), range(6)))
    made[0].write([ITEM])
    assert all(list(one.stream()) == [ITEM] for one in made)


@pytest.fixture
def role(sql: psycopg.Connection) -> str:
    """A role that may connect, and nothing else."""
    name = f"nobody_{next(_roles)}"
    sql.execute(names.SQL("CREATE ROLE {} LOGIN").format(names.Identifier(name)))
    return name


def as_role(dsn: str, role: str, database: str | None = None) -> str:
    other = {"user": role} | ({} if database is None else {"dbname": database})
    return psycopg.conninfo.make_conninfo(**psycopg.conninfo.conninfo_to_dict(dsn) | other)


def test_a_role_without_rights_is_told_what_it_needs(
    dsn: str, tables: ChunkTables, schema: str, sql: psycopg.Connection, role: str
) -> None:
    tables.write([ITEM])
    theirs = as_role(dsn, role)
    with pytest.raises(SourceError, match=r"permission denied for schema .*GRANT this role"):
        ChunkTables(theirs, schema=schema)
    with pytest.raises(OutputError, match=r"permission denied for .*GRANT this role"):
        ChunkTables(theirs, schema=f"{schema[:20]} new", create=True)
    who, where = names.Identifier(role), names.Identifier(schema)
    sql.execute(names.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(where, who))
    sql.execute(names.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA {} TO {}").format(where, who))
    reading = ChunkTables(theirs, schema=schema)
    assert list(reading.stream()) == [ITEM]
    with pytest.raises(OutputError, match=r"cannot be written: permission denied for table .*GRANT this role"):
        reading.write([ITEM])


def test_a_role_that_may_not_install_pgvector_is_told(dsn: str, sql: psycopg.Connection, role: str) -> None:
    database = f"without_vector_{role}"
    sql.execute(names.SQL("CREATE DATABASE {} OWNER {}").format(names.Identifier(database), names.Identifier(role)))
    with pytest.raises(
        OutputError, match=r'permission denied to create extension "vector".*superuser to run CREATE EXTENSION vector'
    ):
        ChunkTables(as_role(dsn, role, database), schema="chunks", create=True)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"dbname": "nowhere"}, SourceError, r'database "nowhere" does not exist; name an existing database'),
        ({"dbname": None}, SourceError, "no database is named"),
        ({"user": "nobody at all"}, SourceError, 'role "nobody at all" does not exist'),
        ({"host": "/tmp/no-such-folder"}, SourceError, "check host, port, user and password"),
    ],
)
def test_a_database_that_cannot_be_opened_is_said(dsn: str, change: Any, error: type[Exception], said: str) -> None:
    words = {key: value for key, value in (psycopg.conninfo.conninfo_to_dict(dsn) | change).items() if value is not None}
    with pytest.raises(error, match=said):
        ChunkTables(psycopg.conninfo.make_conninfo(**words))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:///x.db", "chunk tables live in PostgreSQL"),
        ("just words", "not a URL of PostgreSQL"),
        ("env:NLP_RETRIEVAL_NO_SUCH_NAME", "the environment variable NLP_RETRIEVAL_NO_SUCH_NAME is not set"),
        ("postgresql://user@host", "no database is named"),
    ],
)
def test_what_is_no_url_is_said(url: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        ChunkTables(url)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"schema": ""}, "a name of 1 to 63 bytes"),
        ({"schema": "é" * 32}, "a name of 1 to 63 bytes"),
        ({"schema": "a\0b"}, "a name of 1 to 63 bytes"),
        ({"dimensions": {"embedding": 3}}, "there is no column 'embedding'"),
        ({"dimensions": {"word2vec_embedding": 0}}, "0 is not an integer from 1 to 16,000"),
        ({"dimensions": {"word2vec_embedding": 1e3}}, "1000.0 is not an integer"),
    ],
)
def test_wrong_settings_are_said(dsn: str, arguments: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        ChunkTables(dsn, **arguments)
