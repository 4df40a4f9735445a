"""How components that break a rule are told to the kit's own test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from nlp_retrieval.core.components.component import Component
from nlp_retrieval.testing import BrokenRuleError, ComponentRules


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


_NOTED: list[Broken] = []


def breaks(rules: type[ComponentRules], rule: str, words: str = "") -> Callable[[type], type]:
    """Note that a component breaks a rule; its registry name is that of the class."""
    assert callable(getattr(rules, rule))

    def noted(component: type) -> type:
        component.name = component.__name__
        _NOTED.append(Broken(component, type(f"Test{component.__name__}", (rules,), {"component": component}), rule, words))
        return component

    return noted


def broken_in(*modules: ModuleType) -> list[Broken]:
    """Return the components of these modules that break a rule."""
    names = {module.__name__ for module in modules}
    return [broken for broken in _NOTED if broken.component.__module__ in names]


def check_found(broken: Broken, folder: Path) -> None:
    """Check that the kit finds what is broken, and says it."""
    with pytest.raises(BrokenRuleError) as caught:
        held_to(broken, folder)
    told = str(caught.value)
    assert told.startswith("rule broken: ")
    assert broken.component.__name__ in told
    assert broken.words in told


def held_to(broken: Broken, folder: Path) -> None:
    """Run the rule that a component breaks, as pytest would."""
    rules = type(broken.rules.__name__, (broken.rules,), {"folder": folder, "kept": {}})
    rules().prepare()
    getattr(rules(), broken.rule)()
