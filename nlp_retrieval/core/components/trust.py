"""Limits on manifests: they may use the settings that components list, and nothing else without the user's consent.

An index and a run are data from possibly unknown sources. Their manifests describe components, and so decide how texts are
searched; they must not run code, import a package, read or write a file of their choice, or reach the network. Anything
that is not in the ``manifest_may_set`` of a component of this package needs the user's trust, after a message that lists what
it would do.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from nlp_retrieval.core.components.component import with_held
from nlp_retrieval.core.components.registry import ComponentT, PlannedComponent
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import RetrievalWarning, UntrustedError


def asked_for(plan: PlannedComponent) -> Iterator[str]:
    """Yield, as phrases, what a component would do that its manifest is not allowed to ask for.

    Args:
        plan: plan of the component, by :func:`nlp_retrieval.core.components.registry.plan` with ``only_own``.
    """
    if plan.cls is None:
        yield f"{plan.where}: load {plan.name!r} from the package {plan.package}, with {without_secrets(plan.fields)}"
        return
    rules = vars(plan.cls).get("manifest_may_set", {})  # a subclass inherits no trust
    for key, value in plan.fields.items():
        parts = list(_plans_in(value))
        for part in parts:
            yield from asked_for(part)
        rule = rules.get(key)
        phrase = f"set it to {value!r}" if rule is None else None if parts else rule(value)
        if phrase is not None:
            yield f"{plan.where}.{key}: {without_secrets(phrase)}"


def require_trust(asked: Iterable[str], source: str, cure: str, *, trust: bool) -> None:
    """Raise an error if a manifest asks for more than it is allowed, unless the user trusts it.

    Args:
        asked: the requests that are not allowed; see :func:`asked_for`.
        source: the manifest, for the message.
        cure: an alternative to trusting it, for the message; may be empty.
        trust: whether the user trusts it; then a warning lists what is asked for.

    Raises:
        UntrustedError: it asks for more, and is not trusted.
    """
    phrases = list(asked)
    if not phrases:
        return
    listed = "; ".join(phrases)
    if not trust:
        raise UntrustedError(
            f"{source} asks for more than a manifest may decide: {listed}. If you know who made it and want that, say so with "
            f"--trust (in Python: trust=True){cure}"
        )
    warnings.warn(f"{source} is trusted: {listed}", RetrievalWarning, stacklevel=3)


def build_from_manifest(cls: type[ComponentT], plan: PlannedComponent, *, trust: bool) -> ComponentT:
    """Create a component that a manifest describes; without trust, it looks for models only on this machine.

    Raises:
        ConfigurationError: see :meth:`nlp_retrieval.core.components.registry.PlannedComponent.make_as`.
    """
    component = plan.make_as(cls)
    if not trust:
        for part in with_held(component):
            part.local_only = True
    return component


def _plans_in(value: Any) -> Iterator[PlannedComponent]:
    if isinstance(value, PlannedComponent):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _plans_in(part)
