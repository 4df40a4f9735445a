"""Tables that somebody else made and filled are read as they are, never altered, and what is wrong with them is said."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import sql as names

from nlp_retrieval import SearchableItem
from nlp_retrieval.errors import QueryError, SourceError
from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTables

DDL = """
CREATE TABLE documents (id uuid PRIMARY KEY, filename text, country text, metadata json, uploaded timestamptz DEFAULT now());
CREATE TABLE doc_chunks (id uuid PRIMARY KEY, content text, doc_id uuid, chunk_data json, page int,
  transformer_embedding vector(5), word2vec_embedding vector(2), hoprag_embedding real[]);
CREATE TABLE logical_relationships (id serial, source_chunk_id uuid, target_chunk_id uuid, relationship_type text,
  confidence_score real, metadata json);
INSERT INTO documents (id, filename, country, metadata) VALUES
  ('00000000-0000-0000-0000-0000000000d1', 'kenya.pdf', 'Kenya', '{"language": "en", "year": 2015}'),
  ('00000000-0000-0000-0000-0000000000d2', NULL, '', NULL),
  ('00000000-0000-0000-0000-0000000000d3', 'peru.pdf', 'Peru', '{}');
INSERT INTO doc_chunks VALUES
  ('00000000-0000-0000-0000-000000000001', 'a', '00000000-0000-0000-0000-0000000000d1', '{"country": "Kenya", "year": 2020}', 1,
   '[1,0,0,0,0]', '[1,0]', '{1,0}'),
  ('00000000-0000-0000-0000-000000000002', 'b', '00000000-0000-0000-0000-0000000000d2', '{"country": " Japan "}', 2,
   '[0,1,0,0,0]', NULL, '{0,1}'),
  ('00000000-0000-0000-0000-000000000003', 'c', '00000000-0000-0000-0000-0000000000d3', '{"country": "Chile"}', 3,
   '[1,1,0,0,0]', '[0,0]', NULL),
  ('00000000-0000-0000-0000-000000000004', 'd', NULL, NULL, 4, NULL, '[1,1]', '{1,1}');
INSERT INTO logical_relationships (source_chunk_id, target_chunk_id, relationship_type, confidence_score, metadata) VALUES
  ('00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000003', 'SUPPORTS', 0.5, '{"evidence": "both"}');
"""
PREFIX = "00000000-0000-0000-0000-00000000000"


@pytest.fixture
def theirs(sql: psycopg.Connection, schema: str) -> str:
    """A schema that somebody else filled."""
    sql.execute("CREATE EXTENSION IF NOT EXISTS vector")
    sql.execute(names.SQL("CREATE SCHEMA {}").format(names.Identifier(schema)))
    by_hand(sql, schema, DDL)
    return schema


def by_hand(sql: psycopg.Connection, schema: str, statements: str) -> None:
    with sql.transaction():
        sql.execute(names.SQL("SET LOCAL search_path TO {}, public").format(names.Identifier(schema)))
        sql.execute(statements)


def described(sql: psycopg.Connection, schema: str) -> list[Any]:
    return sql.execute(
        "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = %s ORDER BY 1, 2",
        [schema],
    ).fetchall()


def test_they_are_read_as_they_are(dsn: str, theirs: str, sql: psycopg.Connection) -> None:
    before = described(sql, theirs)
    tables = ChunkTables(dsn, schema=theirs)
    found = {one.item_id: one for one in tables.stream()}
    assert found == {
        f"{PREFIX}1": SearchableItem(
            item_id=f"{PREFIX}1", content="a",
            metadata={"language": "en", "year": 2020, "document": "kenya.pdf", "country": "Kenya"},
        ),
        f"{PREFIX}2": SearchableItem(
            item_id=f"{PREFIX}2", content="b", metadata={"document": "00000000-0000-0000-0000-0000000000d2", "country": "Japan"}
        ),
        f"{PREFIX}3": SearchableItem(
            item_id=f"{PREFIX}3", content="c", metadata={"document": "peru.pdf", "country": "Chile"}
        ),
        f"{PREFIX}4": SearchableItem(item_id=f"{PREFIX}4", content="d"),
    }  # fmt: skip
    assert tables.dimensions == {"transformer_embedding": 5, "word2vec_embedding": 2, "hoprag_embedding": None}
    counts = tables.counts()
    assert counts.without_vector == {"transformer_embedding": 1, "word2vec_embedding": 1, "hoprag_embedding": 1}
    assert (counts.documents, counts.chunks, counts.relations) == (3, 4, 1)
    assert counts.without_country == 1
    assert tables.countries() == ["Chile", "Japan", "Kenya"]
    assert described(sql, theirs) == before


def test_tables_with_other_columns_are_refused(dsn: str, theirs: str, sql: psycopg.Connection) -> None:
    by_hand(sql, theirs, "ALTER TABLE doc_chunks RENAME content TO body")
    with pytest.raises(SourceError, match=r"table doc_chunks has no column content \(found: id, body, doc_id"):
        ChunkTables(dsn, schema=theirs)
    by_hand(sql, theirs, "DROP TABLE documents")
    with pytest.raises(SourceError, match="there is no table documents; pass create=True"):
        ChunkTables(dsn, schema=theirs)


@pytest.mark.parametrize(("country", "wanted"), [("Japan", "2"), ("Chile", "3"), (["Kenya", "Japan"], "12")])
def test_they_are_filtered_by_the_country_that_counts(dsn: str, theirs: str, country: Any, wanted: str) -> None:
    found = sorted(one.item_id for one in ChunkTables(dsn, schema=theirs).stream(country))
    assert found == [f"{PREFIX}{number}" for number in wanted]
    with pytest.raises(QueryError, match="no chunk of 'Peru'"):
        list(ChunkTables(dsn, schema=theirs).stream("Peru"))
