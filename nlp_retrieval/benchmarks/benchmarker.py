"""Running a benchmark: index missing parts, search with every configuration, measure, and judge.

Quality comes from one search per configuration, of a depth that is a setting: no measure changes the lists of another.
Latency comes from one query at a time on a seeded sample, after a warm-up, so it reflects neither batches nor a cold start.
The index that is opened first decides what the corpus is; a searcher without one is held to it by its results.
With a stage folder, work shared by configurations is computed once, and an interrupted run continues where it stopped. A
configuration that cannot be run does not stop the others; the report says why it failed.
"""

from __future__ import annotations

import math
import os
import platform
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import finalize

import numpy as np

from nlp_retrieval.benchmarks.checked import keys_of
from nlp_retrieval.benchmarks.cost import Cost
from nlp_retrieval.benchmarks.entrants import Entry, TrecRun, as_searcher, generation_of, grouped, refuse_filters, search_each
from nlp_retrieval.benchmarks.environment import describe_environment
from nlp_retrieval.benchmarks.evaluate import Judged
from nlp_retrieval.benchmarks.grid import build_grid
from nlp_retrieval.benchmarks.results import (
    BenchmarkReport,
    BenchmarkRun,
    Counted,
    Entrant,
    FailedConfiguration,
    judged,
    masks_of,
)
from nlp_retrieval.benchmarks.settings import BenchmarkSettings, GivenItems, group_labels
from nlp_retrieval.benchmarks.shared_stages import Answered, ConfigurationTask, SharedStages, answer_stage, search_elsewhere
from nlp_retrieval.benchmarks.stage_store import StageStore
from nlp_retrieval.benchmarks.timing import LATENCY_K, cost_of, drawn_sample, timed
from nlp_retrieval.core.components.component import Component, Config, digest_of_key, with_held
from nlp_retrieval.core.context import changed_context, use_workers
from nlp_retrieval.core.files.atomic import check_folder_for_output
from nlp_retrieval.core.files.frames import BaseLoader, Items, Queries
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.index.generation import MANIFEST_FILE, Generation
from nlp_retrieval.core.index.items import ItemsDigest
from nlp_retrieval.core.models import Query, RetrievalResult, SearchableItem, no_collection
from nlp_retrieval.core.progress_bars import progress, tracked_each
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.core.search.retriever import BaseRetriever, Stages
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import (
    ConfigurationError,
    GoldError,
    IndexConflictError,
    IndexMismatchError,
    IndexMissingError,
    ItemError,
    RetrievalError,
    RetrievalWarning,
)
from nlp_retrieval.evaluation.answers import AnswerEvaluator
from nlp_retrieval.evaluation.evaluator import Evaluation, RetrievalEvaluator
from nlp_retrieval.evaluation.gold import without_missing
from nlp_retrieval.evaluation.rankings import ListsBuilder, Ranking, are_passages, own_ids
from nlp_retrieval.evaluation.trec import checked_scores
from nlp_retrieval.lm.answering import AnsweredQuestion
from nlp_retrieval.lm.counting import record_calls
from nlp_retrieval.text.printing import counted

T = TypeVar("T")


@dataclass(frozen=True)
class _Corpus:
    """The corpus of a run: ids and titles by row, empty where there is none, and the index if a searcher has one."""

    item_ids: list[str]
    titles: list[str]
    fingerprint: str
    generation: Generation | None

    @classmethod
    def of(cls, generation: Generation | None, loader: BaseLoader) -> _Corpus:
        """Return the corpus of an index or, if there is none, of a loader."""
        if generation is not None:
            items, fingerprint = generation.items, generation.manifest.corpus.fingerprint
            return cls(items.ids(), items.titles(), fingerprint, generation)
        digest = ItemsDigest()
        read = [(item.item_id, item.title) for item in digest.passing(loader.stream())]
        return cls([item_id for item_id, _ in read], [title for _, title in read], digest.hexdigest(), None)

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each item by its id."""
        return {item_id: row for row, item_id in enumerate(self.item_ids) if item_id}

    def items(self, item_ids: Iterable[str]) -> dict[str, SearchableItem]:
        """Return those of the items that the index has, by id; none without an index."""
        rows = [self.rows[item_id] for item_id in item_ids if item_id in self.rows]
        if self.generation is None or not rows:
            return {}
        return {item.item_id: item for item in self.generation.items.items(np.array(rows, np.int64))}

    def results(self, rankings: Sequence[Ranking]) -> list[list[RetrievalResult]]:
        """Return rankings with their items, one list per query; empty lists without an index."""
        items = self.items(dict.fromkeys(item_id for ranking in rankings for item_id, _ in ranking))
        return [
            [RetrievalResult(item=items[item_id], score=score) for item_id, score in ranking if item_id in items]
            for ranking in rankings
        ]

    def rankings(self, results: Sequence[Sequence[RetrievalResult]]) -> list[Ranking]:
        """Return results as ids and scores, one list per query."""
        rankings = [[(hit.item.item_id, hit.score) for hit in hits] for hits in results]
        unknown = {item_id: None for ranking in rankings for item_id, _ in ranking if item_id not in self.rows}
        if unknown:
            raise ItemError(
                f"it found {len(unknown):,} items that are not in the corpus of {len(self.rows):,} (the first: "
                f"{next(iter(unknown))!r}); let it index the corpus of this benchmark"
            )
        return rankings


def run_searchers(settings: BenchmarkSettings, on_progress: Callable[[str], None] | None = None) -> BenchmarkRun:
    """Index missing parts, search, and measure."""
    run = _Benchmark(settings, on_progress or (lambda _: None))
    with changed_context(stages=run.stages):
        with use_workers(settings.processes):
            run.check_ready()
            run.judge_by(_Corpus.of(run.index(), settings.loader))
            if settings.processes.elsewhere:
                run.search_elsewhere()
        for name, searcher in tracked_each("configurations", list(run.left().items())):
            with run.attempt(name):
                run.search(name, searcher)
        run.raise_if_all_failed()
        return run.finished()


class _Benchmark:
    """A benchmark while it runs: first its corpus and gold, then one configuration after another."""

    def __init__(self, settings: BenchmarkSettings, say: Callable[[str], None]) -> None:
        self.settings, self.say = settings, say
        self.folder = Path(settings.index_path or "")
        self.store = None if settings.stage_folder is None else StageStore(settings.stage_folder)
        self.stages = Stages() if self.store is None else SharedStages(self.store)
        self.errors: dict[str, Exception] = {}
        self.entrants: dict[str, Entrant] = {}
        self.evaluations: dict[str, Evaluation] = {}
        self.identities: dict[str, Config] = {}
        self.answers: dict[str, list[AnsweredQuestion]] = {}
        self.here: dict[str, str] = {}

    def left(self) -> dict[str, Entry]:
        """The configurations that have not failed."""
        return {name: searcher for name, searcher in self.settings.searchers.items() if name not in self.errors}

    @contextmanager
    def attempt(self, name: str) -> Iterator[None]:
        """Leave a configuration out if it raises an error; gold that no configuration could find ends the run."""
        try:
            yield
        except GoldError:
            raise
        except Exception as error:
            self.errors[name] = error
            self.say(f"{name}: failed: {_reason(error)}")

    def raise_if_all_failed(self) -> None:
        """Raise the first error if no configuration could be run: then there is no report."""
        if not self.left():
            raise next(self.errors[name] for name in self.settings.searchers)

    def check_ready(self) -> None:
        """Leave out configurations that cannot run, before anything is computed: a package, key or model is missing."""
        settings = self.settings
        if not os.path.lexists(self.folder / MANIFEST_FILE):  # an existing index need not be writable
            check_folder_for_output(self.folder)
        for part in with_held(settings.answerer) if settings.answerer is not None else ():
            part.check_ready()
        has_filters = any(where is not None for where in settings.filters)
        for name, searcher in self.left().items():
            with self.attempt(name):
                if has_filters and not isinstance(searcher, TrecRun):
                    refuse_filters(searcher)
                if isinstance(searcher, Component):
                    for part in with_held(searcher):
                        part.check_ready()
                    searcher.fingerprint  # noqa: B018 -- of the files of all its models, so that these are found now
        self.raise_if_all_failed()

    def index(self) -> Generation | None:
        """Complete the index for every configuration, open it, and return it; None if no searcher has one."""
        held = None
        for name, searcher in self.left().items():
            if isinstance(searcher, TrecRun):
                continue
            with self.attempt(name):
                if held is None or not self._opens(searcher):
                    self.say(f"{name}: indexing")
                    searcher.index(self.settings.loader, self.folder)
                opened = generation_of(searcher)
                held = held or opened
                _refuse_other_corpus(held, opened)
        self.raise_if_all_failed()
        return held

    def _opens(self, searcher: BaseSearcher) -> bool:
        try:
            searcher.open(self.folder)
        except (IndexMissingError, IndexMismatchError):
            return False
        return True

    def judge_by(self, corpus: _Corpus) -> None:
        """Determine the judged queries and gold, given the corpus: missing gold, and queries that are passages themselves."""
        settings, self.corpus = self.settings, corpus
        evaluator = _evaluator(settings, corpus.item_ids, corpus.titles)
        self.missing, self.dropped = evaluator.missing, list[str]()
        if self.missing is not None:
            done = "are taken out of the gold" if settings.gold_missing == "drop" else "count as not found"
            warnings.warn(f"{self.missing.said}; they {done}", RetrievalWarning, stacklevel=4)
        if self.missing is not None and settings.gold_missing == "drop":
            gold = without_missing(settings.gold, corpus.item_ids, corpus.titles, settings.relevant_from)
            kept = {wanted.query_id for wanted in gold}
            self.dropped = [query.query_id for query in settings.queries if query.query_id not in kept]
            settings = settings.loaded(queries=[query for query in settings.queries if query.query_id in kept], gold=gold)
            evaluator = _evaluator(settings, corpus.item_ids, corpus.titles)
        self.evaluator, self.qrels = evaluator, evaluator.qrels()
        self.ids, self.texts = [query.query_id for query in settings.queries], [query.text for query in settings.queries]
        self.families, self.labels = [q.family for q in settings.queries], group_labels(settings.queries, settings.group_by)
        alike = {query_id for query_id in self.ids if query_id in corpus.rows}
        items = settings.loader.stream() if alike and corpus.generation is None else corpus.items(alike).values()
        texts = {item.item_id: (item.content, item.text) for item in items if item.item_id in alike}
        ignore = are_passages(settings.queries, texts, settings.ignore_identical_ids)
        self.settings = settings.loaded(ignore_identical_ids=ignore)
        self.own = own_ids(self.ids, alike, self.qrels, ignore=ignore)
        self.n_own = sum(own is not None for own in self.own)
        self.depth = settings.depth + (self.n_own > 0)  # one more, as one may be the query itself
        if self.n_own:
            of_all = f"{self.n_own:,} of {len(settings.queries):,} queries are items of the corpus"
            self.say(f"{of_all}; a hit that is the query itself does not count")
        _warn_of_filters(corpus.generation, dict(zip(self.ids, settings.filters, strict=True)), self.qrels, corpus.rows)
        self.titles = dict(zip(corpus.item_ids, corpus.titles, strict=True))
        about = self.ids, self.texts, self.families, self.labels
        self.lists = ListsBuilder(*about, settings.gold, self.qrels, self.titles)

    def search_elsewhere(self) -> None:
        """Let workers compute the stages of the searches, if there is a place for the stages."""
        if self.store is None or self.corpus.generation is None:
            return
        task = ConfigurationTask(str(self.corpus.generation.path), str(self.store.folder.absolute()), self.depth)
        searchers = {name: one for name, one in self.left().items() if not isinstance(one, TrecRun)}
        self.here = search_elsewhere(searchers, task, self.texts, self.settings.filters, self.say)

    def search(self, name: str, searcher: Entry) -> None:
        """Search with a configuration, answer, and evaluate; what was measured is kept if all of it succeeds."""
        cost, results = None, list[list[RetrievalResult]]()
        if isinstance(searcher, TrecRun):
            self.say(f"{name}: reading {searcher.path}")
            rankings = self._counting(searcher.rankings(self.ids, self.corpus.rows, self.depth), lambda pair: pair[0])
            answered = self._answered(name, self.corpus.results(rankings))
        else:
            results, answered, cost = self._searched(name, searcher)
            with no_collection():
                rankings = self.corpus.rankings(results)
        for query_id, ranking in zip(self.ids, rankings, strict=True):
            checked_scores(query_id, [score for _, score in ranking])  # what no file can hold fails here, and alone
        rows = [[self.corpus.rows[item_id] for item_id, _ in ranking] for ranking in rankings]
        evaluation = self.evaluator.evaluate_lists(rows)
        if answered is not None and (right := self.settings.right_answers):
            of_answers = AnswerEvaluator(right).evaluate(answered.answers)
            evaluation = replace(evaluation, per_query=evaluation.per_query | of_answers.per_query)
        identity = run_identity(searcher, searcher.fingerprint)
        if isinstance(searcher, TrecRun):
            self.lists.add_rankings(name, rankings, self.titles)
        else:
            self.lists.add(name, results)
        self.entrants[name] = Entrant(without_secrets(searcher.config), identity["fingerprint"], cost)
        self.evaluations[name], self.identities[name] = evaluation, identity
        if answered is not None:
            self.answers[name] = answered.questions

    def _searched(self, name: str, searcher: BaseSearcher) -> tuple[list[list[RetrievalResult]], Answered | None, Cost]:
        """Time a sample of the queries one by one, search with all of them, and answer."""
        self.say(f"{name}: searching {counted(len(self.texts), 'query', 'queries')}")
        if hasattr(searcher, "expect"):  # it keeps what it does for each question, under the question's id
            searcher.expect(self.settings.queries)
        filters = self.settings.filters
        sample = drawn_sample(self.texts, self.settings.latency_queries, self.settings.seed, filters)
        with record_calls() as asked:
            timing = timed(searcher, *sample, self.store)
            with record_calls() as searched:
                lists = search_each(searcher, self.texts, self.depth, filters)
            results = self._counting(lists, lambda hit: hit.item.item_id)
            answered = self._answered(name, results)
        _refuse_other_corpus(self.corpus.generation, generation_of(searcher))
        cost = cost_of(searcher.index_records(), timing, asked.by_model, searched.by_model, len(self.texts), answered)
        return results, answered, cost

    def _counting(self, lists: Sequence[Sequence[T]], id_of: Callable[[T], str]) -> list[list[T]]:
        """Return the hits that count, up to the depth."""
        pairs = zip(self.own, lists, strict=True)
        kept = ([*hits] if own is None else [hit for hit in hits if id_of(hit) != own] for own, hits in pairs)
        return [hits[: self.settings.depth] for hits in kept]

    def _answered(self, name: str, results: Sequence[Sequence[RetrievalResult]]) -> Answered | None:
        if self.settings.answerer is None:
            return None
        self.say(f"{name}: answering {counted(len(self.texts), 'question')}")
        return answer_stage(self.settings.answerer, self.texts, results, self.store)

    def finished(self) -> BenchmarkRun:
        """Compare the configurations, and return the run."""
        settings = self.settings
        absent = self.corpus.items(self.lists.without_passage())
        self.lists.add_passages({item_id: item.content for item_id, item in absent.items()})
        failed = [_failed(name, each, self.errors[name]) for name, each in settings.searchers.items() if name in self.errors]
        report = BenchmarkReport(
            configurations=[],
            baseline=settings.baseline_among(self.entrants),
            k_values=list(settings.k_values),
            query_counts={},
            n_items=len(self.corpus.rows),
            manifest=self._manifest({failure.name: failure.reason for failure in failed}),
            prices=settings.prices,
            failed=failed,
            counted=self._counted(),
        )
        groups = masks_of(self.labels, group_order(settings.queries, settings.group_by))
        with progress("comparing with the baseline", None):
            report = judged(report, self.entrants, self.evaluations, self.families, groups, settings.seed, settings.resamples)
        per_query = {name: evaluation.per_query for name, evaluation in self.evaluations.items()}
        return BenchmarkRun(report, self.lists.built(), per_query, self.answers, settings.right_answers)

    def _manifest(self, failed: Mapping[str, str]) -> Config:
        """Return what the run was, as plain values, without anything that looks like a key."""
        settings = self.settings
        asked = [[query.query_id, query.text, query.family] for query in settings.queries]
        written = sum(query.is_synthetic for query in settings.queries)
        filters = sorted([query.query_id, where] for query, where in zip(settings.queries, settings.filters, strict=True))
        right = [answer.model_dump(mode="json") for answer in settings.right_answers]
        recorded = {name: without_secrets(value) for name, value in settings.record().items() if name not in _ELSEWHERE}
        searched_by = {"workers": settings.workers, "ray": settings.ray, "here": without_secrets(dict(self.here))}
        return {
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "corpus": {
                "loader": without_secrets(settings.loader.config),
                "fingerprint": self.corpus.fingerprint,
                "items": len(self.corpus.rows),
            },
            "queries": len(settings.queries),
            "query_fingerprint": digest_of_key([asked, self.qrels]).hex(),
            **({"synthetic": written} if written else {}),
            "index": str(settings.index_path),
            **recorded,
            "filters": digest_of_key(filters).hex() if any(settings.filters) else None,
            "answer_models": settings.answerer.provenance() if settings.answerer is not None else {},
            "right_answers": digest_of_key(right).hex() if right else None,
            "main": settings.main_measure,
            "latency": {"queries": min(settings.latency_queries, len(settings.queries)), "k": LATENCY_K},
            "searchers": {
                name: {"config": without_secrets(searcher.config)}
                | ({"failed": failed[name]} if name in failed else self.identities[name])
                for name, searcher in settings.searchers.items()
            },
            "configuration": None if isinstance(settings.loader, GivenItems) else _configuration(settings),
            **({"searched_by": searched_by, "timed_on": platform.node()} if settings.processes.elsewhere else {}),
        } | describe_environment()

    def _counted(self) -> Counted:
        """Return the queries and judgements behind the figures, and those excluded."""
        settings, missing = self.settings, self.missing
        hopeless = [name for name, grades in self.qrels.items() if max(grades.values(), default=0) < settings.relevant_from]
        ids: dict[str, Sequence[str]] = {"without_relevant": hopeless, "unjudged": settings.unjudged}
        ids |= {"unasked": settings.unasked, "dropped": self.dropped}
        first = {what: several[0] for what, several in ids.items() if several}
        return Counted(
            queries=len(self.ids),
            missing_documents=missing.documents if missing is not None else 0,
            missing_queries=missing.queries if missing is not None else 0,
            gold_missing=settings.gold_missing,
            own_ids=self.n_own,
            first=first | ({"missing_documents": missing.first} if missing is not None else {}),
            **{what: len(several) for what, several in ids.items()},
        )


def _refuse_other_corpus(held: Generation | None, opened: Generation | None) -> None:
    """Raise an error if a searcher has opened an index of other items than that of the run."""
    if held is None or opened is None or opened.manifest.corpus.fingerprint == held.manifest.corpus.fingerprint:
        return
    ours, theirs = held.manifest.corpus, opened.manifest.corpus
    raise IndexConflictError(
        f"{opened.path}: this configuration searches {theirs.n_items:,} items (fingerprint {theirs.fingerprint[:12]}), the "
        f"others {ours.n_items:,} ({ours.fingerprint[:12]}), and all configurations of a run are measured on the same items; "
        "let nothing else write to the index, or benchmark a copy of it"
    )


def _warn_of_filters(
    generation: Generation | None,
    filters: Mapping[str, Where | None],
    qrels: Mapping[str, Mapping[str, int]],
    row_of: Mapping[str, int],
) -> None:
    """Report queries that can find nothing, or only part of their gold, because of their filters."""
    query_ids = list(filters)
    empty: list[str] = []
    outside: list[tuple[str, str]] = []
    for where, positions in grouped(filters.values()):
        mask = generation.items.mask(where) if where is not None and generation is not None else None
        theirs = [query_ids[position] for position in positions]
        if mask is not None and not mask.any():
            empty += theirs
        elif mask is not None:
            gold = [(query_id, item) for query_id in theirs for item, grade in qrels.get(query_id, {}).items() if grade > 0]
            outside += [(query_id, item) for query_id, item in gold if item in row_of and not mask[row_of[item]]]
    if empty:
        warnings.warn(
            f"{len(empty):,} of {len(filters):,} queries have a filter that no item meets (the first: {empty[0]!r}, "
            f"{filters[empty[0]]}); they find nothing, and count",
            RetrievalWarning,
            stacklevel=3,
        )
    if outside:
        query, item = outside[0]
        warnings.warn(
            f"{len(outside):,} gold items do not meet the filter of their query, so they cannot be found (the first: {item!r} "
            f"of {query!r}, {filters[query]}); they count as missed",
            RetrievalWarning,
            stacklevel=3,
        )


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


def group_order(queries: Sequence[Query], key: str) -> list[str]:
    """The groups in display order: numbers in order, including those written as text, then texts."""

    def place(label: str) -> tuple[bool, float, str]:
        try:
            number = float(label.removeprefix(f"{key}="))
        except ValueError:
            number = math.nan
        return (not math.isfinite(number), number if math.isfinite(number) else 0.0, label)

    return sorted({label for label in group_labels(queries, key) if label is not None}, key=place)


_ELSEWHERE = ("searchers", "loader", "index_path", "stage_folder", "seed", "latency_queries")
"""Settings that a manifest records under other names, or not at all."""


def _configuration(settings: BenchmarkSettings) -> Config | None:
    """Return the settings as a configuration file has them; None if the queries were given in Python."""
    if settings.query_loader is None:
        return None
    record, keys = settings.record() | {"main": settings.main_measure}, keys_of(BenchmarkSettings)
    left_out = {"stage_folder", *(() if settings.measures is None else ("k_values",))}
    plain: Config = without_secrets(
        {keys[name]: value for name, value in record.items() if value is not None and name not in left_out}
    )
    return plain


def run_identity(searcher: Entry, fingerprint: str) -> Config:
    """Return what a configuration depends on besides its parameters: indexes, and sources of models."""
    identity: Config = {"fingerprint": fingerprint}
    if isinstance(searcher, TrecRun):
        return identity
    retrievers = [record.identity for record in searcher.index_records()]
    return identity | {"retrievers": retrievers, "models": searcher.provenance()}


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
            **settings: Any,
        ) -> None: ...

    @staticmethod
    def grid(
        searcher: Mapping[str, Any] | BaseSearcher,
        vary: Mapping[str, Any],
        skip: Sequence[Mapping[str, Any]] = (),
    ) -> dict[str, BaseSearcher]:
        """Return searchers for all combinations of some parameters, by name, for use in a benchmark.

        The arguments are those of ``grid`` in a configuration file; values may be components too. For instance
        ``Benchmarker.grid(bm25 + dense, {"retrievers.bm25.k1": [0.9, 1.2]})``.

        Args:
            searcher: the settings shared by all, or a searcher that has them.
            vary: values by dotted path into the settings.
            skip: combinations to leave out.

        Raises:
            ConfigurationError: a path does not exist, an axis or a skip is invalid, or a value is not valid.
        """
        return build_grid(searcher, vary, skip).searchers

    def run(self) -> BenchmarkRun:
        """Index missing parts, search, and measure.

        A configuration that raises an error is left out, and the report says why. The baseline is then the first remaining one.
        All are measured on one corpus; a configuration that searches another one is left out as well.

        Raises:
            Exception: the error of the first configuration, if none could be run.
            GoldError: the gold names items that are not in the corpus.
        """
        folder = self.index_path
        if folder is None:
            folder = mkdtemp(prefix="nlp_retrieval-index-")
            finalize(self, rmtree, folder, ignore_errors=True)
        return run_searchers(self.loaded(index_path=folder), self.on_progress)


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
        systems: searchers, retrievers, programs (:class:`HoverMultiHop`), and runs of other tools (:class:`TrecRun`); by name,
            or a list, which are named by their parts. The first is the baseline.
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
        items: Any = corpus if index is None else GivenItems(index)
        paths = {"index_path": target / "index" if index is None else index.path, "stage_folder": target / "stages"}
        benchmark = Benchmarker(systems, items, queries, gold, **paths | settings)
        if index is None and folder is None:  # an index that will be gone is not left open in the caller's searchers
            benchmark = replace(benchmark, searchers={name: copy(each) for name, each in benchmark.searchers.items()})
        return benchmark.run()


def _opened_index(systems: Mapping[str, Entry | BaseRetriever] | Sequence[Entry | BaseRetriever]) -> Generation:
    """Return the index that systems have opened."""
    indexes: dict[Path, Generation] = {}
    for searcher in systems.values() if isinstance(systems, Mapping) else systems:
        with suppress(IndexMissingError):
            generation = None if isinstance(searcher, TrecRun | BaseRetriever) else generation_of(as_searcher(searcher))
            if generation is not None:
                indexes[generation.path] = generation
    if len(indexes) != 1:
        opened = f"they have opened {', '.join(map(str, indexes))}" if indexes else "none of the systems has opened an index"
        raise ConfigurationError(f"no corpus is given, and {opened}; pass corpus=, such as a DataFrame or a loader")
    return next(iter(indexes.values()))
