"""The kit of evidence finds what it is there to find, as that of the library does."""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance.breaking import Broken, broken_in, check_found, rules_of, unbroken
from soaking import Figures

from nlp_retrieval import evidence

from . import broken_verifiers

BROKEN = broken_in(broken_verifiers)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: f"{broken.component.__name__}-{broken.rule}")
def test_the_kit_finds_what_is_broken_and_says_it(broken: Broken, tmp_path: Path) -> None:
    check_found(broken, tmp_path)


def test_every_rule_has_a_component_that_breaks_it(figures: Figures) -> None:
    of_all = {rule for rule in rules_of(evidence) if rule.startswith("ComponentRules.")}
    rules = rules_of(evidence) - of_all
    assert unbroken(rules, BROKEN) == set()
    figures.add("Conformance", "components of evidence that break a rule", len(BROKEN), len(BROKEN), f"{len(rules)} rules")
