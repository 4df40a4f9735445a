"""Stages of a sweep, spread over processes of this machine or a Ray cluster."""

from __future__ import annotations

import secrets
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from nlp_retrieval.benchmarks.entrants import Entry
from nlp_retrieval.benchmarks.filters import grouped, search_where
from nlp_retrieval.benchmarks.shared_stages import SharedStages, unknown_pairs
from nlp_retrieval.benchmarks.stage_store import (
    CANDIDATES,
    StageStore,
    candidates_key,
    corpus_of,
    hardware,
    pairs_entry,
    pairs_key,
    scores_group,
    unpacked,
    versions,
)
from nlp_retrieval.benchmarks.timing import COMPOSED, Sample, timed
from nlp_retrieval.core.candidates import CandidateBatch, Mask
from nlp_retrieval.core.components.component import Component, Config, canonical_json, refuse_secrets, with_held
from nlp_retrieval.core.components.registry import build, build_as, registered
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.index.generation import Generation, open_generation
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.core.search.stages import using_stages
from nlp_retrieval.encoders.base import BaseEncoder
from nlp_retrieval.encoders.passages import names_gpu, pool_at_hand
from nlp_retrieval.encoders.workers import WorkerPool
from nlp_retrieval.errors import IndexMissingError, RetrievalError, RetrievalWarning, WorkerError, first_line
from nlp_retrieval.lm.counting import CallCounts, record_calls
from nlp_retrieval.retrievers.servers.retriever import ServerRetriever

# Tasks of workers in a sweep: they compute stages into a store that all of them share.
#
# A stage is sent as plain values: components as their configuration, from which the registry creates them, and the key of
# its result. A worker that computes another key has other data or another model, and does not compute the stage.


@dataclass(frozen=True)
class StageTask:
    """Computes stages of a sweep over one corpus, in a worker.

    Args:
        index: path of the index directory.
        stages: path of the store.
        token: name of a file in the store, by which a worker recognises the folder.
    """

    index: str
    stages: str
    token: str

    def facts(self) -> dict[str, str]:
        """Return what must be equal wherever stages are computed; processors of two kinds may differ in the last bit."""
        known = {f"version of {name}": str(version) for name, version in versions().items()}
        try:
            corpus = corpus_of(open_generation(self.index))
        except IndexMissingError:
            corpus = "none"
        seen = str((Path(self.stages) / self.token).exists())
        at_index, at_stages = f"index at {self.index}", f"view of the results in {self.stages}"
        return known | {"processor": str(hardware()["cpu"]), at_index: corpus, at_stages: seen}

    @cached_property
    def _store(self) -> StageStore:
        return StageStore(self.stages)

    @cached_property
    def _generation(self) -> Generation:
        return open_generation(self.index)

    def do(self, chain: Sequence[Config]) -> dict[int, str]:
        """Compute stages one after another, and return why a result is not in the store, by its position.

        Args:
            chain: each stage as plain values: its ``component``, the arguments, and the ``group`` and ``key`` of the result.
        """
        undone: dict[int, str] = {}
        stages = SharedStages(self._store, beside=True)
        for number, stage in enumerate(chain):
            try:
                with using_stages(stages), warnings.catch_warnings():
                    warnings.simplefilter("ignore", RetrievalWarning)  # the reader of the result is warned
                    self._compute(stage, stages)
            except Exception as error:  # the requesting process computes it itself and reports the error
                message = str(error) if isinstance(error, RetrievalError) else f"{type(error).__name__}: {first_line(error)}"
                undone[number] = message
        return undone

    def _compute(self, stage: Config, stages: SharedStages) -> None:
        if stage["group"] == CANDIDATES:
            self._search(stage, stages)
        else:
            self._score(stage, stages)
        if not self._store.has(stage["group"], stage["key"]):
            raise WorkerError(f"its result is not in {self._store.folder}: it was not written")

    def _search(self, stage: Config, stages: SharedStages) -> None:
        generation = self._generation
        retriever = stages.opened(build_as(BaseRetriever, "retrievers", stage["component"]), generation)
        asked = stage["queries"], stage["depth"], generation
        allowed = generation.items.mask(stage["where"])
        _require_key(stage, candidates_key(retriever, *asked, allowed))
        stages.candidates(retriever, *asked, stage["label"], allowed)

    def _score(self, stage: Config, stages: SharedStages) -> None:
        reranker = build_as(BaseReranker, "rerankers", stage["component"])
        queries = [stage["queries"][number] for number in stage["query"]]
        rows = np.array(stage["rows"], np.int64)
        _require_key(stage, scores_group(reranker, self._generation), pairs_key(queries, rows))
        stages.score(reranker, queries, rows, self._generation)


def _require_key(stage: Config, *parts: Any) -> None:
    if parts != ((stage["key"],) if stage["group"] == CANDIDATES else (stage["group"], stage["key"])):
        raise WorkerError(f"the index or a model of {stage['component']['name']} is another one there")


# Stages of a sweep that workers compute before the sweep searches: the search then reuses them, with the same results.
#
# Candidates come first, then the scores of rerankers over the fused lists, those of a cascade one after another. Retrievers
# that share an encoder are searched by one worker, in the order of the sweep: they share encoded queries, and a model's vectors
# depend on which texts are encoded together. Stages that a worker cannot compute or fails at are left to this process, which
# succeeds, or fails with the reported error. A lost worker ends the sweep; repeated, it goes on from what is stored.
#
# Nothing is timed during this except language models, before the first stage is sent. The seconds recorded with these results
# are marked, so that no throughput is computed from them.

# Missing stages of a sweep: found by searching with every configuration without computing any stage.
#
# First the candidates of retrievers are missing; once these exist, the scores of rerankers; and then those of the rerankers
# after them. Blocks of pairs are cut in the same way as by one process that searches with all configurations in order, because
# a model's score for a pair depends on the other pairs in its batch: a configuration that waits for the scores of one reranker
# keeps later ones from planning those that it needs next.


class _EnoughError(Exception):
    """A search has reached stages that are not known yet, or are not needed."""


@dataclass(frozen=True)
class MissingStage:
    """A stage that is not in the store.

    Args:
        component: the component that computes it.
        told: the stage as plain values, as sent to a worker.
    """

    component: Component
    told: Config

    @property
    def place(self) -> tuple[str, str]:
        """The group and the key of its result."""
        return self.told["group"], self.told["key"]

    @property
    def name(self) -> str:
        """For messages: ``candidates of faiss``."""
        return f"{CANDIDATES if self.told['group'] == CANDIDATES else 'scores'} of {self.component.name}"


class PlanningStages(SharedStages):
    """Looks up stages in the store and records the missing ones. Only sub-queries are computed, because others depend on them.

    Args:
        store: store of the sweep.
    """

    def __init__(self, store: StageStore) -> None:
        super().__init__(store)
        self.candidates_missing: dict[tuple[str, str], MissingStage] = {}
        self.scores_missing: dict[tuple[str, str], MissingStage] = {}
        self._where: Where | None = None
        self._whole = True
        self._rerankers: dict[str, BaseReranker] = {}
        self._awaited: set[str] = set()
        self._groups_missing: set[str] = set()

    def plan(self, searcher: Searcher, sample: Sample, k: int) -> None:
        """Record the missing stages of a configuration.

        Args:
            searcher: opened.
            sample: all queries, with their filters.
            k: length of the lists.
        """
        self._rerankers = searcher.rerankers
        for where, positions in grouped(sample.filters):
            self._where, self._whole = where, True
            with using_stages(self), suppress(_EnoughError):
                search_where(searcher, [sample.texts[position] for position in positions], k, where)

    def candidates(
        self,
        retriever: BaseRetriever,
        processed: list[list[str]],
        depth: int,
        generation: Generation,
        label: str,
        allowed: Mask | None = None,
    ) -> CandidateBatch:
        key = candidates_key(retriever, processed, depth, generation, allowed)
        entry = self.store.find(CANDIDATES, key)
        if entry is not None:
            return unpacked(entry, label)
        self._whole = False
        asked = {"queries": processed, "depth": depth, "where": self._where, "label": label}
        description = {"group": CANDIDATES, "key": key, "component": retriever.config} | asked
        missing = MissingStage(retriever, description)
        self.candidates_missing.setdefault(missing.place, missing)
        return CandidateBatch.empty(len(processed))

    def reranked(
        self, reranker: BaseReranker, nlqs: Sequence[str], batch: CandidateBatch, generation: Generation, label: str
    ) -> CandidateBatch:
        labels = list(self._rerankers)
        later = [scores_group(self._rerankers[other], generation) for other in labels[labels.index(label) + 1 :]]
        shared = self._whole and type(reranker).rerank_batch is BaseReranker.rerank_batch
        if shared and (group := scores_group(reranker, generation)) not in self._awaited:
            table = self.pairs_of(group, generation)
            keys = table.keys(nlqs, batch.owner, batch.rows)
            if later and group not in self._groups_missing and not len(table.unknown(keys)):
                return reranker.reordered(batch, table.scores(keys)[0], label)
            for queries, rows in unknown_pairs(table, keys, reranker, nlqs, batch):
                numbers = {query: number for number, query in enumerate(dict.fromkeys(queries))}
                asked = {"queries": list(numbers), "query": [numbers[query] for query in queries], "rows": rows.tolist()}
                description = {"group": group, "key": pairs_key(queries, rows), "component": reranker.config} | asked
                missing = MissingStage(reranker, description)
                self.scores_missing.setdefault(missing.place, missing)
                table.add(pairs_entry(queries, rows, {}, {}))  # planned, without a score
                self._groups_missing.add(group)
        self._awaited |= {*later}
        raise _EnoughError


# Selection of components that another process can create from their configuration, so that it can compute their stages.


def why_local(component: Component) -> str:
    """Return why the stages of a component must be computed in this process; empty if another one can do it."""
    parts = list(with_held(component))
    if component.calls_per_query() != 0 or not all(getattr(part, "in_workers", True) for part in parts):
        return "it asks a server or a language model"
    if names_gpu(component):
        return "it names a GPU, which workers do not have"
    if any(isinstance(part, ServerRetriever) for part in parts):
        return "its data is on a server"
    if any(part.local_only for part in parts):
        return "it was created from a manifest"
    return _why_not_made(component, parts)


def _why_not_made(component: Component, parts: list[Component]) -> str:
    """Return why another process's registry could not create this component from its configuration; empty if it can."""
    for part in parts:
        if part.name not in registered(part.kind):
            return f"no package registers {type(part).__qualname__} among nlp_retrieval.{part.kind}"
    try:
        refuse_secrets(component, "sent to workers")
        rebuilt = build(component.kind, component.config)
    except RetrievalError as error:
        return first_line(error)
    same = rebuilt == component and list(map(type, with_held(rebuilt))) == list(map(type, parts))
    return "" if same else "the registry creates another component from its configuration"


def rerankers_inside(searcher: Searcher) -> list[BaseReranker]:
    """Return the rerankers of searchers among a searcher's retrievers."""
    parts = [part for retriever in searcher.retrievers.values() for part in with_held(retriever)]
    return [part for part in parts if isinstance(part, BaseReranker)]


def encoders_of(components: Iterable[Component]) -> set[str]:
    """Return, as one text each, the encoders in components whose query vectors are stored as stages."""
    parts = [part for component in components for part in with_held(component)]
    return {canonical_json(part.config) for part in parts if isinstance(part, BaseEncoder)}


_SEEN_SECONDS = 60.0
"""Maximum time for a network file system to show files written elsewhere."""


@dataclass
class Spread:
    """Work done by workers for a sweep.

    Args:
        n_done: how many stages they computed.
        here: by the name of a stage, the reason why it was left to this process.
        asked: by configuration and language model, its usage meanwhile: the stages depend on its sub-queries.
    """

    n_done: int = 0
    here: dict[str, str] = field(default_factory=dict)
    asked: dict[str, dict[str, CallCounts]] = field(default_factory=dict)


def spread(
    searchers: Mapping[str, Entry],
    samples: Callable[[Searcher], Sample],
    k: int,
    latency_k: int,
    shared: SharedStages,
    generation: Generation,
    say: Callable[[str], None],
) -> Spread:
    """Let workers compute the missing stages of configurations.

    Args:
        searchers: the searchers of the sweep, opened.
        samples: the queries of each of them, with those that are timed.
        k: length of the lists.
        latency_k: length of the lists of the queries that are timed.
        shared: the stages of the sweep.
        generation: the index.
        say: called with progress messages.

    Raises:
        DependencyError: a Ray cluster is wanted, and ray is not installed.
        WorkerError: no worker is available, one is lost, or one does not see the index and the results.
    """
    done = Spread()
    composed = {
        name: searcher for name, searcher in searchers.items() if isinstance(searcher, Searcher) and type(searcher) in COMPOSED
    }
    others = [searcher for name, searcher in searchers.items() if name not in composed and isinstance(searcher, Component)]
    rerankers = [reranker for searcher in composed.values() for reranker in searcher.rerankers.values()]
    inner = [part for searcher in composed.values() for part in rerankers_inside(searcher)]
    asked_here = encoders_of([*others, *rerankers, *inner])
    spreading = _Spreading(shared, generation, asked_here, {scores_group(part, generation) for part in inner}, done, say)

    def planned(searchers: Mapping[str, Searcher]) -> PlanningStages:
        planning = PlanningStages(shared.store)
        for name, searcher in searchers.items():
            with suppress(Exception), record_calls() as calls:  # any error is raised again when it is run
                _plan(planning, searcher, samples(searcher), k, latency_k)
            done.asked.setdefault(name, {model: _sent(counts) for model, counts in calls.by_model.items()})
        return planning

    spreading.compute(_chains(planned(composed).candidates_missing.values()))
    reranking = {name: searcher for name, searcher in composed.items() if searcher.rerankers}
    tried: set[tuple[str, str]] = set()
    while missing := {place: stage for place, stage in planned(reranking).scores_missing.items() if place not in tried}:
        spreading.compute([[stage] for stage in missing.values()])
        tried |= missing.keys()
        reranking = {name: searcher for name, searcher in reranking.items() if len(searcher.rerankers) > 1}
    return done


def _sent(counts: CallCounts) -> CallCounts:
    """Return the requests sent; answers from disk are counted when they are read again."""
    return replace(counts, cache_hits=0, degraded=0, kept_tokens_in=0, kept_tokens_out=0)


def _plan(planning: PlanningStages, searcher: Searcher, sample: Sample, k: int, latency_k: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)  # it warns again when it is run
        if searcher.processor is not None:
            timed(searcher, sample, latency_k, planning.store)  # before the answers of a model are on disk
        planning.plan(searcher, sample, k)


def _chains(stages: Iterable[MissingStage]) -> list[list[MissingStage]]:
    """Stages in chains: those of one retriever, or of retrievers that share an encoder, in order."""
    chains: list[tuple[set[str], dict[int, MissingStage]]] = []
    for number, stage in enumerate(stages):
        holds, chain = encoders_of([stage.component]) | {canonical_json(stage.component.config)}, {number: stage}
        separate = []
        for others, theirs in chains:
            if others & holds:
                holds, chain = holds | others, theirs | chain
            else:
                separate.append((others, theirs))
        chains = [*separate, (holds, chain)]
    return [[chain[number] for number in sorted(chain)] for _, chain in chains]


class _Spreading:
    """Sends chains of stages to workers and records the outcome."""

    def __init__(
        self,
        shared: SharedStages,
        generation: Generation,
        asked_here: set[str],
        scored_here: set[str],
        done: Spread,
        say: Callable[[str], None],
    ) -> None:
        self._shared, self._generation, self._done, self._say = shared, generation, done, say
        self._asked_here, self._scored_here = asked_here, scored_here

    def compute(self, chains: Sequence[Sequence[MissingStage]]) -> None:
        """Let workers compute stages; if one stage of a chain must stay here, the whole chain does."""
        going = []
        for chain in chains:
            reason = next(filter(None, map(self._reason, {stage.component: stage for stage in chain})), "")
            if reason:
                self._done.here |= {stage.name: reason for stage in chain}
            else:
                going.append(list(chain))
        if not going or (pool := pool_at_hand()) is None:
            return
        names = Counter(stage.name for chain in going for stage in chain)
        self._say("workers compute " + ", ".join(f"{name} ({count})" for name, count in names.items()))
        self._run(pool, going)

    def _reason(self, component: Component) -> str:
        if encoders_of([component]) & self._asked_here:
            return "its encoder is also used where only this process can: by a reranker, or by a searcher without parts"
        rerankers = [part for part in with_held(component) if isinstance(part, BaseReranker)]
        if any(scores_group(part, self._generation) in self._scored_here for part in rerankers):
            return "its reranker is used by a searcher among retrievers, whose stages are computed one after another"
        return why_local(component)

    def _run(self, pool: WorkerPool, chains: Sequence[Sequence[MissingStage]]) -> None:
        folder = self._shared.store.folder.absolute()
        folder.mkdir(parents=True, exist_ok=True)
        token = folder / f".seen-{secrets.token_hex(8)}"
        token.touch()
        task = StageTask(str(self._generation.path), str(folder), token.name)
        try:
            for number, (_, undone) in enumerate(pool.results(task, [[stage.told for stage in chain] for chain in chains])):
                self._account(chains[number], undone)
        finally:
            token.unlink(missing_ok=True)

    def _account(self, chain: Sequence[MissingStage], undone: Mapping[int, str]) -> None:
        """Count finished stages; leave the others to this process."""
        for number, stage in enumerate(chain):
            if number in undone:
                self._done.here[stage.name] = undone[number]
            elif self._seen(stage):
                self._done.n_done += 1
            else:
                self._done.here[stage.name] = f"its result is not seen in {self._shared.store.folder}, where a worker wrote it"

    def _seen(self, stage: MissingStage) -> bool:
        deadline = time.monotonic() + _SEEN_SECONDS
        while not self._shared.store.has(*stage.place):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.2)
        return True
