"""The list of classes in ``docs/SECURITY.md`` names tests that are there, for every class."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "SECURITY.md").read_text("utf-8")
CLASSES = dict(re.findall(r"^- ([^:]+): (.+)$", PAGE.partition("## Thirty-one ways")[2], re.MULTILINE))
NAMED = sorted(set(re.findall(r"`((?:tests|bench)/[^`]+)`", PAGE)))


def test_there_are_thirty_one_classes_and_each_is_covered_or_cannot_arise() -> None:
    assert len(CLASSES) == 31
    for name, covered in CLASSES.items():
        assert re.search(r"`tests/", covered) or "Cannot arise" in covered, name


@pytest.mark.parametrize("named", NAMED)
def test_every_test_that_is_named_is_there(named: str) -> None:
    path, _, function = named.partition("::")
    if function:
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        assert function in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    else:
        assert (ROOT / path).is_file() or (ROOT / path).is_dir()


def test_every_family_of_attacks_is_named() -> None:
    families = {path.name for path in Path(__file__).parent.glob("test_*.py")} - {Path(__file__).name}
    unnamed = {name for name in families if f"tests/attacks/{name}" not in PAGE}
    assert unnamed == set()
