"""The documents name what there is: components, commands, public names."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from importlib.metadata import entry_points
from itertools import pairwise
from pathlib import Path

from click import Context
from documents.blocks import blocks, run_python
from typer.main import get_command

import nlp_retrieval
from nlp_retrieval._public_names import ROOMS, modules_of
from nlp_retrieval.cli.app import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def defined_by(document: str) -> dict[str, object]:
    """What the first block of Python defines."""
    names: dict[str, object] = {"__name__": "example"}
    run_python(next(block.content for block in blocks(document) if block.language == "python"), names)
    return names


def test_the_processor_of_the_page_about_plug_ins_works() -> None:
    names = defined_by((ROOT / "docs" / "PLUGINS.md").read_text("utf-8"))
    processor = names["Lowercase"]()  # type: ignore[operator]
    assert processor.process(["A Claim"]) == [["a claim"]]
    assert processor.config == {"name": "lowercase"}


def test_the_retriever_in_the_contributing_guide_works_as_the_guide_says(tmp_path: Path) -> None:
    names = defined_by(CONTRIBUTING)
    retriever = names["CommonWordsRetriever"]()  # type: ignore[operator]
    texts = ["red apples and green pears", "green pears", "yellow bananas", "green pears"]
    items = [nlp_retrieval.SearchableItem(item_id=str(row), content=text) for row, text in enumerate(texts)]
    searcher = nlp_retrieval.Searcher([retriever])
    searcher.index(items, tmp_path / "index")
    found = searcher.search(["green pears", "yellow"], k=2)
    assert [[hit.item.item_id for hit in hits] for hits in found] == [["0", "1"], ["2"]]


def test_every_command_that_the_documents_name_exists() -> None:
    whole = get_command(app)
    listed = set(whole.list_commands(Context(whole)))
    documents = README + CONTRIBUTING + "".join(path.read_text("utf-8") for path in sorted((ROOT / "docs").glob("*.md")))
    named = set(re.findall(r"^(?:\$ )?nlp-retrieval (\w+)|`nlp-retrieval (\w+)", documents, re.MULTILINE))
    named = {name for pair in named for name in pair if name}
    assert named <= listed
    assert {
        "demo", "index", "add", "delete", "compact", "verify", "search", "benchmark", "compare", "diff", "report", "rerun",
        "serve", "tune", "optimize", "components", "answer", "ask", "extract", "distill",
        "evidence", "hipporag", "hover", "policy",
    } == listed  # fmt: skip
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"\$ make ([\w-]+)", README + CONTRIBUTING)) <= targets


def documented(name: str) -> str:
    """The docstring of a public name; that of a type alias is the text below it."""
    value = getattr(nlp_retrieval, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        return inspect.getdoc(value) or ""
    body = ast.parse(inspect.getsource(import_module(modules_of("nlp_retrieval")[name]))).body
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


def test_what_the_documents_import_is_public() -> None:
    packages = {f"nlp_retrieval.{room}": f"nlp_retrieval.{room}" for room in ROOMS} | {"nlp_retrieval": "nlp_retrieval"}
    packages |= {f"nlp_retrieval.{entry.name}": entry.value for entry in entry_points(group="nlp_retrieval.systems")}
    public = {shown: set(modules_of(package)) for shown, package in packages.items()}
    integrations = Path(nlp_retrieval.__file__).parent / "integrations"
    others = ["nlp_retrieval.testing", *(f"nlp_retrieval.integrations.{path.stem}" for path in integrations.glob("[a-z]*.py"))]
    public |= {module: set(import_module(module).__all__) for module in others}
    found = [
        f"{document.name}: from {module} import {name}"
        for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
        for module, names in re.findall(r"from (nlp_retrieval[\w.]*) import (\([^)]*\)|[^\n]*)", document.read_text("utf-8"))
        for name in re.findall(r"\w+", names.partition("#")[0])
        if name not in public.get(module, set())
    ]
    assert found == []
