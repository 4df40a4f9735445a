"""A PostgreSQL with pgvector, and chunk tables in schemas of their own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import psycopg
import pytest
from postgres_server import admin_url

from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTables

_schemas = count()

SMALL = {"transformer_embedding": 4, "word2vec_embedding": 3, "hoprag_embedding": 2}


@pytest.fixture
def dsn() -> str:
    """Of the tests' PostgreSQL, as libpq has it."""
    return admin_url()


@pytest.fixture
def sql(dsn: str) -> Iterator[psycopg.Connection]:
    """A connection for what a test looks at, or somebody else does, by hand."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def schema() -> str:
    """The name of a schema that is not there yet."""
    return f'chunks {next(_schemas)}"; DROP TABLE x; --%(a)s:b'


@pytest.fixture
def tables(dsn: str, schema: str) -> Iterator[ChunkTables]:
    """Empty tables for short vectors, in a schema with a name that is no plain word."""
    with ChunkTables(dsn, schema=schema, create=True, dimensions=SMALL) as made:
        yield made


@pytest.fixture
def old_dsn() -> str:
    """Of a PostgreSQL 16 with pgvector 0.6.2, which filters after it has searched an index."""
    return admin_url("old")
