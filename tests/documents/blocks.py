"""The fenced blocks of the documents, and how each kind is run.

A block that cannot be run says so in a comment before it, which pages do not show: ``<!-- not run: needs Docker -->``.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shlex
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from nlp_retrieval.benchmarks.settings import read_benchmark_config
from nlp_retrieval.cli.app import main

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "docs" / "site" / "index.md",
    ROOT / "bench" / "README.md",
]
COMMAND = "nlp-retrieval "
LANGUAGES = ("python", "console", "sh", "yaml")
"""What is run; other blocks are what is printed, or files of other tools."""


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    language: str
    content: str
    not_run: str


def blocks(document: str) -> list[Block]:
    """Every block of a document, in order; the examples of a table are one, too."""
    found = re.findall(
        r"^(?:<!-- not run: ([^\n]+) -->\n+)?```([\w{}-]*)[^\n]*\n(.*?)^```$",
        with_examples(document),
        re.DOTALL | re.MULTILINE,
    )
    return [Block(language, content, reason) for reason, language, content in found]


def with_examples(document: str) -> str:
    """A document with what the cells of columns called "example" hold, as a block of Python after each table."""
    lines: list[str] = []
    column, examples = None, list[str]()
    for line in [*document.splitlines(), ""]:
        cells = [cell.strip() for cell in line.split("|")[1:-1]] if line.startswith("|") else []
        if "example" in cells:
            column = cells.index("example")
        elif cells and column is not None:
            examples += re.findall("^`(.+)`$", cells[column])
        elif column is not None:
            lines += ["", "```python", *examples, "```", ""]
            column, examples = None, []
        lines.append(line)
    return "\n".join(lines)


def statements(script: str) -> Iterator[str]:
    """The commands of a script, each with its continued lines and its here-document."""
    lines = iter(script.splitlines(keepends=True))
    for line in lines:
        statement = line
        while statement.endswith("\\\n"):
            statement += next(lines)
        if (opened := re.search(r"<<'(\w+)'", statement)) is not None:
            for following in lines:
                statement += following
                if following.strip() == opened[1]:
                    break
        if statement.strip():
            yield statement


def run_command(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the command line here, where the models are loaded once."""
    monkeypatch.setattr(sys, "argv", words)
    code: object = None
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    assert not code, f"{shlex.join(words)} ended with {code}"


def run_script(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run commands as a shell does; with a prompt before each, or without."""
    plain = "\n".join(re.sub(r"^\$ (?:\.venv/bin/)?", "", line) for line in script.splitlines()) + "\n"
    for statement in statements(plain):
        if statement.startswith(COMMAND):
            run_command(shlex.split(statement.replace("\\\n", " "), comments=True), monkeypatch)
        else:
            subprocess.run(["sh", "-e", "-c", statement], check=True)


def run_python(code: str, names: dict[str, object]) -> str:
    """Run a block with the names of those before it, and return what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.parse(code), "document", "exec"), names)
    return printed.getvalue()


def read_settings(text: str, folder: Path) -> None:
    """Read a piece of a configuration as the command that it is for reads the whole: every name and value has to be known."""
    settings = yaml.safe_load(textwrap.dedent(text))
    file = folder / "fragment.yaml"
    if "profile" in settings:
        from nlp_retrieval.systems.policy.config import StudyConfig

        file.write_text(yaml.safe_dump(settings), "utf-8")
        StudyConfig.read(file)
        return
    settings = settings.get("searcher", settings)
    if {"retrievers", "reranker"} & set(settings):
        settings = {"searchers": {"one": {"retrievers": ["bm25"]} | settings}}
    least = {
        "corpus": {"loader": "jsonl", "path": "corpus.jsonl"},
        "queries": {"loader": "beir", "path": "."},
        "index": "index",
    }
    searchers = {} if "grid" in settings else {"searchers": {"one": {"retrievers": ["bm25"]}}}
    file.write_text(yaml.safe_dump(least | searchers | settings, sort_keys=False), "utf-8")
    read_benchmark_config(file)


def lines_of(text: str) -> list[str]:
    """Lines without what differs from machine to machine: times, sizes, similarities, and the marks that times decide."""
    text = re.sub(r"(dense\.score: .*-> )[\d.]+", r"\g<1>0.0000", text)  # a similarity that lost a last 0 looks like a measure
    plain = re.sub(r"(?<![\d.])(?!\d\.\d{3}(?!\d))\d[\d.,]*", "0", re.sub("[◆◇─━]", " ", text))
    return [" ".join(line.split()) for line in plain.splitlines() if line.strip()]
