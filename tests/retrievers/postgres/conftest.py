"""What the tests of PostgreSQL share: a schema of their own on the shared server, and collections."""

from __future__ import annotations

import os
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from hashed_words import HashedWords
from postgres_server import env_url, shared_server
from psycopg.sql import SQL, Identifier

from nlp_retrieval import PgvectorRetriever, PostgresTextRetriever, SearchableItem, Searcher
from nlp_retrieval.core.search.retriever import BaseRetriever

WORDS = "fox whale tree river bridge castle novel film director painter island queen album singer orbit harbour".split()


def corpus(count: int, first: int = 0) -> list[SearchableItem]:
    """Items of a few words each, which their numbers decide."""
    return [
        SearchableItem(
            item_id=f"d{row}",
            content=f"{WORDS[row % 16]} {WORDS[(row * 7 + row // 16) % 16]} {WORDS[(row * 5 + 3) % 16]}",
            metadata={"part": row % 10},
        )
        for row in range(first, first + count)
    ]


@dataclass(frozen=True)
class Place:
    """A schema of a test's own.

    Args:
        schema: its name.
        kind: of the server.
    """

    schema: str
    kind: str = "embedded"

    @property
    def url(self) -> str:
        """Of the server, as a retriever takes it."""
        return env_url(self.kind)

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        """A connection beside those of the package."""
        return psycopg.connect(os.environ[self.url.removeprefix("env:")], autocommit=True)

    def tables(self) -> list[str]:
        """The tables of engines in the schema."""
        with self.connect() as connection:
            found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [self.schema]).fetchall()
        return sorted(str(name) for (name,) in found if str(name).startswith("nlpr_"))

    def change(self, statement: str, table: str) -> None:
        """Run a statement about a table, which is written ``{}``."""
        with self.connect() as connection:
            connection.execute(SQL(statement).format(Identifier(self.schema, table)))  # type: ignore[arg-type]

    def retriever(self, engine: str = "pgvector", **settings: object) -> BaseRetriever:
        """A retriever with its tables in the schema."""
        if engine == "postgres_text":
            return PostgresTextRetriever(url=self.url, schema=self.schema, **settings)  # type: ignore[arg-type]
        encoder = settings.pop("encoder", HashedWords(dimension=24))
        return PgvectorRetriever(encoder, url=self.url, schema=self.schema, **settings)  # type: ignore[arg-type]

    def searcher(self, engine: str = "pgvector", **settings: object) -> Searcher:
        """A searcher around one."""
        return Searcher([self.retriever(engine, **settings)])


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Place:
    """A schema of this test's own."""
    shared_server()
    return Place(f"{re.sub(r'[^a-z]+', '_', request.node.name)[:40]}_{zlib.crc32(request.node.name.encode())}")


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "index"
