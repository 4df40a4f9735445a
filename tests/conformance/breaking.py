"""How components that break a rule are told to the kit's own test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nlp_retrieval.core.components.component import Component
from nlp_retrieval.testing import ComponentRules


@dataclass(frozen=True)
class Broken:
    """A component, and the rule that it breaks.

    Args:
        component: sound but for one thing.
        rules: a conformance class of it.
        rule: the test that has to fail.
        words: that stand in the failure's message, beside the rule and the component.
    """

    component: type[Component]
    rules: type[ComponentRules]
    rule: str
    words: str


BROKEN: list[Broken] = []


def breaks(rules: type[ComponentRules], rule: str, words: str = "") -> Callable[[type], type]:
    """Note that a component breaks a rule; its registry name is that of the class."""
    assert callable(getattr(rules, rule))

    def noted(component: type) -> type:
        component.name = component.__name__
        BROKEN.append(Broken(component, type(f"Test{component.__name__}", (rules,), {"component": component}), rule, words))
        return component

    return noted


def held_to(broken: Broken, folder: Path) -> None:
    """Run the rule that a component breaks, as pytest would."""
    rules = type(broken.rules.__name__, (broken.rules,), {"folder": folder, "kept": {}})
    rules().prepare()
    getattr(rules(), broken.rule)()
