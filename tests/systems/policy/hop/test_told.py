"""HopRetriever over the relations that a table of chunks holds already."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest
from plans import two_versions
from postgres_server import env_url
from psycopg.sql import SQL, Identifier

from nlp_retrieval import Bm25Retriever, SearchableItem, Searcher
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.systems.policy.chunk_tables.rows import ChunkRelation
from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTables, ChunkTablesLoader
from nlp_retrieval.systems.policy.hop.retriever import HopRetriever

_schemas = count()


def plans() -> list[SearchableItem]:
    """Two countries, so that relations lead across."""
    return [*two_versions(), *two_versions("Brenn")]


CHAIN = [
    ChunkRelation("a-old-0", "b-old-4", "CAUSES", 0.9, {"evidence": {"source": [0, 5], "target": [3, 9]}}),
    ChunkRelation("b-old-4", "b-new-3", "EXPLAINS", 0.8),
    ChunkRelation("a-old-1", "a-new-1", "TEMPORAL_FOLLOWS", 0.5),
]


@pytest.fixture
def source() -> Iterator[ChunkTablesLoader]:
    """Tables in a schema of their own, with all plans and three relations."""
    schema = f"told {next(_schemas)}"
    with ChunkTables(env_url(), schema=schema, create=True) as tables:
        tables.write(plans())
        tables.write_relations(CHAIN)
    yield ChunkTablesLoader(env_url(), schema)
    with psycopg.connect(os.environ[env_url().removeprefix("env:")], autocommit=True) as connection:
        connection.execute(SQL("DROP SCHEMA {} CASCADE").format(Identifier(schema)))


def made(source: ChunkTablesLoader, **settings: object) -> HopRetriever:
    return HopRetriever(Bm25Retriever(), relations=source, **settings)  # type: ignore[arg-type]


def told(folder: Path, retriever: HopRetriever) -> set[tuple[object, ...]]:
    """The relations of an index by ids."""
    generation = open_generation(folder)
    names = generation.items.ids()
    relations = retriever.open(generation).relations
    return {(names[one.source], names[one.target], one.type, round(one.confidence, 5)) for one in relations}


def test_hops_go_along_the_relations_of_the_table_and_no_others(source: ChunkTablesLoader, tmp_path: Path) -> None:
    searcher = Searcher([made(source)])
    searcher.index(source, tmp_path)
    assert told(tmp_path, made(source)) == {
        ("a-old-0", "b-old-4", "CAUSES", 0.9),
        ("b-old-4", "b-new-3", "EXPLAINS", 0.8),
        ("a-old-1", "a-new-1", "TEMPORAL_FOLLOWS", 0.5),
    }
    query = "mangrove forests of Alder"
    (hits,) = searcher.search([query], k=20)
    paths = {hit.item.item_id: hit.signals.get("hop.hops") for hit in hits}
    assert paths["b-old-4"] == 1, "it says nothing of forests, and is the cause of what does"
    assert paths["b-new-3"] == 2
    steps = {hit.item.item_id: one["hop"].steps for hit, one in zip(hits, searcher.explain(query, hits), strict=True)}
    assert [(step.kind, step.target.item_id) for step in steps["b-new-3"]] == [("CAUSES", "b-old-4"), ("EXPLAINS", "b-new-3")]


def test_a_changed_table_is_told_and_read_when_the_index_is_replaced(source: ChunkTablesLoader, tmp_path: Path) -> None:
    searcher = Searcher([made(source)])
    searcher.index(plans(), tmp_path)
    assert not searcher.index(plans(), tmp_path).built
    with ChunkTables(env_url(), schema=str(source.schema)) as tables:
        tables.write_relations([ChunkRelation("a-old-0", "a-new-3", "SUPPORTS", 0.7)])
    with pytest.raises(IndexDamagedError, match=r"logical_relationships .* has changed since the index was built"):
        searcher.index(plans(), tmp_path)
    searcher.index(plans(), tmp_path, replace=True)
    assert ("a-old-0", "a-new-3", "SUPPORTS", 0.7) in told(tmp_path, made(source))
