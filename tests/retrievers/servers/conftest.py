"""What the tests of servers share: collections of few words, and the two engines on the servers that all tests share."""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hashed_words import HashedWords
from milvus_server import milvus_url, shared_milvus
from postgres_server import admin_url, env_url
from psycopg.sql import SQL, Identifier
from pymilvus import MilvusClient

from nlp_retrieval import MilvusRetriever, PgvectorRetriever, SearchableItem, Searcher
from nlp_retrieval.core.search.retriever import BaseRetriever

WORDS = "fox whale tree river bridge castle novel film director painter island queen album singer orbit harbour".split()
QUERIES = ["fox whale", "queen orbit harbour", "river"]
FILTERS: list[tuple[Any, Any]] = [
    (None, lambda n: True),
    ({"part": 7}, lambda n: n % 10 == 7),
    ({"part": {"lt": 8}}, lambda n: n % 10 < 8),
]


def corpus(count: int, first: int = 0) -> list[SearchableItem]:
    """Items of a few words each, which their numbers decide; every 64th has the words of the first."""
    return [
        SearchableItem(
            item_id=f"d{row}",
            content=" ".join(WORDS[(row * step + row % 64 // 16) % 16] for step in (1, 7, 5, 3)[: 2 + row % 3]),
            metadata={"part": row % 10},
        )
        for row in range(first, first + count)
    ]


def found(searcher: Searcher, query: str = "fox whale", k: int = 5, where: Any = None) -> list[tuple[str, float]]:
    """Ids and scores."""
    return [(hit.item.item_id, hit.score) for hit in searcher.search([query], k, where)[0]]


class Store:
    """An engine on a shared server, and the server's own view of its tables.

    Args:
        engine: its registry name.
        schema: of PostgreSQL, for this test alone.
    """

    def __init__(self, engine: str, schema: str) -> None:
        self.engine, self.schema = engine, schema
        self.url = milvus_url() if engine == "milvus" else env_url()
        self.client = MilvusClient(shared_milvus().url, dedicated=True) if engine == "milvus" else None
        self._before = set(self._all())

    def retriever(self, **settings: Any) -> BaseRetriever:
        """A retriever on the server."""
        settings = {"url": self.url} | settings
        if self.engine == "milvus":
            return MilvusRetriever(settings.pop("encoder", HashedWords(dimension=24)), **settings)
        return PgvectorRetriever(settings.pop("encoder", HashedWords(dimension=24)), **{"schema": self.schema} | settings)

    def searcher(self, **settings: Any) -> Searcher:
        """A searcher around one."""
        return Searcher([self.retriever(**settings)])

    def tables(self) -> set[str]:
        """The tables of this test."""
        return set(self._all()) - self._before

    def drop(self, table: str) -> None:
        """Drop a table behind the package's back."""
        if self.client is not None:
            self.client.drop_collection(table)
        else:
            self.change("DROP TABLE {}", table)

    def delete_a_row(self, table: str) -> None:
        """Delete a row behind the package's back."""
        if self.client is not None:
            self.client.delete(table, ids=[3])
        else:
            self.change("DELETE FROM {} WHERE row = 3", table)

    def change(self, statement: str, table: str) -> None:
        """Run a statement of SQL about a table, which is written ``{}``."""
        with psycopg.connect(admin_url(), autocommit=True) as connection:
            connection.execute(SQL(statement).format(Identifier(self.schema, table)))  # type: ignore[arg-type]

    def _all(self) -> list[str]:
        if self.client is not None:
            return list(self.client.list_collections())
        with psycopg.connect(admin_url()) as connection:
            rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [self.schema])
            return [str(name) for (name,) in rows]


def store_of(engine: str, request: pytest.FixtureRequest) -> Store:
    """An engine, in a schema of this test's own."""
    name = request.node.name
    return Store(engine, f"{re.sub(r'[^a-z]+', '_', name)[:40]}_{zlib.crc32(name.encode())}")


@pytest.fixture(params=["pgvector", "milvus"])
def store(request: pytest.FixtureRequest) -> Store:
    return store_of(request.param, request)


@pytest.fixture
def pgvector(request: pytest.FixtureRequest) -> Store:
    return store_of("pgvector", request)


@pytest.fixture
def milvus(request: pytest.FixtureRequest) -> Store:
    return store_of("milvus", request)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "index"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
