"""The kit finds what it is there to find: a component that breaks a rule fails that rule's test, and is told by what."""

from __future__ import annotations

import ast
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest

import nlp_retrieval.testing

from .breaking import Broken, check_found
from .broken_components import BROKEN

KIT = Path(nlp_retrieval.testing.__file__).parent


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: f"{broken.component.__name__}-{broken.rule}")
def test_the_kit_finds_what_is_broken_and_says_it(broken: Broken, tmp_path: Path) -> None:
    check_found(broken, tmp_path)


def test_the_kit_needs_nothing_but_pytest_and_the_base_install() -> None:
    base = {"numpy", "pydantic", "pyarrow", "yaml"}
    assert {one.lower() for one in ("numpy", "pydantic")} <= {
        line.split(">")[0].split(";")[0].strip().lower() for line in requires("nlp_retrieval") or []
    }
    for file in KIT.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                top = name.partition(".")[0]
                assert top in {"pytest", "nlp_retrieval", "__future__", *base} | sys.stdlib_module_names, f"{file.name}: {name}"
