"""What is written into chunk tables comes back as it was, is replaced by id, and is whole whatever happens."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import psycopg
import pytest
from hashed_words import HashedWords
from psycopg import sql as names

from nlp_retrieval import SearchableItem
from nlp_retrieval.errors import ItemError, ModelError, OutputError, QueryError, SourceError
from nlp_retrieval.systems.policy.chunk_tables.rows import ChunkRelation
from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTables, ChunkTablesLoader

ATTACK = "x'; DROP TABLE doc_chunks; --\"%(a)s :b {c}"


def item(item_id: str, content: str, /, **metadata: Any) -> SearchableItem:
    return SearchableItem(item_id=item_id, content=content, metadata=metadata)


PLANS = [
    item("ke-0", "Kenya will cut emissions by 32%.", document="ke.pdf", country="Kenya", position=0, year=2020, title="Target"),
    item("ke-1", "Geothermal power is added.", document="ke.pdf", country="Kenya", position=1, pages=[3, 4], more={"a": None}),
    item("jp-10", "Japan: 2050年までに", document="jp", country="Japan", position=10, share=0.25, sure=True),
    item("jp-9", "日本の目標", document="jp", country="Japan", position=9),
    item(ATTACK, ATTACK, document=ATTACK, country="Côte d'Ivoire", key=ATTACK, **{ATTACK: 1}),
    item("alone", ""),
    item("7f1c1f6e-3f0b-4c2e-9a55-0d4f6d1f7b11", "a UUID stays itself", country="Peru"),
]


def by_id(items: Iterator[SearchableItem]) -> dict[str, SearchableItem]:
    found = list(items)
    assert len({one.item_id for one in found}) == len(found)
    return {one.item_id: one for one in found}


def rows(sql: psycopg.Connection, schema: str, table: str) -> list[tuple[Any, ...]]:
    return sql.execute(names.SQL("SELECT * FROM {} ORDER BY 1").format(names.Identifier(schema, table))).fetchall()


def test_items_come_back_as_they_were(tables: ChunkTables) -> None:
    report = tables.write(PLANS)
    assert (report.documents, report.chunks) == (5, 7)
    assert by_id(tables.stream()) == {one.item_id: one for one in PLANS}
    assert tables.countries() == ["Côte d'Ivoire", "Japan", "Kenya", "Peru"]
    assert [one.item_id for one in tables.stream("Japan")] == ["jp-9", "jp-10"]
    assert [one.item_id for one in tables.stream(["Côte d'Ivoire", "Kenya"])] == ["ke-0", "ke-1", ATTACK]


def test_writing_again_changes_nothing_and_writing_otherwise_replaces(
    tables: ChunkTables, sql: psycopg.Connection, schema: str
) -> None:
    tables.write(PLANS)
    before = [rows(sql, schema, table) for table in ("documents", "doc_chunks")]
    tables.write(PLANS)
    assert [rows(sql, schema, table) for table in ("documents", "doc_chunks")] == before
    changed = item("ke-1", "Nuclear power is added.", document="ke.pdf", country="Kenya", position=1)
    tables.write([changed])
    assert by_id(tables.stream()) == {one.item_id: one for one in PLANS} | {"ke-1": changed}


def test_vectors_are_written_by_encoders_and_by_hand(tables: ChunkTables, sql: psycopg.Connection, schema: str) -> None:
    by_hand = np.arange(14, dtype=np.float32).reshape(7, 2)
    report = tables.write(PLANS, encoders={"transformer_embedding": HashedWords(4)}, vectors={"hoprag_embedding": by_hand})
    assert report.without_vector == {"hoprag_embedding": 0, "transformer_embedding": 1}  # "alone" has no words
    counts = tables.counts()
    assert counts.without_vector == {"transformer_embedding": 1, "word2vec_embedding": 7, "hoprag_embedding": 0}
    assert (counts.documents, counts.chunks, counts.relations, counts.without_country) == (5, 7, 0, 1)
    query = names.SQL("SELECT content, transformer_embedding::text, hoprag_embedding::text FROM {}")
    found = {row[0]: row[1:] for row in sql.execute(query.format(names.Identifier(schema, "doc_chunks"))).fetchall()}
    for one, own in zip(PLANS, by_hand, strict=True):
        words, hop = found[one.content]
        wanted = HashedWords(4).encode_passages([one.text])[0]
        assert (words is None) if not wanted.any() else np.array_equal(np.array(floats_of(words), np.float32), wanted)
        assert floats_of(hop) == own.tolist()


def floats_of(text: str) -> list[float]:
    return [float(part) for part in text.strip("[]").split(",")]


def test_wrong_vectors_are_refused_and_nothing_is_written(tables: ChunkTables, subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, Any, type[Exception], str]] = [
        ("word2vec_embedding", np.ones((2, 5)), ModelError, r"expected vectors of the shape \(2, 3\), found \(2, 5\)"),
        ("word2vec_embedding", np.full((2, 3), np.nan), ModelError, "the vector of item 'ke-0' is not finite"),
        ("word_embedding", np.ones((2, 3)), QueryError, "no column 'word_embedding'; did you mean 'word2vec_embedding'"),
    ]
    for column, vectors, error, said in cases:
        with subtests.test(said=said):
            with pytest.raises(error, match=said):
                tables.write(PLANS[:2], vectors={column: vectors})
            assert tables.counts().chunks == 0


def test_a_password_is_never_shown() -> None:
    for url in ("postgresql://u:s3cret@host/db", "host=h dbname=db password='s3 cret'", "host=h password = s3cret dbname=db"):
        loader = ChunkTablesLoader(url)
        assert "cret" not in repr(loader) + str(loader.config)
        with pytest.raises(SourceError):
            ChunkTablesLoader(loader.config["url"]).load()
    for url in ("postgresql://u:s3cret@127.0.0.1:9/db", "host=127.0.0.1 port=9 dbname=db password=s3cret"):
        with pytest.raises(SourceError, match=r"\*\*\*.*check host, port, user and password") as raised:
            ChunkTables(url)
        assert "s3cret" not in str(raised.value)


ITEM = PLANS[0]


def test_tables_are_made_once_by_several_at_once(dsn: str, schema: str) -> None:
    with pytest.raises(SourceError, match="no table documents and no table doc_chunks; pass create=True"):
        ChunkTables(dsn, schema=schema)
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda _: ChunkTables(dsn, schema=schema, create=True), range(6)))
    assert made[0].dimensions == {"transformer_embedding": 768, "word2vec_embedding": 300, "hoprag_embedding": 384}
    made[0].write([ITEM])
    assert all(list(one.stream()) == [ITEM] for one in made)


RELATIONS = [
    ChunkRelation("jp-9", "jp-10", "SUPPORTS", 0.25, {"evidence": ["x'; --", "日本"], "method": "by hand"}),
    ChunkRelation("ke-0", "ke-1", "CONTRADICTS", 0.5),
    ChunkRelation("ke-1", "ke-0", "SUPPORTS", 1.0),
]


def test_relations_come_back_and_are_replaced(tables: ChunkTables, sql: psycopg.Connection, schema: str) -> None:
    tables.write(PLANS)
    assert tables.write_relations(iter(RELATIONS)) == 3

    def found() -> list[ChunkRelation]:
        return sorted(tables.relations(), key=lambda one: one.source_id)

    assert found() == RELATIONS
    changed = ChunkRelation("jp-9", "jp-10", "SUPPORTS", 0.75, {"method": "again"})
    tables.write_relations([changed, changed])
    assert found() == [changed, *RELATIONS[1:]]
    for wrong, error, said in (
        (ChunkRelation("ke-0", "nowhere", "CAUSES", 0.5), OutputError, "write the chunks first"),
        (ChunkRelation("jp-9", "jp-10", "SUPORTS", 0.5), ItemError, "did you mean 'SUPPORTS'"),
    ):
        with pytest.raises(error, match=said):
            tables.write_relations([wrong])
    for change in ("confidence_score = 2", "relationship_type = 'LIKES'", "target_chunk_id = source_chunk_id"):
        with pytest.raises(psycopg.errors.CheckViolation):  # whoever writes by hand meets the rules too
            sql.execute(
                names.SQL("UPDATE {} SET ").format(names.Identifier(schema, "logical_relationships")) + names.SQL(change)  # type: ignore[arg-type]
            )


def test_a_writer_that_is_killed_leaves_what_was_there(tables: ChunkTables, dsn: str, schema: str) -> None:
    tables.write(PLANS)
    script = """
import os, sys
from nlp_retrieval import SearchableItem
from nlp_retrieval.systems.policy.chunk_tables import tables
def dying():
    for number in range(20):
        yield SearchableItem(item_id=f"ke-{number}", content="new", metadata={"document": "ke.pdf"})
    os._exit(9)
tables._AT_ONCE = 7
tables.ChunkTables(sys.argv[1], schema=sys.argv[2]).write(dying())
"""
    command = [sys.executable, "-c", script, dsn, schema]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 9, done.stderr
    assert by_id(tables.stream()) == {one.item_id: one for one in PLANS}
