"""Conformance classes of configurations, and which registered components have one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from soaking import Figures

from nlp_retrieval.core.components.registry import component_class, names
from nlp_retrieval.testing import ComponentRules


def configured(
    rules: type[ComponentRules], component: type, make: Callable[[Any], object] | None = None, **attributes: object
) -> type:
    """Return a conformance class of one configuration; by default that without arguments."""
    made = {} if make is None else {"make": make}
    return type("Configured", (rules,), {"component": component} | made | attributes)


def classes_in(module: ModuleType) -> Iterator[type[ComponentRules]]:
    """Yield what pytest collects of a module."""
    for name, found in vars(module).items():
        if name.startswith("Test") and isinstance(found, type) and issubclass(found, ComponentRules):
            yield found


def components_in(kind: str, package: str) -> set[type]:
    """Return the registered components of a kind that a package defines."""
    classes = [component_class(kind, name) for name in names(kind)]
    return {cls for cls in classes if cls.__module__.startswith(f"{package}.")}


def check_components(kind: str, module: ModuleType, components: set[type], figures: Figures) -> None:
    """Check that a module has a conformance class for each of these components."""
    checked = {rules.component for rules in classes_in(module)}
    assert components, f"no {kind} are registered"
    n_rules = len({rule for rules in classes_in(module) for rule in dir(rules) if rule.startswith("test_")})
    figures.add(
        "Conformance", f"{kind} held to every rule", len(components), len(components & checked), f"{n_rules} rules each"
    )
    assert components <= checked, f"without a conformance class: {sorted(cls.__name__ for cls in components - checked)}"
