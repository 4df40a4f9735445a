"""The plan of a benchmark, shown before it runs: nothing is built, loaded, downloaded, asked or written for it.

One item of the corpus is read, to report a missing corpus now. Stages are distinguished as in a run with a stage folder, but by
settings alone: two models with one name count as one here, and a model with two names as two. An index counts as present if
the directory holds it for the corpus stored there; whether that is still the benchmark's corpus is known when it runs.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from nlp_retrieval.benchmarks.entrants import TrecRun
from nlp_retrieval.benchmarks.filters import Unfiltered
from nlp_retrieval.benchmarks.grid import Grid, labels_of
from nlp_retrieval.benchmarks.settings import BenchmarkSettings
from nlp_retrieval.core.components.component import Component, Config, canonical_json, held_components
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

StageKind = Literal["processor", "encoder", "retriever", "reranker", "program"]
IndexState = Literal["found", "to build", "not known"]

_KINDS: tuple[StageKind, ...] = ("processor", "encoder", "retriever", "reranker", "program")


class PlannedStage(NamedTuple):
    """A stage that is computed once for the configurations that use it; a ``program`` is a searcher without stages."""

    kind: StageKind
    name: str
    used_by: list[str]


class PlannedIndex(NamedTuple):
    """The index of a retriever; ``not known`` if its model is not on this machine."""

    name: str
    state: IndexState
    used_by: list[str]


class PlannedModel(NamedTuple):
    """A model that is loaded or called; ``source`` says where it is, and is None if it has to be downloaded."""

    name: str
    kind: str
    source: str | None
    used_by: list[str]


class PlannedCalls(NamedTuple):
    """The most calls of language models by a part, without retries; None if unknown. Answers on disk reduce them."""

    name: str
    calls: int | None
    used_by: list[str]


@dataclass(frozen=True)
class Plan:
    """Plan of a benchmark: stages by kind, the most shared first; indexes and models each once."""

    settings: BenchmarkSettings
    grid: Grid | None
    stages: list[PlannedStage]
    indexes: list[PlannedIndex]
    models: list[PlannedModel]
    calls: list[PlannedCalls]

    @property
    def language_model_calls(self) -> int | None:
        """All calls together, at most; None if some are unknown."""
        known = [stage.calls for stage in self.calls if stage.calls is not None]
        return sum(known) if len(known) == len(self.calls) else None


@dataclass
class _Use:
    """What configurations use: its settings, which name it, and what it is."""

    config: Config
    what: object
    used_by: dict[str, None] = field(default_factory=dict)


class _Uses(dict[str, _Use]):
    """What configurations use, by a text that is equal for what is computed once."""

    def add(self, key: str, config: Config, what: object, name: str) -> None:
        self.setdefault(key, _Use(without_secrets(config), what)).used_by[name] = None

    def titled(self) -> Iterator[tuple[str, object, list[str]]]:
        """Yield title, what it is, and the names of configurations, most shared first."""
        titles = labels_of([use.config for use in self.values()])
        for title, use in sorted(zip(titles, self.values(), strict=True), key=lambda pair: -len(pair[1].used_by)):
            yield title, use.what, list(use.used_by)


def plan_of(settings: BenchmarkSettings, grid: Grid | None = None) -> Plan:
    """Return the plan of a benchmark, some of whose configurations may come from a grid."""
    if next(checked_items(settings.loader), None) is None:
        raise ItemError("the corpus is empty: the loader gave no items; check its path and its filters")
    stages, indexes, models, calls = {kind: _Uses() for kind in _KINDS}, _Uses(), _Uses(), _Uses()
    index_keys: dict[str, str] = {}
    for name, searcher in settings.searchers.items():
        if isinstance(searcher, TrecRun):
            continue
        if not isinstance(searcher, Component):
            stages["program"].add(canonical_json(searcher.config), searcher.config, None, name)
            continue
        for kind, distinguishing, config in _stages_of(searcher, settings.depth):
            stages[kind].add(canonical_json(distinguishing), config, None, name)
        for part in components_in(searcher):
            if isinstance(part, BaseRetriever) and part.has_index:
                configured = canonical_json(part.config)
                if configured not in index_keys:
                    index_keys[configured] = canonical_json(_identity(part) or _index_parameters(part))
                indexes.add(index_keys[configured], part.config, part, name)
        for model in [*models_in(searcher), *(models_in(settings.answerer) if settings.answerer is not None else ())]:
            models.add(canonical_json(model), {"name": model.name}, model, name)
        for key, part in _asking_parts(searcher).items():
            calls.add(key, part.config, part.calls_per_query(), name)
    n_asked = len({query.text for query in settings.queries if not has_no_words(query.text)})
    planned = [
        PlannedCalls(title, each * n_asked if isinstance(each, int) else None, names) for title, each, names in calls.titled()
    ]
    if settings.answerer is not None and (each := settings.answerer.calls_per_query()) != 0:
        names = list(settings.searchers)  # each gives the answerer other passages
        n_calls = None if each is None else each * n_asked * len(names)
        planned.append(PlannedCalls(f"answers by {settings.answerer.name}", n_calls, names))
    manifest = read_manifest(settings.index_folder)
    return Plan(
        settings,
        grid,
        [PlannedStage(kind, title, names) for kind in _KINDS for title, _, names in stages[kind].titled()],
        [PlannedIndex(title, _state(part, manifest), names) for title, part, names in indexes.titled()],
        [PlannedModel(*model, names) for _, model, names in models.titled() if isinstance(model, Model)],
        planned,
    )


def _stages_of(searcher: Component, k: int) -> Iterator[tuple[StageKind, Config, Config]]:
    """The kind of each stage, its distinguishing key, and the configuration that names it."""
    if isinstance(searcher, Searcher):
        processor = searcher.processor.config if searcher.processor is not None else None
        asked = {"sub-queries": processor, "apart": searcher.scope == "per_subquery" and processor is not None}
        all_items = {"filter": "none"} if isinstance(searcher, Unfiltered) else {}
        if processor is not None:
            yield "processor", processor, processor
        shown = processor | {"name": f"{processor['name']}, each alone"} if processor and asked["apart"] else processor
        for label, retriever in searcher.retrievers.items():
            depth = searcher.depth_for(k, label)
            distinguishing = retriever.config | {"sub-queries": shown, "candidates": depth} | all_items
            yield "retriever", {"retriever": retriever.config, "depth": depth} | asked | all_items, distinguishing
        for reranker in searcher.rerankers.values():
            scored = {key: value for key, value in reranker.config.items() if key != "blend"}
            yield "reranker", scored, scored
    else:
        yield "program", searcher.config, searcher.config
    for part in components_in(searcher):
        if part.kind == "encoders":
            model = part.config.get("model")
            yield "encoder", part.config, part.config | ({"name": model} if isinstance(model, str) else {})


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


def _state(retriever: object, manifest: Manifest | None) -> IndexState:
    if manifest is None:
        return "to build"
    identity = _identity(retriever) if isinstance(retriever, BaseRetriever) else None
    if identity is None:
        return "not known"
    return "found" if manifest.retriever(fingerprint_of(manifest.corpus.fingerprint, identity)) is not None else "to build"


# The models that a component loads and the location of their files, without loading or downloading any.


class Model(NamedTuple):
    """A model that a component needs, and where it is; None if it is not on this machine."""

    name: str
    kind: str
    source: str | None


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
            source = "a folder" if Path(pipeline).expanduser().is_dir() else "an installed package" if installed else None
            models[Model(pipeline, "spaCy pipeline", source)] = None
    return list(models)


def _source_of(model: str, revision: str | None) -> str | None:
    if Path(model).expanduser().is_dir():
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
