"""A benchmark as a configuration file: the same objects as in Python, by their registry names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

from nlp_retrieval.benchmarks.benchmarkable import Entry
from nlp_retrieval.benchmarks.cost import read_prices
from nlp_retrieval.benchmarks.filters import check_where_from
from nlp_retrieval.benchmarks.grid import Grid, read_grid
from nlp_retrieval.benchmarks.halving import Halving, read_halving
from nlp_retrieval.benchmarks.settings import BenchmarkSettings, MlflowSettings, WandbSettings
from nlp_retrieval.core.components.component import BaseLoader, BaseQueryLoader, Config
from nlp_retrieval.core.components.registry import build, build_as
from nlp_retrieval.core.cures import said_in_yaml
from nlp_retrieval.core.files.yaml_text import check_keys, read_yaml
from nlp_retrieval.core.filters import parse_filter
from nlp_retrieval.core.queries import first_repeated
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.errors import ConfigurationError, InputError, nearest
from nlp_retrieval.evaluation.gold import GoldMissing
from nlp_retrieval.lm.answering import BaseAnswerer

_REQUIRED = ("corpus", "queries", "index")
_OPTION_TYPES: dict[str, type] = {
    "baseline": str,
    "group_by": str,
    "latency_queries": int,
    "seed": int,
    "gold_missing": str,
    "ignore_identical_ids": bool,
}
_TYPE_NAMES = {str: "text", int: "an integer", bool: "true or false"}
_SEARCHERS = ("searchers", "grid")
_TRACKERS = ("wandb", "mlflow", "tensorboard")
_OPTIONAL = (
    "k",
    "baseline",
    "output",
    "stages",
    *_TRACKERS,
    "group_by",
    "latency_queries",
    "seed",
    "prices",
    "answerer",
    "where",
    "gold_missing",
    "ignore_identical_ids",
)


@dataclass(frozen=True)
class BenchmarkConfig:
    """Contents of a configuration file.

    Args:
        corpus: the loader of the items.
        queries: the loader of queries and gold.
        searchers: by name; those of the grid follow the explicit ones.
        index: the index directory.
        output: the folder for the files of the run.
        stages: the folder for results of stages; None: ``stages`` in the output folder.
        wandb: settings for Weights & Biases; None: do not log there.
        mlflow: settings for MLflow; None: do not log there.
        tensorboard: whether to write event files for TensorBoard.
        options: further fields of :class:`~nlp_retrieval.benchmarks.settings.BenchmarkSettings`, as given in the file.
        grid: None if the file has none.
        halving: settings for dropping configurations before all queries are searched; None: keep all.
    """

    corpus: BaseLoader
    queries: BaseQueryLoader
    searchers: dict[str, Entry]
    index: Path
    output: Path
    stages: Path | None
    wandb: WandbSettings | None
    mlflow: MlflowSettings | None
    tensorboard: bool
    options: dict[str, Any]
    grid: Grid | None = None
    halving: Halving | None = None

    def settings(self, output: Path | None = None) -> BenchmarkSettings:
        """Load queries and gold, and return the benchmark to run.

        Args:
            output: the folder for the files of the run, overriding the file's own.
        """
        with said_in_yaml():
            queries, gold = self.queries.queries(), self.queries.gold()
        return BenchmarkSettings(
            searchers=self.searchers,
            loader=self.corpus,
            queries=queries,
            gold=gold,
            index_path=self.index,
            stage_folder=self.stages or (output or self.output) / "stages",
            query_loader=self.queries.config,
            **self.options,
        )


@said_in_yaml()
def read_benchmark_config(path: str | Path) -> BenchmarkConfig:
    """Read and build everything named in a configuration file; nothing is loaded or indexed yet.

    Paths in it are relative to the working directory.

    Raises:
        SourceError: the file does not exist.
        ConfigurationError: an unknown key, name or parameter; a value of the wrong type or out of range.
    """
    settings = read_yaml(path)
    where = str(path)
    one_of = () if "grid" in settings else ("searchers",)
    check_keys(settings, (*_REQUIRED, *_SEARCHERS, *_OPTIONAL), (*_REQUIRED, *one_of), where)
    options: dict[str, Any] = {}
    for key, kind in _OPTION_TYPES.items():
        if key in settings:
            if type(settings[key]) is not kind:
                raise ConfigurationError(f"{where}: {key}: expected {_TYPE_NAMES[kind]}, found {settings[key]!r}")
            options[key] = settings[key]
    if (chosen := options.get("gold_missing", "count")) not in get_args(GoldMissing):
        raise ConfigurationError(f"{where}: gold_missing: {chosen!r}; {nearest(chosen, get_args(GoldMissing))}")
    if "k" in settings:
        options["k_values"] = _cutoffs(settings["k"], where)
    if settings.get("prices") is not None:
        options["prices"] = read_prices(settings["prices"], f"{where}: prices")
    if settings.get("answerer") is not None:
        options["answerer"] = build_as(BaseAnswerer, "answerers", settings["answerer"], "answerer")
    if settings.get("where") is not None:
        options["where"] = _at(f"{where}: where", settings["where"], parse_filter)
    asked = settings["queries"]
    if isinstance(asked, Mapping) and "where_from" in asked:
        asked = dict(asked)
        options["where_from"] = _at(f"{where}: queries", asked.pop("where_from"), check_where_from)
    grid = read_grid(settings["grid"], options.get("seed", 0), f"{where}: grid") if "grid" in settings else None
    halving = settings["grid"].get("halving") if grid is not None else None
    return BenchmarkConfig(
        corpus=build_as(BaseLoader, "loaders", settings["corpus"], "corpus"),
        queries=build_as(BaseQueryLoader, "loaders", asked, "queries"),
        searchers=_searchers(settings, grid, where),
        index=_path(settings["index"], f"{where}: index"),
        output=_path(settings.get("output", f"runs/{Path(path).stem}"), f"{where}: output"),
        stages=_path(settings["stages"], f"{where}: stages") if "stages" in settings else None,
        wandb=_wandb(settings.get("wandb"), where),
        mlflow=_mlflow(settings.get("mlflow"), where),
        tensorboard=_switch(settings.get("tensorboard", False), f"{where}: tensorboard"),
        options=options,
        grid=grid,
        halving=read_halving(halving, f"{where}: grid.halving") if halving is not None else None,
    )


def _at(place: str, value: Any, check: Callable[[Any], object]) -> Any:
    try:
        check(value)
    except InputError as error:
        raise ConfigurationError(f"{place}: {str(error).removeprefix('where: ')}") from None
    return value


def _searchers(settings: Config, grid: Grid | None, where: str) -> dict[str, Entry]:
    made: dict[str, Entry] = {}
    if "searchers" in settings:
        written = settings["searchers"]
        if not isinstance(written, dict) or not written:
            raise ConfigurationError(f"{where}: searchers: expected searchers by name, found {written!r}")
        if (twice := first_repeated(map(str, written))) is not None:
            raise ConfigurationError(f"{where}: searchers: {twice!r} is named twice; give each searcher a name of its own")
        made = {str(name): _searcher(fields, f"searchers.{name}") for name, fields in written.items()}
    for name, searcher in (grid.searchers if grid is not None else {}).items():
        if name in made:
            raise ConfigurationError(
                f"{where}: grid: a configuration is called {name!r}, as one of the searchers is; rename that one, or give the "
                "values of the grid names of their own"
            )
        made[name] = searcher
    return made


def _cutoffs(value: Any, where: str) -> list[int]:
    values = value if isinstance(value, list) else [value]
    for k in values:
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise ConfigurationError(f"{where}: k: {k!r} is not an integer of at least 1")
    return values


def _searcher(fields: Any, where: str) -> Entry:
    if not isinstance(fields, Mapping):
        raise ConfigurationError(
            f"{where}: expected the settings of a searcher, such as {{retrievers: [bm25]}}, found {fields!r}"
        )
    # everything registered as a searcher has the interface that a benchmark needs
    return cast(Entry, build("searchers", {"name": Searcher.name} | dict(fields), where))


def _path(value: Any, where: str) -> Path:
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"{where}: expected a path, found {value!r}")
    return Path(value).expanduser()


def _wandb(settings: Config | None, where: str) -> WandbSettings | None:
    if settings is None:
        return None
    _check_tracker(settings, ("project", "mode", "group", "entity"), f"{where}: wandb", "{project: hover}")
    if settings.get("mode") not in {None, "online", "offline"}:
        raise ConfigurationError(f"{where}: wandb.mode: {settings['mode']!r}; valid: online, offline")
    return WandbSettings(**settings)


def _mlflow(settings: Config | None, where: str) -> MlflowSettings | None:
    if settings is None:
        return None
    _check_tracker(settings, ("experiment", "uri"), f"{where}: mlflow", "{experiment: hover}")
    return MlflowSettings(**{key: value for key, value in settings.items() if value})


def _check_tracker(settings: Config, keys: tuple[str, ...], where: str, example: str) -> None:
    if not isinstance(settings, dict):
        raise ConfigurationError(f"{where}: expected settings such as {example}, found {settings!r}")
    check_keys(settings, keys, (), where)
    for key, value in settings.items():
        if value is not None and not isinstance(value, str):
            raise ConfigurationError(f"{where}.{key}: expected text, found {value!r}")


def _switch(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigurationError(f"{where}: expected true or false, found {value!r}")
    return value
