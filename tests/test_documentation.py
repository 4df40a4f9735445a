"""What the documents say is run as written, and compared with what it says comes out."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module, resources
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

import nlp_retrieval
from nlp_retrieval.cli.app import app
from nlp_retrieval.core.components.registry import build

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", document, re.DOTALL)


def run(code: str) -> tuple[str, dict[str, object]]:
    names: dict[str, object] = {"__name__": "example"}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.parse(code), "README.md", "exec"), names)
    return printed.getvalue(), names


def test_the_searcher_in_the_readme_prints_what_the_readme_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo-output").mkdir()
    for name in ("corpus.jsonl", "claims.json"):
        with resources.as_file(resources.files("nlp_retrieval.demo") / name) as file:
            shutil.copy(file, tmp_path / "demo-output" / name)
    printed, _ = run(blocks(README, "python")[0])
    assert printed == blocks(README, "text")[0]


@pytest.mark.parametrize("name", ["UPDATES.md", "EVIDENCE.md", "POLICY.md", "NOTEBOOKS.md"])
def test_a_page_prints_what_it_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / name).read_text("utf-8")
    printed, _ = run(blocks(page, "python")[0])
    assert printed == blocks(page, "text")[0]


def test_a_csv_is_found_in_as_its_page_says(tmp_path: Path) -> None:
    (block,) = blocks((ROOT / "docs" / "DATA.md").read_text("utf-8"), "console")
    script = "\n".join(line.removeprefix("$ ") for line in block.splitlines())
    named = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-e", "-c", script], cwd=tmp_path, env=named, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "1  Kestrel" in done.stdout


def test_the_rerankers_of_their_page_can_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("CO_API_KEY", "JINA_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(variable, "not-a-key-0123")
    said = [yaml.safe_load(block) for block in blocks((ROOT / "docs" / "RERANKING.md").read_text("utf-8"), "yaml")]
    found = [one for content in said for one in content.get("searchers", {"": content}).values()]
    assert {build("rerankers", one["reranker"]).name for one in found} == {"http", "listwise", "mmr"}


def test_the_processor_of_the_page_about_plug_ins_works() -> None:
    _, names = run(blocks((ROOT / "docs" / "PLUGINS.md").read_text("utf-8"), "python")[0])
    processor = names["Lowercase"]()  # type: ignore[operator]
    assert processor.process(["A Claim"]) == [["a claim"]]
    assert processor.config == {"name": "lowercase"}


def test_the_retriever_in_the_contributing_guide_works_as_the_guide_says(tmp_path: Path) -> None:
    _, names = run(blocks(CONTRIBUTING, "python")[0])
    retriever = names["CommonWordsRetriever"]()  # type: ignore[operator]
    texts = ["red apples and green pears", "green pears", "yellow bananas", "green pears"]
    items = [nlp_retrieval.SearchableItem(item_id=str(row), content=text) for row, text in enumerate(texts)]
    searcher = nlp_retrieval.Searcher([retriever])
    searcher.index(items, tmp_path / "index")
    found = searcher.search(["green pears", "yellow"], k=2)
    assert [[hit.item.item_id for hit in hits] for hits in found] == [["0", "1"], ["2"]]


def test_the_configuration_in_the_readme_names_real_components_and_keys() -> None:
    settings = yaml.safe_load(blocks(README, "yaml")[0])
    from nlp_retrieval.benchmarks.config import _OPTIONAL, _REQUIRED, _SEARCHERS
    from nlp_retrieval.core.components.registry import build

    assert set(_REQUIRED) <= set(settings) <= {*_REQUIRED, *_SEARCHERS, *_OPTIONAL}
    for searcher in settings["searchers"].values():
        assert build("searchers", {"name": "searcher"} | searcher)


def test_every_command_that_the_documents_name_exists() -> None:
    commands = {command.name for command in app.registered_commands}
    groups = {group.name for group in app.registered_groups}
    documents = README + CONTRIBUTING + "".join(path.read_text("utf-8") for path in sorted((ROOT / "docs").glob("*.md")))
    named = set(re.findall(r"^(?:\$ )?nlp-retrieval (\w+)|`nlp-retrieval (\w+)", documents, re.MULTILINE))
    named = {name for pair in named for name in pair if name}
    assert named <= commands | groups
    assert groups == {"evidence", "hipporag"}
    assert {
        "demo", "index", "add", "delete", "compact", "verify", "search", "benchmark", "compare", "diff", "report", "rerun",
        "serve", "tune", "optimize", "components", "answer", "ask", "extract", "distill",
    } == commands  # fmt: skip
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"\$ make ([\w-]+)", README + CONTRIBUTING)) <= targets


def documented(name: str) -> str:
    """The docstring of a public name; that of a type alias is the text below it."""
    value = getattr(nlp_retrieval, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        return inspect.getdoc(value) or ""
    body = ast.parse(inspect.getsource(import_module(nlp_retrieval._modules()[name]))).body
    (below,) = [
        after.value.value
        for before, after in pairwise(body)
        if isinstance(before, ast.Assign) and ast.unparse(before.targets[0]) == name
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
    ]
    return str(below)


def test_the_list_of_public_names_is_the_documented_one() -> None:
    lines = ["# Public names", "", "Import them from `nlp_retrieval`.", "", "| name | what it is |", "|---|---|"]
    for name in nlp_retrieval.__all__:
        if name != "__version__":
            summary = documented(name).partition("\n\n")[0].replace("\n", " ")
            lines.append(f"| `{name}` | {summary} |")
    expected = "\n".join(lines) + "\n"
    written = (ROOT / "docs" / "API.md").read_text("utf-8")
    assert written == expected, f"docs/API.md should be:\n{expected}"
