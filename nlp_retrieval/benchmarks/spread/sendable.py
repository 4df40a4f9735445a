"""Which components another process can make of their configuration, so that their stages can be computed there."""

from __future__ import annotations

from collections.abc import Iterable

from nlp_retrieval.core.components.component import Component, canonical_json, refuse_secrets, with_held
from nlp_retrieval.core.components.naming import registered
from nlp_retrieval.core.components.registry import build
from nlp_retrieval.encoders.base import BaseEncoder
from nlp_retrieval.encoders.workers.starting import names_gpu
from nlp_retrieval.errors import RetrievalError, first_line
from nlp_retrieval.retrievers.servers.retriever import ServerRetriever

__all__ = ["encoders_of", "reason_to_stay"]


def reason_to_stay(component: Component) -> str:
    """Return why the stages of a component are computed in this process; empty where another one can do it as well."""
    parts = list(with_held(component))
    if component.calls_per_query() != 0 or not all(getattr(part, "in_workers", True) for part in parts):
        return "it asks a server or a language model"
    if names_gpu(component):
        return "it names a GPU, which workers do not have"
    if any(isinstance(part, ServerRetriever) for part in parts):
        return "its data lies in a server"
    if any(part.local_only for part in parts):
        return "it was made as a manifest describes it"
    return _why_not_made(component, parts)


def _why_not_made(component: Component, parts: list[Component]) -> str:
    """Why the registry of another process would not make this component of its configuration; empty where it would."""
    for part in parts:
        if part.name not in registered(part.kind):
            return f"no package registers {type(part).__qualname__} among nlp_retrieval.{part.kind}"
    try:
        refuse_secrets(component, "sent to workers")
        made = build(component.kind, component.config)
    except RetrievalError as error:
        return first_line(error)
    same = made == component and list(map(type, with_held(made))) == list(map(type, parts))
    return "" if same else "the registry makes something else of its configuration"


def encoders_of(components: Iterable[Component]) -> set[str]:
    """Return the encoders that components hold whose vectors of queries are kept as stages, each as one text."""
    parts = [part for component in components for part in with_held(component)]
    return {canonical_json(part.config) for part in parts if isinstance(part, BaseEncoder)}
