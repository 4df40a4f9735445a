"""The documents name what there is: components, commands, public names."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from importlib.metadata import entry_points
from itertools import pairwise
from pathlib import Path

import pytest
from documents.blocks import blocks, run_python

from nlp_retrieval._public_names import ROOMS, modules_of

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def defined_by(document: str) -> dict[str, object]:
    """What the first block of Python defines."""
    names: dict[str, object] = {"__name__": "example"}
    run_python(next(block.content for block in blocks(document) if block.language == "python"), names)
    return names


def test_the_processor_of_the_page_about_plug_ins_works() -> None:
    names = defined_by((ROOT / "docs" / "OWN_COMPONENT.md").read_text("utf-8"))
    processor = names["Lowercase"]()  # type: ignore[operator]
    assert processor.process(["A Claim"]) == [["a claim"]]
    assert processor.config == {"name": "lowercase"}


def test_the_reranker_and_the_loader_of_the_page_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = blocks((ROOT / "docs" / "OWN_COMPONENT.md").read_text("utf-8"))
    names: dict[str, object] = {"__name__": "example"}
    printed = [
        run_python(block.content, names)
        for block in page
        if block.language == "python" and ("SharedNumbers" in block.content or "TextFolder" in block.content)
    ]
    assert printed == ["", "", "b\n"]


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).lower()).replace(" ", "-") for title in titles
    }


def test_links_between_the_pages_lead_somewhere() -> None:
    broken = []
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if "://" in link or (target.exists() and (not anchor or target.suffix != ".md" or anchor in headings(target))):
                continue
            broken.append(f"{page.name}: {link}")
    assert broken == []


def documented(package: str, name: str) -> str:
    """The docstring of a public name; that of a constant or a type alias is the text below it, if there is one."""
    value = inspect.unwrap(getattr(import_module(package), name))
    if inspect.ismodule(value):
        return f"The package `{name}`; an error with advice if it is not installed."
    if inspect.isclass(value) or (inspect.isfunction(value) and value.__name__ == name):
        return inspect.getdoc(value) or ""
    body = ast.parse(inspect.getsource(import_module(modules_of(package)[name]))).body
    below = [
        after.value.value
        for before, after in pairwise(body)
        if isinstance(before, ast.Assign | ast.AnnAssign)
        if ast.unparse(before.targets[0] if isinstance(before, ast.Assign) else before.target) == name
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
    ]
    return str(*below)


def listed(package: str) -> list[str]:
    """The public names of a package as a list, by the part of it that defines them."""
    parts: dict[str, list[str]] = {}
    for name, module in sorted(modules_of(package).items()):
        if name != "__version__":
            part = module.removeprefix(f"{package}.").partition(".")[0]
            parts.setdefault(part, []).append(f"`{name}`")
    return ["", *(f"- {part}: {', '.join(parts[part])}" for part in sorted(parts))]


def test_the_list_of_public_names_is_the_documented_one() -> None:
    packages = {"nlp_retrieval": "nlp_retrieval"}
    packages |= {f"nlp_retrieval.{system.name}": system.value for system in sorted(entry_points(group="nlp_retrieval.systems"))}
    packages |= {f"nlp_retrieval.{room}": f"nlp_retrieval.{room}" for room in ROOMS}
    lines = [
        "# Public names",
        "",
        "`nlp_retrieval` has what you compose, search and compare with; `.evidence`, `.hipporag`, `.hover` and `.policy` are",
        "systems; other packages serve components of your own. `help(name)` and `make docs` describe each name.",
    ]
    for shown, package in packages.items():
        assert [name for name in modules_of(package) if name != "__version__" and not documented(package, name)] == []
        lines += ["", f"## {shown}", *listed(package)]
    expected = "\n".join(lines) + "\n"
    written = (ROOT / "docs" / "API.md").read_text("utf-8")
    assert written == expected, f"docs/API.md should be:\n{expected}"
