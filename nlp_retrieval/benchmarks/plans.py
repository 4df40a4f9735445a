"""The plan of a benchmark, shown before it runs."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from nlp_retrieval.benchmarks.entrants import TrecRun
from nlp_retrieval.benchmarks.filters import Unfiltered, grouped
from nlp_retrieval.benchmarks.grid import Grid, labels_of
from nlp_retrieval.benchmarks.settings import BenchmarkSettings
from nlp_retrieval.core.components.component import Component, Config, canonical_json, held_components
from nlp_retrieval.core.index.build import checked_items
from nlp_retrieval.core.index.generation import fingerprint_of
from nlp_retrieval.core.index.manifest import Manifest, read_manifest
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.encoders.models import CARRIED_BY_PACKAGES
from nlp_retrieval.errors import ItemError, RetrievalError
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.processors.with_model import CompiledProcessor

# The models that a component loads and the location of their files, without loading or downloading any.


class Model(NamedTuple):
    """A model that a component needs.

    Args:
        name: as used in configurations.
        kind: ``encoder``, ``reranker``, ``language model`` or ``spaCy pipeline``.
        source: description of its location; None if it is not on this machine.
    """

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
            models[Model(pipeline, "spaCy pipeline", _source_of_pipeline(pipeline))] = None
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


def _source_of_pipeline(pipeline: str) -> str | None:
    if Path(pipeline).expanduser().is_dir():
        return "a folder"
    named_as_module = pipeline.isidentifier()
    return "an installed package" if named_as_module and importlib.util.find_spec(pipeline) is not None else None


# The plan of a benchmark before it runs: nothing is built, loaded, downloaded, asked or written for it.
#
# One item of the corpus is read, to report a missing corpus now. Stages are distinguished as in a run with a stage
# folder, but by settings alone: two models with one name count as one here, and a model with two names as
# two. An index counts as present if the directory holds it for the corpus stored there; whether that is still the corpus of
# the benchmark is only known when it runs.

# The number of language model calls, as far as components report it: an upper estimate that ignores answers on disk.
#
# Equal queries are asked once, and a query without a word is not asked. Retries are additional.


def asking_parts(searcher: Component) -> dict[str, Component]:
    """Return the parts of a searcher that call language models, by a text that is equal for parts with the same questions."""
    parts: list[Component] = [searcher]
    if isinstance(searcher, Searcher):
        parts = [*filter(None, [searcher.processor]), *searcher.retrievers.values(), *searcher.rerankers.values()]
    return {_questions_of(part, searcher): part for part in parts if part.calls_per_query() != 0}


def queries_that_ask(texts: Sequence[str]) -> int:
    """Return how many different queries have words; the others are not asked."""
    return len({text for text in texts if not has_no_words(text)})


def _questions_of(part: Component, searcher: Component) -> str:
    """Return the settings that determine the questions: a reranker's input, but not the number of phrases kept."""
    if isinstance(part, BaseReranker):
        return canonical_json([part.config, searcher.config])
    if isinstance(part, CompiledProcessor):
        program = part.compiled.fingerprint if part.compiled is not None else None
        return canonical_json({"name": part.name, "lm": part.lm.config, "program": program})
    return canonical_json(part.config)


StageKind = Literal["processor", "encoder", "retriever", "reranker", "program"]
IndexState = Literal["found", "to build", "not known"]

_KINDS: tuple[StageKind, ...] = ("processor", "encoder", "retriever", "reranker", "program")


@dataclass(frozen=True)
class PlannedStage:
    """A stage that is computed once for all configurations that share it.

    Args:
        kind: kind of component; ``program`` for a searcher that is not a composition of stages and runs as a whole.
        name: name of the component, with the settings that distinguish it from others.
        used_by: the names of the configurations.
    """

    kind: StageKind
    name: str
    used_by: list[str]


@dataclass(frozen=True)
class PlannedIndex:
    """The index of a retriever.

    Args:
        name: as of :class:`PlannedStage`.
        state: ``not known`` if its model is not on this machine.
        used_by: the names of the configurations.
    """

    name: str
    state: IndexState
    used_by: list[str]


@dataclass(frozen=True)
class PlannedModel:
    """A model that is loaded or called.

    Args:
        name: as used in configurations.
        kind: ``encoder``, ``reranker``, ``language model`` or ``spaCy pipeline``.
        source: description of its location; None if it is not on this machine and has to be downloaded.
        used_by: the names of the configurations.
    """

    name: str
    kind: str
    source: str | None
    used_by: list[str]


@dataclass(frozen=True)
class PlannedCalls:
    """Language model calls of a part.

    Args:
        name: as of :class:`PlannedStage`.
        calls: maximum for all queries, not counting retries; answers on disk reduce it. None if unknown.
        used_by: the names of the configurations.
    """

    name: str
    calls: int | None
    used_by: list[str]


@dataclass(frozen=True)
class Plan:
    """Plan of a benchmark; prints with ``rich``.

    Args:
        configurations: complete, as plain values without secrets, by name.
        baseline: the configuration to compare the others with.
        n_queries: how many there are.
        k_values: the cutoffs, ascending.
        stages: by kind, most shared first.
        index_path: the index directory.
        indexes: one for each retriever, including those used by other retrievers.
        models: each once.
        calls: calls to language models.
        combinations: combinations of the grid, after conditions and skips; None without a grid.
        drawn: how many of them were used, and ``equal``: how many of those are included under another name.
        filters: how many different filters the queries have; 0 if they have none.
        main: the main measure.
        measures: the chosen measures; none if all families are measured at each cutoff.
    """

    configurations: dict[str, Config]
    baseline: str
    n_queries: int
    k_values: list[int]
    stages: list[PlannedStage]
    index_path: str
    indexes: list[PlannedIndex]
    models: list[PlannedModel]
    calls: list[PlannedCalls]
    combinations: int | None = None
    drawn: int = 0
    equal: int = 0
    filters: int = 0
    main: str = ""
    measures: Sequence[str] = ()

    @property
    def language_model_calls(self) -> int | None:
        """All calls together, at most; None if some are unknown."""
        known = [stage.calls for stage in self.calls if stage.calls is not None]
        return sum(known) if len(known) == len(self.calls) else None


def plan_of(settings: BenchmarkSettings, grid: Grid | None = None) -> Plan:
    """Return the plan of a benchmark.

    Args:
        settings: settings of the benchmark.
        grid: the grid that some of its configurations come from.

    Raises:
        SourceError: the corpus cannot be read.
        ItemError: it is empty.
        IndexDamagedError: the manifest of the index directory is damaged.
    """
    if next(checked_items(settings.loader), None) is None:
        raise ItemError("the corpus is empty: the loader gave no items; check its path and its filters")
    manifest = read_manifest(settings.index_folder)
    stages, indexes, models, calls = _Uses(), _Uses(), _Uses(), _Uses()
    retrievers: dict[str, BaseRetriever] = {}
    index_keys: dict[str, str] = {}
    found_models: dict[str, Model] = {}
    asking: dict[str, Component] = {}
    of_answers = models_in(settings.answerer) if settings.answerer is not None else []
    for name, searcher in settings.searchers.items():
        if isinstance(searcher, TrecRun):
            continue
        if not isinstance(searcher, Component):
            stages.add(canonical_json(searcher.config), searcher.config, name, "program")
            continue
        for kind, distinguishing, config in _stages_of(searcher, settings.depth):
            stages.add(canonical_json(distinguishing), config, name, kind)
        for part in components_in(searcher):
            if isinstance(part, BaseRetriever) and part.has_index:
                configured = canonical_json(part.config)
                if configured not in index_keys:
                    index_keys[configured] = _index_key(part)
                key = index_keys[configured]
                retrievers.setdefault(key, part)
                indexes.add(key, part.config, name)
        for model in [*models_in(searcher), *of_answers]:
            found_models[canonical_json(model)] = model
            models.add(canonical_json(model), {"name": model.name}, name)
        for key, part in asking_parts(searcher).items():
            asking.setdefault(key, part)
            calls.add(key, part.config, name)
    n_asked = queries_that_ask([query.text for query in settings.queries])
    each = {key: part.calls_per_query() for key, part in asking.items()}
    return Plan(
        configurations={name: without_secrets(searcher.config) for name, searcher in settings.searchers.items()},
        baseline=settings.baseline_among(settings.searchers),
        n_queries=len(settings.queries),
        k_values=list(settings.k_values),
        stages=[PlannedStage(kind, title, names) for kind in _KINDS for _, title, names in stages.titled(kind)],
        index_path=str(settings.index_path),
        indexes=[PlannedIndex(title, _state(retrievers[key], manifest), names) for key, title, names in indexes.titled()],
        models=[PlannedModel(*found_models[key], names) for key, _, names in models.titled()],
        calls=[
            PlannedCalls(title, None if (n_calls := each[key]) is None else n_calls * n_asked, names)
            for key, title, names in calls.titled()
        ]
        + _answering_calls(settings, n_asked),
        combinations=grid.combinations if grid is not None else None,
        drawn=len(grid.searchers) + len(grid.equal) if grid is not None else 0,
        equal=len(grid.equal) if grid is not None else 0,
        filters=sum(where is not None for where, _ in grouped(settings.filters)),
        main=settings.main_measure,
        measures=settings.measures or (),
    )


def _answering_calls(settings: BenchmarkSettings, n_asked: int) -> list[PlannedCalls]:
    """Return the answerer's calls: each configuration gives it different passages."""
    if (answerer := settings.answerer) is None or (each := answerer.calls_per_query()) == 0:
        return []
    names = list(settings.searchers)
    return [PlannedCalls(f"answers by {answerer.name}", None if each is None else each * n_asked * len(names), names)]


class _Uses:
    """Uses of configurations, by kind and key."""

    def __init__(self) -> None:
        self._configs: dict[tuple[str, str], Config] = {}
        self._names: dict[tuple[str, str], dict[str, None]] = {}

    def add(self, key: str, config: Config, name: str, kind: str = "") -> None:
        """Record that a configuration uses something."""
        self._configs.setdefault((kind, key), without_secrets(config))
        self._names.setdefault((kind, key), {})[name] = None

    def titled(self, kind: str = "") -> Iterator[tuple[str, str, list[str]]]:
        """Yield key, title and the names of configurations, most shared first."""
        keys = [key for of, key in self._configs if of == kind]
        titles = labels_of([self._configs[kind, key] for key in keys])
        for key, title in sorted(zip(keys, titles, strict=True), key=lambda pair: -len(self._names[kind, pair[0]])):
            yield key, title, list(self._names[kind, key])


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


def _index_key(retriever: BaseRetriever) -> str:
    """Return a key that is equal for retrievers that share an index; by settings alone if a model is not on this machine."""
    if (identity := _identity(retriever)) is not None:
        return canonical_json(identity)
    return canonical_json(_index_parameters(retriever))


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
