"""No component that this project registers goes without a conformance class."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from soaking import Figures

from nlp_retrieval.core.components.registry import component_class, names
from nlp_retrieval.testing import ComponentRules

from . import (
    test_answerers,
    test_encoders,
    test_fetchers,
    test_fusions,
    test_loaders,
    test_processors,
    test_rerankers,
    test_retrievers,
    test_search_engines,
    test_verifiers,
)

MODULES = {
    "loaders": test_loaders,
    "processors": test_processors,
    "retrievers": test_retrievers,
    "rerankers": test_rerankers,
    "encoders": test_encoders,
    "fusions": test_fusions,
    "verifiers": test_verifiers,
    "search_engines": test_search_engines,
    "fetchers": test_fetchers,
    "answerers": test_answerers,
}


def classes_in(module: object) -> Iterator[type[ComponentRules]]:
    """What pytest collects of a module."""
    for name, found in vars(module).items():
        if name.startswith("Test") and isinstance(found, type) and issubclass(found, ComponentRules):
            yield found


@pytest.mark.parametrize("kind", sorted(MODULES))
def test_every_registered_component_has_a_conformance_class(kind: str, figures: Figures) -> None:
    checked = {rules.component for rules in classes_in(MODULES[kind])}
    ours = {cls for name in names(kind) if (cls := component_class(kind, name)).__module__.startswith("nlp_retrieval.")}
    assert ours, f"no {kind} are registered"
    n_rules = len({rule for rules in classes_in(MODULES[kind]) for rule in dir(rules) if rule.startswith("test_")})
    figures.add("Conformance", f"{kind} held to every rule", len(ours), len(ours & checked), f"{n_rules} rules each")
    assert ours <= checked, f"without a conformance class: {sorted(cls.__name__ for cls in ours - checked)}"
