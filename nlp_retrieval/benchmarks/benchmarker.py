"""The public interface of benchmarks: searchers over one corpus and one set of queries, given in Python.

The arguments and their checks are in :mod:`nlp_retrieval.benchmarks.settings`; the run itself is in
:mod:`nlp_retrieval.benchmarks.running`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nlp_retrieval.benchmarks.benchmarkable import Benchmarkable, Entry
from nlp_retrieval.benchmarks.cost import Prices
from nlp_retrieval.benchmarks.grid import build_grid
from nlp_retrieval.benchmarks.results import BenchmarkRun
from nlp_retrieval.benchmarks.running import run_searchers
from nlp_retrieval.benchmarks.settings import BenchmarkSettings
from nlp_retrieval.core.components.component import BaseLoader, Config
from nlp_retrieval.core.context import Workers
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.index.manifest import index_directory
from nlp_retrieval.core.models import Gold, Query
from nlp_retrieval.evaluation.gold import GoldMissing
from nlp_retrieval.lm.answering import BaseAnswerer


class Benchmarker:
    """Compares searchers over one corpus and one set of queries.

    Args:
        searchers: by name. Equal retrievers of different searchers share one index. Runs of other tools may be
            included.
        loader: the corpus.
        queries: the queries.
        gold: the expected results of each query.
        k_values: the cutoffs.
        index_path: the index directory; created or completed as needed.
        baseline: the name of the searcher that others are compared with; the first by default.
        group_by: a key of the queries' metadata; measures are also reported for each of its values.
        latency_queries: how many queries are searched one at a time to measure latency.
        seed: for sampling those queries, and for tests and intervals; 0 or more.
        stage_folder: folder for results of stages; existing results are not computed again. None: every
            configuration is searched and timed separately.
        query_loader: ``config`` of the loader of queries and gold; the manifest keeps it, so that the run
            can be repeated.
        prices: prices of language models; without them no price is reported.
        corpus_fingerprint: required fingerprint of the corpus, from an earlier run's manifest; None: any corpus.
        on_progress: called with progress messages.
        answerer: answers the queries as questions from each searcher's results. If their metadata has an ``answer``, and
            perhaps ``supporting_facts``, the answers are judged by these, with additional measures.
        where: a filter for all queries; see :mod:`nlp_retrieval.core.filters`.
        where_from: a filter per query: item metadata keys mapped to query metadata keys whose values must be equal.
            ``{"country": "country"}`` restricts each question to its own country.
        workers: number of processes that encode passages for the index, as in ``Searcher.index``, and compute the stages
            of the searches if there is a stage folder. Latency is always timed in this process.
        ray: address of a Ray cluster to use instead, as in ``Searcher.index``; its nodes must see the same paths for index and
        gold_missing: treatment of relevant documents that the corpus lacks: ``"count"`` them as not found, raise an
            ``"error"`` before anything is encoded, or ``"drop"`` them from the gold, together with queries that have no
            others.
        ignore_identical_ids: whether a hit with the id of its query is the query itself and does not count, as in BEIR and
            MTEB (ArguAna, Quora); None: true if most of such queries have the text of that item. Gold items always count.

    Raises:
        ConfigurationError: no searchers, components of one name and different classes, an unknown baseline, a seed below 0, or
            an argument of the wrong type.
        QueryError: no queries, two with one id, a cutoff that is not a positive integer, an invalid filter, or a query that
            lacks a key of its filter.
        GoldError: two golds for one query, or no query with gold. Queries without gold do not count, and the report says so.
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
        answerer: BaseAnswerer | None = None,
        where: Where | None = None,
        where_from: Mapping[str, str] | None = None,
        workers: int | None = None,
        ray: str | None = None,
        gold_missing: GoldMissing = "count",
        ignore_identical_ids: bool | None = None,
    ) -> None:
        self.settings = BenchmarkSettings(
            searchers=searchers,
            loader=loader,
            queries=queries,
            gold=gold,
            index_path=index_directory(index_path),
            k_values=k_values,
            baseline=baseline,
            group_by=group_by,
            latency_queries=latency_queries,
            seed=seed,
            stage_folder=Path(stage_folder) if stage_folder is not None else None,
            query_loader=query_loader,
            prices=prices,
            corpus_fingerprint=corpus_fingerprint,
            answerer=answerer,
            where=where,
            where_from=where_from,
            workers=Workers(workers, ray),
            gold_missing=gold_missing,
            ignore_identical_ids=ignore_identical_ids,
        )
        self._on_progress = on_progress

    @staticmethod
    def grid(
        searcher: Mapping[str, Any],
        vary: Mapping[str, Any],
        *,
        skip: Sequence[Mapping[str, Any]] = (),
        sample: int | None = None,
        seed: int = 0,
    ) -> dict[str, Benchmarkable]:
        """Return searchers for all combinations of some parameters, by name, for use in a benchmark.

        The arguments are those of ``grid`` in a configuration file; values may be components too. For instance
        ``Benchmarker.grid({"retrievers": [Bm25Retriever()]}, {"retrievers.bm25.k1": [0.9, 1.2]})``.

        Args:
            searcher: the settings shared by all.
            vary: values by dotted path into the settings.
            skip: combinations to leave out.
            sample: number of combinations to draw at random; None: all of them.
            seed: seed of the sample.

        Raises:
            ConfigurationError: a path does not exist, an axis or a skip is invalid, or a value is not valid.
        """
        return build_grid(searcher, vary, skip=skip, sample=sample, seed=seed).searchers

    def run(self) -> BenchmarkRun:
        """Index missing parts, search, and measure.

        A configuration that raises an error is left out, and the report says why. The baseline is then the first remaining one.
        All are measured on one corpus; a configuration that searches another one is left out as well.

        Raises:
            Exception: the error of the first configuration, if none could be run.
            IndexConflictError: the corpus does not have the required fingerprint.
            GoldError: the gold names items that are not in the corpus.
        """
        return run_searchers(self.settings, self._on_progress)
