"""Content logged for a benchmark, for any tracker: a run for each configuration, and a summary run.

The configuration of a run is flat, so that a dashboard can filter and group by it: each setting appears once, under one name.
Settings on an axis of a grid are under ``grid/<axis>`` alone, so that two runs that differ in one parameter differ in one
value. The parts of a searcher have short names (``retrievers``, ``encoder``, ``links``, ``processor``, ``fusion``,
``reranker``), their parameters have paths (``bm25/k1``); null values are left out, and so is the fingerprint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from nlp_retrieval.benchmarks.cost import comparable_figures
from nlp_retrieval.benchmarks.grid import Place, with_value
from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.atomic import file_names
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.reports.view import ReportView, Row, view_of

PARTS = ("retrievers", "encoder", "links", "processor", "fusion", "reranker")
"""The short names used as columns of tables, and as tags."""

_AT_ROOT = ("processor", "fusion", "reranker")
_FILES_OF_ANY_SET = frozenset(
    "corpus collection docs documents passages items data train dev test validation queries main default".split()
)


@dataclass(frozen=True)
class _Setting:
    key: str
    value: Any
    places: tuple[Place, ...]


def configs_of(view: ReportView) -> dict[str, Config]:
    """Return the flat configuration of each configuration that was run, by name."""
    report = view.report
    shared = shared_config(report)
    settings = {result.name: _settings(without_secrets(result.config)) for result in report.configurations}
    short = _short_names([setting.value for several in settings.values() for setting in several if setting.key == "encoder"])
    settings = {
        name: [
            _Setting(setting.key, short[setting.value], setting.places) if setting.key == "encoder" else setting
            for setting in several
        ]
        for name, several in settings.items()
    }
    axes, values = _grid(report)
    decided = {result.name: _decided(axes, result.config) for result in report.configurations if result.name in values}
    configs = {}
    for result in report.configurations:
        corpus = view.corpora[result.name]
        about = {} if corpus is None else {"corpus": corpus.fingerprint, "items": corpus.items}
        own = {setting.key: setting.value for setting in settings[result.name]}
        for setting in settings[result.name] if result.name in decided else ():
            of_axis = any(place[: len(axis)] == axis for place in setting.places for axis in decided[result.name])
            if of_axis and not all(_has(settings[other], setting) for other in decided):
                del own[setting.key]
        of_grid = {f"grid/{axis.replace('.', '/')}": value for axis, value in values.get(result.name, {}).items()}
        configs[result.name] = shared | about | own | of_grid
    return configs


def failed_config(report: BenchmarkReport, config: Config) -> Config:
    """Return the flat configuration of one that failed."""
    return shared_config(report) | {setting.key: setting.value for setting in _settings(without_secrets(config))}


def shared_config(report: BenchmarkReport) -> Config:
    """Return the settings common to all configurations of a benchmark: data set, queries, cutoffs and baseline."""
    queries = report.manifest.get("query_fingerprint")
    settings = {
        "dataset": dataset_of(report.manifest),
        "queries": report.query_counts[""],
        "query_set": queries,
        "k": list(report.k_values),
        "baseline": report.baseline,
    }
    return {key: value for key, value in settings.items() if value not in (None, "")}


def tags_of(config: Config, *, baseline: bool = False) -> list[str]:
    """Return tags for finding a run: the data set, the parts of its searcher, and whether it is the baseline."""
    tags = [str(config["dataset"])] if "dataset" in config else []
    for part in PARTS:
        value = config.get(part, config.get(f"grid/{part}"))
        tags += [word for word in str(value).split("+") if word] if value not in (None, "none") else []
    return list(dict.fromkeys([*tags, *(["baseline"] if baseline else [])]))


def dataset_of(manifest: Config) -> str:
    """Return a short name of the data set: the last informative part of its path or name; empty if none is known."""
    loader = (manifest.get("corpus") or {}).get("loader") or {}
    while isinstance(loader, dict) and isinstance(loader.get("loader"), dict):
        loader = loader["loader"]  # wrapped by a loader that cuts passages
    source = next((loader[key] for key in ("dataset", "dataset_id", "path", "table", "url") if loader.get(key)), "")
    parts = [part.partition(".")[0] for part in PurePosixPath(str(source).replace("\\", "/")).parts]
    informative = [part for part in parts if part and part.lower() not in _FILES_OF_ANY_SET and part != "/"]
    return informative[-1] if informative else ""


def _grid(report: BenchmarkReport) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """Paths of the axes by short name, and their values by configuration; empty without a grid."""
    grid = report.manifest.get("grid")
    if not isinstance(grid, Mapping) or not isinstance(grid.get("axes"), dict) or not isinstance(grid.get("values"), dict):
        return {}, {}
    values = without_secrets(grid["values"])
    return grid["axes"], {name: own for name, own in values.items() if isinstance(own, dict)}


def _decided(axes: Mapping[str, str], config: Config) -> list[Place]:
    """The places in a configuration that are set by axes."""
    places = []
    for path in axes.values():
        try:
            places.append(with_value(config, str(path).split("."), None)[1])
        except ConfigurationError:
            continue  # removed here by another axis
    return places


def _has(settings: Sequence[_Setting], wanted: _Setting) -> bool:
    return any(setting.key == wanted.key and setting.value == wanted.value for setting in settings)


def _settings(config: Config) -> list[_Setting]:
    """The parameters of a searcher, flat, each with its places in the configuration."""
    settings: list[_Setting] = []
    for key, value in config.items():
        if key == "retrievers" and isinstance(value, dict | list) and value:
            labels = list(value) if isinstance(value, dict) else _numbered(value)
            parts = list(value.values()) if isinstance(value, dict) else value
            settings.append(_Setting("retrievers", "+".join(map(_name, parts)), (("retrievers",),)))
            for place, label, part in zip(value if isinstance(value, dict) else range(len(value)), labels, parts, strict=True):
                settings += _inside(part, label, ("retrievers", place))
        elif key in _AT_ROOT:
            settings.append(_Setting(key, _name(value) if value else "none", ((key,),)))
            settings += _inside(value, key, (key,))
        elif key != "name" or value != "searcher":
            settings += _flat("searcher" if key == "name" else key, value, (key,))
    shared = {key: [setting for setting in settings if setting.key == key] for key in ("encoder", "links")}
    joined = [
        _Setting(
            key,
            _joined([setting.value for setting in several]),
            tuple(place for setting in several for place in setting.places),
        )
        for key, several in shared.items()
        if several
    ]
    return [setting for setting in settings if setting.key not in shared] + joined


def _inside(part: Any, prefix: str, place: Place) -> Iterator[_Setting]:
    """The parameters of a component, without its name."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key != "name":
                yield from _flat(f"{prefix}/{key}", value, (*place, key))


def _flat(key: str, value: Any, place: Place) -> Iterator[_Setting]:
    kind = key.rpartition("/")[2]
    if value is None:
        return
    if _is_component(value):
        model = value.get("model")
        if kind == "encoder":
            yield _Setting("encoder", str(model or value["name"]), ((*place, "model" if model else "name"),))
        if kind != "encoder" or model:
            yield _Setting(key, value["name"], ((*place, "name"),))
        for name, inner in value.items():
            if name not in ("name", *(("model",) if kind == "encoder" else ())):
                yield from _flat(f"{key}/{name}", inner, (*place, name))
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(f"{key}/{name}", inner, (*place, name))
    elif isinstance(value, list) and value and all(map(_is_component, value)):
        yield _Setting("links" if kind == "links" else key, "+".join(map(_name, value)), (place,))
        for number, (label, inner) in enumerate(zip(_numbered(value), value, strict=True)):
            yield from _inside(inner, f"{key}/{label}", (*place, number))
    else:
        yield _Setting(key, value, (place,))


def _is_component(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name"), str)


def _name(part: Any) -> str:
    return str(part.get("name")) if isinstance(part, dict) else str(part)


def _numbered(parts: Sequence[Any]) -> list[str]:
    """The names of components, numbered if several share one."""
    names = [_name(part) for part in parts]
    return [f"{name}-{names[:number].count(name) + 1}" if names.count(name) > 1 else name for number, name in enumerate(names)]


def _joined(values: Sequence[str]) -> str:
    return values[0] if len(set(values)) == 1 else "+".join(values)


def _short_names(values: Sequence[str]) -> dict[str, str]:
    """The last part of each model's name, or all of it if another model has the same one."""

    def short(value: str) -> str:
        return "+".join(PurePosixPath(model).name or model for model in value.split("+"))

    lasts = {value: short(value) for value in values}
    return {value: value if list(lasts.values()).count(last) > 1 else last for value, last in lasts.items()}


SUMMARY = "summary"

_FRONTS = {"latency_ms": "pareto", "price_per_1000_queries": "pareto_price"}


@dataclass(frozen=True)
class LoggedRun:
    """One run, as logged to trackers.

    Args:
        name: name of the configuration, or ``summary``.
        job: ``configuration`` or ``summary``.
        config: names and values, without nesting.
        tags: short words.
        curves: values by cutoff, by measure family (``recall``), and by group and family (``hops=3/recall``).
        figures: numbers and truth values by name.
        headline: the names of the main figures, to be shown if space is limited; higher is better.
        words: texts by name, such as the fingerprint.
        files: that belong to it.
        failed: the error of the configuration; empty if it succeeded.
    """

    name: str
    job: str
    config: Config
    tags: list[str] = field(default_factory=list)
    curves: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    headline: list[str] = field(default_factory=list)
    words: Mapping[str, str] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)
    failed: str = ""

    @property
    def key(self) -> str:
        """Return the key that distinguishes it from the others of its benchmark."""
        return f"{self.job}: {self.name}"


def runs_of(report: BenchmarkReport | ReportView) -> list[LoggedRun]:
    """Return the runs of a finished benchmark: its configurations, including failed ones, and the summary."""
    view = view_of(report)
    report, configs = view.report, configs_of(view)
    notes = {"notes": " ".join(view.cautions)} if view.cautions else {}
    notes |= {"counted": view.counted} if view.counted else {}
    ran = [_of_configuration(row, view, configs[row.result.name] | notes) for row in view.groups[0].rows]
    failed = [
        LoggedRun(
            failure.name,
            "configuration",
            config := failed_config(report, failure.config),
            [*tags_of(config), "failed"],
            words={"failed": failure.reason, "error": failure.error},
            failed=failure.reason,
        )
        for failure in report.failed
    ]
    shared = shared_config(report)
    return [*ran, *failed, LoggedRun(SUMMARY, SUMMARY, shared | notes, tags_of(shared), files=_files(report))]


def sweep_of(report: BenchmarkReport) -> Config:
    """Return values that identify the results of a benchmark: quality, but not costs."""
    manifest = report.manifest
    compared = {"corpora": manifest["corpora"]} if "corpora" in manifest else {}
    return compared | {
        "baseline": report.baseline,
        "k": report.k_values,
        "significance": manifest.get("significance"),
        "corpus": (manifest.get("corpus") or {}).get("fingerprint"),
        "queries": manifest.get("query_fingerprint"),
        "found": {result.name: [result.fingerprint, result.measures, result.groups] for result in report.configurations},
        "failed": {failure.name: failure.error for failure in report.failed},
    }


def cost_figures(row: Row) -> dict[str, float]:
    """Return the single figures of a cost by name; those of language models only if one was used."""
    if row.result.cost is None:
        return {}
    figures = {key: value for key, value in comparable_figures(row.result.cost).items() if isinstance(value, int | float)}
    asked: dict[str, float] = asdict(row.result.cost.language_model) if row.result.cost.language_model else {}
    asked.pop("models", None)
    answering: dict[str, float] = asdict(row.result.cost.answering) if row.result.cost.answering else {}
    of_parts = {f"language_model/{key}": value for key, value in asked.items()}
    return figures | of_parts | {f"answering/{key}": value for key, value in answering.items()} | row.prices


def on_fronts(row: Row, view: ReportView) -> dict[str, bool]:
    """Return, for each front that a configuration has values for, whether it is on it."""
    name = row.result.name
    return {_FRONTS[key]: name in front.names for key, front in view.fronts.items() if name in front.placed}


def headline_of(view: ReportView) -> list[str]:
    """Return the measures to show if space is limited."""
    return [column.key for column in view.summary if column.cost is None]


def _of_configuration(row: Row, view: ReportView, config: Config) -> LoggedRun:
    result, cost = row.result, row.result.cost
    figures: dict[str, float] = dict(result.measures)
    for group, intervals in result.intervals.items():
        for measure, (low, high) in intervals.items():
            name = f"{group}/{measure}" if group else measure
            figures |= {f"{name}/low": low, f"{name}/high": high}
    figures |= {f"{group}/{name}": value for group, measures in result.groups.items() for name, value in measures.items()}
    figures |= {f"cost/{key}": value for key, value in cost_figures(row).items()}
    figures |= {f"cost/stage_ms/{stage}": value for stage, value in (cost.stage_ms if cost else {}).items()}
    figures |= on_fronts(row, view)
    figures["empty_queries"] = result.empty_queries
    for comparison in view.groups[0].comparisons:
        if comparison.system == result.name:
            figures |= {
                f"significance/{comparison.measure}/difference": comparison.difference,
                f"significance/{comparison.measure}/p_holm": comparison.p_holm,
            }
    return LoggedRun(
        result.name,
        "configuration",
        config,
        tags_of(config, baseline=row.is_baseline),
        _curves(result, view.report.k_values),
        figures,
        [name for name in headline_of(view) if name in result.measures],
        {"fingerprint": result.fingerprint},
        _lists(view.report, result.name),
    )


def _curves(result: ConfigurationResult, k_values: list[int]) -> dict[str, dict[int, float]]:
    curves: dict[str, dict[int, float]] = {}
    for group, measures in {"": result.measures, **result.groups}.items():
        for measure in map(Measure.parse, measures):
            if (k := measure.cutoff) is not None and k in k_values:
                curves.setdefault(f"{group}/{measure.family}" if group else measure.family, {})[k] = measures[str(measure)]
    return curves


def _lists(report: BenchmarkReport, name: str) -> list[Path]:
    """The TREC run of a configuration, if it was written."""
    if "trec" not in report.files:
        return []
    names = [result.name for result in report.configurations]
    stem = dict(zip(names, file_names(names), strict=True))[name]
    return _there(Path(report.files["trec"]) / f"{stem}.trec")


def _files(report: BenchmarkReport) -> list[Path]:
    """Return the files needed to repeat and check a benchmark: manifest, results and judgements."""
    kept = [Path(report.files[kind]) for kind in ("manifest", "results") if kind in report.files]
    return _there(*kept, *([Path(report.files["trec"]) / "qrels.txt"] if "trec" in report.files else []))


def _there(*files: Path) -> list[Path]:
    return [file for file in files if file.is_file()]
