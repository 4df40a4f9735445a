"""Runs several searchers over the same queries, and says what each finds and what it costs.

Quality comes from one search per configuration at the largest cutoff. Latency comes from one query at a time on a
seeded sample, after a warm-up, so that it is neither a batch's nor a cold start's. The sample comes first: what language
models answer there is not on disk yet, unless an earlier run or configuration asked the same. With a folder for stages,
what configurations have in common is computed and timed once, and an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.benchmarks.compared import LEVEL, RESAMPLES, compare_by_group, intervals_by_group
from nlp_retrieval.benchmarks.environment import describe_environment
from nlp_retrieval.benchmarks.evaluator import Evaluation, RetrievalEvaluator
from nlp_retrieval.benchmarks.explained import explained_queries
from nlp_retrieval.benchmarks.measuring import Sample, Searching, language_model_cost, measure_alone
from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult, Cost
from nlp_retrieval.benchmarks.shared_stages import SharedStages
from nlp_retrieval.benchmarks.stage_costs import measure_by_stages
from nlp_retrieval.benchmarks.stage_store import StageStore
from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.core.component import Config
from nlp_retrieval.core.index_store import IndexReport
from nlp_retrieval.core.interfaces import BaseLoader
from nlp_retrieval.core.items import ItemTable
from nlp_retrieval.core.manifest import RetrieverRecord
from nlp_retrieval.core.models import Gold, Query, RetrievalResult, SearchableItem
from nlp_retrieval.core.queries import check_k, first_repeated
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.core.stages import Stages, using_stages
from nlp_retrieval.errors import (
    ConfigurationError,
    GoldError,
    IndexMismatchError,
    IndexMissingError,
    QueryError,
    nearest,
)
from nlp_retrieval.lm.counting import record_calls

Ranking = list[tuple[str, float]]
"""Item ids and scores of one query, best first."""


class Benchmarkable(Searching, Protocol):
    """What a benchmark drives: a searcher, or anything that stands beside one."""

    @property
    def config(self) -> Config:
        """Its complete configuration, as plain values."""

    def index(self, items: BaseLoader | Iterable[SearchableItem], path: str | Path) -> IndexReport:
        """Bring the index directory to hold what it needs, and open it."""

    def open(self, path: str | Path) -> Benchmarkable:
        """Open an index that holds what it needs."""

    def index_records(self) -> list[RetrieverRecord]:
        """What the index says of its retrievers."""

    def provenance(self) -> dict[str, str]:
        """Where its models come from."""


@dataclass(frozen=True)
class BenchmarkRun:
    """A finished run: the report, and the rankings that it was made from.

    Args:
        report: quality and cost.
        query_ids: in order.
        rankings: by configuration, one per query.
        qrels: the gold, as grades by item id.
        per_query: every measure of every query, by configuration.
        families: per query; None where it stands alone.
        query_groups: per query; None where it belongs to none.
    """

    report: BenchmarkReport
    query_ids: list[str]
    rankings: dict[str, list[Ranking]]
    qrels: dict[str, dict[str, int]]
    per_query: dict[str, dict[str, Scores]]
    families: list[str | None]
    query_groups: list[str | None]


class Benchmarker:
    """Compares searchers over one corpus and one set of queries.

    Args:
        searchers: by name. Equal retrievers of different searchers share one index.
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
        on_progress: told what is being done.

    Raises:
        ConfigurationError: no searchers, an unknown baseline, or a seed below 0.
        QueryError: no queries, two of one id, or a cutoff that is no positive integer.
        GoldError: gold that does not line up with the queries.
    """

    def __init__(
        self,
        searchers: Mapping[str, Benchmarkable],
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
        on_progress: Callable[[str], None] | None = None,
    ) -> None:
        if not searchers:
            raise ConfigurationError("a benchmark needs at least one searcher")
        self.searchers = dict(searchers)
        self.loader = loader
        self.queries = list(queries)
        self.gold = _lined_up(self.queries, gold)
        self.k_values = sorted({check_k(k, "a cutoff") for k in k_values})
        if not self.k_values:
            raise QueryError("k_values is empty; pass at least one cutoff")
        self.index_path = Path(index_path)
        self.baseline = next(iter(self.searchers)) if baseline is None else baseline
        if self.baseline not in self.searchers:
            raise ConfigurationError(f"there is no searcher {self.baseline!r}; {nearest(self.baseline, self.searchers)}")
        self.group_by = group_by
        self.latency_queries = check_k(latency_queries, "latency_queries")
        if seed < 0:
            raise ConfigurationError(f"seed={seed}; take 0 or more")
        self.seed = seed
        self.stage_folder = Path(stage_folder) if stage_folder is not None else None
        self._say = on_progress or (lambda _: None)

    def run(self) -> BenchmarkRun:
        """Index what is missing, search, and measure.

        Raises:
            RetrievalError: a part of a configuration cannot do its work; nothing is reported then.
            GoldError: the gold names items that are not in the corpus.
        """
        shared = SharedStages(StageStore(self.stage_folder)) if self.stage_folder is not None else None
        with using_stages(shared or Stages()):
            items = self._index()
        item_ids = items.ids()
        row_of = {item_id: row for row, item_id in enumerate(item_ids)}
        evaluator = RetrievalEvaluator(self.gold, item_ids, items.titles(), self.k_values)
        groups = self._groups()
        results: list[ConfigurationResult] = []
        evaluations: dict[str, Evaluation] = {}
        rankings: dict[str, list[Ranking]] = {}
        for name, searcher in self.searchers.items():
            self._say(f"{name}: searching {len(self.queries):,} queries")
            cost, found = self._measure(searcher, shared)
            rankings[name] = [[(hit.item.item_id, hit.score) for hit in hits] for hits in found]
            evaluation = evaluator.evaluate_lists([[row_of[i] for i, _ in ranking] for ranking in rankings[name]])
            evaluations[name] = evaluation
            results.append(
                ConfigurationResult(
                    name=name,
                    config=without_secrets(searcher.config),
                    fingerprint=searcher.fingerprint,
                    measures=evaluation.means(),
                    groups={group: evaluation.means(mask) for group, mask in groups.items()},
                    cost=cost,
                    empty_queries=evaluation.empty_queries,
                )
            )
        qrels = evaluator.qrels()
        with using_stages(shared or Stages()):
            explained = explained_queries(self.searchers, evaluations, self.queries, qrels, self.baseline, self.k_values[0])
        if shared is not None:
            self._say(f"results of stages: {shared.store.folder}, {shared.store.bytes() / 1e6:,.1f} MB")
        per_query = {name: evaluation.per_query for name, evaluation in evaluations.items()}
        families = [query.family for query in self.queries]
        intervals = intervals_by_group(per_query, families, groups, self.seed)
        report = BenchmarkReport(
            configurations=[replace(result, intervals=intervals[result.name]) for result in results],
            baseline=self.baseline,
            k_values=self.k_values,
            query_counts={"": len(self.queries)} | {group: int(mask.sum()) for group, mask in groups.items()},
            n_items=len(item_ids),
            manifest=self._manifest(),
            explained=explained,
            comparisons=compare_by_group(per_query, self.baseline, families, groups, self.seed),
        )
        of_query = [next((group for group, mask in groups.items() if mask[place]), None) for place in range(len(families))]
        return BenchmarkRun(report, [query.query_id for query in self.queries], rankings, qrels, per_query, families, of_query)

    def _index(self) -> ItemTable:
        first = next(iter(self.searchers.values()))
        for name, searcher in self.searchers.items():
            if searcher is not first:
                try:
                    searcher.open(self.index_path)
                    continue
                except (IndexMissingError, IndexMismatchError):
                    pass
            self._say(f"{name}: indexing")
            searcher.index(self.loader, self.index_path)
        return first.opened.items

    def _measure(self, searcher: Benchmarkable, shared: SharedStages | None) -> tuple[Cost, list[list[RetrievalResult]]]:
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
            language_model=language_model_cost(asked.counts, measured),
        )
        return cost, measured.found

    def _groups(self) -> dict[str, NDArray[np.bool_]]:
        values = [query.metadata.get(self.group_by) for query in self.queries]
        distinct = sorted({value for value in values if isinstance(value, str | int)}, key=lambda v: (str(type(v)), v))
        if len(distinct) < 2:
            return {}
        return {f"{self.group_by}={value}": np.array([v == value for v in values]) for value in distinct}

    def _manifest(self) -> Config:
        generation = next(iter(self.searchers.values())).opened
        return {
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "corpus": {
                "loader": without_secrets(self.loader.config),
                "fingerprint": generation.manifest.corpus.fingerprint,
                "items": generation.manifest.corpus.n_items,
            },
            "queries": len(self.queries),
            "k_values": self.k_values,
            "baseline": self.baseline,
            "group_by": self.group_by,
            "significance": {"resamples": RESAMPLES, "level": LEVEL, "seed": self.seed},
            "latency": {"queries": min(self.latency_queries, len(self.queries)), "seed": self.seed},
            "searchers": {
                name: {
                    "config": without_secrets(searcher.config),
                    "fingerprint": searcher.fingerprint,
                    "retrievers": [record.identity for record in searcher.index_records()],
                    "models": searcher.provenance(),
                }
                for name, searcher in self.searchers.items()
            },
        } | describe_environment()


def _lined_up(queries: list[Query], gold: Sequence[Gold]) -> list[Gold]:
    """The gold in the order of the queries."""
    if not queries:
        raise QueryError("there are no queries; check the path and the filters of their loader")
    by_id = {one.query_id: one for one in gold}
    if (twice := first_repeated(one.query_id for one in gold)) is not None:
        raise GoldError(f"two golds are given for query {twice!r}; put all of a query's relevance into one")
    if (twice := first_repeated(query.query_id for query in queries)) is not None:
        raise QueryError(f"two queries have the id {twice!r}; make query ids unique")
    without = [query.query_id for query in queries if query.query_id not in by_id]
    if without:
        raise GoldError(
            f"{len(without)} of {len(queries)} queries have no gold (the first: {without[0]!r}); leave them out, or add it"
        )
    return [by_id[query.query_id] for query in queries]
