"""Content logged for a benchmark, for any tracker: a run for each configuration, and a summary run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from nlp_retrieval.benchmarks.cost import comparable_figures
from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.output import file_names
from nlp_retrieval.evaluation.evaluator import Measure
from nlp_retrieval.reports.tracking.run_config import configs_of, failed_config, shared_config, tags_of
from nlp_retrieval.reports.view import ReportView, Row, view_of

SUMMARY = "summary"

_FRONTS = {"latency_ms": "pareto", "price_per_1000_queries": "pareto_price"}


@dataclass(frozen=True)
class LoggedRun:
    """One run, as logged to trackers.

    Args:
        name: name of the configuration, or ``summary``.
        job: ``configuration`` or ``summary``.
        config: flat; see :mod:`nlp_retrieval.reports.tracking.run_config`.
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
    """Return the runs of a finished benchmark: its configurations, including failed ones, and the summary.

    Args:
        report: with its files.
    """
    view = view_of(report)
    report, configs = view.report, configs_of(view)
    notes = {"notes": " ".join(view.cautions)} if view.cautions else {}
    notes |= {"counted": view.counted} if view.counted else {}
    ran = [_of_configuration(row, view, configs[row.result.name] | notes) for row in view.groups[0].rows]
    failed = [
        LoggedRun(
            one.name,
            "configuration",
            config := failed_config(report, one.config),
            [*tags_of(config), "failed"],
            words={"failed": one.reason, "error": one.error},
            failed=one.reason,
        )
        for one in report.failed
    ]
    shared = shared_config(report)
    return [*ran, *failed, LoggedRun(SUMMARY, SUMMARY, shared | notes, tags_of(shared), files=_files(report))]


def sweep_of(report: BenchmarkReport) -> Config:
    """Return values that identify the results of a benchmark: quality, but not costs.

    Args:
        report: a finished benchmark.
    """
    manifest = report.manifest
    compared = {"corpora": manifest["corpora"]} if "corpora" in manifest else {}
    return compared | {
        "baseline": report.baseline,
        "k": report.k_values,
        "significance": manifest.get("significance"),
        "corpus": (manifest.get("corpus") or {}).get("fingerprint"),
        "queries": manifest.get("query_fingerprint"),
        "found": {result.name: [result.fingerprint, result.measures, result.groups] for result in report.configurations},
        "failed": {one.name: one.error for one in report.failed},
    }


def cost_figures(row: Row) -> dict[str, float]:
    """Return the single figures of a cost by name; those of language models only if one was used.

    Args:
        row: row of a configuration; its prices are included if known.
    """
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
    for one in view.groups[0].comparisons:
        if one.system == result.name:
            figures |= {
                f"significance/{one.measure}/difference": one.difference,
                f"significance/{one.measure}/p_holm": one.p_holm,
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
