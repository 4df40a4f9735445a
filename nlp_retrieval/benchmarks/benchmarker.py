"""The public face of benchmarks: searchers over one corpus and one set of queries, given in Python.

What a benchmark is, and how its arguments are checked, is in :mod:`nlp_retrieval.benchmarks.settings`; how it runs, in
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
from nlp_retrieval.core.blocks import Workers
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.interfaces import BaseLoader
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.index.manifest import index_directory
from nlp_retrieval.core.models import Gold, Query
from nlp_retrieval.evaluation.gold import GoldMissing
from nlp_retrieval.lm.answering import BaseAnswerer


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
        answerer: answers the queries as questions from what each searcher found. Where their metadata has an ``answer``, and
            perhaps ``supporting_facts``, the answers are judged by these, in further measures.
        where: a filter that holds for all queries; see :mod:`nlp_retrieval.core.filters`.
        where_from: what each query may find: the key of its own metadata by the key of the items', which has to be equal.
            ``{"country": "country"}`` asks each question of its own country.
        workers: how many processes encode the passages of what is indexed, as in ``Searcher.index``, and compute the stages
            of the searches, where there is a folder for these. Latency is timed in this process in any case.
        ray: address of a Ray cluster that does, as in ``Searcher.index``; its nodes see index and stages at the same paths.
        gold_missing: what is done about relevant documents that the corpus lacks: they ``"count"`` as not found, are an
            ``"error"`` before anything is encoded, or are taken out of the gold (``"drop"``), with the queries that have no
            others.
        ignore_identical_ids: whether a hit with the id of its query is the query itself and does not count, as in BEIR and
            MTEB (ArguAna, Quora); None: it is where most of such queries have the text of that item. What is gold counts.

    Raises:
        ConfigurationError: no searchers, components of one name and different classes, an unknown baseline, a seed below 0, or
            an argument of another kind.
        QueryError: no queries, two of one id, a cutoff that is not a positive integer, a filter that is none, or a query that
            lacks what its filter is made of.
        GoldError: two golds of one query, or no query with gold. Queries without gold do not count, and the report says so.
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
            ConfigurationError: a path leads nowhere, an axis or a skip makes no sense, or a value is not valid.
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
        return run_searchers(self.settings, self._on_progress)
