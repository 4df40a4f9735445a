"""Markdown documents of measurements: paragraphs that wrap, tables, and where and when it was measured."""

from __future__ import annotations

from textwrap import fill

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.benchmarks.environment import describe_environment
from nlp_retrieval.evaluation.bootstrap import bootstrap_interval

_SHOWN = ("nlp_retrieval", "python", "numpy", "scipy", "bm25s", "faiss-cpu", "sentence-transformers", "torch", "dspy", "numba")


def document(*parts: str | list[str]) -> str:
    """Put paragraphs, bullets and tables together, wrapped; a list is a table's lines."""
    text = ""
    for part in parts:
        bullet = isinstance(part, str) and part.startswith("- ")
        if text:
            text += "\n" if bullet and text.rsplit("\n\n", 1)[-1].startswith("- ") else "\n\n"
        if isinstance(part, list):
            text += "\n".join(part)
        else:
            indent = "  " * bullet
            text += fill(" ".join(part.split()), 125, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return text


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
