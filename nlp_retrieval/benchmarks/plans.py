"""The plan of a benchmark, shown before it runs: nothing is built, loaded, downloaded, asked or written for it.

One item of the corpus is read, to report a missing corpus now. An index counts as present if the directory holds it for the
corpus stored there; whether that is still the benchmark's corpus is known when it runs.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from nlp_retrieval.benchmarks.entrants import TrecRun
from nlp_retrieval.benchmarks.grid import Grid, labels_of
from nlp_retrieval.benchmarks.settings import BenchmarkSettings
from nlp_retrieval.core.components.component import Component, Config, canonical_json, held_components
from nlp_retrieval.core.files.opening import expanded
from nlp_retrieval.core.index.build import checked_items
from nlp_retrieval.core.index.generation import Manifest, fingerprint_of, read_manifest
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.encoders.models import CARRIED_BY_PACKAGES
from nlp_retrieval.errors import ItemError, RetrievalError
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.processors.with_model import CompiledProcessor

IndexState = Literal["found", "to build", "not known"]
"""Not known if its model is not on this machine."""


class Model(NamedTuple):
    """A model that a component needs, and where it is; None if it is not on this machine."""

    name: str
    kind: str
    source: str | None


@dataclass(frozen=True)
class Plan:
    """Plan of a benchmark: states of indexes and the most calls of language models by name; None if unknown."""

    settings: BenchmarkSettings
    grid: Grid | None
    indexes: dict[str, IndexState]
    models: list[Model]
    calls: dict[str, int | None]

    @property
    def language_model_calls(self) -> int | None:
        """All calls together, at most; None if some are unknown."""
        known = [calls for calls in self.calls.values() if calls is not None]
        return sum(known) if len(known) == len(self.calls) else None


def plan_of(settings: BenchmarkSettings, grid: Grid | None = None) -> Plan:
    """Return the plan of a benchmark, some of whose configurations may come from a grid."""
    if next(checked_items(settings.loader), None) is None:
        raise ItemError("the corpus is empty: the loader gave no items; check its path and its filters")
    searchers = [searcher for searcher in settings.searchers.values() if isinstance(searcher, Component)]
    searchers = [searcher for searcher in searchers if not isinstance(searcher, TrecRun)]
    retrievers: dict[str, BaseRetriever] = {}
    for part in {canonical_json(part.config): part for searcher in searchers for part in components_in(searcher)}.values():
        if isinstance(part, BaseRetriever) and part.has_index:
            retrievers.setdefault(canonical_json(_identity(part) or _index_parameters(part)), part)
    asking = {key: part for searcher in searchers for key, part in _asking_parts(searcher).items()}
    n_asked = len({query.text for query in settings.queries if not has_no_words(query.text)})
    calls: dict[str, int | None] = {}
    for title, part in zip(_titles(asking.values()), asking.values(), strict=True):
        each, before = part.calls_per_query(), calls.get(title, 0)
        calls[title] = None if each is None or before is None else before + each * n_asked
    held: list[Component] = [*searchers]
    if settings.answerer is not None:
        held.append(settings.answerer)
        if (each := settings.answerer.calls_per_query()) != 0:  # each configuration gives it other passages
            n_calls = None if each is None else each * n_asked * len(settings.searchers)
            calls[f"answers by {settings.answerer.name}"] = n_calls
    manifest = read_manifest(settings.index_folder)
    states = {
        title: _state(part, manifest) for title, part in zip(_titles(retrievers.values()), retrievers.values(), strict=True)
    }
    models = list(dict.fromkeys(model for component in held for model in models_in(component)))
    return Plan(settings, grid, states, models, calls)


def _titles(parts: Iterable[Component]) -> list[str]:
    return labels_of([without_secrets(part.config) for part in parts])


def _asking_parts(searcher: Component) -> dict[str, Component]:
    """Return the parts of a searcher that call language models, by a text that is equal for parts with the same questions."""
    parts: list[Component] = [searcher]
    if isinstance(searcher, Searcher):
        parts = [*filter(None, [searcher.processor]), *searcher.retrievers.values(), *searcher.rerankers.values()]
    asking: dict[str, Component] = {}
    for part in parts:
        if part.calls_per_query() == 0:
            continue
        asked: object = part.config
        if isinstance(part, BaseReranker):  # its input decides
            asked = [part.config, searcher.config]
        elif isinstance(part, CompiledProcessor):  # and not how many phrases are kept
            program = part.compiled.fingerprint if part.compiled is not None else None
            asked = {"name": part.name, "lm": part.lm.config, "program": program}
        asking[canonical_json(asked)] = part
    return asking


def _identity(retriever: BaseRetriever) -> Config | None:
    """The identity of an index, or None if it needs a model that is not on this machine."""
    if any(model.source is None for model in models_in(retriever)):
        return None
    try:
        return retriever.identity
    except RetrievalError:
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
    return "found" if manifest.retriever(fingerprint_of(manifest.corpus.fingerprint, identity)) is not None else "to build"


# The models that a component loads and the location of their files, without loading or downloading any.


def components_in(component: Component) -> Iterator[Component]:
    """Yield a component and all its parts; a part used several times is yielded several times."""
    yield component
    for part in held_components(component):
        yield from components_in(part)
    if isinstance(component, BaseRetriever):
        for retriever in component.parts():
            yield from components_in(retriever)


def models_in(component: Component) -> list[Model]:
    """Return the models that a component and its parts load or call, each once."""
    models: dict[Model, None] = {}
    for part in components_in(component):
        model, pipeline = getattr(part, "model", None), getattr(part, "spacy_pipeline", None)
        if isinstance(part, LanguageModel):
            endpoint = part.base_url or f"{part.provider}'s own endpoint"
            models[Model(part.model, "language model", str(without_secrets(endpoint)))] = None
        elif isinstance(model, str) and part.kind in {"encoders", "rerankers"}:
            models[Model(model, part.kind.removesuffix("s"), _source_of(model, getattr(part, "revision", None)))] = None
        if isinstance(pipeline, str):
            installed = pipeline.isidentifier() and importlib.util.find_spec(pipeline) is not None
            source = "a folder" if expanded(pipeline).is_dir() else "an installed package" if installed else None
            models[Model(pipeline, "spaCy pipeline", source)] = None
    return list(models)


def _source_of(model: str, revision: str | None) -> str | None:
    if expanded(model).is_dir():
        return "a folder"
    if (path := _in_hub_cache(model, revision)) is not None:
        return f"the hub's cache, commit {path.name[:12]}"
    module, distribution = CARRIED_BY_PACKAGES.get(model, ("", ""))
    if module and revision is None and importlib.util.find_spec(module) is not None:
        return f"the package {distribution}"
    return None


def _in_hub_cache(model: str, revision: str | None) -> Path | None:
    if importlib.util.find_spec("huggingface_hub") is None:
        return None
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(model, revision=revision, local_files_only=True))
    except (LocalEntryNotFoundError, FileNotFoundError, HFValidationError):
        return None
