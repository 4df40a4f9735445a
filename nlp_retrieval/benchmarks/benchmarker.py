"""Runs several searchers over the same queries, and says what each finds and what it costs.

Quality comes from one search per configuration at the largest cutoff. Latency comes from one query at a time on a
seeded sample, after a warm-up, so that it is neither a batch's nor a cold start's.
"""

from __future__ import annotations

import random
import statistics
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.benchmarks.environment import describe_environment
from nlp_retrieval.benchmarks.evaluator import Evaluation, RetrievalEvaluator
from nlp_retrieval.benchmarks.explained import explained_queries
from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult, Cost
from nlp_retrieval.core.component import Config
from nlp_retrieval.core.generation import Generation
from nlp_retrieval.core.index_store import IndexReport
from nlp_retrieval.core.interfaces import BaseLoader
from nlp_retrieval.core.items import ItemTable
from nlp_retrieval.core.manifest import RetrieverRecord
from nlp_retrieval.core.measure import PeakMemory, record_stages
from nlp_retrieval.core.models import Gold, Query, RetrievalResult, SearchableItem
from nlp_retrieval.core.queries import check_k, first_repeated
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import (
    ConfigurationError,
    GoldError,
    IndexMismatchError,
    IndexMissingError,
    QueryError,
    RetrievalWarning,
    nearest,
)

Ranking = list[tuple[str, float]]
"""Item ids and scores of one query, best first."""


class Benchmarkable(Protocol):
    """What a benchmark drives: a searcher, or anything that stands beside one."""

    @property
    def config(self) -> Config:
        """Its complete configuration, as plain values."""

    @property
    def fingerprint(self) -> str:
        """Equal for equal configurations."""

    @property
    def stages(self) -> list[str]:
        """The names of its stages, in order."""

    @property
    def opened(self) -> Generation:
        """The index that it searches."""

    def index(self, items: BaseLoader | Iterable[SearchableItem], path: str | Path) -> IndexReport:
        """Bring the index directory to hold what it needs, and open it."""

    def open(self, path: str | Path) -> Benchmarkable:
        """Open an index that holds what it needs."""

    def index_records(self) -> list[RetrieverRecord]:
        """What the index says of its retrievers."""

    def provenance(self) -> dict[str, str]:
        """Where its models come from."""

    def search(self, queries: Sequence[str], k: int) -> list[list[RetrievalResult]]:
        """Search."""


@dataclass(frozen=True)
class BenchmarkRun:
    """A finished run: the report, and the rankings that it was made from.

    Args:
        report: quality and cost.
        query_ids: in order.
        rankings: by configuration, one per query.
        qrels: the gold, as grades by item id.
    """

    report: BenchmarkReport
    query_ids: list[str]
    rankings: dict[str, list[Ranking]]
    qrels: dict[str, dict[str, int]]


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
        seed: of the sample of those queries.
        on_progress: told what is being done.

    Raises:
        ConfigurationError: no searchers, or an unknown baseline.
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
        latency_queries: int = 50,
        seed: int = 0,
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
        self.seed = seed
        self._say = on_progress or (lambda _: None)

    def run(self) -> BenchmarkRun:
        """Index what is missing, search, and measure.

        Raises:
            RetrievalError: a part of a configuration cannot do its work; nothing is reported then.
            GoldError: the gold names items that are not in the corpus.
        """
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
            cost, found = self._measure(searcher)
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
        report = BenchmarkReport(
            configurations=results,
            baseline=self.baseline,
            k_values=self.k_values,
            query_counts={"": len(self.queries)} | {group: int(mask.sum()) for group, mask in groups.items()},
            n_items=len(item_ids),
            manifest=self._manifest(),
            explained=explained_queries(self.searchers, evaluations, self.queries, qrels, self.baseline, self.k_values[0]),
        )
        return BenchmarkRun(report, [query.query_id for query in self.queries], rankings, qrels)

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

    def _measure(self, searcher: Benchmarkable) -> tuple[Cost, list[list[RetrievalResult]]]:
        texts = [query.text for query in self.queries]
        depth = self.k_values[-1]
        sample = random.Random(self.seed).sample(texts, min(self.latency_queries, len(texts)))  # noqa: S311 -- a sample
        seconds: list[float] = []
        by_stage: dict[str, list[float]] = {}
        with PeakMemory() as peak:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RetrievalWarning)  # the search over all queries says it once
                searcher.search(sample[:2], depth)  # models and indexes open now
                for text in sample:
                    with record_stages() as stages:
                        begin = time.perf_counter()
                        searcher.search([text], depth)
                        seconds.append(time.perf_counter() - begin)
                    for stage in searcher.stages:
                        by_stage.setdefault(stage, []).append(stages.get(stage, 0.0))
            begin = time.perf_counter()
            found = searcher.search(texts, depth)
            batch_seconds = time.perf_counter() - begin
        records = searcher.index_records()
        cost = Cost(
            index_seconds=sum(record.cost.seconds for record in records),
            index_bytes=sum(segment.bytes for record in records for segment in record.segments),
            index_peak_bytes=max((record.cost.peak_bytes for record in records), default=0),
            stage_ms={stage: 1000 * statistics.median(values) for stage, values in by_stage.items()},
            latency_ms=1000 * statistics.median(seconds),
            latency_p95_ms=1000 * float(np.percentile(seconds, 95)),
            queries_per_second=len(texts) / batch_seconds,
            search_peak_bytes=peak.bytes,
        )
        return cost, found

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
