"""Runs several searchers over the same queries, and says what each finds and what it costs.

Quality comes from one search per configuration at the largest cutoff. Latency comes from one query at a time on a
seeded sample, after a warm-up, so that it is neither a batch's nor a cold start's. The sample comes first: what language
models answer there is not on disk yet, unless an earlier run or configuration asked the same. With a folder for stages,
what configurations have in common is computed and timed once, and an interrupted run goes on where it stopped. A
configuration that cannot be run does not keep the others from it; the report says why.
"""

from __future__ import annotations

import statistics
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nlp_retrieval.benchmarks.arguments import check_kinds, lined_up
from nlp_retrieval.benchmarks.benchmarkable import Benchmarkable, Entry
from nlp_retrieval.benchmarks.cost.figures import Cost
from nlp_retrieval.benchmarks.cost.measuring import Measured, Sample, language_model_cost, measure_alone
from nlp_retrieval.benchmarks.cost.prices import Prices
from nlp_retrieval.benchmarks.explained import explained_queries
from nlp_retrieval.benchmarks.grid.grid import build_grid
from nlp_retrieval.benchmarks.judging import Entrant, judged, masks_of
from nlp_retrieval.benchmarks.manifest import manifest_of, run_identity
from nlp_retrieval.benchmarks.pinned import PinnedCorpus
from nlp_retrieval.benchmarks.results import BenchmarkReport, FailedConfiguration
from nlp_retrieval.benchmarks.retriever_ranks import RetrieverRanks, gold_rows_of
from nlp_retrieval.benchmarks.stages.shared import SharedStages
from nlp_retrieval.benchmarks.stages.store import StageStore
from nlp_retrieval.benchmarks.stages.timing import measure_by_stages
from nlp_retrieval.benchmarks.trec_run import TrecRun
from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.core.components.component import Component, Config, require_distinct_names
from nlp_retrieval.core.components.interfaces import BaseLoader
from nlp_retrieval.core.index.manifest import index_directory
from nlp_retrieval.core.models import Gold, Query, RetrievalResult
from nlp_retrieval.core.queries import check_k
from nlp_retrieval.core.search.results import no_collection
from nlp_retrieval.core.search.stages import Stages, using_stages
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import (
    ConfigurationError,
    IndexMismatchError,
    IndexMissingError,
    QueryError,
    RetrievalError,
    nearest,
)
from nlp_retrieval.evaluation.evaluator import Evaluation, RetrievalEvaluator
from nlp_retrieval.evaluation.pool import Ranks
from nlp_retrieval.evaluation.rankings import ListsBuilder, Ranking, RunLists
from nlp_retrieval.lm.counting import record_calls


@dataclass(frozen=True)
class BenchmarkRun:
    """A finished run: the report, and the lists that it was made from.

    Args:
        report: quality and cost.
        lists: what each configuration found, and the gold.
        per_query: every measure of every query, by configuration.
        retrievers: the rank of each gold document in the candidates of each retriever alone, from 1, 0 where it is not there;
            empty where stages are not shared.
    """

    report: BenchmarkReport
    lists: RunLists
    per_query: dict[str, dict[str, Scores]]
    retrievers: dict[str, Ranks] = field(default_factory=dict)

    @property
    def query_ids(self) -> list[str]:
        """Of the queries, in order."""
        return self.lists.query_ids

    @property
    def families(self) -> list[str | None]:
        """Per query; None where it stands alone."""
        return self.lists.families

    @property
    def query_groups(self) -> list[str | None]:
        """Per query; None where it belongs to none."""
        return self.lists.groups

    @property
    def rankings(self) -> dict[str, list[Ranking]]:
        """By configuration, one per query."""
        return {name: self.lists.rankings(name) for name in self.lists.listings}


class Benchmarker:
    """Compares searchers over one corpus and one set of queries.

    Args:
        searchers: by name. Equal retrievers of different searchers share one index. Beside searchers there may be runs of
            other tools.
        loader: the corpus.
        queries: what is asked.
        gold: what is expected, for each query.
        k_values: the cutoffs.
        index_path: the index directory; made, or completed by what is missing.
        baseline: the name of the searcher that others are compared with; the first by default.
        group_by: a key of the queries' metadata; measures are also given for each of its values.
        latency_queries: how many queries are searched one at a time to measure latency.
        seed: of the sample of those queries, and of the tests and intervals; 0 or more.
        stage_folder: where results of stages are kept; what is there already is not computed again. None: every
            configuration is searched and timed by itself.
        query_loader: what the queries and the gold were read by, as its ``config``; the manifest keeps it, so that the run
            can be repeated.
        prices: of language models; without them no price is reported.
        corpus_fingerprint: of the corpus that it has to be, as an earlier run's manifest has it; None: what the loader gives.
        on_progress: told what is being done.

    Raises:
        ConfigurationError: no searchers, components of one name and different classes, an unknown baseline, a seed below 0, or
            an argument of another kind.
        QueryError: no queries, two of one id, or a cutoff that is no positive integer.
        GoldError: gold that does not line up with the queries.
    """

    def __init__(
        self,
        searchers: Mapping[str, Entry],
        loader: BaseLoader,
        queries: Sequence[Query],
        gold: Sequence[Gold],
        k_values: Sequence[int] = (5, 10, 20),
        *,
        index_path: str | Path,
        baseline: str | None = None,
        group_by: str = "hops",
        latency_queries: int = 200,
        seed: int = 0,
        stage_folder: str | Path | None = None,
        query_loader: Config | None = None,
        prices: Prices | None = None,
        corpus_fingerprint: str | None = None,
        on_progress: Callable[[str], None] | None = None,
    ) -> None:
        check_kinds(searchers, loader, queries, gold, k_values)
        self.searchers = dict(searchers)
        require_distinct_names(searcher for searcher in self.searchers.values() if isinstance(searcher, Component))
        self.loader = loader
        self.queries = list(queries)
        self.gold = lined_up(self.queries, gold)
        self.k_values = sorted({check_k(k, "a cutoff") for k in k_values})
        if not self.k_values:
            raise QueryError("k_values is empty; pass at least one cutoff")
        self.index_path = index_directory(index_path)
        self.baseline = next(iter(self.searchers)) if baseline is None else baseline
        if self.baseline not in self.searchers:
            raise ConfigurationError(f"there is no searcher {self.baseline!r}; {nearest(self.baseline, self.searchers)}")
        self.group_by = group_by
        self.latency_queries = check_k(latency_queries, "latency_queries")
        if seed < 0:
            raise ConfigurationError(f"seed={seed}; take 0 or more")
        self.seed = seed
        self.stage_folder = Path(stage_folder) if stage_folder is not None else None
        self.query_loader = query_loader
        self.prices = prices
        self.corpus_fingerprint = corpus_fingerprint
        self._errors: dict[str, Exception] = {}
        self._say = on_progress or (lambda _: None)

    @staticmethod
    def grid(
        searcher: Mapping[str, Any],
        vary: Mapping[str, Any],
        *,
        skip: Sequence[Mapping[str, Any]] = (),
        sample: int | None = None,
        seed: int = 0,
    ) -> dict[str, Benchmarkable]:
        """Return searchers for all combinations of some parameters, by name, to be given to a benchmark.

        The arguments are those of ``grid`` in a configuration file; values may be components too. For instance
        ``Benchmarker.grid({"retrievers": [Bm25sRetriever()]}, {"retrievers.bm25s.k1": [0.9, 1.2]})``.

        Args:
            searcher: the settings that all have in common.
            vary: values by dotted path into these.
            skip: combinations that are left out.
            sample: so many of the combinations, drawn at random; None: all of them.
            seed: of the draw.

        Raises:
            ConfigurationError: a path leads nowhere, an axis or a condition makes no sense, or a value is not valid.
        """
        return build_grid(searcher, vary, skip=skip, sample=sample, seed=seed).searchers

    def run(self) -> BenchmarkRun:
        """Index what is missing, search, and measure.

        A configuration that raises is left out, and the report says why. The baseline is then the first that did not. All
        are measured on one corpus; a configuration that searches another one is left out so.

        Raises:
            Exception: what the first configuration raised, where none could be run.
            IndexConflictError: the corpus does not have the fingerprint that was asked for.
            GoldError: the gold names items that are not in the corpus.
        """
        self._errors = {}
        shared = SharedStages(StageStore(self.stage_folder)) if self.stage_folder is not None else None
        pinned = PinnedCorpus(self.corpus_fingerprint)
        with using_stages(shared or Stages()):
            self._index(pinned)
        self._refuse_nothing()
        corpus = pinned.corpus(self.loader)
        row_of = corpus.rows()
        evaluator = RetrievalEvaluator(self.gold, corpus.item_ids, corpus.titles, self.k_values)
        labels = _labels(self.queries, self.group_by)
        families = [query.family for query in self.queries]
        qrels = evaluator.qrels()
        titles = dict(zip(corpus.item_ids, corpus.titles, strict=True))
        texts = [query.text for query in self.queries]
        lists = ListsBuilder(evaluator.query_ids, texts, families, labels, qrels, titles)
        alone = RetrieverRanks(len(self.queries), *gold_rows_of(qrels, row_of), len(corpus.item_ids))
        entrants: dict[str, Entrant] = {}
        evaluations: dict[str, Evaluation] = {}
        identities: dict[str, Config] = {}
        for name, searcher in self._running().items():
            try:
                cost, found = self._found(name, searcher, shared, pinned, row_of, alone)
                evaluations[name] = evaluator.evaluate_lists([[row_of[item_id] for item_id, _ in one] for one in found[0]])
                fingerprint = searcher.fingerprint
                identities[name] = run_identity(searcher, fingerprint)
                entrants[name] = Entrant(without_secrets(searcher.config), fingerprint, cost)
            except Exception as error:
                self._fail(name, error)
                continue
            if found[1] is None:
                lists.add_rankings(name, found[0], titles)
            else:
                lists.add(name, found[1])
        self._refuse_nothing()
        baseline = self.baseline if self.baseline in entrants else next(iter(entrants))
        ran = {name: self.searchers[name] for name in entrants}
        with using_stages(shared or Stages()):
            explained = explained_queries(ran, evaluations, self.queries, qrels, baseline, self.k_values[0], pinned.check)
        pinned.warn_of_changes()
        if shared is not None:
            self._say(f"results of stages: {shared.store.folder}, {shared.store.bytes() / 1e6:,.1f} MB")
        report = BenchmarkReport(
            configurations=[],
            baseline=baseline,
            k_values=self.k_values,
            query_counts={},
            n_items=len(row_of),
            manifest=manifest_of(
                self,
                corpus,
                qrels,
                identities,
                {name: _reason(error) for name, error in self._errors.items()},
            ),
            explained=explained,
            prices=self.prices,
            failed=[_failed(name, self.searchers[name], error) for name, error in self._in_order()],
        )
        groups = masks_of(labels, _ordered(self.queries, self.group_by))
        report = judged(report, entrants, evaluations, families, groups, self.seed)
        return BenchmarkRun(report, lists.built(), {name: evaluations[name].per_query for name in entrants}, alone.ranks())

    def _running(self) -> dict[str, Entry]:
        return {name: searcher for name, searcher in self.searchers.items() if name not in self._errors}

    def _in_order(self) -> list[tuple[str, Exception]]:
        return [(name, self._errors[name]) for name in self.searchers if name in self._errors]

    def _fail(self, name: str, error: Exception) -> None:
        self._errors[name] = error
        self._say(f"{name}: failed: {_reason(error)}")

    def _refuse_nothing(self) -> None:
        """Where nothing could be run there is no report, and the first reason is the reason."""
        if not self._running():
            raise self._in_order()[0][1]

    def _index(self, pinned: PinnedCorpus) -> None:
        for name, searcher in self.searchers.items():
            if isinstance(searcher, TrecRun):
                continue
            try:
                if pinned.generation is None or not self._opens(searcher):
                    self._say(f"{name}: indexing")
                    searcher.index(self.loader, self.index_path)
                pinned.check(searcher)
            except Exception as error:
                self._fail(name, error)

    def _opens(self, searcher: Benchmarkable) -> bool:
        try:
            searcher.open(self.index_path)
        except (IndexMissingError, IndexMismatchError):
            return False
        return True

    def _found(
        self,
        name: str,
        searcher: Entry,
        shared: SharedStages | None,
        pinned: PinnedCorpus,
        row_of: Mapping[str, int],
        alone: RetrieverRanks,
    ) -> tuple[Cost | None, tuple[list[Ranking], list[list[RetrievalResult]] | None]]:
        """Lists as ids and scores, and as the results that they are of; a run of another tool has none."""
        if isinstance(searcher, TrecRun):
            self._say(f"{name}: reading {searcher.path}")
            return None, (searcher.rankings([query.query_id for query in self.queries], row_of, self.k_values[-1]), None)
        self._say(f"{name}: searching {len(self.queries):,} queries")
        pinned.check(searcher)
        cost, measured = self._measure(searcher, shared)
        pinned.check(searcher)
        if measured.lists is not None:
            alone.add(name, measured.candidates, measured.lists)
        found = measured.found
        with no_collection():
            rankings = pinned.rankings(searcher, found, row_of)
        return cost, (rankings, found)

    def _measure(self, searcher: Benchmarkable, shared: SharedStages | None) -> tuple[Cost, Measured]:
        sample = Sample.draw([query.text for query in self.queries], self.latency_queries, self.seed)
        with record_calls() as asked:
            if shared is None:
                measured = measure_alone(searcher, sample, self.k_values[-1])
            else:
                measured = measure_by_stages(searcher, shared, sample, self.k_values[-1])
        records = searcher.index_records()
        cost = Cost(
            index_seconds=sum(record.cost.seconds for record in records),
            index_bytes=sum(segment.bytes for record in records for segment in record.segments),
            index_peak_bytes=max((record.cost.peak_bytes for record in records), default=0),
            stage_ms={stage: 1000 * statistics.median(values.tolist()) for stage, values in measured.stage_seconds.items()},
            latency_ms=1000 * statistics.median(measured.seconds.tolist()),
            latency_p95_ms=1000 * float(np.percentile(measured.seconds, 95)),
            queries_per_second=measured.queries_per_second,
            search_peak_bytes=measured.peak_bytes,
            language_model=language_model_cost(asked.by_model, measured),
        )
        return cost, measured


def _reason(error: Exception) -> str:
    text = str(error) or type(error).__name__
    told = text if isinstance(error, RetrievalError) else f"{type(error).__name__}: {text}"
    return str(without_secrets(told))


def _failed(name: str, searcher: Entry, error: Exception) -> FailedConfiguration:
    told = "" if isinstance(error, RetrievalError) else "".join(traceback.format_exception(error))
    return FailedConfiguration(
        name, without_secrets(searcher.config), type(error).__name__, _reason(error), without_secrets(told)
    )


def _labels(queries: Sequence[Query], key: str) -> list[str | None]:
    """The group of each query; None where it has none."""
    values = [query.metadata.get(key) for query in queries]
    return [f"{key}={value}" if isinstance(value, str | int) else None for value in values]


def _ordered(queries: Sequence[Query], key: str) -> list[str]:
    """The groups as they are shown: numbers in order, then texts."""
    values = [query.metadata.get(key) for query in queries]
    distinct = {value for value in values if isinstance(value, str | int)}
    return [f"{key}={value}" for value in sorted(distinct, key=lambda value: (str(type(value)), value))]
