"""Pages of measurements: text with places to fill in, tables, and where and when it was measured."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from string import Template
from textwrap import fill

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.benchmarks.environment import describe_environment
from nlp_retrieval.evaluation.resampling import bootstrap_interval

_SHOWN = ("nlp_retrieval", "python", "numpy", "scipy", "bm25s", "faiss-cpu", "sentence-transformers", "torch", "dspy", "numba")


def page(text: str, **values: object) -> str:
    """Fill in a page, and wrap it anew; ``$date`` and ``$machine`` are known.

    Args:
        text: Markdown with ``$name`` for each value; bullets and paragraphs are wrapped, tables are not.
        values: by name.
    """
    known = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine()}
    blocks = Template(text).substitute(known | values).strip().split("\n\n")
    return "\n\n".join(block if block.startswith("|") else _wrapped(block) for block in blocks) + "\n"


def _wrapped(block: str) -> str:
    lines = []
    for part in filter(None, re.split(r"(?:^|\n)(?=- )", block)):
        indent = "  " * part.startswith("- ")
        text = " ".join(part.split())
        lines.append(fill(text, 125, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False))
    return "\n".join(lines)


def table(heads: Sequence[str], rows: Mapping[str, Sequence[str]]) -> str:
    """A table: a row's name, then its cells."""
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    return "\n".join(lines + [f"| {' | '.join([name, *cells])} |" for name, cells in rows.items()])


def machine() -> str:
    """The machine, and the versions of what was measured."""
    environment = describe_environment()
    hardware, versions = environment["hardware"], environment["versions"]
    memory = f"{hardware.get('memory_bytes', 0) / 2**30:.0f} GiB"
    known = ", ".join(f"{name} {versions[name]}" for name in _SHOWN if name in versions)
    return f"{hardware['cores']} cores ({hardware['cpu']}), {memory}; {known}"


def shown(values: NDArray[np.float64], families: list[str | None]) -> str:
    """A mean, and its interval over families."""
    low, high = bootstrap_interval(values, families, bounds=(0, 1))
    return f"{values.mean():.3f} [{low:.3f}, {high:.3f}]"


def words(measure: str) -> str:
    """A measure's name as it is read."""
    return measure.replace("_", " ")


def write_page(path: Path, text: str, kept: Sequence[str]) -> None:
    """Write a page anew, and keep sections that others wrote, by their titles, at its end."""
    before = path.read_text("utf-8")
    found = (re.search(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", before, re.MULTILINE | re.DOTALL) for title in kept)
    path.write_text("\n\n".join([text.strip(), *(one.group().strip() for one in found if one)]) + "\n", "utf-8")
