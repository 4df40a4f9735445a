"""The figures of the documents show what is in the code: its names, its stages, its files and its commands."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from benchmarks.small_benchmark import TEXTS, TITLES, benchmarker
from hashed_words import HashedWords, InMemory
from typer.main import get_command

import nlp_retrieval
from nlp_retrieval import (
    Bm25Retriever,
    ClauseSplit,
    FaissRetriever,
    OverlapReranker,
    Searcher,
    WandbSettings,
    log_to_wandb,
    write_run_files,
)
from nlp_retrieval.benchmarks import BenchmarkConfig
from nlp_retrieval.benchmarks.checked import keys_of
from nlp_retrieval.cli.app import app
from nlp_retrieval.core.index import build

ROOT = Path(__file__).parents[1]
FIGURES = sorted((ROOT / "docs" / "figures").glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"


def shown(name: str, kind: str) -> list[str]:
    """The texts of one class in a figure."""
    tree = ElementTree.parse(ROOT / "docs" / "figures" / f"{name}.svg")
    return ["".join(one.itertext()) for one in tree.iter() if one.get("class") == kind]


def defined_names() -> set[str]:
    """Functions and classes at the top of the package's modules, and methods as ``Class.method``; those that a public class
    inherits too."""
    found = set()
    for path in (ROOT / "nlp_retrieval").rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            if isinstance(node, ast.ClassDef):
                found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    public = {name: getattr(nlp_retrieval, name) for name in nlp_retrieval.__all__}
    return found | {f"{name}.{inner}" for name, value in public.items() if isinstance(value, type) for inner in dir(value)}


def test_there_are_the_three_figures() -> None:
    assert [path.stem for path in FIGURES] == ["benchmark", "indexing", "search"]


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: path.stem)
def test_every_name_of_code_in_a_figure_is_in_the_code(path: Path) -> None:
    names = shown(path.stem, "code")
    assert len(names) > 5
    assert set(names) - defined_names() == set()


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: path.stem)
def test_a_figure_can_be_read(path: Path) -> None:
    content = path.read_text("utf-8")
    root = ElementTree.fromstring(content)
    for tag in ("title", "desc"):
        assert len(root.findtext(f"{SVG}{tag}") or "") > 20
    assert min(int(size) for size in re.findall(r"font: (\d+)px", content)) >= 16
    assert not re.findall(r"font-size|@import|@font-face|href|url\((?!#)", content)
    assert "prefers-color-scheme: dark" in content


def test_the_index_directory_holds_the_files_that_are_drawn(tmp_path: Path) -> None:
    Searcher([Bm25Retriever(), FaissRetriever(HashedWords())]).index(InMemory(TEXTS, TITLES), tmp_path / "index")
    names = (path.name + "/" * path.is_dir() for path in (tmp_path / "index").iterdir())
    found = {re.sub(r"-[0-9a-f]{16}/", "-<fingerprint>/", name) for name in names}
    assert found | {f"{build.SCRATCH}<id>/"} == set(shown("indexing", "file"))


def test_the_stages_are_those_that_a_search_is_timed_by() -> None:
    searcher = Searcher(
        [Bm25Retriever(), FaissRetriever(HashedWords())], processor=ClauseSplit(), reranker=OverlapReranker(), scope="pooled"
    )
    assert shown("search", "stage") == searcher.stages
    for option in shown("search", "option-name"):
        name, _, value = option.partition("=")
        assert Searcher([Bm25Retriever()], **{name: value.strip('"')}).config[name] == value.strip('"')


def test_a_benchmark_leaves_the_files_that_are_drawn(tmp_path: Path) -> None:
    report = write_run_files(benchmarker(tmp_path / "index", stage_folder=tmp_path / "run" / "stages").run(), tmp_path / "run")
    log_to_wandb(report, WandbSettings(mode="offline"), tmp_path / "run")
    drawn = shown("benchmark", "file")
    assert len(drawn) > 4
    assert [name for name in drawn if not (tmp_path / "run" / name).exists()] == []


def test_the_keys_and_commands_that_are_drawn_exist() -> None:
    keys = {*keys_of(BenchmarkConfig).values()}
    assert {key.partition(".")[0] for key in shown("benchmark", "key")} <= keys
    drawn = shown("benchmark", "command")
    commands = get_command(app).commands  # type: ignore[attr-defined]
    options = {option for parameter in commands["benchmark"].params for option in parameter.opts}
    assert {name for name in drawn if name.startswith("--")} <= options
    assert {name for name in drawn if not name.startswith("--")} == {"compare", "report", "diff"}
    assert set(drawn) - options <= set(commands)
