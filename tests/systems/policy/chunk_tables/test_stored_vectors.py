"""Questions are answered by the vectors that tables hold: filtered before the cut, read-only, and encoded no second time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import sql as names

from nlp_retrieval import MultiSignalReranker, Searcher
from nlp_retrieval.encoders import BaseEncoder
from nlp_retrieval.systems.policy.chunk_tables.retriever import ChunkVectorRetriever
from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTablesLoader

N, WIDE, NARROW = 60, 6, 4
TABLES = """
CREATE TABLE documents (id int PRIMARY KEY, filename text);
CREATE TABLE doc_chunks (id text PRIMARY KEY, content text, doc_id int, chunk_data json,
  transformer_embedding vector(6), word2vec_embedding vector(4), hoprag_embedding real[]);
CREATE TABLE logical_relationships (source_chunk_id text, target_chunk_id text, relationship_type text, confidence_score real);
"""
COUNTRIES = ["Kenya", "Côte d'Ivoire", "'; DROP TABLE documents; --"]


class Directions(BaseEncoder):
    """A vector for each text, of queries alone: nothing that is stored may be encoded."""

    name = "directions"

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    def model_fingerprint(self) -> str:
        return str(self.dimension)

    def encode_queries(self, queries: list[str]) -> np.ndarray:
        return np.stack([vector_of(query, self.dimension) for query in queries])

    def encode_passages(self, passages: list[str]) -> np.ndarray:
        raise AssertionError(f"{passages[0]!r} has a stored vector")


def vector_of(text: str, dimension: int) -> np.ndarray:
    return np.random.default_rng([dimension, *text.encode()]).normal(size=dimension).astype(np.float32)


@pytest.fixture
def reader(dsn: str, schema: str, sql: psycopg.Connection) -> Iterator[ChunkTablesLoader]:
    """Tables of another program, and a role that may only read them."""
    sql.execute("CREATE EXTENSION IF NOT EXISTS vector")
    sql.execute(names.SQL("CREATE SCHEMA {}").format(names.Identifier(schema)))
    with sql.transaction(), sql.cursor() as cursor:
        cursor.execute(names.SQL("SET LOCAL search_path TO {}, public").format(names.Identifier(schema)))
        cursor.execute(TABLES)
        cursor.execute("INSERT INTO documents SELECT n, 'plan ' || n FROM generate_series(0, 5) AS n")
        for number in range(N):
            text, known = f"passage {number}", number % 10 != 7
            row: list[Any] = [f"c-{number}", text, number % 6]
            values = [str(vector_of(text, size).tolist()) if known else None for size in (WIDE, NARROW)]
            cursor.execute(
                "INSERT INTO doc_chunks VALUES (%s, %s, %s, json_build_object('country', %s::text), %s, %s, %s)",
                [*row, COUNTRIES[number % 3], *values, vector_of(text, NARROW).tolist()],
            )
        relations = [("c-0", "c-3", "implements"), ("c-3", "c-6", "Supports"), ("c-6", "c-9", None)]
        cursor.executemany("INSERT INTO logical_relationships VALUES (%s, %s, %s, .9)", relations)
    role = "reads_only"
    with sql.transaction():
        if sql.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone() is None:
            sql.execute(names.SQL("CREATE ROLE {} LOGIN").format(names.Identifier(role)))
        sql.execute(names.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(*map(names.Identifier, (schema, role))))
        sql.execute(names.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA {} TO {}").format(*map(names.Identifier, (schema, role))))
    yield ChunkTablesLoader(dsn.replace("postgres@", f"{role}@", 1), schema)
    sql.execute(names.SQL("DROP SCHEMA {} CASCADE").format(names.Identifier(schema)))


def made(reader: ChunkTablesLoader, **settings: Any) -> ChunkVectorRetriever:
    return ChunkVectorRetriever(reader, Directions(WIDE), word_vectors=Directions(NARROW), **settings)


def cosine(one: str, other: str, dimension: int) -> float:
    first, second = vector_of(one, dimension), vector_of(other, dimension)
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


quiet = pytest.mark.filterwarnings("ignore:(chunk_vectors|multi_signal):nlp_retrieval.errors.RetrievalWarning")


@quiet
def test_all_signals_come_from_the_tables_and_the_filter_precedes_the_cut(reader: ChunkTablesLoader, tmp_path: Path) -> None:
    reranker = MultiSignalReranker(patterns_weight=0.0, fuzzy_weight=0.0, min_similarity=0.0)
    searcher = Searcher([made(reader)], reranker=reranker, depth="all")
    searcher.index(reader, tmp_path)
    for country in COUNTRIES:
        (hits,) = searcher.search(["wind"], N, where={"country": country})
        assert len(hits) == N // 3
        assert {hit.item.metadata["country"] for hit in hits} == {country}
        for hit in hits:
            stored = int(hit.item.item_id[2:]) % 10 != 7
            assert ("multi_signal.transformer" in hit.signals) == ("multi_signal.word_vectors" in hit.signals) == stored
            for signal, size in (("transformer", WIDE), ("word_vectors", NARROW)) if stored else ():
                expected = max(0.0, cosine("wind", hit.item.content, size))
                assert hit.signals[f"multi_signal.{signal}"] == pytest.approx(expected, abs=1e-5)
    (best,) = Searcher([made(reader)]).open(tmp_path).search(["wind"], 1, where={"country": "Kenya"})
    known = [number for number in range(0, N, 3) if number % 10 != 7]
    assert best[0].item.item_id == f"c-{max(known, key=lambda number: cosine('wind', f'passage {number}', WIDE))}"
