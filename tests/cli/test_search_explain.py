"""Retrievers made of retrievers on the command line: how they are named, searched once, and explain what they found."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from nlp_retrieval.cli.console import parse_component

from .commands import run

PAGES = [
    {"id": "p1", "content": "A lighthouse that Ada Quill [sic] built in 1902. It stands.", "title": "Old Tower"},
    {"id": "p2", "content": "A merchant of copper.", "title": "Ada Quill"},
    {"id": "p3", "content": "Walnut orchards.", "title": "Zora Helm"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus, and an index of it by a link graph over bm25."""
    made = tmp_path_factory.mktemp("explain")
    lines = [{"id": one["id"], "content": one["content"], "metadata": {"title": one["title"]}} for one in PAGES]
    (made / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = run("index", str(made / "corpus.jsonl"), str(made / "index"), "-r", "link_graph:seeds=[bm25]")
    assert done.returncode == 0, done.stderr
    assert "bm25: built in" in done.stderr
    assert "link_graph: built in" in done.stderr
    return made


def json_lines(*words: str) -> list[dict[str, object]]:
    done = run(*words, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_first_retriever_searches_unless_one_is_named_or_all_are_fused(folder: Path, tmp_path: Path) -> None:
    index = str(tmp_path / "index")
    run("index", str(folder / "corpus.jsonl"), index, "-r", "link_graph:seeds=[bm25]", "-r", "bm25:stemmer=none")
    first = run("search", index, "lighthouse")
    assert first.stderr == f"note: link_graph searches; {index} has bm25 too: choose by --retriever\n"
    _, heading, passage, *_ = first.stdout.splitlines()
    assert re.fullmatch(r"   1  Ada Quill  p2  [\d.]+", heading)
    assert passage.strip() == PAGES[1]["content"]
    assert "link_graph.score" not in first.stdout
    (fused, *_) = json_lines("search", index, "lighthouse", "-r", "link_graph:seeds=[bm25]", "-r", "bm25:stemmer=none")
    assert {key.partition(".")[0] for key in fused["signals"]} == {"link_graph", "bm25", "fusion"}  # type: ignore[union-attr]


def test_results_are_explained_in_json_and_only_where_asked(folder: Path) -> None:
    explained = json_lines("search", str(folder / "index"), "lighthouse", "--explain")
    by_id = {line["item"]["item_id"]: line["explanation"]["link_graph"] for line in explained}  # type: ignore[index]
    assert by_id["p1"]["steps"] == []
    assert by_id["p2"]["first"] == "p1"
    assert by_id["p2"]["steps"] == [
        {
            "source": "p1",
            "target": "p2",
            "kind": "title_mentions",
            "along": True,
            "sentence": "A lighthouse that Ada Quill [sic] built in 1902.",
            "mention": "Ada Quill",
        }
    ]
    plain = json_lines("search", str(folder / "index"), "lighthouse")
    assert [{**line, "explanation": None} for line in explained] == [{**line, "explanation": None} for line in plain]
    assert not any("explanation" in line for line in plain)


READ: dict[str, dict[str, object]] = {
    "bm25": {"name": "bm25"},
    "bm25:k1=1.2,stemmer=none": {"name": "bm25", "k1": 1.2, "stemmer": "none"},
    "link_graph:seeds=[bm25,faiss]": {"name": "link_graph", "seeds": ["bm25", "faiss"]},
    "x:a=[{name: b, c: [1, 2]}, d],e=f": {"name": "x", "a": [{"name": "b", "c": [1, 2]}, "d"], "e": "f"},
    "x:a=12345678901234567890123,b=-1,c=007": {"name": "x", "a": 12345678901234567890123, "b": -1, "c": "007"},
    "x:a=b],c=d": {"name": "x", "a": "b]", "c": "d"},
    "x:a=http://b:80/c=d": {"name": "x", "a": "http://b:80/c=d"},
}


def test_a_component_is_read_with_lists_and_mappings_inside() -> None:
    assert {text: parse_component(text) for text in READ} == READ
