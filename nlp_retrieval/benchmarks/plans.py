"""The plan of a benchmark, shown before it runs: nothing is built, loaded, downloaded, asked or written for it.

One item of the corpus is read, to report a missing corpus now. An index counts as present if the directory holds it for the
corpus stored there; whether that is still the benchmark's corpus is known when it runs.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from nlp_retrieval.benchmarks.entrants import TrecRun
from nlp_retrieval.benchmarks.grid import labels_of
from nlp_retrieval.benchmarks.settings import BenchmarkSettings
from nlp_retrieval.core.components.component import Component, Config, canonical_json, held_components
from nlp_retrieval.core.files.frames import items_of
from nlp_retrieval.core.files.opening import expanded
from nlp_retrieval.core.index.generation import Manifest, read_manifest
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.encoders.models import find_model
from nlp_retrieval.errors import ItemError, RetrievalError
from nlp_retrieval.text.printing import counted, printable

P = TypeVar("P", bound=Component)

IndexState = Literal["found", "to build", "not known"]
"""Not known if its model is not on this machine."""


@dataclass(frozen=True)
class Plan:
    """By name, states of indexes and the most language-model calls (None: unknown); models and runs not on this machine."""

    settings: BenchmarkSettings
    indexes: dict[str, IndexState]
    calls: dict[str, int | None]
    missing: list[str]

    def lines(self, *, whole: bool = False) -> Iterator[str]:
        """Yield the plan as lines of text; ``whole`` names its configurations too."""
        settings = self.settings
        counts = f"{counted(len(settings.searchers), 'configuration')}, {counted(len(settings.queries), 'query', 'queries')}"
        yield printable(f"plan: {counts}, by {settings.main_measure}, baseline {settings.baseline}")
        states = ", ".join(f"{name}: {state}" for name, state in self.indexes.items())
        yield printable(f"indexes in {settings.index_path}: {states or 'none'}")
        for name, calls in self.calls.items():
            most = "not known" if calls is None else f"at most {calls:,}; answers on disk make it fewer, retries more"
            yield printable(f"language-model calls, {name}: {most}")
        if self.missing:
            yield printable(f"not on this machine: {', '.join(self.missing)}")
        for name in settings.searchers if whole else ():
            yield f"  {printable(name)}{' *' if name == settings.baseline else ''}"


def plan_of(settings: BenchmarkSettings) -> Plan:
    """Return the plan of a benchmark."""
    if next(items_of(settings.loader), None) is None:
        raise ItemError("the corpus is empty: the loader gave no items; check its path and its filters")
    searchers = [one for one in settings.searchers.values() if isinstance(one, Component) and not isinstance(one, TrecRun)]
    retrievers: dict[str, BaseRetriever] = {}
    for part in {canonical_json(part.config): part for one in searchers for part in _parts_of(one)}.values():
        if isinstance(part, BaseRetriever) and part.has_index:
            retrievers.setdefault(canonical_json(_identity(part) or _index_parameters(part)), part)
    asking = {key: part for searcher in searchers for key, part in _asking_parts(searcher).items()}
    n_asked = len({query.text for query in settings.queries if not has_no_words(query.text)})
    calls: dict[str, int | None] = {}
    for title, part in _titled(asking.values()):
        each, before = part.calls_per_query(), calls.get(title, 0)
        calls[title] = None if each is None or before is None else before + each * n_asked
    held: list[Component] = [one for one in settings.searchers.values() if isinstance(one, Component)]
    if settings.answerer is not None:
        held.append(settings.answerer)
        if (each := settings.answerer.calls_per_query()) != 0:  # each configuration gives it other passages
            n_calls = None if each is None else each * n_asked * len(settings.searchers)
            calls[f"answers by {settings.answerer.name}"] = n_calls
    manifest = read_manifest(Path(settings.index_path or ""))
    states = {title: _state(part, manifest) for title, part in _titled(retrievers.values())}
    return Plan(settings, states, calls, list(dict.fromkeys(model for part in held for model in _missing(part))))


def _titled(parts: Iterable[P]) -> list[tuple[str, P]]:
    every = list(parts)
    return list(zip(labels_of([without_secrets(part.config) for part in every]), every, strict=True))


def _asking_parts(searcher: Component) -> dict[str, Component]:
    """Return the parts of a searcher that call language models, by a text that is equal for parts with the same questions."""
    parts: list[Component] = [searcher]
    if isinstance(searcher, Searcher):
        parts = [*filter(None, [searcher.processor]), *searcher.retrievers.values(), *searcher.rerankers.values()]
    return {
        canonical_json([part.config, searcher.config] if isinstance(part, BaseReranker) else part.config): part
        for part in parts  # what a reranker is asked depends on its input
        if part.calls_per_query() != 0
    }


def _identity(retriever: BaseRetriever) -> Config | None:
    """The identity of an index, or None if it needs a model that is not on this machine."""
    with suppress(RetrievalError):
        return None if any(_missing(retriever)) else retriever.identity
    return None


def _index_parameters(component: Component) -> Config:
    plain = component.config
    indexed = {key: value for key, value in component._arguments.items() if key not in component.search_only}
    return {"name": component.name} | {
        key: _index_parameters(value) if isinstance(value, Component) else plain[key] for key, value in indexed.items()
    }


def _state(retriever: BaseRetriever, manifest: Manifest | None) -> IndexState:
    if manifest is None:
        return "to build"
    identity = _identity(retriever)
    if identity is None:
        return "not known"
    return "found" if manifest.retriever(identity) is not None else "to build"


def _parts_of(component: Component) -> Iterator[Component]:
    """Yield a component and all its parts; a part used several times is yielded several times."""
    yield component
    for part in held_components(component):
        yield from _parts_of(part)
    if isinstance(component, BaseRetriever):
        for retriever in component.parts():
            yield from _parts_of(retriever)


def _missing(component: Component) -> Iterator[str]:
    """Yield the models and runs of a component and its parts that are not on this machine; none is loaded."""
    for part in _parts_of(component):
        if isinstance(part, TrecRun) and not os.path.exists(expanded(part.path)):  # noqa: PTH110 -- Path.exists may raise
            yield part.path
        model, pipeline = getattr(part, "model", None), getattr(part, "spacy_pipeline", None)
        if isinstance(model, str) and part.kind in {"encoders", "rerankers"} and not _is_here(model, part):
            yield model
        package = isinstance(pipeline, str) and pipeline.isidentifier() and importlib.util.find_spec(pipeline) is not None
        if isinstance(pipeline, str) and not package and not expanded(pipeline).is_dir():
            yield pipeline


def _is_here(model: str, part: Component) -> bool:
    with suppress(RetrievalError):
        return expanded(model).is_dir() or bool(find_model(model, getattr(part, "revision", None), local_only=True))
    return False
