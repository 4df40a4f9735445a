"""Running a benchmark: index missing parts, search with every configuration, measure, and judge.

Quality comes from one search per configuration, of a depth that is a setting: no measure changes the lists of another.
Latency comes from one query at a time on a seeded sample, after a warm-up, so it reflects neither batches nor a cold start.
With a stage folder, work shared by configurations is computed once, and an interrupted run continues where it stopped. A
configuration that cannot be run does not stop the others; the report says why it failed.
"""

from __future__ import annotations

import math
import os
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import finalize

import numpy as np

from nlp_retrieval.benchmarks.cost import Cost
from nlp_retrieval.benchmarks.distributed import Spread, spread
from nlp_retrieval.benchmarks.entrants import Benchmarkable, Entry, Explains, KeepsQuestions, Searching, TrecRun, generation_of
from nlp_retrieval.benchmarks.evaluate import Judged
from nlp_retrieval.benchmarks.filters import filters_for, search_each, warn_of_filters
from nlp_retrieval.benchmarks.grid import build_grid
from nlp_retrieval.benchmarks.manifest import manifest_of, run_identity
from nlp_retrieval.benchmarks.pinned import Corpus, PinnedCorpus
from nlp_retrieval.benchmarks.results import (
    BenchmarkReport,
    BenchmarkRun,
    Counted,
    Entrant,
    ExplainedHit,
    ExplainedQuery,
    FailedConfiguration,
    judged,
    masks_of,
)
from nlp_retrieval.benchmarks.settings import BenchmarkSettings
from nlp_retrieval.benchmarks.shared_stages import Answered, SharedStages, answer_stage
from nlp_retrieval.benchmarks.stage_store import StageStore
from nlp_retrieval.benchmarks.timing import Sample, cost_of, measure
from nlp_retrieval.core.components.component import Component, Config, with_held
from nlp_retrieval.core.context import use_workers
from nlp_retrieval.core.files.atomic import check_folder_for_output
from nlp_retrieval.core.files.frames import BaseLoader, Items, Queries
from nlp_retrieval.core.index.generation import Generation
from nlp_retrieval.core.index.manifest import MANIFEST_FILE
from nlp_retrieval.core.models import Query, RetrievalResult, SearchableItem
from nlp_retrieval.core.processes import OtherProcesses
from nlp_retrieval.core.progress_bars import progress, tracked_each
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.core.search.results import no_collection
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.core.search.stages import Stages, using_stages
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import (
    ConfigurationError,
    GoldError,
    IndexMismatchError,
    IndexMissingError,
    RetrievalError,
    RetrievalWarning,
)
from nlp_retrieval.evaluation.answers import AnswerEvaluator
from nlp_retrieval.evaluation.evaluator import Evaluation, RetrievalEvaluator
from nlp_retrieval.evaluation.gold import without_missing
from nlp_retrieval.evaluation.rankings import ListsBuilder, OwnIds, Ranking, are_passages, own_ids
from nlp_retrieval.lm.answering import AnsweredQuestion
from nlp_retrieval.lm.counting import added, record_calls

T = TypeVar("T")


def run_searchers(settings: BenchmarkSettings, on_progress: Callable[[str], None] | None = None) -> BenchmarkRun:
    """Index missing parts, search, and measure.

    A configuration that raises an error is left out, and the report says why. The baseline is then the first remaining one. All
    are measured on one corpus; a configuration that searches another one is left out as well.

    Args:
        settings: settings of the benchmark.
        on_progress: called with progress messages.

    Raises:
        Exception: the error of the first configuration, if none could be run.
        IndexConflictError: the corpus does not have the required fingerprint.
        GoldError: the gold names items that are not in the corpus.
    """
    running = _Running(settings, on_progress or (lambda _: None))
    running.index()
    settings, corpus, evaluator, pinned = running.settings, running.corpus, running.evaluator, running.pinned
    queries, row_of, labels = settings.queries, corpus.rows(), group_labels(settings.queries, settings.group_by)
    families = [query.family for query in queries]
    qrels = evaluator.qrels()
    titles = dict(zip(corpus.item_ids, corpus.titles, strict=True))
    warn_of_filters(pinned.generation, dict(zip(evaluator.query_ids, settings.filters, strict=True)), qrels, row_of)
    about = evaluator.query_ids, [query.text for query in queries], families, labels
    lists = ListsBuilder(*about, settings.gold, qrels, titles)
    right = settings.right_answers
    answer_evaluator = AnswerEvaluator(right) if right else None
    answers: dict[str, list[AnsweredQuestion]] = {}
    entrants: dict[str, Entrant] = {}
    evaluations: dict[str, Evaluation] = {}
    identities: dict[str, Config] = {}
    for name, searcher in tracked_each("configurations", list(running.left().items())):
        try:
            outcome = running.searched(name, searcher, row_of)
            rows = [[row_of[item_id] for item_id, _ in ranking] for ranking in outcome.rankings]
            evaluation = evaluator.evaluate_lists(rows)
            if answer_evaluator is not None and outcome.answered is not None:
                judged_answers = answer_evaluator.evaluate(outcome.answered.answers)
                evaluation = replace(evaluation, per_query=evaluation.per_query | judged_answers.per_query)
            fingerprint = searcher.fingerprint
            identities[name] = run_identity(searcher, fingerprint)
            entrants[name] = Entrant(without_secrets(searcher.config), fingerprint, outcome.cost)
        except Exception as error:
            running.fail(name, error)
            continue
        evaluations[name] = evaluation
        if outcome.answered is not None:
            answers[name] = outcome.answered.questions
        if outcome.results is None:
            lists.add_rankings(name, outcome.rankings, titles)
        else:
            lists.add(name, outcome.results)
    running.raise_if_all_failed()
    lists.add_passages(pinned.passages(lists.without_passage(), row_of))
    baseline = settings.baseline_among(entrants)
    ran = {name: settings.searchers[name] for name in entrants}
    with using_stages(running.stages):
        explained = explained_queries(ran, evaluations, settings, qrels, baseline, pinned.check, running.own.ids)
    running.close()
    report = BenchmarkReport(
        configurations=[],
        baseline=baseline,
        k_values=list(settings.k_values),
        query_counts={},
        n_items=len(row_of),
        manifest=manifest_of(settings, corpus, qrels, identities, running.reasons(), running.spread),
        explained=explained,
        prices=settings.prices,
        failed=running.failed(),
        counted=running.counted(labels, qrels),
    )
    groups = masks_of(labels, group_order(queries, settings.group_by))
    with progress("comparing with the baseline", None, at_once=True):
        report = judged(report, entrants, evaluations, families, groups, settings.seed, settings.resamples)
    return BenchmarkRun(report, lists.built(), {name: evaluations[name].per_query for name in entrants}, answers, right)


@dataclass(frozen=True)
class _Found:
    """Results of a configuration: its lists as ids and scores, and the original results.

    A run of another tool has neither cost nor results. ``answered`` is None if nothing is answered.
    """

    cost: Cost | None
    rankings: list[Ranking]
    results: list[list[RetrievalResult]] | None
    answered: Answered | None


class _Running:
    """State shared by all configurations of a run: the stages, the corpus, and the failures so far."""

    def __init__(self, settings: BenchmarkSettings, say: Callable[[str], None]) -> None:
        self.settings = settings
        self.own = OwnIds([None] * len(settings.queries))
        self._dropped: list[str] = []
        self._say = say
        self._errors: dict[str, Exception] = {}
        folder = settings.stage_folder
        self._shared = SharedStages(StageStore(folder)) if folder is not None else None
        self.pinned = PinnedCorpus(settings.corpus_fingerprint)
        self.spread = Spread()
        self._others = OtherProcesses()

    @property
    def stages(self) -> Stages:
        """The shared stages, or plain ones."""
        return self._shared or Stages()

    def left(self) -> dict[str, Entry]:
        """The configurations that have not failed."""
        return {name: searcher for name, searcher in self.settings.searchers.items() if name not in self._errors}

    def failed(self) -> list[FailedConfiguration]:
        """The failed configurations, in the given order."""
        searchers = self.settings.searchers
        return [_failed(name, searchers[name], self._errors[name]) for name in searchers if name in self._errors]

    def reasons(self) -> dict[str, str]:
        """Errors of the failed configurations."""
        return {failed.name: failed.reason for failed in self.failed()}

    def fail(self, name: str, error: Exception) -> None:
        """Leave a configuration out."""
        self._errors[name] = error
        self._say(f"{name}: failed: {_reason(error)}")

    def raise_if_all_failed(self) -> None:
        """Raise the first error if no configuration could be run: then there is no report."""
        if not self.left():
            raise next(self._errors[name] for name in self.settings.searchers)

    def index(self) -> None:
        """Complete the index for every configuration, and open it; workers then compute the stages of the searches.

        Raises:
            GoldError: gold is missing from the corpus, and this is an error; raised before anything is encoded.
        """
        self._check_ready()
        with using_stages(self.stages), use_workers(self.settings.processes):
            for name, searcher in self.left().items():
                if isinstance(searcher, TrecRun):
                    continue
                try:
                    if self.pinned.generation is None or not self._opens(searcher):
                        self._say(f"{name}: indexing")
                        searcher.index(_CheckedLoader(self.settings), self.settings.index_path)
                    self.pinned.check(searcher)
                except GoldError:
                    raise
                except Exception as error:
                    self.fail(name, error)
            self.raise_if_all_failed()
            self._judge_by(self.pinned.corpus(self.settings.loader))
            if self.settings.processes.elsewhere and self._shared is not None and self.pinned.generation is not None:
                self._spread(self._shared, self.pinned.generation)

    def _check_ready(self) -> None:
        """Leave out configurations that cannot run, before anything is computed: a package, key or model is missing.

        Raises:
            OutputError: the index cannot be written.
        """
        settings = self.settings
        if not os.path.lexists(settings.index_folder / MANIFEST_FILE):  # an existing index need not be writable
            check_folder_for_output(settings.index_folder)
        for part in with_held(settings.answerer) if settings.answerer is not None else ():
            part.check_ready()
        for name, searcher in self.left().items():
            if not isinstance(searcher, Component):
                continue
            try:
                for part in with_held(searcher):
                    part.check_ready()
                searcher.fingerprint  # noqa: B018 -- of the files of all its models, so that these are found now
            except Exception as error:
                self.fail(name, error)
        self.raise_if_all_failed()

    def _judge_by(self, corpus: Corpus) -> None:
        """Determine the judged queries and gold, given the corpus: missing gold, and queries that are passages themselves."""
        settings = self.settings
        self.corpus = corpus
        self.evaluator = _evaluator(settings, corpus.item_ids, corpus.titles)
        self.missing = self.evaluator.missing
        if self.missing is not None:
            done = "are taken out of the gold" if settings.gold_missing == "drop" else "count as not found"
            warnings.warn(f"{self.missing.said}; they {done}", RetrievalWarning, stacklevel=4)
        if self.missing is not None and settings.gold_missing == "drop":
            kept = without_missing(settings.gold, corpus.item_ids, corpus.titles)
            kept_ids = {wanted.query_id for wanted in kept}
            self._dropped = [query.query_id for query in settings.queries if query.query_id not in kept_ids]
            queries = [query for query in settings.queries if query.query_id in kept_ids]
            self.settings = replace(settings, queries=queries, gold=kept)
            self.evaluator = _evaluator(self.settings, corpus.item_ids, corpus.titles)
        self.own = self._own_ids(corpus)
        if self.own.ignored:
            of_all = f"{self.own.ignored:,} of {len(self.settings.queries):,} queries are items of the corpus"
            self._say(f"{of_all}; a hit that is the query itself does not count")

    def _own_ids(self, corpus: Corpus) -> OwnIds:
        queries, row_of = self.settings.queries, corpus.rows()
        alike = [query.query_id for query in queries if query.query_id in row_of]
        texts = self.pinned.texts(alike, row_of, self.settings.loader) if alike else {}
        ignore = are_passages(queries, texts, self.settings.ignore_identical_ids)
        self.settings = replace(self.settings, ignore_identical_ids=ignore)
        return own_ids([query.query_id for query in queries], alike, self.evaluator.qrels(), ignore=ignore)

    def counted(self, labels: Sequence[str | None], qrels: Mapping[str, Mapping[str, int]]) -> Counted:
        """Return the queries and judgements behind the figures, and those excluded."""
        settings, missing = self.settings, self.missing
        grouped = any(label is not None for label in labels)
        ids = {
            "without_relevant": [
                query_id for query_id, grades in qrels.items() if max(grades.values(), default=0) < settings.relevant_from
            ],
            "unjudged": settings.unjudged,
            "unasked": settings.unasked,
            "dropped": self._dropped,
            "ungrouped": [
                query.query_id for query, label in zip(settings.queries, labels, strict=True) if grouped and label is None
            ],
        }
        first = {what: several[0] for what, several in ids.items() if several}
        return Counted(
            queries=len(settings.queries),
            missing_documents=missing.documents if missing is not None else 0,
            missing_queries=missing.queries if missing is not None else 0,
            gold_missing=settings.gold_missing,
            own_ids=self.own.ignored,
            own_gold=self.own.gold,
            same_ids=self.own.alike,
            group_by=settings.group_by,
            first=first | ({"missing_documents": missing.first} if missing is not None else {}),
            **{what: len(several) for what, several in ids.items()},
        )

    @property
    def depth(self) -> int:
        """Return how many hits to search for: one more than the depth if one may be the query itself."""
        return self.settings.depth + (self.own.ignored > 0)

    def _cut(self, own: str | None, hits: Sequence[T], ids: Sequence[str]) -> list[T]:
        """The hits of a query that count, up to the depth."""
        kept = [*hits] if own is None else [hit for hit, item_id in zip(hits, ids, strict=True) if item_id != own]
        return kept[: self.settings.depth]

    def _spread(self, shared: SharedStages, generation: Generation) -> None:
        """Let workers compute the stages of the searches."""
        self.spread = spread(self.left(), self._sample, self.depth, self.settings.latency_k, shared, generation, self._say)
        self._others = OtherProcesses()  # do not count the workers as other processes
        for stage, reason in self.spread.here.items():
            self._say(f"{stage}: computed by this process: {reason}")

    def _sample(self, searcher: Benchmarkable) -> Sample:
        settings = self.settings
        texts = [query.text for query in settings.queries]
        return Sample.draw(texts, settings.latency_queries, settings.seed, filters_for(searcher, settings.filters))

    def _opens(self, searcher: Benchmarkable) -> bool:
        try:
            searcher.open(self.settings.index_path)
        except (IndexMissingError, IndexMismatchError):
            return False
        return True

    def searched(self, name: str, searcher: Entry, row_of: Mapping[str, int]) -> _Found:
        """Search with a configuration, and answer."""
        queries, depth = self.settings.queries, self.depth
        if isinstance(searcher, TrecRun):
            self._say(f"{name}: reading {searcher.path}")
            rankings = searcher.rankings([query.query_id for query in queries], row_of, depth)
            rankings = [
                self._cut(own, ranking, [item_id for item_id, _ in ranking])
                for own, ranking in zip(self.own.ids, rankings, strict=True)
            ]
            return _Found(None, rankings, None, self._answered(name, self.pinned.results(rankings, row_of)))
        self._say(f"{name}: searching {len(queries):,} queries")
        if isinstance(searcher, KeepsQuestions):
            searcher.expect(queries)
        self.pinned.check(searcher)
        sample = self._sample(searcher)
        with record_calls() as asked:
            measured = measure(searcher, self._shared, sample, depth, self.settings.latency_k, self._others)
            if self.own.ignored:
                results = [
                    self._cut(own, hits, [hit.item.item_id for hit in hits])
                    for own, hits in zip(self.own.ids, measured.results, strict=True)
                ]
                measured = replace(measured, results=results)
            answered = self._answered(name, measured.results)
        answering = (answered.cost, answered.calls) if answered is not None else ()
        everything = added(asked.by_model, self.spread.asked.get(name, {}))
        cost = cost_of(searcher.index_records(), everything, measured, *answering)
        self.pinned.check(searcher)
        with no_collection():
            rankings = self.pinned.rankings(searcher, measured.results, row_of)
        return _Found(cost, rankings, measured.results, answered)

    def _answered(self, name: str, results: Sequence[Sequence[RetrievalResult]]) -> Answered | None:
        answerer, queries = self.settings.answerer, self.settings.queries
        if answerer is None:
            return None
        self._say(f"{name}: answering {len(queries):,} questions")
        store = self._shared.store if self._shared is not None else None
        return answer_stage(answerer, [query.text for query in queries], results, store)

    def close(self) -> None:
        """Report the run's files on disk, and whether the index is still the one that was searched."""
        self.pinned.warn_of_changes()
        if self._shared is not None:
            store = self._shared.store
            self._say(f"results of stages: {store.folder}, {store.bytes() / 1e6:,.1f} MB")


class _CheckedLoader(BaseLoader):
    """The corpus during indexing: an index reads all items before it encodes any, so gold is checked after the last one."""

    name = "checked"

    def __init__(self, settings: Any) -> None:
        self._settings: BenchmarkSettings = settings

    def stream(self) -> Iterator[SearchableItem]:
        settings, item_ids, titles = self._settings, list[str](), list[str]()
        for item in settings.loader.stream():
            item_ids.append(item.item_id)
            titles.append(item.title)
            yield item
        if item_ids:
            _evaluator(settings, item_ids, titles)


def _evaluator(settings: BenchmarkSettings, item_ids: Sequence[str], titles: Sequence[str] | None) -> RetrievalEvaluator:
    evaluator = RetrievalEvaluator(
        settings.gold,
        item_ids,
        titles,
        settings.k_values,
        settings.gold_missing,
        measures=settings.measures,
        relevant_from=settings.relevant_from,
    )
    if evaluator.missing is not None and evaluator.missing.all:
        raise GoldError(f"{evaluator.missing.said}: no figure could be above 0; {evaluator.missing.cure}")
    return evaluator


def _reason(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return str(without_secrets(text if isinstance(error, RetrievalError) else f"{type(error).__name__}: {text}"))


def _failed(name: str, searcher: Entry, error: Exception) -> FailedConfiguration:
    raised = "" if isinstance(error, RetrievalError) else "".join(traceback.format_exception(error))
    config = without_secrets(searcher.config)
    return FailedConfiguration(name, config, type(error).__name__, _reason(error), without_secrets(raised))


def group_labels(queries: Sequence[Query], key: str) -> list[str | None]:
    """The group of each query; None if it has none.

    A float that is a whole number becomes an integer: pandas writes 2 as 2.0 in columns with missing values.
    """
    return [_group(query.metadata.get(key), key) for query in queries]


def _group(value: object, key: str) -> str | None:
    if isinstance(value, float) and not math.isfinite(value):
        return None  # a missing value in pandas
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{key}={value}" if isinstance(value, str | int | float) else None


def group_order(queries: Sequence[Query], key: str) -> list[str]:
    """The groups in display order: numbers in order, including those written as text, then texts."""

    def place(label: str) -> tuple[bool, float, str]:
        try:
            number = float(label.removeprefix(f"{key}="))
        except ValueError:
            number = math.nan
        return (not math.isfinite(number), number if math.isfinite(number) else 0.0, label)

    return sorted({label for label in group_labels(queries, key) if label is not None}, key=place)


Entrants = Entry | BaseRetriever | Mapping[str, Any] | str
"""What may take part: a searcher, a run, a retriever or its name, or the settings of a searcher."""


class Benchmarker(BenchmarkSettings):  # noqa: D101 -- help() shows the arguments of the settings
    if TYPE_CHECKING:  # other forms than those that the settings keep

        def __init__(
            self,
            searchers: Mapping[str, Entrants] | Sequence[Entrants],
            loader: Items,
            queries: Queries = (),
            gold: Judged = (),
            k_values: Sequence[int] = (5, 10, 20),
            *,
            index_path: str | Path | None = None,
            **settings: Any,
        ) -> None: ...

    else:

        def __init__(self, *given: Any, index_path: str | Path | None = None, **settings: Any) -> None:
            folder = mkdtemp(prefix="nlp_retrieval-index-") if index_path is None else index_path
            if index_path is None:
                finalize(self, rmtree, folder, ignore_errors=True)
            super().__init__(*given, index_path=folder, **settings)

        __signature__ = BenchmarkSettings.__signature__.replace(
            parameters=[
                parameter.replace(default=None) if parameter.name == "index_path" else parameter
                for parameter in BenchmarkSettings.__signature__.parameters.values()
            ]
        )

    @staticmethod
    def grid(
        searcher: Mapping[str, Any] | BaseSearcher,
        vary: Mapping[str, Any],
        *,
        skip: Sequence[Mapping[str, Any]] = (),
        sample: int | None = None,
        seed: int = 0,
    ) -> dict[str, Benchmarkable]:
        """Return searchers for all combinations of some parameters, by name, for use in a benchmark.

        The arguments are those of ``grid`` in a configuration file; values may be components too. For instance
        ``Benchmarker.grid(bm25 + dense, {"retrievers.bm25.k1": [0.9, 1.2]})``.

        Args:
            searcher: the settings shared by all, or a searcher that has them.
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
        return run_searchers(self.loaded(), self.on_progress)


def compare_systems(
    systems: Mapping[str, Entry | BaseRetriever] | Sequence[Entry | BaseRetriever],
    queries: Queries,
    gold: Judged,
    corpus: Items | None = None,
    *,
    folder: str | Path | None = None,
    **settings: Any,
) -> BenchmarkRun:
    """Search with several systems, measure, and test their differences: a benchmark in one call.

    Args:
        systems: searchers, retrievers, and runs of other tools (:class:`TrecRun`); by name, or a list, which are named by their
            parts. The first is the baseline.
        queries: in any form that ``Searcher.search`` takes.
        gold: judgements in any form that :func:`nlp_retrieval.evaluate` takes.
        corpus: items in any form that ``Searcher.index`` takes; by default those of the index that the systems have opened, to
            which missing retrievers are added.
        folder: keeps the index and the results of stages, and the systems have the index open afterwards. By default
            everything is temporary, and the systems stay as they are.
        **settings: further arguments of :class:`Benchmarker`, such as ``measures=["ndcg@10", "recall@100"]``.

    Returns:
        The finished run, which is a table in a notebook. ``run.report`` has the figures, and
        ``write_run_files(run, folder)`` writes them with a page.

    Raises:
        ConfigurationError: no corpus is given, and the systems have not opened the same index.
        Exception: as :meth:`Benchmarker.run`.

    Examples:
        >>> corpus = {"d1": "a red fox", "d2": "a blue whale", "d3": "a fox and a whale"}
        >>> systems = [Bm25Retriever(), Bm25Retriever(b=0.0)]
        >>> run = compare_systems(systems, {"q1": "red fox"}, {"q1": {"d1": 1}}, corpus, measures=["RR@10"])
        >>> [(result.name, result.measures["mrr@10"]) for result in run.report.configurations]
        [('bm25 b=0.4', 1.0), ('bm25 b=0', 1.0)]
    """
    with TemporaryDirectory() as temporary:
        target = Path(temporary if folder is None else folder)
        index = _opened_index(systems) if corpus is None else None
        items: Any = corpus if index is None else _ItemsOf(index)
        paths = {"index_path": target / "index" if index is None else index.path, "stage_folder": target / "stages"}
        benchmark = Benchmarker(systems, items, queries, gold, **paths | settings)
        if index is None and folder is None:  # an index that will be gone is not left open in the caller's searchers
            benchmark = replace(benchmark, searchers={name: copy(each) for name, each in benchmark.searchers.items()})
        return benchmark.run()


class _ItemsOf:
    """The items of an index, read anew each time."""

    def __init__(self, index: Generation) -> None:
        self._index = index

    def __iter__(self) -> Iterator[SearchableItem]:
        return self._index.items.stream_live()


def _opened_index(systems: Mapping[str, Entry | BaseRetriever] | Sequence[Entry | BaseRetriever]) -> Generation:
    """Return the index that systems have opened."""
    indexes: dict[Path, Generation] = {}
    for searcher in systems.values() if isinstance(systems, Mapping) else systems:
        with suppress(IndexMissingError):
            generation = None if isinstance(searcher, TrecRun | BaseRetriever) else generation_of(searcher)
            if generation is not None:
                indexes[generation.path] = generation
    if len(indexes) != 1:
        found = f"they have opened {', '.join(map(str, indexes))}" if indexes else "none of the systems has opened an index"
        raise ConfigurationError(f"no corpus is given, and {found}; pass corpus=, such as a DataFrame or a loader")
    return next(iter(indexes.values()))


# Queries of a benchmark with the chains of links behind their hits, for searchers that can explain them.

_QUERIES = 5


def explained_queries(
    searchers: Mapping[str, Entry],
    evaluations: Mapping[str, Evaluation],
    settings: BenchmarkSettings,
    qrels: Mapping[str, Mapping[str, int]],
    baseline: str,
    check: Callable[[Searching], None],
    own: Sequence[str | None],
) -> list[ExplainedQuery]:
    """Explain, for each searcher that can, the queries where it gains most recall over the baseline.

    Args:
        searchers: by name; opened.
        evaluations: by the same names.
        settings: settings of the benchmark; its first cutoff is used for the recall and for the number of hits explained.
        qrels: grades by query and item id.
        baseline: name of the searcher to compare with.
        check: raises an error if a searcher does not search the corpus it was measured on.
        own: per query, the item that is the query itself and does not count; None if there is none.

    Returns:
        At most five queries per searcher; only those with a link to one of the hits.
    """
    explained: list[ExplainedQuery] = []
    for name, searcher in searchers.items():
        if isinstance(searcher, TrecRun) or not isinstance(searcher, Explains) or not searcher.explains:
            continue
        try:
            check(searcher)
            queries_of_searcher = _explained(name, searcher, evaluations, settings, qrels, baseline, own)
            check(searcher)
            explained += queries_of_searcher
        except Exception as error:
            warnings.warn(f"{name}: cannot say why it found what it found ({error})", RetrievalWarning, stacklevel=2)
    return explained


def _explained(
    name: str,
    searcher: Explains,
    evaluations: Mapping[str, Evaluation],
    settings: BenchmarkSettings,
    qrels: Mapping[str, Mapping[str, int]],
    baseline: str,
    own: Sequence[str | None],
) -> list[ExplainedQuery]:
    queries, k, relevant_from = settings.queries, settings.k_values[0], settings.relevant_from
    measure = settings.main_measure
    explained: list[ExplainedQuery] = []
    values, of_baseline = (evaluations[configuration].per_query[measure] for configuration in (name, baseline))
    chosen = np.lexsort((np.arange(len(queries)), -values, of_baseline - values))[:_QUERIES].tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)  # the search over all queries has already warned
        filters = filters_for(searcher, settings.filters)
        texts = [queries[position].text for position in chosen]
        results = search_each(searcher, texts, k + any(own), [filters[position] for position in chosen])
    for position, links in zip(chosen, results, strict=True):
        query = queries[position]
        hits = [hit for hit in links if hit.item.item_id != own[position]][:k]
        explanations = searcher.explain(query.text, hits)
        if any(explanation.steps for by_retriever in explanations for explanation in by_retriever.values()):
            relevant = qrels.get(query.query_id, {})
            explained.append(
                ExplainedQuery(
                    configuration=name,
                    query=query.text,
                    measure=measure,
                    value=float(values[position]),
                    baseline_value=float(of_baseline[position]),
                    hits=[
                        ExplainedHit(hit.item, relevant.get(hit.item.item_id, 0) >= relevant_from, list(by_retriever.values()))
                        for hit, by_retriever in zip(hits, explanations, strict=True)
                    ],
                )
            )
    return explained
