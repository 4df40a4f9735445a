"""What an error says to do is done, in the words of each way in, and works: in Python, in a YAML file, on the command line."""

from __future__ import annotations

import ast
import importlib.metadata
import inspect
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from soaking import mostly_soaked

import nlp_retrieval
from nlp_retrieval import Bm25Retriever, HuggingFaceLoader, JsonlLoader, Searcher, TopicsLoader
from nlp_retrieval.cli import app
from nlp_retrieval.core.components.registry import build_as
from nlp_retrieval.core.cures import in_yaml, on_command_line
from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.errors import IndexConflictError, IndexDamagedError, SourceError, install

Settings = dict[str, Any]


def write(path: Path, content: Any) -> None:
    if isinstance(content, dict):
        pq.write_table(pa.table(content), path)
    elif path.name == "saved":
        pa_table = content.to_pylist()
        import datasets

        datasets.Dataset.from_list(pa_table, split="test").save_to_disk(path)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


CASES: dict[str, tuple[str, str, Any, Settings]] = {
    "another id": ("csv", "a.csv", "_id,content\n1,kestrel\n", {}),
    "another text": ("jsonl", "a.jsonl", '{"id": 1, "text": "kestrel"}\n', {}),
    "no line of names": ("csv", "a.csv", "1,kestrel,x\n2,kestrel,y\n", {}),
    "one of several texts": ("csv", "a.csv", "id,head,body\n1,a,kestrel\n", {"content_field": ["head", "bodi"]}),
    "metadata": ("csv", "a.csv", "id,content,year,place\n1,kestrel,2,x\n", {"metadata_fields": ["place", "yaer"]}),
    "metadata of Parquet": (
        "parquet",
        "a.parquet",
        {"id": [1], "content": ["kestrel"], "year": [2]},
        {"metadata_fields": ["yaer"]},
    ),
    "a title by another name": ("csv", "a.csv", "id,content,title\n1,kestrel,x\n", {"title_field": "titel"}),
    "a title that is a list": ("parquet", "a.parquet", {"id": [1], "content": ["kestrel"], "title": [["a"]]}, {}),
    "an id that is a time": ("parquet", "a.parquet", {"id": pa.array([1], pa.timestamp("s")), "content": ["kestrel"]}, {}),
    "numbers by another name": ("csv", "a.csv", "id,content,year\n1,kestrel,2\n", {"number_fields": ["yaer"]}),
    "a decimal comma": ("csv", "a.csv", "id;content;p\n1;kestrel;3,5\n", {"number_fields": ["p"]}),
    "a decimal point": ("csv", "a.csv", "id;content;p\n1;kestrel;3.5\n", {"number_fields": ["p"], "decimal": ","}),
    "another delimiter": ("csv", "a.csv", "id\tcontent\n1\tkestrel\n", {"delimiter": ","}),
    "no quotes": ("csv", "a.csv", 'id,content\n1,"kestrel\n', {}),
    "UTF-16": ("csv", "a.csv", "id,content\n1,kestrel\n".encode("utf-16"), {}),
    "UTF-16 without a mark": ("csv", "a.csv", "id,content\n1,kestrel\n".encode("utf-16-le"), {}),
    "Latin-1": ("csv", "a.csv", "id,content\n1,kestrel é\n".encode("latin-1"), {}),
    "another split": ("huggingface", "saved", pa.table({"id": ["1"], "content": ["kestrel"]}), {}),
}


def python_cures(message: str) -> Settings:
    """The settings that a message names, as somebody reads them who writes Python."""
    found = re.findall(r"\bpass (\w+)=(\"[^\"]*\"|'[^']*'|\[[^\]]*\]|\w+)", message)
    assert found, message
    return {found[0][0]: ast.literal_eval(found[0][1])}


def yaml_cures(message: str) -> Settings:
    found = re.findall(r"\bwrite (\w+: (?:\"[^\"]*\"|\[[^\]]*\]|\w+))", message)
    assert found, message
    return dict(yaml.safe_load(found[0]))


def command_line(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["nlp-retrieval", *words])
    code = app._run()
    return code, "".join(capsys.readouterr())


@pytest.mark.parametrize("case", CASES)
def test_a_cure_of_a_loader_works_in_python(case: str, tmp_path: Path) -> None:
    loader, name, content, settings = CASES[case]
    write(tmp_path / name, content)
    given = {"name": loader, "path": str(tmp_path / name)} | settings
    with pytest.raises(SourceError) as caught:
        build_as(BaseLoader, "loaders", given, "corpus").load()
    items = build_as(BaseLoader, "loaders", given | python_cures(str(caught.value)), "corpus").load()
    assert items
    assert all("kestrel" in item.content for item in items)


_SHORT = (
    "another id",
    "no line of names",
    "one of several texts",
    "a decimal comma",
    "another delimiter",
    "no quotes",
    "UTF-16",
)


@pytest.mark.parametrize("case", mostly_soaked([*CASES], _SHORT))
def test_a_cure_of_a_loader_works_on_the_command_line(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loader, name, content, settings = CASES[case]
    write(tmp_path / name, content)
    monkeypatch.chdir(tmp_path)
    given = [word for key, value in settings.items() for word in ("-o", f"{key}={value}".replace("'", '"'))]
    words = ["index", name, "index", "-l", loader, "-r", "bm25", *given]
    code, said = command_line(words, monkeypatch, capsys)
    assert code == 2, said
    option = shlex.split(said[said.index("pass -o ") :].split("\n")[0].replace("; ", " "))[1:3]
    assert "pass " not in said.replace("pass -o ", ""), said
    code, said = command_line([*words, *option], monkeypatch, capsys)
    assert code == 0, said


@pytest.mark.parametrize("case", CASES)
def test_a_cure_of_a_loader_works_in_a_configuration(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loader, name, content, settings = CASES[case]
    write(tmp_path / name, content)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "queries.jsonl").write_text('{"id": "q", "text": "kestrel"}\n')
    (tmp_path / "qrels").write_text(f"q 0 {0 if case == 'an id that is a time' else 1} 1\n")
    corpus = {"loader": loader, "path": name} | settings
    config = {
        "corpus": corpus,
        "queries": {"loader": "topics", "path": "queries.jsonl", "qrels": "qrels"},
        "searchers": {"words": {"retrievers": ["bm25"]}},
        "index": "index",
    }
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(config))
    code, said = command_line(["benchmark", "a.yaml"], monkeypatch, capsys)
    assert code != 0, said
    assert not re.search(r"\bpass \w+=", said), said
    corpus |= yaml_cures(said)
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(config))
    code, said = command_line(["benchmark", "a.yaml"], monkeypatch, capsys)
    assert code == 0, said


CORPUS = '{"id": "%s", "content": "kestrel"}\n'


@pytest.mark.parametrize("damaged", [False, True])
def test_an_index_is_given_up_in_the_words_of_each_way_in(
    damaged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def make() -> None:
        (tmp_path / "a.jsonl").write_text(CORPUS % "a")
        assert command_line(["index", "a.jsonl", "index", "-r", "bm25", "--replace"], monkeypatch, capsys)[0] == 0
        if damaged:
            next((tmp_path / "index").rglob("items.arrow")).write_bytes(b"nothing")
        else:
            (tmp_path / "a.jsonl").write_text(CORPUS % "b")

    make()
    searcher = Searcher([Bm25Retriever()])
    ask = (
        (lambda: searcher.open("index").search("kestrel"))
        if damaged
        else (lambda: searcher.index(JsonlLoader("a.jsonl"), "index"))
    )
    with pytest.raises(IndexDamagedError if damaged else IndexConflictError, match="replace=True") as caught:
        ask()
    assert "--" not in str(caught.value)
    Searcher([Bm25Retriever()]).index(JsonlLoader("a.jsonl"), "index", replace=True)

    make()
    words = ["search", "index", "kestrel"] if damaged else ["index", "a.jsonl", "index", "-r", "bm25"]
    code, said = command_line(words, monkeypatch, capsys)
    assert code == 3, said
    assert "replace=True" not in said
    assert "--replace" in said
    assert command_line(["index", "a.jsonl", "index", "-r", "bm25", "--replace"], monkeypatch, capsys)[0] == 0

    make()
    config = {
        "corpus": {"loader": "jsonl", "path": "a.jsonl"},
        "queries": {"loader": "topics", "path": "queries.jsonl", "qrels": "qrels"},
        "searchers": {"words": {"retrievers": ["bm25"]}},
        "index": "index",
    }
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "queries.jsonl").write_text('{"id": "q", "text": "kestrel"}\n')
    (tmp_path / "qrels").write_text("q 0 a 1\n" if damaged else "q 0 b 1\n")
    code, said = command_line(["benchmark", "a.yaml"], monkeypatch, capsys)
    if code:  # a damaged index is made again where it can be
        assert "replace=True" not in said
        assert "remove the folder" in said
        shutil.rmtree(tmp_path / "index")
        code, said = command_line(["benchmark", "a.yaml"], monkeypatch, capsys)
    assert code == 0, said


@pytest.mark.parametrize(
    ("python", "in_file", "options", "of_source", "typed"),
    [
        (
            "pass backend='torch'",
            'write backend: "torch"',
            {"retriever": "--retriever"},
            False,
            "pass backend=torch in --retriever",
        ),
        ("pass delimiter='\\t'", 'write delimiter: "\\t"', {"option": "-o"}, True, "pass -o 'delimiter=\"\\t\"'"),
        ("pass quote=None where", "write quote: null where", {"option": "-o"}, True, "pass -o quote=null where"),
        ("write number_fields=['n']", "write number_fields: ['n']", {"option": "-o"}, True, "write -o 'number_fields=[\"n\"]'"),
        ('pass id_field="7"; and', 'write id_field: "7"; and', {"option": "-o"}, True, "pass -o 'id_field=\"7\"'; and"),
        (
            "pass url=env:NAME.",
            "write url: env:NAME.",
            {"option": "-o", "corpus": "corpus"},
            True,
            "pass env:NAME as the corpus.",
        ),
        ("pass trust=True", "write trust: true", {"trust": "--trust", "config": "config"}, False, "pass --trust"),
        ("it has a=b, k=3 and x", "it has a=b, k=3 and x", {"option": "-o"}, True, "it has a=b, k=3 and x"),
        (
            "pass lm=LanguageModel(...)",
            "write lm: PROVIDER/MODEL",
            {"answerer": "--answerer"},
            False,
            "pass lm=PROVIDER/MODEL in --answerer",
        ),
    ],
)
def test_settings_are_spelled_for_their_place(
    python: str, in_file: str, options: dict[str, str], of_source: bool, typed: str
) -> None:
    assert in_yaml(python) == in_file
    assert on_command_line(python, options, of_source=of_source) == typed


def test_an_error_of_a_loader_without_these_parameters_offers_none_of_them(tmp_path: Path) -> None:
    (tmp_path / "qrels.tsv").write_text("q\t1\t1\n")
    for content in (
        'id,text\n1,"a\n',
        "id,text\n1,a,b\n",
        "id,text\n1,é\n".encode("latin-1"),
        "id,text\n1,a\n".encode("utf-16"),
    ):
        write(tmp_path / "topics.csv", content)
        with pytest.raises(SourceError) as caught:
            TopicsLoader(tmp_path / "topics.csv", tmp_path / "qrels.tsv").queries()
        named = set(re.findall(r"\b(\w+)=", str(caught.value)))
        assert named <= set(inspect.signature(TopicsLoader.__init__).parameters), caught.value


def test_messages_name_only_parameters_that_loaders_have(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for content in (
        'id,content\n1,"a\n',
        "id,content\n1,a,b\n",
        "id,content\n1,é\n".encode("latin-1"),
        "1,2\n3,4\n",
        ",\n1,2\n",
    ):
        write(tmp_path / "folder" / "a.csv", content)
        with pytest.raises(SourceError) as caught:
            HuggingFaceLoader(tmp_path / "folder").load()
        named = set(re.findall(r"\bpass (\w+)=", str(caught.value)))
        assert named <= set(inspect.signature(HuggingFaceLoader.__init__).parameters), caught.value


def test_what_to_install_is_said_for_a_package_and_for_a_clone() -> None:
    said = install("dense")
    extras = set(importlib.metadata.metadata("nlp_retrieval").get_all("Provides-Extra") or ())
    assert said == "pip install 'nlp_retrieval[dense]', or in a clone pip install -c constraints.txt '.[dense]'"
    package = Path(nlp_retrieval.__file__).parent
    named = {
        extra
        for path in package.rglob("*.py")
        for extras_named in re.findall(r"""\binstall\(["']([\w,-]+)["']\)""", path.read_text("utf-8"))
        for extra in extras_named.split(",")
    }
    assert len(named) > 10
    assert named <= extras
    elsewhere = [path for path in package.rglob("*.py") if "nlp_retrieval[" in path.read_text("utf-8")]
    assert elsewhere == [package / "errors.py"]
