"""Several write at once, and some are killed: what is there is what one of them wrote, document by document."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


def documents_in(tables: ChunkTables) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for item in tables.stream():
        found.setdefault(str(item.metadata["document"]), []).append(item.content)
    return found


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
