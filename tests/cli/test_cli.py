"""The commands as a shell sees them: results on standard output, all else on standard error, codes that mean something."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from nlp_retrieval.cli import components
from nlp_retrieval.cli.console import aligned
from nlp_retrieval.core.components.registry import build, component_class, describe_parameters, kinds, names
from nlp_retrieval.core.files.frames import BaseLoader

from .commands import refused, run

PASSAGES = [
    {"_id": "p1", "title": "The Shining (film)", "text": "A horror film by Stanley Kubrick. It was shot in England."},
    {"_id": "p2", "title": "Stephen King", "text": "An American author who wrote The Shining."},
    {"_id": "p3", "title": "Köln", "text": "A city on the Rhine [bold]with a cathedral[/bold] 🦊."},
    {"_id": "p4", "title": "Rhine", "text": "A river that runs from the Alps to the sea."},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus, a configuration file, and an index of the corpus by bm25."""
    made = tmp_path_factory.mktemp("cli")
    (made / "corpus.jsonl").write_text("".join(json.dumps(passage) + "\n" for passage in PASSAGES))
    (made / "sweep.yaml").write_text(
        f"""
corpus: {{loader: beir, path: {made}/corpus.jsonl}}
queries: {{loader: hover, path: {made}/claims.json}}
k: [1, 2]
index: {made}/bench-index
output: {made}/run
searchers:
  bm25: {{retrievers: [bm25]}}
  reranked: {{retrievers: [{{name: bm25, k1: 1.2}}], processor: clauses, reranker: overlap}}
"""
    )
    done = run("index", str(made / "corpus.jsonl"), str(made / "index"), "-l", "beir", "-r", "bm25")
    assert done.returncode == 0, done.stderr
    return made


def test_results_can_be_read_and_nothing_else_is_on_standard_output(folder: Path) -> None:
    done = run("search", str(folder / "index"), "Who wrote The Shining?", "city cathedral", "-k", "2")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "Who wrote The Shining?"
    assert lines[1].split()[:1] == ["1"]
    assert "Stephen King" in lines[1]
    assert "Köln" in done.stdout
    assert "[bold]with a cathedral[/bold] 🦊" in done.stdout
    assert "bm25.score" not in done.stdout
    assert "\x1b" not in done.stdout


def test_queries_come_from_standard_input_where_none_are_given(folder: Path) -> None:
    done = run("search", str(folder / "index"), "--json", "-k", "1", stdin="Rhine river\r\nStephen King\n")
    assert [json.loads(line)["item"]["item_id"] for line in done.stdout.splitlines()] == ["p4", "p2"]
    assert [json.loads(line)["query"] for line in done.stdout.splitlines()] == ["Rhine river", "Stephen King"]
    empty = run("search", str(folder / "index"), "--json")
    assert (empty.returncode, empty.stdout) == (0, "")


def test_a_filter_is_json_and_what_is_none_is_refused(folder: Path) -> None:
    words = ("search", str(folder / "index"), "city cathedral", "--json", "-k", "5")
    whole = [json.loads(line) for line in run(*words).stdout.splitlines()]
    title = whole[-1]["item"]["metadata"]["title"]
    found = run(*words, "--where", json.dumps({"not": {"title": title}}))
    assert found.returncode == 0, found.stderr
    assert [json.loads(line)["item"] for line in found.stdout.splitlines()] == [
        hit["item"] for hit in whole if hit["item"]["metadata"]["title"] != title
    ]
    refused(run(*words, "--where", "{title: x"), 2, "(column 2)); write it like", '"year": {"gte": 2015}}')
    refused(run(*words, "--where", '{"titel": "x"}'), 2, "no item of this index has the metadata key 'titel'", "'title'")


def test_verify_is_content_with_a_whole_index_and_names_the_file_of_a_damaged_one(folder: Path, tmp_path: Path) -> None:
    run("index", str(folder / "corpus.jsonl"), str(tmp_path / "index"), "-l", "beir", "-r", "bm25")
    clean = run("verify", str(tmp_path / "index"))
    assert (clean.returncode, clean.stdout) == (0, "")
    assert "every file matches its checksum" in clean.stderr
    file = sorted((tmp_path / "index").glob("*-*/[!.]*"))[0]
    spoilt = bytearray(file.read_bytes())
    spoilt[len(spoilt) // 2] ^= 1
    file.write_bytes(spoilt)
    refused(run("verify", str(tmp_path / "index")), 3, file.name)
    refused(run("verify", str(tmp_path / "nowhere")), 3, "no index")


UNUSABLE: list[tuple[tuple[str, ...], str]] = [
    (("search", "{index}", "x", "-k", "0"), "k must be an integer of at least 1"),
    (("search", "{index}", "x", "-r", "bm25:k1=much"), "k1='much'"),
    (("index", "{corpus}", "new", "-l", "beir", "-o", "spilt=test"), "'spilt'"),
    (("benchmark", "nowhere.yaml"), "nowhere.yaml"),
    (("search", "{index}", "x", "-c", "{sweep}", "-s", "rerankd"), "did you mean 'reranked'"),
    (("answer", "{index}", "x", "-c", "{sweep}"), "sweep.yaml has no answerer; pass --answerer"),
]


def test_input_that_cannot_be_used_is_code_2(folder: Path, tmp_path: Path, subtests: pytest.Subtests) -> None:
    for words, said in UNUSABLE:
        with subtests.test(" ".join(words)):
            files = {"index": folder / "index", "corpus": folder / "corpus.jsonl", "sweep": folder / "sweep.yaml"}
            done = run(*(word.format(**files) for word in words), folder=tmp_path)
            assert "Traceback" not in done.stderr
            assert (done.returncode, done.stdout) == (2, ""), done.stderr
            assert said.casefold() in done.stderr.casefold()


def test_cells_of_a_table_are_one_line_each_and_wide_letters_count_twice() -> None:
    assert list(aligned([["agent", "recall"], ["鯨\nx", "1"]])) == ["  agent  recall", "  鯨\ufffdx   1"]


def test_every_component_is_explained_with_its_parameters_and_with_examples_that_are_valid(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    for kind in kinds():
        for name in names(kind):
            with subtests.test(f"{kind} {name}"):
                components.command(kind, name)
                check_explanation(kind, name, capsys.readouterr().out)


def check_explanation(kind: str, name: str, text: str) -> None:
    cls = component_class(kind, name)
    for key, _, description, _ in describe_parameters(cls):
        assert len(description) > 3, f"{kind[:-1]} {name}: {key} is not described"
        assert re.search(rf"^[* ]*{key} ", text, re.M)
    example: Any = yaml.safe_load(text.partition("\nYAML")[2].partition("\nPython")[0])
    parts = [{"name": part} if isinstance(part, str) else part for part in _parts_of(example) if not isinstance(part, list)]
    settings = next(part for part in parts if name in (part.get("name"), part.pop("loader", None)))
    assert type(build(kind, settings | {"name": name})) is cls
    assert ("corpus" in example) == issubclass(cls, BaseLoader)
    known: dict[str, object] = {}
    exec(text.partition("\nPython")[2].strip(), known)
    assert known[cls.__name__] is cls


def _parts_of(value: object) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(part for one in inner for part in _parts_of(one))]


def test_a_component_is_found_by_its_name_and_a_kind_says_what_each_does() -> None:
    alone = run("components", "bm25", COLUMNS="80").stdout
    assert re.search(r"^\* stemmer = 'auto'", alone, re.M)
    assert re.search(r"^  k1 = 0\.9 +saturation of term frequency", alone, re.M)
    assert "retrievers: [{name: bm25, k1: 0.9}]" in alone
    assert max(map(len, alone.splitlines())) <= 80
    assert re.search(r"^overlap +Scores a document", run("components", "rerankers").stdout, re.M)
    refused(run("components", "bm52"), 2, "there is no component or kind called 'bm52'; did you mean 'bm25'")


def test_the_stages_of_a_searcher_are_drawn(folder: Path, tmp_path: Path) -> None:
    drawn = run("components", str(folder / "sweep.yaml"), "reranked", "--draw", "a.svg", folder=tmp_path)
    assert drawn.returncode == 0, drawn.stderr
    assert run("search", str(folder / "index"), "x", "-r", "bm25", "--draw", "b.svg", folder=tmp_path).returncode == 0
    pictures = [(tmp_path / name).read_text() for name in ("a.svg", "b.svg")]
    assert [(picture.startswith("<svg"), "overlap" in picture) for picture in pictures] == [(True, True), (True, False)]
    refused(run("components", "--draw", "c.svg", folder=tmp_path), 2, "--draw needs a configuration")


def test_items_join_an_index_take_the_place_of_others_and_leave_it(folder: Path, tmp_path: Path) -> None:
    index = str(tmp_path / "index")
    more = tmp_path / "more.jsonl"
    more.write_text(
        json.dumps({"_id": "p1", "title": "", "text": "A lighthouse"}) + "\n" + json.dumps({"_id": "p9", "text": "A ferry"})
    )
    assert run("index", str(folder / "corpus.jsonl"), index, "-l", "beir", "-r", "bm25").returncode == 0
    refused(run("add", str(more), index, "-l", "beir"), 2, "'p1' is in", "update it")
    done = run("add", str(more), index, "-l", "beir", "--update")
    assert (done.returncode, done.stdout) == (0, "")
    assert "1 items added, 1 replaced; 5 items in" in done.stderr
    assert "A lighthouse" in run("search", index, "lighthouse").stdout
    refused(run("delete", index, "p9", "nowhere"), 2, "'nowhere'", "nothing was deleted")
    ids = tmp_path / "ids.txt"
    ids.write_text("p9\r\n\np2\n")
    done = run("delete", index, "p1", "--file", str(ids))
    assert "3 items deleted; 2 items in" in done.stderr
    assert run("delete", index, "-f", "-", stdin="p3\n").returncode == 0
    assert "ferry" not in run("search", index, "ferry").stdout.removeprefix("ferry")
    assert "1 items in" in run("compact", index).stderr
    refused(run("delete", index, "p4"), 2, "no item would be left")
