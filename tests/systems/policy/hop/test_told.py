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

from nlp_retrieval import Bm25Retriever, RetrievalWarning, SearchableItem, Searcher
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.errors import IndexDamagedError, SourceError
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


def test_growing_deleting_and_compacting_end_with_the_relations_of_an_index_built_at_once(
    source: ChunkTablesLoader, tmp_path: Path
) -> None:
    items = plans()
    searcher = Searcher([made(source)])
    with pytest.warns(RetrievalWarning, match="2 relations .* are left out"):
        searcher.index(items[:10], tmp_path / "grown")
    searcher.add(items[10:], auto_compact=False)
    Searcher([made(source)]).index(items, tmp_path / "whole")
    assert told(tmp_path / "grown", made(source)) == told(tmp_path / "whole", made(source))
    searcher.delete(["b-old-4"], auto_compact=False)
    kept = [item for item in items if item.item_id != "b-old-4"]
    assert told(tmp_path / "grown", made(source)) == {("a-old-1", "a-new-1", "TEMPORAL_FOLLOWS", 0.5)}
    searcher.compact()
    with pytest.warns(RetrievalWarning, match="2 relations"):
        Searcher([made(source)]).index(kept, tmp_path / "left")
    assert told(tmp_path / "grown", made(source)) == told(tmp_path / "left", made(source))


def test_relations_to_no_chunk_none_at_all_and_those_of_other_items_are_refused(
    source: ChunkTablesLoader, tmp_path: Path
) -> None:
    others = [SearchableItem(item_id=f"x{row}", content="other words") for row in range(3)]
    with pytest.raises(SourceError, match=r"none of the 3 relations .* connects two items of this index"):
        Searcher([made(source)]).index(others, tmp_path)
    with psycopg.connect(os.environ[env_url().removeprefix("env:")], autocommit=True) as connection:
        connection.execute(SQL("SET search_path TO {}").format(Identifier(str(source.schema))))
        connection.execute("ALTER TABLE logical_relationships DROP CONSTRAINT logical_relationships_target_chunk_id_fkey")
        connection.execute("UPDATE logical_relationships SET target_chunk_id = gen_random_uuid() WHERE confidence_score = 0.5")
        with pytest.raises(SourceError, match="leads from or to a missing chunk"):
            Searcher([made(source)]).index(plans(), tmp_path)
        connection.execute("DELETE FROM logical_relationships")
    with pytest.raises(SourceError, match="none of the 0 relations"):
        Searcher([made(source)]).index(plans(), tmp_path)
    assert not list(tmp_path.glob("hop-*"))
