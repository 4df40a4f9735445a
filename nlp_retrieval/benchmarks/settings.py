"""The settings of a benchmark: one list of fields that Python, a YAML file and the manifest of a run share.

A file is read in three steps: its text, the components that it names, and the settings. Nothing is loaded or indexed for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, SkipValidation, StrictBool

from nlp_retrieval.benchmarks.checked import Integer, by_field, keys_of, read_settings, settings, values_of
from nlp_retrieval.benchmarks.cost import Prices, read_prices
from nlp_retrieval.benchmarks.entrants import Entry, as_searcher
from nlp_retrieval.benchmarks.evaluate import read_gold
from nlp_retrieval.benchmarks.grid import Grid, build_grid, named_searchers
from nlp_retrieval.core.components.component import BaseQueryLoader, Component, Config, to_plain
from nlp_retrieval.core.components.registry import build, build_as, error_place
from nlp_retrieval.core.context import Workers
from nlp_retrieval.core.files.frames import BaseLoader, is_table, items_of, queries_of
from nlp_retrieval.core.files.opening import expanded
from nlp_retrieval.core.files.yaml_text import read_yaml
from nlp_retrieval.core.filters import Where, parse_filter
from nlp_retrieval.core.index.generation import Generation, index_directory
from nlp_retrieval.core.models import Gold, Query, SearchableItem
from nlp_retrieval.core.queries import check_k, first_repeated
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.core.unicode import refuse_lone_surrogates
from nlp_retrieval.errors import ConfigurationError, GoldError, QueryError, nearest
from nlp_retrieval.evaluation.answers import AnswerEvaluator, GoldAnswer, gold_answers
from nlp_retrieval.evaluation.comparison import MOST_RESAMPLES
from nlp_retrieval.evaluation.gold import GoldMissing
from nlp_retrieval.evaluation.measures import (
    DEPTH,
    Measure,
    cutoffs_of,
    measure_among,
    measure_names,
    read_measures,
    usual_main,
)
from nlp_retrieval.lm.answering import BaseAnswerer


def _searchers(value: object) -> dict[str, Entry]:
    if isinstance(value, str) or not isinstance(value, Mapping | Sequence):
        raise ConfigurationError(
            f"searchers: expected searchers by name, such as {{lexical: {{retrievers: [bm25]}}}}, or a list, found {value!r}"
        )
    if not value:
        raise ConfigurationError("a benchmark needs at least one searcher")
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str) or not name.strip():
                raise ConfigurationError(f"a searcher is called {name!r}; give it a name")
        return {name: composed(searcher, f"searchers.{name}") for name, searcher in value.items()}
    return named_searchers([composed(searcher, f"searchers[{number}]") for number, searcher in enumerate(value)])


def composed(value: Any, where: str) -> Any:
    """Return a searcher of a retriever, its name, the settings of a searcher, or a program; a searcher as it is."""
    if isinstance(value, Mapping):
        return build("searchers", {"name": Searcher.name} | dict(value), where)
    if isinstance(value, type):
        raise ConfigurationError(
            f"{where} is the class {value.__name__}, and an object of one is expected; write {value.__name__}(...)"
        )
    searcher = Searcher([value]) if isinstance(value, BaseRetriever | str) else as_searcher(value)
    if not hasattr(searcher, "config"):
        raise ConfigurationError(
            f"{where} is {type(searcher).__name__}, not a searcher, a retriever, a retriever's name, or settings such as "
            '{"retrievers": ["bm25"]}'
        )
    return searcher


def _loader(value: Any) -> Any:
    """Return a loader of what is given as a corpus; what is none at all is refused by its type."""
    if isinstance(value, BaseLoader | str | bytes) or not (isinstance(value, Iterable) or is_table(value)):
        return value
    return GivenItems(value)


def group_labels(queries: Sequence[Query], key: str) -> list[str | None]:
    """The group of each query; None if it has none."""
    return [_group(query.metadata.get(key), key) for query in queries]


def _group(value: object, key: str) -> str | None:
    if isinstance(value, float):
        value = int(value) if value.is_integer() else value if math.isfinite(value) else None  # NaN is none in pandas
    return f"{key}={value}" if isinstance(value, str | int | float) else None


def check_group_by(queries: Sequence[Query], key: str) -> None:
    """Raise an error if no query has a group."""
    if not any(group_labels(queries, key)):
        keys = {other for query in queries for other in query.metadata if any(group_labels([query], other))}
        raise ConfigurationError(f"group_by: no query has a text or a number as {key!r} in its metadata; {nearest(key, keys)}")


def _gold(value: Any) -> list[Gold]:
    return [] if isinstance(value, Collection) and not isinstance(value, str) and not len(value) else read_gold(value)


class GivenItems(BaseLoader):
    """The corpus of a benchmark that was given in Python: items or an index; an iterator is read now, as it is needed again."""

    name = "given"
    config: ClassVar[Config] = {"name": "given"}  # the items are in no file

    def __init__(self, items: Any) -> None:
        self._items: Any = list(items_of(items)) if isinstance(items, Iterator) else items

    def stream(self) -> Iterator[SearchableItem]:
        return self._items.items.stream_live() if isinstance(self._items, Generation) else items_of(self._items)


def _cutoffs(value: object) -> list[int]:
    if not isinstance(value, Collection) or isinstance(value, str):
        raise ConfigurationError(f"k_values={value!r}: a list is expected; write [{value!r}]")
    if not value:
        raise QueryError("the list of cutoffs is empty; pass at least one")
    return sorted({check_k(k, "a cutoff") for k in value})


def _measures(value: object) -> list[str] | None:
    if value is None:
        return None
    if not isinstance(value, Collection) or isinstance(value, str):
        raise ConfigurationError(f"measures={value!r}: a list is expected; write [{value!r}]")
    return [str(measure) for measure in read_measures(value)]


def _path(value: object) -> Path:
    if value == "" or not isinstance(value, str | Path):
        raise ConfigurationError(f"expected a path, found {value!r}")
    return index_directory(value)


def _filter(value: Any) -> Any:
    if value is not None:
        parse_filter(value)
    return value


# ``where_from: {country: country}`` means that the items' ``country`` must be the query's ``country``: equal to a text, number
# or truth value, or to one element of a list.


def _where_from(where_from: object) -> dict[str, str] | None:
    """Return ``where_from`` if it maps item keys to query keys."""
    if where_from is None:
        return None
    if not isinstance(where_from, Mapping) or not where_from:
        raise ConfigurationError(
            f"where_from: expected keys of items with keys of queries, such as {{country: country}}, found {where_from!r}"
        )
    for key, source in where_from.items():
        if not isinstance(key, str) or not isinstance(source, str) or not key or not source:
            raise ConfigurationError(f"where_from: {key!r}: {source!r}: both are names of metadata, as in {{country: country}}")
    return dict(where_from)


def _value_for(query: Query, source: str, queries: Sequence[Query]) -> Any:
    value = query.metadata.get(source)
    if value is None:
        lacking = sum(judged_query.metadata.get(source) is None for judged_query in queries)
        known = [key for key, theirs in query.metadata.items() if theirs is not None]
        has = nearest(source, known) if known else "it has no metadata"
        raise QueryError(
            f"where_from: query {query.query_id!r} has no {source!r} in its metadata ({lacking:,} of {len(queries):,} queries "
            f"lack it); {has}"
        )
    return {"in": value} if isinstance(value, list) else value


AnyPath = Annotated[str | Path, SkipValidation, BeforeValidator(_path)]


@settings
class BenchmarkSettings:
    """A benchmark: searchers over one corpus and one set of queries, and how they are compared.

    Args:
        searchers: by name, or a list, named by their parts; a retriever alone is searched by a searcher of it. Equal retrievers
            share one index. Runs of other tools may be included.
        loader: the corpus: a loader, or items in any form that ``Searcher.index`` takes.
        queries: in any form that ``Searcher.search`` takes; by default those of ``query_loader``.
        gold: in any form that :func:`nlp_retrieval.evaluate` takes; by default those of ``query_loader``.
        k_values: the cutoffs, if no measures are chosen: seven measures are computed at each.
        measures: names of the measures, as in ir-measures: ``["ndcg@10", "recall@100", "rbp@10(p=0.8)"]``.
        main: the measure to sort, test pairs and draw by; by default the first of ``measures``, or nDCG at 10 or the largest
            cutoff.
        relevant_from: the lowest grade of a relevant document; lower grades above 0 count only in graded measures.
        resamples: sign arrangements of each test, and samples of each interval; by default 10,000, and more where a test needs
            them.
        index_path: the index directory; created or completed as needed. None: a temporary one.
        baseline: the name of the searcher that others are compared with; the first by default.
        group_by: a key of the queries' metadata; measures are also reported for each of its values.
        depth: how many hits are fetched for each query; at least the largest cutoff. A measure without a cutoff counts all.
        latency_queries: how many queries are searched one at a time to measure latency.
        seed: for sampling those queries, and for tests and intervals; 0 or more.
        stage_folder: folder for results of stages, which are not computed again. None: each configuration is searched alone.
        query_loader: the loader of queries and gold, or its ``config`` if they are given; the manifest keeps it.
        prices: prices of language models; without them no price is reported.
        on_progress: called with progress messages.
        answerer: answers the queries from each searcher's results. If their metadata has an ``answer``, and perhaps
            ``supporting_facts``, the answers are measured.
        where: a filter for all queries; see :mod:`nlp_retrieval.core.filters`.
        where_from: a filter per query: item metadata keys mapped to query metadata keys whose values must be equal.
        workers: number of processes that encode passages for the index and, with a stage folder, search. Latency is timed here.
        ray: address of a Ray cluster to use instead; its nodes must see the same paths for index and stages.
        gold_missing: relevant documents that the corpus lacks ``"count"`` as not found, are an ``"error"`` before anything is
            searched, or are taken out (``"drop"``), with queries that have no others.
        ignore_identical_ids: whether a hit with the id of its query is the query itself and does not count, as in BEIR and
            MTEB; None: true if most of such queries have the text of that item. Gold items always count.
        unjudged: ids of queries left out because they have no gold; those among ``queries`` are added.
        unasked: ids of gold left out because its query is missing; those among ``gold`` are added.

    Raises:
        ConfigurationError: no searchers, components of one name and different classes, an unknown baseline, or an argument of
            the wrong type or out of range.
        QueryError: no queries, two with one id, a cutoff that is not a positive integer, an invalid filter, or a query that
            lacks a key of its filter.
        GoldError: two golds for one query, no query with gold, or expected answers for some of the queries only.

    Examples:
        >>> searchers = {"plain": Searcher(["bm25"]), "reranked": Searcher(["bm25"], reranker="overlap")}
        >>> corpus = JsonlLoader("animals.jsonl")
        >>> benchmark = Benchmarker(searchers, corpus, queries, gold, index_path="index", measures=["ndcg@10"])
        >>> run = benchmark.run()
        >>> [(result.name, round(result.measures["ndcg@10"], 3)) for result in run.report.configurations]
        [('plain', 0.815), ('reranked', 0.815)]
        >>> list(Benchmarker.grid({"retrievers": ["bm25"]}, {"retrievers.bm25.k1": [0.9, 1.2]}))
        ['k1=0.9', 'k1=1.2']
    """

    searchers: Annotated[Mapping[str, Entry], SkipValidation, BeforeValidator(_searchers)]
    loader: Annotated[BaseLoader, BeforeValidator(_loader), Field(serialization_alias="corpus", examples=["JsonlLoader(path)"])]
    queries: Annotated[Sequence[Query], SkipValidation, BeforeValidator(queries_of), Field(exclude=True)] = ()
    gold: Annotated[Sequence[Gold], SkipValidation, BeforeValidator(_gold), Field(exclude=True)] = ()
    k_values: Annotated[Sequence[int], SkipValidation, BeforeValidator(_cutoffs), Field(serialization_alias="k")] = (5, 10, 20)
    _: KW_ONLY
    index_path: Annotated[AnyPath | None, Field(serialization_alias="index")] = None
    baseline: str | None = None
    group_by: str = "hops"
    depth: Annotated[Integer, Field(ge=1)] = DEPTH
    latency_queries: Annotated[Integer, Field(ge=1)] = 100
    seed: Annotated[Integer, Field(ge=0)] = 0
    stage_folder: Annotated[AnyPath | None, Field(serialization_alias="stages")] = None
    query_loader: Annotated[BaseQueryLoader | Config | str | None, SkipValidation, Field(serialization_alias="queries")] = None
    prices: Annotated[
        Prices | None, BeforeValidator(lambda value: read_prices(value, "") if isinstance(value, Mapping) else value)
    ] = None
    on_progress: Annotated[Callable[[str], None] | None, Field(exclude=True)] = None
    answerer: Annotated[BaseAnswerer | None, Field(examples=["LanguageModelAnswerer(lm)"])] = None
    where: Annotated[Where | None, SkipValidation, BeforeValidator(_filter)] = None
    where_from: Annotated[Mapping[str, str] | None, SkipValidation, BeforeValidator(_where_from)] = None
    workers: Annotated[int | None, SkipValidation, Field(exclude=True)] = None
    ray: Annotated[str | None, SkipValidation, Field(exclude=True)] = None
    gold_missing: GoldMissing = "count"
    ignore_identical_ids: StrictBool | None = None
    measures: Annotated[Sequence[str] | None, SkipValidation, BeforeValidator(_measures)] = None
    main: Annotated[str | None, Field(examples=["ndcg@10"])] = None
    relevant_from: Annotated[Integer, Field(ge=1)] = 1
    resamples: Annotated[int | None, Field(strict=True, ge=1, le=MOST_RESAMPLES)] = None
    unjudged: Annotated[Sequence[str], Field(exclude=True)] = ()
    unasked: Annotated[Sequence[str], Field(exclude=True)] = ()

    def __post_init__(self) -> None:
        baseline = next(iter(self.searchers)) if self.baseline is None else self.baseline
        if baseline not in self.searchers:
            raise ConfigurationError(f"there is no searcher {baseline!r}; {nearest(baseline, self.searchers)}")
        object.__setattr__(self, "baseline", baseline)
        if self.measures is not None:
            cutoffs = cutoffs_of(map(Measure.parse, self.measures), self.depth)
            if self.k_values is not BenchmarkSettings.k_values and list(self.k_values) != cutoffs:
                raise ConfigurationError(
                    "k and measures are both given; leave k out, because measures have cutoffs of their own"
                )
            object.__setattr__(self, "k_values", cutoffs)
        if self.k_values[-1] > self.depth:
            raise ConfigurationError(
                f"a measure counts the first {self.k_values[-1]:,} hits, and {self.depth:,} are fetched for each query; set "
                f"'depth' to {self.k_values[-1]}, or choose a smaller cutoff"
            )
        self.processes  # noqa: B018 -- checks the number of workers and the address
        if self.queries or not isinstance(self.query_loader, BaseQueryLoader):
            self._line_up()

    def _line_up(self) -> None:
        """Keep the queries that are judged, with their gold in the same order, and record the others."""
        by_id, asked = {wanted.query_id: wanted for wanted in self.gold}, {query.query_id for query in self.queries}
        if not asked:
            raise QueryError("there are no queries; check the path and the filters of their loader")
        if (repeated := first_repeated(wanted.query_id for wanted in self.gold)) is not None:
            raise GoldError(f"two golds are given for query {repeated!r}; put all of a query's relevance into one")
        if (repeated := first_repeated(query.query_id for query in self.queries)) is not None:
            raise QueryError(f"two queries have the id {repeated!r}; make query ids unique")
        if self.group_by != BenchmarkSettings.group_by:
            check_group_by(self.queries, self.group_by)
        for query in self.queries:
            refuse_lone_surrogates([query.query_id, query.text, query.family], f"query {query.query_id!r}", QueryError)
        if not by_id:
            raise GoldError("the queries come without judgements; give them, such as qrels of the loader topics")
        judged = [query for query in self.queries if query.query_id in by_id]
        if not judged:
            examples = f"the first: {self.queries[0].query_id!r}; gold is of {', '.join(map(repr, list(by_id)[:3]))}"
            raise GoldError(f"no query has gold ({examples}); are both of the same collection?")
        lined = {
            "queries": judged,
            "gold": [by_id[query.query_id] for query in judged],
            "unjudged": [*self.unjudged, *(query.query_id for query in self.queries if query.query_id not in by_id)],
            "unasked": [*self.unasked, *(query_id for query_id in by_id if query_id not in asked)],
        }
        for name, value in lined.items():
            object.__setattr__(self, name, value)
        if self.answerer is not None and self.answerer.passages > self.depth:
            raise ConfigurationError(
                f"the answerer reads {self.answerer.passages} passages, and {self.depth} are fetched for each query; set "
                f"'depth' to {self.answerer.passages}, or let it read fewer"
            )
        self.filters  # noqa: B018 -- checks them
        measured = self.measured  # unreadable answers are reported before the work
        if self.main is not None:
            object.__setattr__(self, "main", measure_among(self.main, measured, "main"))

    def loaded(self, **changed: Any) -> BenchmarkSettings:
        """Return the benchmark with queries and gold of its loader, unless they were given, and other settings, all valid."""
        loaded = copy(self)
        loaded.__dict__.update(changed)
        if "queries" in changed:
            loaded.__dict__.pop("filters", None)
        elif not self.queries and isinstance(self.query_loader, BaseQueryLoader):
            loaded.__dict__.update(queries=queries_of(self.query_loader.queries()), gold=_gold(self.query_loader.gold()))
            loaded._line_up()
        return loaded

    @property
    def processes(self) -> Workers:
        """Processes that encode passages for the index and compute stages of searches."""
        return Workers(self.workers, self.ray)

    @cached_property
    def filters(self) -> list[Where | None]:
        """Return the filter of each query; None if there are no filters."""
        if self.where_from is None:
            return [self.where] * len(self.queries)
        filters: list[Where | None] = []
        for query in self.queries:
            own = {key: _value_for(query, source, self.queries) for key, source in self.where_from.items()}
            parse_filter(own, f"where_from of query {query.query_id!r}")
            filters.append(own if self.where is None else {"and": [self.where, own]})
        return filters

    @property
    def right_answers(self) -> list[GoldAnswer]:
        """Expected answers; empty if nothing is answered, or if the queries have none."""
        return gold_answers(self.queries) if self.answerer is not None else []

    @property
    def measured(self) -> list[str]:
        """The names of the measures."""
        right = self.right_answers
        chosen = measure_names(self.k_values) if self.measures is None else self.measures
        return [*chosen, *(AnswerEvaluator(right).measures if right else ())]

    @property
    def main_measure(self) -> str:
        """The measure to sort, test pairs and draw by."""
        if self.main is not None:
            return self.main
        return usual_main(measure_names(self.k_values), self.k_values) if self.measures is None else self.measures[0]

    def baseline_among(self, names: Iterable[str]) -> str:
        """Return the configuration to compare the others with: the baseline or, if it is missing, the first."""
        chosen = list(names)
        return self.baseline if self.baseline is not None and self.baseline in chosen else chosen[0]

    def record(self) -> Config:
        """Return the settings of a file as plain values, by field name."""
        return {name: _as_plain(getattr(self, name)) for name in keys_of(BenchmarkSettings)}


def _as_plain(value: Any) -> Any:
    return value.config if isinstance(value, Component | Prices) else to_plain(value)


WandbMode = Literal["online", "offline"]


@settings
class WandbSettings:
    """Settings for Weights & Biases.

    Args:
        project: name of the project.
        mode: ``online``, ``offline``, or None: online if an API key is configured, else offline.
        group: the group of this benchmark's runs; by default the name of the output folder and the date.
        entity: a user or team; by default the user's own.

    Examples:
        >>> WandbSettings(project="scifact", mode="offline", group="first sweep")
        WandbSettings(project='scifact', mode='offline', group='first sweep')
    """

    project: str = "nlp_retrieval"
    mode: WandbMode | None = None
    group: str | None = None
    entity: str | None = None


@settings
class MlflowSettings:
    """Settings for MLflow.

    Args:
        experiment: created if it does not exist.
        uri: URI of the tracking server or store; None: that of ``MLFLOW_TRACKING_URI`` or, if unset, an SQLite file in the
            output folder.

    Examples:
        >>> MlflowSettings(experiment="scifact", uri="http://localhost:5000")
        MlflowSettings(experiment='scifact', uri='http://localhost:5000')
    """

    experiment: str = "nlp_retrieval"
    uri: str | None = None


@settings
class GridSettings:
    """The ``grid`` of a file: the arguments of :func:`~nlp_retrieval.benchmarks.grid.build_grid`."""

    searcher: Any
    vary: Any
    skip: Any = ()


@settings
class BenchmarkConfig(BenchmarkSettings):
    """A benchmark as a configuration file describes it: also where its output goes, and the grid of its searchers.

    Args:
        output: the folder for the files of the run.
        wandb: settings for Weights & Biases; None: do not log there.
        mlflow: settings for MLflow; None: do not log there.
        grid: the searchers that vary one; None if the file has none. They follow the explicit ones in ``searchers``.

    Examples:
        >>> config = read_benchmark_config("benchmark.yaml")
        >>> run = Benchmarker({"bm25": config.searchers["bm25"]}, config.loader, queries, gold, index_path="index").run()
        >>> config.output, run.report.n_items
        (PosixPath('runs/benchmark'), 3)
    """

    output: AnyPath = "runs"
    wandb: Annotated[WandbSettings | None, Field(examples=["{project: hover}"])] = None
    mlflow: Annotated[MlflowSettings | None, Field(examples=["{experiment: hover}"])] = None
    grid: Annotated[Grid | None, SkipValidation] = None

    def settings(self, output: Path | None = None) -> BenchmarkSettings:
        """Load queries and gold, and return the benchmark to run; its stages are kept in the output folder by default."""
        return self.loaded(stage_folder=self.stage_folder or (output or Path(self.output)) / "stages")


def read_benchmark_config(
    path: str | Path,
    *,
    measures: Sequence[str] = (),
    main: str | None = None,
    workers: int | None = None,
    ray: str | None = None,
) -> BenchmarkConfig:
    """Read and build everything named in a configuration file; nothing is loaded or indexed yet.

    Args:
        path: the file; paths in it are relative to the working directory.
        measures: instead of those of the file, with its cutoffs; its main measure stays if it is one of them.
        main: instead of that of the file.
        workers: processes that encode and search; see :class:`BenchmarkSettings`.
        ray: a cluster that does.

    Raises:
        SourceError: the file does not exist.
        ConfigurationError: an unknown key, name or parameter; a value of the wrong type or out of range.

    Examples:
        >>> config = read_benchmark_config("benchmark.yaml")
        >>> list(config.searchers), config.loader
        (['bm25', 'hybrid'], JsonlLoader(path='animals.jsonl'))
    """
    where = str(path)
    content = read_yaml(path)
    needed = ("corpus", "queries", "index", *(() if "grid" in content else ("searchers",)))
    values = by_field(BenchmarkConfig, content, where, lacking=[key for key in needed if key not in content])
    if isinstance(queries := values["query_loader"], Mapping) and "where_from" in queries:
        values["query_loader"] = {key: value for key, value in queries.items() if key != "where_from"}
        values["where_from"] = queries["where_from"]
    if measures:
        named = list(map(str, read_measures(measures)))
        values = {key: value for key, value in values.items() if key != "k_values"} | {"measures": named}
        if not isinstance(values.get("main"), str) or str(Measure.read(values["main"])) not in named:
            values.pop("main", None)
    values |= {"workers": workers, "ray": ray} | ({} if main is None else {"main": main})
    if isinstance(values.get("k_values"), int):
        values["k_values"] = [values["k_values"]]
    built, keys = dict(values), keys_of(BenchmarkConfig)
    for name, value in values.items():
        if name in _COMPONENTS and value is not None:
            built[name] = build_as(_COMPONENTS[name], _COMPONENTS[name].kind, value, keys[name])
        elif name in _TRACKERS and value is not None:
            built[name] = read_settings(_TRACKERS[name], value, f"{where}: {keys[name]}")
        elif name in _PATHS and isinstance(value, str) and value:
            built[name] = expanded(value)
    if "grid" in values:
        with error_place(where):
            written = _searchers(values["searchers"]) if "searchers" in values else {}
        given = read_settings(GridSettings, values["grid"], f"{where}: grid")
        grid = build_grid(given.searcher, given.vary, given.skip, f"{where}: grid")
        if twice := grid.searchers.keys() & written.keys():
            raise ConfigurationError(f"{where}: grid: {min(twice)!r} is the name of one of the searchers too; rename that one")
        built |= {"grid": grid, "searchers": written | grid.searchers}
    return values_of(BenchmarkConfig, {"output": Path("runs") / Path(path).stem} | built, where)


_COMPONENTS = {"loader": BaseLoader, "query_loader": BaseQueryLoader, "answerer": BaseAnswerer}
_TRACKERS = {"wandb": WandbSettings, "mlflow": MlflowSettings}
_PATHS = ("index_path", "stage_folder", "output")
