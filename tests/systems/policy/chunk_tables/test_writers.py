"""Several write at once, and some are killed: what is there is what one of them wrote, document by document."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql as names
from soaking import mostly_soaked

import nlp_retrieval
from nlp_retrieval import SearchableItem
from nlp_retrieval.errors import ItemError
from nlp_retrieval.systems.policy.chunk_tables.rows import ChunkRelation
from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTables

ROOT = Path(nlp_retrieval.__file__).parents[1]


def plan(document: str, version: str, size: int = 40) -> list[SearchableItem]:
    metadata = {"document": document, "country": "Kenya", "version": version}
    return [
        SearchableItem(item_id=f"{document}-{number}", content=f"{version} {number}", metadata=metadata | {"position": number})
        for number in range(size)
    ]


WRITER = """
import os, sys
from nlp_retrieval import SearchableItem
from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTables
url, schema, version, order = sys.argv[1:5]
tables = ChunkTables(url, schema=schema)
def plan(document, size=40):
    metadata = {"document": document, "country": "Kenya", "version": version}
    numbers = range(size) if order == "up" else reversed(range(size))
    for number in numbers:
        own = metadata | {"position": number}
        yield SearchableItem(item_id=f"{document}-{number}", content=f"{version} {number}", metadata=own)
print("ready", flush=True)
sys.stdin.readline()
for turn in range(4):
    for document in ("a", "b", "c") if order == "up" else ("c", "b", "a"):
        tables.write(plan(document))
print("done", flush=True)
"""


def started(dsn: str, schema: str, version: str, order: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, dsn, schema, version, order]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def documents_in(tables: ChunkTables) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for item in tables.stream():
        found.setdefault(str(item.metadata["document"]), []).append(item.content)
    return found


def is_of_one_writer(contents: list[str], versions: tuple[str, ...]) -> bool:
    return contents in [[f"{version} {number}" for number in range(40)] for version in versions]


@pytest.mark.soak
def test_of_two_writers_of_one_document_one_has_written_it(tables: ChunkTables, dsn: str, schema: str) -> None:
    writers = [started(dsn, schema, version, order) for version, order in (("one", "up"), ("two", "down"))]
    for writer in writers:
        writer.stdin.write("\n")  # type: ignore[union-attr]
        writer.stdin.flush()  # type: ignore[union-attr]
    assert [writer.communicate(timeout=300)[0] for writer in writers] == ["done\n", "done\n"]
    found = documents_in(tables)
    assert set(found) == {"a", "b", "c"}
    assert all(is_of_one_writer(contents, ("one", "two")) for contents in found.values())


@pytest.mark.parametrize("at_once", mostly_soaked([1, 500]))
@pytest.mark.parametrize("event", mostly_soaked(["between rows", "before the first row", "before the commit"]))
def test_a_writer_that_is_killed_leaves_the_old_document_or_the_new_one(
    tables: ChunkTables, dsn: str, schema: str, event: str, at_once: int
) -> None:
    tables.write([*plan("a", "old"), *plan("b", "old")])
    script = """
import os, sys
from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTables
from nlp_retrieval.systems.policy.chunk_tables import statements, tables
sys.path.insert(0, "tests")
from systems.policy.chunk_tables.test_writers import plan
event = sys.argv[3]
tables._CHUNKS_TOGETHER = int(sys.argv[4])
statements._PART = 7
from sqlalchemy import Engine, event as events
inserts, commits = [], []
@events.listens_for(Engine, "before_cursor_execute")
def executing(connection, cursor, statement, *rest):
    if "INSERT INTO" in statement and "doc_chunks" in statement:
        inserts.append(statement)
        # six for a document of 40
        if (event, len(inserts)) in {("before the first row", 7), ("between rows", 9)}:
            os._exit(9)
@events.listens_for(Engine, "commit")
def committing(connection):
    commits.append(1)
    if event == "before the commit" and len(inserts) == 12:
        os._exit(9)
tables = ChunkTables(sys.argv[1], schema=sys.argv[2])
tables.write([*plan("a", "new"), *plan("b", "new")])
"""
    command = [sys.executable, "-c", script, dsn, schema, event, str(at_once)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.returncode == 9, done.stderr
    found = documents_in(tables)
    assert found["a"] == [f"{'new' if at_once == 1 else 'old'} {number}" for number in range(40)]
    assert found["b"] == [f"old {number}" for number in range(40)]


@pytest.fixture
def related(tables: ChunkTables) -> Iterator[ChunkTables]:
    tables.write(plan("a", "one", 5))
    return tables


def test_relations_come_back_and_are_replaced(related: ChunkTables, sql: psycopg.Connection, schema: str) -> None:
    first = [
        ChunkRelation("a-0", "a-1", "SUPPORTS", 0.25, {"evidence": ["x'; --", "日本"], "method": "by hand"}),
        ChunkRelation("a-1", "a-0", "SUPPORTS", 1.0),
        ChunkRelation("a-0", "a-1", "CONTRADICTS", 0.5),
    ]
    assert related.write_relations(iter(first)) == 3

    def found() -> list[ChunkRelation]:
        return sorted(related.relations(), key=lambda one: (one.source_id, one.type))

    assert found() == [first[2], first[0], first[1]]
    changed = ChunkRelation("a-0", "a-1", "SUPPORTS", 0.75, {"method": "again"})
    related.write_relations([changed, changed])
    assert found() == [first[2], changed, first[1]]
    assert related.counts().relations == 3
    related.delete_document("a")
    assert list(related.relations()) == []
    assert sql.execute(
        names.SQL("SELECT count(*) FROM {}").format(names.Identifier(schema, "logical_relationships"))
    ).fetchone() == (0,)


def test_relations_to_chunks_that_are_not_there_are_named(related: ChunkTables) -> None:
    with pytest.raises(ItemError, match=r"1 items of relations are not stored as chunks \(the first: 'a-9'\)"):
        related.write_relations([ChunkRelation("a-0", "a-1", "CAUSES", 0.5), ChunkRelation("a-0", "a-9", "CAUSES", 0.5)])
    assert list(related.relations()) == []


@pytest.mark.parametrize(
    ("relation", "said"),
    [
        (("a", "a", "CAUSES", 0.5), "both ends are the same chunk"),
        (("a", "b", "CAUSE", 0.5), "there is no type 'CAUSE'; did you mean 'CAUSES'"),
        (("a", "b", "CAUSES", 1.01), "its confidence is 1.01; expected 0 to 1"),
        (("a", "b", "CAUSES", float("nan")), "its confidence is nan"),
    ],
)
def test_what_is_no_relation_is_refused(relation: tuple[str, str, str, float], said: str) -> None:
    with pytest.raises(ItemError, match=said):
        ChunkRelation(*relation)


def test_the_database_itself_keeps_the_rules(related: ChunkTables, sql: psycopg.Connection, schema: str) -> None:
    """Whoever writes by hand meets them too."""
    related.write_relations([ChunkRelation("a-0", "a-1", "CAUSES", 0.5)])
    for table, change in (
        ("logical_relationships", "confidence_score = 2"),
        ("logical_relationships", "relationship_type = 'LIKES'"),
        ("logical_relationships", "target_chunk_id = source_chunk_id"),
        ("doc_chunks", 'chunk_data = chunk_data || \'{"country": "Peru"}\''),
        ("documents", "country = ' Peru'"),
    ):
        with pytest.raises(psycopg.errors.CheckViolation):
            sql.execute(names.SQL("UPDATE {} SET ").format(names.Identifier(schema, table)) + names.SQL(change))  # type: ignore[arg-type]
