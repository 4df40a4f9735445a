"""A PostgreSQL with pgvector, and chunk tables in schemas of their own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest
from graph.knowledge.databases import postgresql

from nlp_retrieval import ChunkTables

__all__ = ["postgresql"]

MakeTables = Callable[..., ChunkTables]
_schemas = count()

SMALL = {"transformer_embedding": 4, "word2vec_embedding": 3, "hoprag_embedding": 2}


@pytest.fixture
def dsn(postgresql: str) -> str:
    """As libpq has it."""
    return postgresql.replace("postgresql+psycopg://", "postgresql://")


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


@pytest.fixture(scope="session")
def old_postgresql() -> Iterator[str]:
    """A PostgreSQL 16 with pgvector 0.6.2, which filters after it has searched an index."""
    with pytest.MonkeyPatch.context() as patch:
        folder = Path(tempfile.mkdtemp(prefix="pg"))  # the path of a socket has 107 characters at most
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        import pgserver

        server = pgserver.get_server(folder / "data", cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def old_dsn(old_postgresql: str) -> str:
    """As libpq has it."""
    return old_postgresql
