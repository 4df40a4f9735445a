"""The kit finds what it is there to find: a component that breaks a rule fails that rule's test, and is told by what."""

from __future__ import annotations

import ast
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest
from soaking import Figures

import nlp_retrieval.testing
from nlp_retrieval.testing import RetrieverRules

from .breaking import Broken, check_found, rules_of, unbroken
from .broken_components import BROKEN, broken_retrievers

KIT = Path(nlp_retrieval.testing.__file__).parent


class TestSoundRetriever(RetrieverRules):
    component = broken_retrievers.Words


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: f"{broken.component.__name__}-{broken.rule}")
def test_the_kit_finds_what_is_broken_and_says_it(broken: Broken, tmp_path: Path) -> None:
    check_found(broken, tmp_path)


def test_every_rule_has_a_component_that_breaks_it(figures: Figures) -> None:
    rules = rules_of(nlp_retrieval.testing)
    assert unbroken(rules, BROKEN) == set()
    figures.add("Conformance", "components that break a rule", len(BROKEN), len(BROKEN), f"all found; {len(rules)} rules")


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
