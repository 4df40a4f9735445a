"""Offline runs of Weights & Biases, as its own reader reads them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

LEET = [sys.executable, "-m", "wandb", "leet", "inspect", "--json"]


@cache
def records(run: Path) -> list[dict[str, Any]]:
    """What a run recorded, in order."""
    found = subprocess.run([*LEET, str(run)], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in found.stdout.splitlines()]


@cache
def overview(run: Path) -> dict[str, Any]:
    """State, config and summary of a run."""
    found = subprocess.run([*LEET, "--summary", str(run)], check=True, capture_output=True, text=True)
    loaded: dict[str, Any] = json.loads(found.stdout)
    return loaded


def history(run: Path) -> Iterator[dict[str, Any]]:
    """The rows of a run's history, without what W&B adds and without tables and pages."""
    for line in records(run):
        if line["type"] == "history":
            row = line["history"]["item"]
            yield {key: value for key, value in row.items() if not key.startswith("_") and "." not in key}


def table(run: Path, name: str) -> dict[str, dict[str, Any]]:
    """The rows of a table by the value of their first column."""
    (path,) = run.rglob(f"{name}_*.table.json")
    content = json.loads(path.read_text())
    return {row[0]: dict(zip(content["columns"], row, strict=True)) for row in content["data"]}
