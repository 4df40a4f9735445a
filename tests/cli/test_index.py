"""``nlp-retrieval index``: what it says of a table with names of its own, and an encoder behind an endpoint that fails."""

from __future__ import annotations

import json
from pathlib import Path

from embedding_server import embedded, embedding_server

from cli.commands import refused, run
from nlp_retrieval.core.index.generation import read_manifest


def more_than_a_batch(path: Path) -> list[str]:
    """Write the items of 1,030 texts, and return the texts."""
    texts = [f"text number {number}" for number in range(1030)]
    path.write_text("".join(json.dumps({"id": f"d{row}", "content": text}) + "\n" for row, text in enumerate(texts)))
    return texts


def test_an_index_that_failed_in_the_second_batch_is_taken_up_and_says_so(tmp_path: Path) -> None:
    texts = more_than_a_batch(tmp_path / "items.jsonl")
    with embedding_server(lambda body: 400 if texts[-1] in body["input"] else embedded(body)) as server:
        encoder = f"{{name: http, base_url: '{server.url}', model: small, cache_dir: '{tmp_path / 'kept'}'}}"
        words = ("index", "items.jsonl", "index", "--retriever", f"faiss:encoder={encoder}")
        refused(run(*words, folder=tmp_path), 1, f"{server.url}: HTTP 400")
        server.answer = embedded
        done = run(*words, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "1,024 passages were not encoded again: an interrupted run had already encoded them" in done.stdout + done.stderr
        asked = len(server.texts)
        refused(run("search", "index", texts[7], folder=tmp_path), 2, f"send texts to the server '{server.url}'", "--trust")
        done = run("search", "index", texts[7], "-k", "1", "--trust", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "d7" in done.stdout
        assert len(server.texts) == asked, "its vector is on disk"


def test_what_an_error_tells_to_pass_is_said_as_an_option(tmp_path: Path) -> None:
    (tmp_path / "plants.csv").write_text("code,name,description\nP1,Foxglove,Slows the heart.\n")
    words = ["index", "plants.csv", "index", "-r", "bm25"]
    refused(run(*words, folder=tmp_path), 2, "pass -o id_field=... and the name of the field that holds it")
    words += ["-o", "id_field=code"]
    refused(run(*words, folder=tmp_path), 2, "pass -o content_field=")
    words += ["-o", "content_field=description"]
    assert run(*words, folder=tmp_path).returncode == 0
    words += ["-o", "title_field=name"]
    refused(run(*words, folder=tmp_path), 3, "pass --replace to overwrite that index")
    assert run(*words, "--replace", folder=tmp_path).returncode == 0
    (tmp_path / "rows.csv").write_text("1,Foxglove,Slows the heart.\n2,Yarrow,Stops bleeding.\n")
    refused(run("index", "rows.csv", "other", folder=tmp_path), 2, 'pass columns=["id", "content"]')
    (tmp_path / "rows.csv").write_text("id;content;notes\nP1;Foxglove\n")
    refused(run("index", "rows.csv", "other", folder=tmp_path), 2, "pass -o delimiter=...")


def test_one_retriever_of_an_index_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "plants.csv").write_text("id,content\nP1,Slows the heart.\n")
    assert run("index", "plants.csv", "index", "-r", "bm25", "-r", "bm25:language=de", folder=tmp_path).returncode == 0
    refused(run("delete", "index", "--retriever", "faiss", folder=tmp_path), 2, "has no retriever 'faiss'")
    done = run("delete", "index", "--retriever", "bm25-2", folder=tmp_path)
    assert "bm25-2 dropped; index has bm25" in done.stderr, done.stderr
    left = read_manifest(tmp_path / "index")
    assert left is not None
    assert [record.config["language"] for record in left.retrievers] == ["en"]
    assert {path.name for path in (tmp_path / "index").iterdir() if path.is_dir()} == set(left.folders)
    assert run("search", "index", "heart", folder=tmp_path).stdout.count("P1") == 1
    refused(run("delete", "index", "--retriever", "bm25", folder=tmp_path), 2, "it is the only one; remove the folder")
