"""Content logged for a benchmark, for any tracker: a run for each configuration, and a summary run.

The configuration of a run is flat, so that a dashboard can filter and group by it: each setting appears once, under one name.
Settings on an axis of a grid are under ``grid/<axis>`` alone, so that two runs that differ in one parameter differ in one
value. The parts of a searcher have short names (``retrievers``, ``encoder``, ``links``, ``processor``, ``fusion``,
``reranker``), their parameters have paths (``bm25/k1``); null values are left out, and so is the fingerprint.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from os.path import expanduser
from pathlib import Path, PurePosixPath
from typing import Any

from markupsafe import Markup

from nlp_retrieval.benchmarks.grid import Place, with_value
from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult
from nlp_retrieval.benchmarks.runs import RunCorpus
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.atomic import file_names
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.reports.figures import best_first, p_phrase
from nlp_retrieval.reports.findings import headline
from nlp_retrieval.reports.view import ReportView, Row, view_of
from nlp_retrieval.text.printing import printable

PARTS = ("retrievers", "encoder", "links", "processor", "fusion", "reranker")
"""The short names used as columns of tables, and as tags."""

_AT_ROOT = ("processor", "fusion", "reranker")
_FILES_OF_ANY_SET = frozenset(
    "corpus collection docs documents passages items data train dev test validation queries main default".split()
)


_LONGEST_LIST = 10
_FEW_MEASURES = 12


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
        "list_depth": report.manifest.get("depth"),
        "latency_k": (report.manifest.get("latency") or {}).get("k"),
        "baseline": report.baseline,
    }
    return {key: value for key, value in settings.items() if value not in (None, "")}


def dataset_record(report: BenchmarkReport, corpus: RunCorpus | None = None) -> Config:
    """Return fingerprints, counts and loaders of the corpus, the queries and the gold, without secrets; empty if unknown.

    Args:
        report: a finished benchmark.
        corpus: the corpus of the configuration, if it is known apart from the report's.
    """
    manifest = report.manifest
    known: Config = asdict(corpus) if corpus is not None else {}
    recorded = manifest.get("corpus")
    if isinstance(recorded, dict) and recorded.get("fingerprint") == known.get("fingerprint", recorded.get("fingerprint")):
        known = recorded
    parts = manifest.get("query_parts")
    queries = {
        "count": report.query_counts.get(""),
        "fingerprint": manifest.get("query_fingerprint"),
        "loader": manifest.get("query_loader"),
        "filters": manifest.get("filters"),
    }
    gold = {
        "fingerprint": parts.get("gold") if isinstance(parts, dict) else None,
        "relevant_from": manifest.get("relevant_from"),
        "missing": manifest.get("gold_missing"),
    }
    if not known and queries["fingerprint"] is None:
        return {}
    record = {"name": dataset_of(manifest), "corpus": known, "queries": queries, "gold": gold}
    cleaned: Config = without_secrets(_brief(record))
    return cleaned


def _brief(value: Any) -> Any:
    """Plain values in which a list too long for a setting is its length: a loader may hold its items themselves."""
    if isinstance(value, dict):
        return {key: _brief(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_brief, value)) if len(value) <= _LONGEST_LIST else f"{len(value):,} values"
    return value


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
        headline: the names of the main measures, the main measure first.
        panels: the names of the figures to draw over all runs, the main measure first.
        summary: the names of the figures to show if space is limited, the most important first.
        words: texts by name, such as the fingerprint.
        dataset: fingerprints, counts and loaders of the corpus, the queries and the gold; empty if unknown.
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
    panels: list[str] = field(default_factory=list)
    summary: list[str] = field(default_factory=list)
    words: Mapping[str, str] = field(default_factory=dict)
    dataset: Config = field(default_factory=dict)
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
    words = {"headline": text} if (text := headline(report)) else {}
    summary = LoggedRun(SUMMARY, SUMMARY, shared | notes, tags_of(shared), words=words, files=_files(report))
    return [*ran, *failed, replace(summary, dataset=dataset_record(report))]


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
    figures = {key: value for key, value in asdict(row.result.cost).items() if isinstance(value, int | float)}
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


def panels_of(view: ReportView) -> list[str]:
    """Return the names of the figures to draw over all runs: the main measure, latency, size of the index, and price."""
    costs = [f"cost/{column.key}" for column in view.summary if column.cost is not None]
    return [view.main_measure, *costs]


def summary_of(view: ReportView) -> list[str]:
    """Return the names of the figures to show if space is limited, the most important first."""
    main = view.main_measure
    tested = [f"significance/{main}/{figure}" for figure in ("difference", "p_holm")]
    costs = [f"cost/{column.key}" for column in view.columns if column.cost is not None]
    others = headline_of(view)[1:]
    few = [*_FRONTS.values(), "empty_queries", *others[:_FEW_MEASURES], *costs, *others[_FEW_MEASURES:]]
    return [main, f"{main}/low", f"{main}/high", *tested, *few]


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
    of_models = [name for kind in ("answering", "language_model") for name in figures if name.startswith(f"cost/{kind}/")]
    return LoggedRun(
        result.name,
        "configuration",
        config,
        tags_of(config, baseline=row.is_baseline),
        _curves(result, view.report.k_values),
        figures,
        [name for name in headline_of(view) if name in result.measures],
        [name for name in panels_of(view) if name in figures],
        [name for name in (*summary_of(view), *of_models) if name in figures],
        {"fingerprint": result.fingerprint},
        dataset_record(view.report, view.corpora[result.name]),
        _lists(view.report, result.name) + _trajectories(result.config),
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


def _trajectories(config: Config) -> list[Path]:
    """The file of an agent's trajectories: the one that the run read, or the one that the agent wrote."""
    path = config.get("path") if config.get("name") == "trajectories" else config.get("record")
    return _there(Path(expanduser(path))) if isinstance(path, str) else []  # noqa: PTH111 -- as the agent reads it


def _files(report: BenchmarkReport) -> list[Path]:
    """Return the files needed to repeat and check a benchmark: manifest, results and judgements."""
    kept = [Path(report.files[kind]) for kind in ("manifest", "results") if kind in report.files]
    return _there(*kept, *([Path(report.files["trec"]) / "qrels.txt"] if "trec" in report.files else []))


def _there(*files: Path) -> list[Path]:
    return [file for file in files if file.is_file()]


# The table of all configurations: components and grid settings, then measures, intervals, tests and costs.

_ALWAYS = ("retrievers", "fusion", "reranker")


def comparison_table(view: ReportView, runs: list[LoggedRun]) -> tuple[list[str], list[list[Any]]]:
    """Return columns and rows, best first; a part set by an axis of the grid has the axis as its column."""
    rows = {row.result.name: row for row in view.groups[0].rows}
    of_rows = {run.name: run for run in runs[: len(rows)]}
    configs = [run.config for run in of_rows.values()]
    axes = list(dict.fromkeys(key for config in configs for key in config if key.startswith("grid/")))
    parts = [part for part in PARTS if part in _ALWAYS or any(part in config for config in configs)]
    made_of = [*(part for part in parts if f"grid/{part}" not in axes), *axes]
    main = view.main_measure
    measures = [column.key for column in view.columns if column.cost is None and column.key != main]
    costs = {name: cost_figures(row) | on_fronts(row, view) for name, row in rows.items()}
    kinds = list(dict.fromkeys(key for cost in costs.values() for key in cost))
    bounds = [f"{main}/low", f"{main}/high"] if any(f"{main}/low" in run.figures for run in of_rows.values()) else []
    tested = [f"{main} p_holm"] if view.comparisons else []
    table = []
    for result in best_first(view.report):
        run, compared = of_rows[result.name], rows[result.name].cells[main].comparison
        p_holm = [compared.p_holm if compared is not None else None for _ in tested]
        figures = [run.figures.get(name) for name in (main, *bounds)]
        others = map(run.figures.get, measures)
        table.append([run.name, *map(run.config.get, made_of), *figures, *p_holm, *others, *map(costs[run.name].get, kinds)])
    return ["configuration", *made_of, main, *bounds, *tested, *measures, *kinds], table


def figure_table(logged: LoggedRun) -> tuple[list[str], list[list[Any]]]:
    """Return columns and rows of all numbers of a run: value, interval, and difference from the baseline with its p-value."""
    figures = logged.figures
    own = [
        name
        for name, value in figures.items()
        if not isinstance(value, bool)
        and not name.startswith("significance/")
        and not (name.endswith(("/low", "/high")) and name.rpartition("/")[0] in figures)
    ]
    beside = ("{}/low", "{}/high", "significance/{}/difference", "significance/{}/p_holm")
    rows = [[name, *(figures.get(form.format(name)) for form in ("{}", *beside))] for name in own]
    return ["figure", "value", "low", "high", "difference", "p_holm"], rows


_INTERVALS = Markup(
    """<!doctype html><html lang="en"><meta charset="utf-8"><title>{measure} by configuration</title><style>
body {{ margin: 8px; background: #fff; color: #222; font: 13px/1.4 system-ui, sans-serif }}
h1 {{ font-size: 14px; margin: 0 0 8px }} table {{ border-collapse: collapse; width: 100% }}
th, td {{ text-align: left; font-weight: normal; padding: 3px 12px 3px 0; white-space: nowrap }}
td + td {{ padding-left: 8px }}
td.track {{ width: 60%; position: relative; border-left: 1px solid #bbb; border-right: 1px solid #bbb }}
i, b {{ position: absolute; top: 50% }} i {{ height: 2px; margin-top: -1px; background: #4a6fa5 }}
b {{ width: 9px; height: 9px; margin: -4.5px; border-radius: 50%; background: #1f3f73 }} small {{ color: #555 }}
</style><h1>{headline}</h1><table><tr><th><small>configuration</small><td class="track"><small>&nbsp;{low:.2f}</small>
<small style="float:right;margin-right:-8px">{high:.2f}</small><td><small>{measure} [95% interval]</small>
<td><small>difference from {baseline}</small></tr>{rows}</table></html>"""
)
_INTERVAL = Markup(
    '<tr><th>{name}<td class="track"><i style="left:{low:.1f}%;width:{width:.1f}%"></i><b style="left:{at:.1f}%"></b>'
    "<td>{value}<td>{difference}</tr>"
)


def interval_chart(view: ReportView) -> str:
    """Return the main measure of every configuration with its interval as an HTML page, best first."""
    main, cells = view.main_measure, {row.result.name: row.cells for row in view.groups[0].rows}
    measured = [result for result in best_first(view.report) if main in result.measures]
    spans = [result.intervals.get("", {}).get(main, (result.measures[main],) * 2) for result in measured]
    low, high = min((span[0] for span in spans), default=0.0), max((span[1] for span in spans), default=1.0)
    low, high = math.floor(low * 20) / 20, math.ceil(high * 20) / 20
    wide = (high - low) or 1.0
    rows = []
    for result, span in zip(measured, spans, strict=True):
        cell = cells[result.name][main]
        p = "" if cell.comparison is None else p_phrase(cell.comparison.p_holm)
        found = ", ".join(filter(None, [cell.difference, p, cell.verdict]))
        rows.append(
            _INTERVAL.format(
                name=printable(result.name),
                low=100 * (span[0] - low) / wide,
                width=100 * (span[1] - span[0]) / wide,
                at=100 * (result.measures[main] - low) / wide,
                value=f"{cell.text} [{span[0]:.3f}, {span[1]:.3f}]" if span[0] < span[1] else cell.text,
                difference="baseline" if result.name == view.report.baseline else found,
            )
        )
    texts = {"measure": main, "headline": headline(view.report), "baseline": printable(view.report.baseline)}
    return str(_INTERVALS.format(**texts, low=low, high=high, rows=Markup().join(rows)))
