"""Settings of a benchmark: checked once, never changed, and passed whole to all code that runs, plans or records it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from nlp_retrieval.benchmarks.benchmarkable import Entry
from nlp_retrieval.benchmarks.cost import Prices
from nlp_retrieval.benchmarks.filters import check_where_from, filters_of
from nlp_retrieval.core.components.component import BaseLoader, Component, Config
from nlp_retrieval.core.components.registry import require_distinct_names
from nlp_retrieval.core.context import THIS_PROCESS, Workers
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.models import Gold, Query
from nlp_retrieval.core.queries import check_k, first_repeated
from nlp_retrieval.core.unicode import find_lone_surrogate, lone_surrogate_message
from nlp_retrieval.errors import ConfigurationError, GoldError, QueryError, nearest
from nlp_retrieval.evaluation.answers import AnswerEvaluator, GoldAnswer, gold_answers
from nlp_retrieval.evaluation.evaluator import measure_names
from nlp_retrieval.evaluation.gold import GoldMissing
from nlp_retrieval.lm.answering import BaseAnswerer

# Arguments of a benchmark: searchers by name, a loader, queries, gold and cutoffs, with checks of their types.


def check_kinds(searchers: object, loader: object, queries: object, gold: object, k_values: object) -> None:
    """Raise an error for arguments of the wrong type, and show the right form.

    Raises:
        ConfigurationError: the searchers are not a mapping or are empty, the loader is no loader, or the cutoffs are no list.
        QueryError: the queries are not a list of queries.
        GoldError: the gold is not a list of gold.
    """
    if not isinstance(searchers, Mapping):
        raise ConfigurationError(f"searchers are given by name, not as {type(searchers).__name__}; write {{'name': searcher}}")
    if not searchers:
        raise ConfigurationError("a benchmark needs at least one searcher")
    if not isinstance(loader, BaseLoader):
        raise ConfigurationError(f"the corpus is given by a loader, not as {type(loader).__name__}; write JsonlLoader(path)")
    if not isinstance(k_values, Collection) or isinstance(k_values, str):
        raise ConfigurationError(f"k_values={k_values!r}: a list is expected; write [{k_values!r}]")
    _check_list(queries, Query, "queries", QueryError)
    _check_list(gold, Gold, "gold", GoldError)


def _check_list(given: object, kind: type, name: str, error: type[QueryError | GoldError]) -> None:
    if isinstance(given, str) or not isinstance(given, Collection):
        raise error(f"{name}: a list of {kind.__name__} is wanted, and {type(given).__name__} is given; write [...]")
    for place, one in enumerate(given):
        if not isinstance(one, kind):
            raise error(f"{name}[{place}] is {type(one).__name__}, not {kind.__name__}; a loader of queries gives both")


def lined_up(queries: Sequence[Query], gold: Sequence[Gold]) -> tuple[list[Query], list[Gold]]:
    """Return the queries that are judged, and their gold in the same order.

    Raises:
        QueryError: no queries, two with one id, or one that is not text.
        GoldError: two golds for one query, or no query that is judged.
    """
    if not queries:
        raise QueryError("there are no queries; check the path and the filters of their loader")
    by_id = {one.query_id: one for one in gold}
    if (twice := first_repeated(one.query_id for one in gold)) is not None:
        raise GoldError(f"two golds are given for query {twice!r}; put all of a query's relevance into one")
    if (twice := first_repeated(query.query_id for query in queries)) is not None:
        raise QueryError(f"two queries have the id {twice!r}; make query ids unique")
    for query in queries:
        if (half := find_lone_surrogate([query.query_id, query.text, query.family])) is not None:
            raise QueryError(lone_surrogate_message(f"query {query.query_id!r}", half))
    judged = [query for query in queries if query.query_id in by_id]
    if not judged:
        raise GoldError(
            f"none of the {len(queries):,} queries has gold (the first: {queries[0].query_id!r}; gold is of "
            f"{', '.join(map(repr, list(by_id)[:3])) or 'none'}); are both of the same collection?"
        )
    return judged, [by_id[query.query_id] for query in judged]


WandbMode = Literal["online", "offline"]


@dataclass(frozen=True)
class BenchmarkSettings:
    """A whole benchmark, before it runs; ``dataclasses.replace`` creates a changed copy, which is checked too.

    Args:
        searchers: by name; at least one.
        loader: the corpus.
        queries: the queries.
        gold: the expected results of each query; sorted into the order of the queries.
        index_path: the index directory.
        k_values: the cutoffs; sorted, without duplicates.
        baseline: the name of the searcher to compare the others with; None for the first.
        group_by: a key of the queries' metadata; measures are also reported for each of its values.
        latency_queries: how many queries are searched one at a time to measure latency.
        seed: for sampling those queries, and for tests and intervals; 0 or more.
        stage_folder: folder for results of stages; None: every configuration is searched and timed separately.
        query_loader: ``config`` of the loader of queries and gold; None if they were given in Python.
        prices: prices of language models; None: no price is reported.
        corpus_fingerprint: required fingerprint of the corpus; None: any corpus.
        answerer: answers the queries as questions from each searcher's results; None: nothing is answered.
        where: a filter for all queries; see :mod:`nlp_retrieval.core.filters`.
        where_from: a filter per query: item metadata keys mapped to query metadata keys whose values must be equal.
        workers: processes that encode passages for the index and compute stages of searches; latency is always timed in
            this process.
        gold_missing: treatment of relevant documents that the corpus lacks: ``"count"`` them as not found, raise an
            ``"error"`` before anything is encoded, or ``"drop"`` them from the gold, together with queries that have no
            others.
        ignore_identical_ids: whether a hit with the id of its query is the query itself and does not count, as in BEIR and
            MTEB; None: true if most of such queries have the text of that item.
        unjudged: ids of queries left out because they have no gold; those among ``queries`` are added.
        unasked: ids of gold left out because its query is missing; those among ``gold`` are added.

    Raises:
        ConfigurationError: no searchers, components of one name and different classes, an unknown baseline, a seed below 0, or
            a value of the wrong type.
        QueryError: no queries, two with one id, a cutoff that is not a positive integer, an invalid filter, or a query that
            lacks a key of its filter.
        GoldError: two golds for one query, no query with gold, or expected answers missing for some of them.
    """

    searchers: Mapping[str, Entry]
    loader: BaseLoader
    queries: Sequence[Query]
    gold: Sequence[Gold]
    index_path: Path
    k_values: Sequence[int] = (5, 10, 20)
    baseline: str | None = None
    group_by: str = "hops"
    latency_queries: int = 200
    seed: int = 0
    stage_folder: Path | None = None
    query_loader: Config | None = None
    prices: Prices | None = None
    corpus_fingerprint: str | None = None
    answerer: BaseAnswerer | None = None
    where: Where | None = None
    where_from: Mapping[str, str] | None = None
    workers: Workers = THIS_PROCESS
    gold_missing: GoldMissing = "count"
    ignore_identical_ids: bool | None = None
    unjudged: Sequence[str] = ()
    unasked: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_kinds(self.searchers, self.loader, self.queries, self.gold, self.k_values)
        require_distinct_names(searcher for searcher in self.searchers.values() if isinstance(searcher, Component))
        if self.gold_missing not in get_args(GoldMissing):
            raise ConfigurationError(
                f"gold_missing={self.gold_missing!r}; {nearest(str(self.gold_missing), get_args(GoldMissing))}"
            )
        if self.ignore_identical_ids not in (None, True, False):
            raise ConfigurationError(f"ignore_identical_ids={self.ignore_identical_ids!r}; take true or false, or leave it out")
        queries, gold = lined_up(self.queries, self.gold)
        asked, judged = {query.query_id for query in self.queries}, {query.query_id for query in queries}
        unjudged = [*self.unjudged, *(query.query_id for query in self.queries if query.query_id not in judged)]
        unasked = [*self.unasked, *(one.query_id for one in self.gold if one.query_id not in asked)]
        object.__setattr__(self, "queries", queries)
        k_values = sorted({check_k(k, "a cutoff") for k in self.k_values})
        if not k_values:
            raise QueryError("k_values is empty; pass at least one cutoff")
        baseline = next(iter(self.searchers)) if self.baseline is None else self.baseline
        if baseline not in self.searchers:
            raise ConfigurationError(f"there is no searcher {baseline!r}; {nearest(baseline, self.searchers)}")
        latency_queries = check_k(self.latency_queries, "latency_queries")
        if self.seed < 0:
            raise ConfigurationError(f"seed={self.seed}; take 0 or more")
        self._check_answerer(k_values[-1])
        filters_of(self.queries, check_where_from(self.where_from), self.where)
        given = {"searchers": dict(self.searchers), "latency_queries": latency_queries}
        given |= {"unjudged": unjudged, "unasked": unasked}
        for name, value in (given | {"gold": gold, "k_values": k_values, "baseline": baseline}).items():
            object.__setattr__(self, name, value)

    @cached_property
    def filters(self) -> list[Where | None]:
        """Return the filter of each query; None if there are no filters."""
        return filters_of(self.queries, self.where_from, self.where)

    @property
    def right_answers(self) -> list[GoldAnswer]:
        """Expected answers; empty if nothing is answered, or if the queries have none."""
        return gold_answers(self.queries) if self.answerer is not None else []

    @property
    def measures(self) -> list[str]:
        """The names of the measures."""
        right = self.right_answers
        return [*measure_names(self.k_values), *(AnswerEvaluator(right).measures if right else ())]

    def _check_answerer(self, depth: int) -> None:
        if self.answerer is None:
            return
        if not isinstance(self.answerer, BaseAnswerer):
            raise ConfigurationError(
                f"the answerer is a {type(self.answerer).__name__}, no BaseAnswerer; write LanguageModelAnswerer(lm)"
            )
        if self.answerer.passages > depth:
            raise ConfigurationError(
                f"the answerer reads {self.answerer.passages} passages, and the largest cutoff is {depth}, so no more are "
                f"found; add the cutoff {self.answerer.passages}, or let it read fewer"
            )
        self.right_answers  # noqa: B018 -- right answers that cannot be read are told of before the work

    def baseline_among(self, names: Iterable[str]) -> str:
        """Return the configuration to compare the others with: the baseline or, if it is missing, the first.

        Args:
            names: at least one.
        """
        chosen = list(names)
        return self.baseline if self.baseline in chosen else chosen[0]


@dataclass(frozen=True)
class WandbSettings:
    """Settings for Weights & Biases.

    Args:
        project: name of the project.
        mode: ``online``, ``offline``, or None: online if an API key is configured, else offline.
        group: the group of this benchmark's runs; by default the time of the first logging.
        entity: a user or team; by default the user's own.
    """

    project: str = "nlp_retrieval"
    mode: WandbMode | None = None
    group: str | None = None
    entity: str | None = None


@dataclass(frozen=True)
class MlflowSettings:
    """Settings for MLflow.

    Args:
        experiment: created if it does not exist.
        uri: URI of the tracking server or store; None: that of ``MLFLOW_TRACKING_URI`` or, if unset, an SQLite file in the
            output folder.
    """

    experiment: str = "nlp_retrieval"
    uri: str | None = None
