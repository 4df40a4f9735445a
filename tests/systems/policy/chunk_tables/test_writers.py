"""Several write at once, and some are killed: what is there is what one of them wrote, document by document."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import nlp_retrieval
from nlp_retrieval import SearchableItem
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


def test_a_writer_that_is_killed_leaves_what_was_there(tables: ChunkTables, dsn: str, schema: str) -> None:
    tables.write([*plan("a", "old"), *plan("b", "old")])
    script = """
import os, sys
from nlp_retrieval.systems.policy.chunk_tables import tables
sys.path.insert(0, "tests")
from systems.policy.chunk_tables.test_writers import plan
tables._AT_ONCE = 7
def dying():
    yield from plan("a", "new")
    os._exit(9)
tables.ChunkTables(sys.argv[1], schema=sys.argv[2]).write(dying())
"""
    command = [sys.executable, "-c", script, dsn, schema]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.returncode == 9, done.stderr
    assert documents_in(tables) == {name: [f"old {number}" for number in range(40)] for name in "ab"}
