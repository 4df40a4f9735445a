"""No component that a system registers goes without a conformance class."""

from __future__ import annotations

from types import ModuleType

import pytest
from conformance.checked import check_components, components_in
from soaking import Figures

from nlp_retrieval.core.components.registry import kinds

from .evidence.conformance import test_verifiers
from .hipporag.conformance import test_retrievers as test_hipporag
from .policy.conformance import test_loaders
from .policy.conformance import test_retrievers as test_policy

MODULES: dict[tuple[str, str], ModuleType] = {
    ("evidence", "verifiers"): test_verifiers,
    ("hipporag", "retrievers"): test_hipporag,
    ("policy", "loaders"): test_loaders,
    ("policy", "retrievers"): test_policy,
}
WITHOUT_RULES = {"fetchers", "index_types", "links", "search_engines", "searchers", "work_registers"}
"""Kinds that the kit has no class for."""


@pytest.mark.parametrize(("system", "kind"), MODULES)
def test_every_registered_component_has_a_conformance_class(system: str, kind: str, figures: Figures) -> None:
    check_components(kind, MODULES[system, kind], components_in(kind, f"nlp_retrieval.systems.{system}"), figures)


def test_no_kind_of_a_system_is_left_out() -> None:
    registered = {kind for kind in kinds() if components_in(kind, "nlp_retrieval.systems")}
    assert registered - WITHOUT_RULES == {kind for _, kind in MODULES}
