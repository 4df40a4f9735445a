"""A benchmark as it runs: indexes what is missing, searches with every configuration, measures, and judges.

Quality comes from one search per configuration at the largest cutoff. Latency comes from one query at a time on a
seeded sample, after a warm-up, so that it is neither a batch's nor a cold start's. The sample comes first: what language
models answer there is not on disk yet, unless an earlier run or configuration asked the same. With a folder for stages,
what configurations have in common is computed and timed once, and an interrupted run goes on where it stopped. A
configuration that cannot be run does not keep the others from it; the report says why.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from nlp_retrieval.benchmarks.benchmarkable import Benchmarkable, Entry
from nlp_retrieval.benchmarks.cost.figures import Cost
from nlp_retrieval.benchmarks.cost.measuring import Sample, cost_of, measure_alone
from nlp_retrieval.benchmarks.explained import explained_queries
from nlp_retrieval.benchmarks.filters.searching import filters_for, warn_of_filters
from nlp_retrieval.benchmarks.judging import Entrant, judged, masks_of
from nlp_retrieval.benchmarks.manifest import manifest_of, run_identity
from nlp_retrieval.benchmarks.pinned import PinnedCorpus
from nlp_retrieval.benchmarks.results import BenchmarkReport, BenchmarkRun, FailedConfiguration
from nlp_retrieval.benchmarks.retriever_ranks import RetrieverRanks, gold_rows_of
from nlp_retrieval.benchmarks.settings import BenchmarkSettings
from nlp_retrieval.benchmarks.spread.spreading import Spread, spread
from nlp_retrieval.benchmarks.stages.answering import Answered, answer_stage
from nlp_retrieval.benchmarks.stages.shared import SharedStages
from nlp_retrieval.benchmarks.stages.store import StageStore
from nlp_retrieval.benchmarks.stages.timing import measure_by_stages
from nlp_retrieval.benchmarks.trec_run import TrecRun
from nlp_retrieval.core.blocks.workers import working
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.index.generation import Generation
from nlp_retrieval.core.models import Query, RetrievalResult
from nlp_retrieval.core.search.results import no_collection
from nlp_retrieval.core.search.stages import Stages, using_stages
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import IndexMismatchError, IndexMissingError, RetrievalError
from nlp_retrieval.evaluation.answers.evaluator import AnswerEvaluator
from nlp_retrieval.evaluation.evaluator import Evaluation, RetrievalEvaluator
from nlp_retrieval.evaluation.rankings import ListsBuilder, Ranking
from nlp_retrieval.lm.counting import added, record_calls
from nlp_retrieval.pipelines.qa.question_answering import AnsweredQuestion


def run_searchers(settings: BenchmarkSettings, on_progress: Callable[[str], None] | None = None) -> BenchmarkRun:
    """Index what is missing, search, and measure.

    A configuration that raises is left out, and the report says why. The baseline is then the first that did not. All
    are measured on one corpus; a configuration that searches another one is left out so.

    Args:
        settings: of the benchmark.
        on_progress: told what is being done.

    Raises:
        Exception: what the first configuration raised, where none could be run.
        IndexConflictError: the corpus does not have the fingerprint that was asked for.
        GoldError: the gold names items that are not in the corpus.
    """
    running = _Running(settings, on_progress or (lambda _: None))
    running.index()
    queries, pinned = settings.queries, running.pinned
    corpus = pinned.corpus(settings.loader)
    row_of = corpus.rows()
    evaluator = RetrievalEvaluator(settings.gold, corpus.item_ids, corpus.titles, settings.k_values)
    labels = _labels(queries, settings.group_by)
    families = [query.family for query in queries]
    qrels = evaluator.qrels()
    titles = dict(zip(corpus.item_ids, corpus.titles, strict=True))
    warn_of_filters(pinned.generation, dict(zip(evaluator.query_ids, settings.filters, strict=True)), qrels, row_of)
    lists = ListsBuilder(evaluator.query_ids, [query.text for query in queries], families, labels, qrels, titles)
    alone = RetrieverRanks(len(queries), *gold_rows_of(qrels, row_of), len(corpus.item_ids))
    right = settings.right_answers
    answer_evaluator = AnswerEvaluator(right) if right else None
    answers: dict[str, list[AnsweredQuestion]] = {}
    entrants: dict[str, Entrant] = {}
    evaluations: dict[str, Evaluation] = {}
    identities: dict[str, Config] = {}
    for name, searcher in running.left().items():
        try:
            found = running.searched(name, searcher, row_of, alone)
            rows = [[row_of[item_id] for item_id, _ in ranking] for ranking in found.rankings]
            evaluation = evaluator.evaluate_lists(rows)
            if answer_evaluator is not None and found.answered is not None:
                judged_answers = answer_evaluator.evaluate(found.answered.answers)
                evaluation = replace(evaluation, per_query=evaluation.per_query | judged_answers.per_query)
            fingerprint = searcher.fingerprint
            identities[name] = run_identity(searcher, fingerprint)
            entrants[name] = Entrant(without_secrets(searcher.config), fingerprint, found.cost)
        except Exception as error:
            running.fail(name, error)
            continue
        evaluations[name] = evaluation
        if found.answered is not None:
            answers[name] = found.answered.questions
        if found.results is None:
            lists.add_rankings(name, found.rankings, titles)
        else:
            lists.add(name, found.results)
    running.refuse_nothing()
    lists.add_passages(pinned.passages(lists.without_passage(), row_of))
    baseline = settings.baseline_among(entrants)
    ran = {name: settings.searchers[name] for name in entrants}
    with using_stages(running.stages):
        explained = explained_queries(ran, evaluations, settings, qrels, baseline, pinned.check)
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
    )
    groups = masks_of(labels, _ordered(queries, settings.group_by))
    report = judged(report, entrants, evaluations, families, groups, settings.seed)
    return BenchmarkRun(
        report, lists.built(), {name: evaluations[name].per_query for name in entrants}, alone.ranks(), answers, right
    )


@dataclass(frozen=True)
class _Found:
    """What a configuration found: its lists as ids and scores, and as the results that they are of.

    A run of another tool has neither cost nor results. ``answered`` is None where nothing is answered.
    """

    cost: Cost | None
    rankings: list[Ranking]
    results: list[list[RetrievalResult]] | None
    answered: Answered | None


class _Running:
    """What all configurations of a run share: the stages, the corpus, and which of them have failed so far."""

    def __init__(self, settings: BenchmarkSettings, say: Callable[[str], None]) -> None:
        self._settings = settings
        self._say = say
        self._errors: dict[str, Exception] = {}
        folder = settings.stage_folder
        self._shared = SharedStages(StageStore(folder)) if folder is not None else None
        self.pinned = PinnedCorpus(settings.corpus_fingerprint)
        self.spread = Spread()

    @property
    def stages(self) -> Stages:
        """Those that are shared, or plain ones."""
        return self._shared or Stages()

    def left(self) -> dict[str, Entry]:
        """The configurations that have not failed."""
        return {name: searcher for name, searcher in self._settings.searchers.items() if name not in self._errors}

    def failed(self) -> list[FailedConfiguration]:
        """Those that have, in the order in which they were named."""
        searchers = self._settings.searchers
        return [_failed(name, searchers[name], self._errors[name]) for name in searchers if name in self._errors]

    def reasons(self) -> dict[str, str]:
        """Why they have."""
        return {failed.name: failed.reason for failed in self.failed()}

    def fail(self, name: str, error: Exception) -> None:
        """Leave a configuration out."""
        self._errors[name] = error
        self._say(f"{name}: failed: {_reason(error)}")

    def refuse_nothing(self) -> None:
        """Where nothing could be run there is no report, and the first reason is the reason."""
        if not self.left():
            raise next(self._errors[name] for name in self._settings.searchers)

    def index(self) -> None:
        """Bring the index to hold what every configuration needs, and open it; workers then compute what is searched with."""
        with using_stages(self.stages), working(self._settings.workers):
            for name, searcher in self.left().items():
                if isinstance(searcher, TrecRun):
                    continue
                try:
                    if self.pinned.generation is None or not self._opens(searcher):
                        self._say(f"{name}: indexing")
                        searcher.index(self._settings.loader, self._settings.index_path)
                    self.pinned.check(searcher)
                except Exception as error:
                    self.fail(name, error)
            self.refuse_nothing()
            if self._settings.workers.elsewhere and self._shared is not None and self.pinned.generation is not None:
                self._spread(self._shared, self.pinned.generation)

    def _spread(self, shared: SharedStages, generation: Generation) -> None:
        """Have workers compute what the configurations will search with."""
        self.spread = spread(self.left(), self._sample, self._settings.k_values[-1], shared, generation, self._say)
        for stage, reason in self.spread.here.items():
            self._say(f"{stage}: computed by this process: {reason}")

    def _sample(self, searcher: Benchmarkable) -> Sample:
        settings = self._settings
        texts = [query.text for query in settings.queries]
        return Sample.draw(texts, settings.latency_queries, settings.seed, filters_for(searcher, settings.filters))

    def _opens(self, searcher: Benchmarkable) -> bool:
        try:
            searcher.open(self._settings.index_path)
        except (IndexMissingError, IndexMismatchError):
            return False
        return True

    def searched(self, name: str, searcher: Entry, row_of: Mapping[str, int], alone: RetrieverRanks) -> _Found:
        """Search with a configuration, and answer; what retrievers gave on the way is added to ``alone``."""
        queries, depth = self._settings.queries, self._settings.k_values[-1]
        if isinstance(searcher, TrecRun):
            self._say(f"{name}: reading {searcher.path}")
            rankings = searcher.rankings([query.query_id for query in queries], row_of, depth)
            return _Found(None, rankings, None, self._answered(name, self.pinned.results(rankings, row_of)))
        self._say(f"{name}: searching {len(queries):,} queries")
        self.pinned.check(searcher)
        sample = self._sample(searcher)
        with record_calls() as asked:
            if self._shared is None:
                measured = measure_alone(searcher, sample, depth)
            else:
                measured = measure_by_stages(searcher, self._shared, sample, depth)
            answered = self._answered(name, measured.results)
        answering = (answered.cost, answered.calls) if answered is not None else ()
        everything = added(asked.by_model, self.spread.asked.get(name, {}))
        cost = cost_of(searcher.index_records(), everything, measured, *answering)
        self.pinned.check(searcher)
        if measured.lists is not None:
            alone.add(name, measured.candidates, measured.lists, sample.filters)
        with no_collection():
            rankings = self.pinned.rankings(searcher, measured.results, row_of)
        return _Found(cost, rankings, measured.results, answered)

    def _answered(self, name: str, results: Sequence[Sequence[RetrievalResult]]) -> Answered | None:
        answerer, queries = self._settings.answerer, self._settings.queries
        if answerer is None:
            return None
        self._say(f"{name}: answering {len(queries):,} questions")
        store = self._shared.store if self._shared is not None else None
        return answer_stage(answerer, [query.text for query in queries], results, store)

    def close(self) -> None:
        """Say what the run leaves on disk, and whether the index is still the one that was searched."""
        self.pinned.warn_of_changes()
        if self._shared is not None:
            store = self._shared.store
            self._say(f"results of stages: {store.folder}, {store.bytes() / 1e6:,.1f} MB")


def _reason(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return str(without_secrets(text if isinstance(error, RetrievalError) else f"{type(error).__name__}: {text}"))


def _failed(name: str, searcher: Entry, error: Exception) -> FailedConfiguration:
    raised = "" if isinstance(error, RetrievalError) else "".join(traceback.format_exception(error))
    config = without_secrets(searcher.config)
    return FailedConfiguration(name, config, type(error).__name__, _reason(error), without_secrets(raised))


def _labels(queries: Sequence[Query], key: str) -> list[str | None]:
    """The group of each query; None where it has none."""
    values = [query.metadata.get(key) for query in queries]
    return [f"{key}={value}" if isinstance(value, str | int) else None for value in values]


def _ordered(queries: Sequence[Query], key: str) -> list[str]:
    """The groups as they are shown: numbers in order, then texts."""
    values = [query.metadata.get(key) for query in queries]
    distinct = {value for value in values if isinstance(value, str | int)}
    return [f"{key}={value}" for value in sorted(distinct, key=lambda value: (str(type(value)), value))]
