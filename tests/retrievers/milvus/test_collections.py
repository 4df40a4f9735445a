"""What the server holds is what the index was built with, or an error; and what no index needs any more is dropped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hashed_words import HashedWords
from milvus_server import milvus_url, shared_milvus
from soaking import mostly_soaked

from nlp_retrieval import Searcher
from nlp_retrieval.errors import (
    EngineError,
    IndexDamagedError,
    IndexLockedError,
    IndexMismatchError,
    RetrievalWarning,
    ServerError,
)
from nlp_retrieval.retrievers.milvus import collections as collections_room
from nlp_retrieval.retrievers.milvus import retriever as retriever_room
from nlp_retrieval.retrievers.milvus.collections import MOST_BYTES, verify_collections

from .conftest import corpus, found, records, retriever, searcher


def names(client, index: Path | None = None) -> set[str]:
    """The collections on the server; of an index, those that its records name."""
    there = {*client.list_collections()}
    return there if index is None else there & {record.collection for record in records(index)}


@pytest.mark.parametrize("mode", mostly_soaked(["both", "dense", "bm25"]))
def test_the_directory_keeps_a_record_without_url_token_or_ids_on_the_server(mode, index, client, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "root:s3cret-word")
    searcher(mode, token="env:SECRET_TOKEN").index(corpus(20), index)
    (path,) = index.glob("*/milvus.json")
    assert [file.name for file in path.parent.iterdir() if not file.name.startswith(".")] == ["milvus.json"]
    written = b"".join(file.read_bytes() for file in index.rglob("*") if file.is_file())
    assert b"s3cret" not in written
    assert shared_milvus().url.encode() not in written
    (record,) = records(index)
    row = client.query(record.collection, filter="row == 3", output_fields=["*"])[0]
    fields = (
        {"row", "id_sum"} | ({"embedding"} if mode != "bm25" else set()) | ({"text", "words"} if mode != "dense" else set())
    )
    assert {*row} == fields


CHANGES = [
    (lambda client, name: client.drop_collection(name), "there is no collection"),
    (lambda client, name: client.delete(name, ids=[3]), "holds 19 rows, and not the 20"),
    (lambda client, name: (client.delete(name, ids=[3]), insert(client, name, 25, 3)), "holds other rows"),
    (lambda client, name: (client.delete(name, ids=[3]), insert(client, name, 3, 4)), "holds other rows"),
    (lambda client, name: upsert(client, name, 3, embedding=[0.5] * 24), "holds other rows"),
    (lambda client, name: recreate(client, name, 23), "has other fields"),
]


def insert(client, name: str, row: int, id_sum: int) -> None:
    client.insert(name, [{"row": row, "id_sum": id_sum, "embedding": [0.1] * 24}])


def upsert(client, name: str, row: int, **changed: object) -> None:
    (before,) = client.query(name, filter=f"row == {row}", output_fields=["id_sum", *changed])
    client.upsert(name, [{"row": row, "id_sum": before["id_sum"]} | changed])


def recreate(client, name: str, dimension: int) -> None:
    client.drop_collection(name)
    client.create_collection(name, dimension=dimension, primary_field_name="row", vector_field_name="embedding")


@pytest.mark.parametrize(("change", "message"), CHANGES, ids=[message for _, message in CHANGES])
def test_a_collection_that_is_missing_or_changed_is_an_error_and_never_an_answer(change, message, index, client):
    searcher().index(corpus(20), index)
    change(client, records(index)[0].collection)
    with pytest.raises(IndexDamagedError, match=f"{message}.*replace=True"):
        searcher().open(index).search("fox", 3)
    assert len(verify_collections(index, milvus_url())) == 1


def test_a_text_that_was_changed_is_an_error(index, client):
    searcher("bm25").index(corpus(20), index)
    upsert(client, records(index)[0].collection, 3, text="another")
    with pytest.raises(IndexDamagedError, match="holds other rows"):
        searcher("bm25").open(index)


@pytest.mark.parametrize("mode", mostly_soaked(["both", "bm25"]))
def test_so_few_rows_are_read_at_once_that_the_longest_texts_fit_a_message(mode, index, monkeypatch):
    from pymilvus import MilvusClient

    searcher(mode).index(corpus(2000), index)
    real, read = MilvusClient.query, []

    def query(self, name, **asked):
        rows = real(self, name, **asked)
        read.extend([len(rows)] * ("text" in asked["output_fields"]))
        return rows

    monkeypatch.setattr(MilvusClient, "query", query)
    assert verify_collections(index, milvus_url()) == []
    assert sum(read) == 2000
    assert max(read) * (MOST_BYTES + 4 * 24) < 100 * 2**20


def test_of_a_large_collection_opening_reads_a_sample_and_verify_all(index, client, monkeypatch):
    monkeypatch.setattr(collections_room, "CHECKED_WHOLE", 5)
    monkeypatch.setattr(collections_room, "_SAMPLED", 5)
    searcher().index(corpus(22), index)
    name = records(index)[0].collection
    assert verify_collections(index, milvus_url()) == []
    upsert(client, name, 3, embedding=[0.5] * 24)
    searcher().open(index)
    assert "other rows" in verify_collections(index, milvus_url())[0]
    client.upsert(name, [{"row": 4, "id_sum": 1, "embedding": [0.5] * 24}])
    with pytest.raises(IndexDamagedError, match="other rows"):
        searcher().open(index)


def test_a_collection_that_is_dropped_while_it_is_open_is_an_error(index, client):
    made = searcher()
    made.index(corpus(20), index)
    assert found(made)
    client.drop_collection(records(index)[0].collection)
    with pytest.raises(IndexDamagedError, match="dropped since it was opened"):
        found(made)


def test_indexing_again_finds_a_missing_collection_and_replaces_it(index, client):
    made = searcher()
    made.index(corpus(20), index)
    before = found(made)
    client.drop_collection(records(index)[0].collection)
    with pytest.raises(IndexDamagedError, match="there is no collection"):
        searcher().index(corpus(20), index)
    again = searcher()
    assert again.index(corpus(20), index, replace=True).built == ["milvus"]
    assert found(again) == before
    assert verify_collections(index, milvus_url()) == []


@pytest.mark.parametrize("edit", [{"collection": "other"}, {"rows": 19}, {"dimension": -1}, {"more": 1}])
def test_a_record_that_was_edited_is_damage(edit, index):
    searcher().index(corpus(20), index)
    (path,) = index.glob("*/milvus.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | edit))
    with pytest.raises(IndexDamagedError, match=r"milvus\.json"):
        searcher().open(index)


def test_another_encoder_is_a_mismatch_that_names_both(index):
    searcher().index(corpus(20), index)
    with pytest.raises(IndexMismatchError, match=r"encoder.*dimension: indexed with 24, now 16"):
        searcher(encoder=HashedWords(16)).open(index)


def test_an_index_is_not_found_on_another_server_and_nothing_joins_it_there(index, tmp_path):
    from milvus_server import TcpServer

    searcher().index(corpus(20), index)
    other = TcpServer(tmp_path / "other")
    try:
        with pytest.raises(IndexDamagedError, match="there is no collection"):
            searcher(url=other.url).open(index)
        with pytest.raises(IndexDamagedError, match="there is no collection"):
            searcher(url=other.url).index(corpus(20), index)
    finally:
        other.close()


def test_a_collection_that_nothing_names_any_more_is_dropped_by_the_next_writer(index, client):
    made = searcher()
    made.index(corpus(20), index)
    first = names(client, index)
    made.add(corpus(4, 20), auto_compact=False)
    assert len(names(client, index)) == 2
    reader = searcher().open(index)
    before = found(reader)
    made.compact()
    assert found(reader) == before
    assert first <= names(client), "a reader holds the folder that names it"
    del reader
    Searcher(made.retrievers).index(corpus(30), index, replace=True)
    made.refresh()
    made.delete(["d0"], auto_compact=False)
    assert len(names(client, index)) == 1
    assert not first & names(client)


def test_a_copied_directory_answers_and_never_drops_what_the_original_uses(index, tmp_path):
    made = searcher()
    made.index(corpus(20), index)
    before = found(made)
    copy = tmp_path / "copy"
    shutil.copytree(index, copy)
    copied = searcher().open(copy)
    assert found(copied) == before
    copied.add(corpus(14, 20))
    copied.compact()
    searcher().index(corpus(9), copy, replace=True)
    assert found(searcher().open(index)) == before


def test_a_moved_directory_keeps_its_collections_and_drops_them_itself(index, tmp_path, client):
    searcher().index(corpus(20), index)
    first = names(client, index)
    index.rename(tmp_path / "moved")
    searcher().index(corpus(12), index)
    assert first <= names(client)
    moved = searcher().open(tmp_path / "moved")
    assert len(found(moved, k=20)) == 20
    del moved
    searcher().index(corpus(15), tmp_path / "moved", replace=True)
    assert not first & names(client)
    assert len(names(client, index)) == 1
    assert found(searcher().open(index))


def test_a_build_that_fails_or_is_killed_leaves_no_collection_that_stays(index, client, monkeypatch):
    before = names(client)

    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("no load")

    with monkeypatch.context() as patched:
        patched.setattr("pymilvus.MilvusClient.load_collection", refuse)
        with pytest.raises(RuntimeError, match="no load"):
            searcher().index(corpus(20), index)
    killed = """
import os, signal, sys
from pathlib import Path
from retrievers.milvus.conftest import corpus, retriever
from nlp_retrieval.retrievers.milvus.collections import CollectionRecord
CollectionRecord.write = lambda record, folder: os.kill(os.getpid(), signal.SIGKILL)
retriever(url=sys.argv[1]).index(corpus(20), Path(sys.argv[2]))
"""
    tests = Path(__file__).parent.parent.parent
    paths = os.pathsep.join([str(tests), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", killed, shared_milvus().url, str(index)],
        env=os.environ | {"PYTHONPATH": paths},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert names(client) - before, "what was made before the kill"
    searcher().index(corpus(20), index)
    assert names(client) - before == names(client, index)


def test_a_server_that_holds_other_rows_than_were_sent_is_an_error(index, monkeypatch):
    from pymilvus import MilvusClient

    real = MilvusClient.insert
    monkeypatch.setattr(MilvusClient, "insert", lambda self, name, batch, **more: real(self, name, batch[1:], **more))
    with pytest.raises(EngineError, match=r"does not hold what was sent.*19 rows"):
        searcher().index(corpus(20), index)


def test_a_server_that_is_away_when_orphans_are_dropped_costs_a_warning_and_no_index(index, monkeypatch):
    def away(*_: object, **__: object) -> None:
        raise ServerError("away")

    made = searcher()
    made.index(corpus(20), index)
    monkeypatch.setattr(retriever_room, "orphans", away)
    with pytest.warns(RetrievalWarning, match="was not removed"):
        Searcher(made.retrievers).index(corpus(12), index, replace=True)
    assert len(found(searcher().open(index), k=20)) == 12


def test_a_second_writer_is_told_of_the_first_and_readers_go_on(index):
    searcher().index(corpus(30), index)
    reader = searcher().open(index)
    before = found(reader)

    first = [True]

    class Writing(HashedWords):
        def encode_passages(self, passages):
            if first:
                first.clear()
                with pytest.raises(IndexLockedError):
                    searcher().index(corpus(3), index)
                assert found(reader) == before
            return super().encode_passages(passages)

    Searcher([retriever(encoder=Writing(24))]).index(corpus(20), index, replace=True)
    assert not first
    assert found(reader) == before
    assert len(found(searcher(encoder=Writing(24)).open(index), k=40)) == 20


def test_verify_asks_the_server_and_says_which_collection_was_changed(index, client):
    def verify(*words: str) -> tuple[int, str]:
        command = [sys.executable, "-c", "from nlp_retrieval.cli.app import main; main()", "verify", str(index), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "2000"})
        return done.returncode, done.stdout + done.stderr

    searcher().index(corpus(20), index)
    name = records(index)[0].collection
    assert verify("--url", milvus_url())[0] == 0
    code, said = verify()
    assert code == 2
    assert "pass its URL with --url env:NAME" in said
    upsert(client, name, 3, embedding=[0.5] * 24)
    code, said = verify("--url", milvus_url())
    assert code == 3
    assert name in said
