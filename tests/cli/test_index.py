"""``nlp-retrieval index``: what it says of a table with names of its own, and an encoder behind an endpoint that fails."""

from __future__ import annotations

from pathlib import Path

from cli.commands import refused, run
from nlp_retrieval.core.index.generation import read_manifest


def test_what_an_error_tells_to_pass_is_said_as_an_option(tmp_path: Path) -> None:
    (tmp_path / "plants.csv").write_text("code,name,description\nP1,Foxglove,Slows the heart.\n")
    words = ["index", "plants.csv", "index", "-r", "bm25"]
    refused(run(*words, folder=tmp_path), 2, "pass -o id_field=... and the name of the field that holds it")
    words += ["-o", "id_field=code"]
    refused(run(*words, folder=tmp_path), 2, "pass -o content_field=")
    words += ["-o", "content_field=description"]
    assert run(*words, folder=tmp_path).returncode == 0
    words += ["-o", "title_field=name"]
    refused(run(*words, folder=tmp_path), 3, "index with --replace to overwrite")
    assert run(*words, "--replace", folder=tmp_path).returncode == 0


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
