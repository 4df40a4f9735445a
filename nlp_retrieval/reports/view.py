"""Content of all forms of a report, computed once: cells, marks, Pareto fronts, groups of queries, prices and notes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from nlp_retrieval.benchmarks.cost import unpriced
from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult
from nlp_retrieval.benchmarks.runs import cautions_in, corpora_note, corpora_of
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.evaluation.comparison import Comparison, verdict
from nlp_retrieval.evaluation.measures import grades_note
from nlp_retrieval.reports.figures import (
    ALPHA,
    COST_COLUMNS,
    Column,
    by_chance,
    by_figure,
    cost_columns,
    front_legend,
    fronts,
    language_model_of,
    latency_interval,
    legend,
    measure_columns,
    out_of_reach,
    price_columns,
    query_groups,
    summary_columns,
)
from nlp_retrieval.text.printing import counted, listed, printable

CALLS_AND_TOKENS = "Calls and tokens are those of this run; tokens per query include answers from disk."


def degraded_note(report: BenchmarkReport, result: ConfigurationResult) -> str:
    """Return how many questions are missing from the quality; ``""`` if none."""
    cost = language_model_of(result)
    if cost is None or not cost.degraded:
        return ""
    questions, theirs = ("question", "its query was") if cost.degraded == 1 else ("questions", "their queries were")
    return (
        f"{cost.degraded:,} {questions} about {report.query_counts.get('', 0):,} queries got no usable answer from the "
        f"language model; {theirs} searched without it."
    )


def latency_note(result: ConfigurationResult) -> str:
    """Return how much of a latency excludes the language model, because answers were on disk; ``""`` if none."""
    cost = language_model_of(result)
    if cost is None or not cost.latency_cache_hits:
        return ""
    every = cost.latency_cache_hits == cost.latency_answers
    number = f"{cost.latency_cache_hits:,}" if every else f"{cost.latency_cache_hits:,} of {cost.latency_answers:,}"
    return (
        f"{'all ' if every else ''}{number} answers of the language model in the latency sample came from disk; "
        f"the latency {'is' if every else 'is in part'} that of reading them, not of the model."
    )


def price_note(report: BenchmarkReport, result: ConfigurationResult) -> str:
    """Return why a configuration's price is unknown; ``""`` if it is known, or nothing is priced."""
    if report.prices is None or result.cost is None:
        return ""
    reasons = unpriced(result.cost, report.prices)
    return f"its price is unknown: {'; '.join(reasons)}." if reasons else ""


def prices_legend(report: BenchmarkReport) -> str:
    """Return the basis of the prices, and the table that they come from; ``""`` if none is shown."""
    if report.prices is None or not price_columns(report):
        return ""
    asked = {model for result in report.configurations if (cost := language_model_of(result)) for model in cost.models}
    table = "; ".join(
        f"{model} {price.input:.10g} in, {price.output:.10g} out"
        for model, price in report.prices.models.items()
        if model in asked
    )
    return (
        "Prices cover only the tokens of language models; the price of 1,000 queries includes answers from disk. "
        f"{report.prices.currency} per million tokens, as given: {table}."
    )


def comparison_notes(report: BenchmarkReport) -> list[str]:
    """Return warnings about all figures: synthetic queries, filters and, for separate runs, corpora, families and groups."""
    if "compared" not in report.manifest:
        return [note for note in (report.synthetic_note, _filters_note(report.manifest)) if note]
    return [note for note in (report.synthetic_note, corpora_note(corpora_of(report)), *cautions_in(report)) if note]


def counting_note(report: BenchmarkReport) -> str:
    """Return in one line which queries were counted and which were not; ``""`` if unknown."""
    counts = report.counted
    if counts is None:
        return ""

    def part(number: int, noun: str, rest: str, first: str = "") -> str:
        example = f" (first: {counts.first[first]!r})" if first in counts.first else ""
        return f"{noun}{rest}{example}" if number else ""

    def queries(number: int, noun: str = "query", plural: str = "queries") -> str:
        return counted(number, noun, plural)

    empty = [f"{result.name}: {result.empty_queries:,}" for result in report.configurations if result.empty_queries]
    lacking = counted(counts.missing_documents, "relevant document")
    dropped, missing = (counts.missing_documents * (counts.gold_missing == "drop"), counts.missing_documents)
    parts = [
        f"Counted: {queries(counts.queries)}",
        part(counts.without_relevant, f"{counts.without_relevant:,}",
             " of them without a relevant document" + " score 0" * (report.relevant_from == 1), "without_relevant"),
        f"queries without results score 0 ({listed(empty)})" if empty else "",
        part(missing - dropped, lacking, f" of {queries(counts.missing_queries)} that the corpus lacks, as not found",
             "missing_documents"),
    ]  # fmt: skip
    asked = "is" if counts.unasked == 1 else "are"
    left_out = [
        part(counts.unjudged, queries(counts.unjudged), " without judgements", "unjudged"),
        part(counts.unasked, queries(counts.unasked, "judged query", "judged queries"), f" that {asked} not asked", "unasked"),
        part(dropped, lacking, " that the corpus lacks", "missing_documents"),
        part(counts.dropped, queries(counts.dropped), " without any relevant document in the corpus", "dropped"),
        part(counts.own_ids, "the hit that is the query itself, of ", f"{queries(counts.own_ids)} (same id)"),
    ]
    said = f"{'; '.join(filter(None, parts))}{grades_note(report.relevant_from)}."
    return printable(f"{said} Not counted: {'; '.join(filter(None, left_out))}." if any(left_out) else said)


def _filters_note(manifest: Config) -> str:
    """The filters of a benchmark's queries; ``""`` if there are none."""
    if not manifest.get("filters"):
        return ""
    parts = [f"{key} as the query's {source}" for key, source in (manifest.get("where_from") or {}).items()]
    parts += [json.dumps(where, ensure_ascii=False)] if (where := manifest.get("where")) else []
    return f"Queries are filtered ({printable('; '.join(parts))})."


def failure_notes(report: BenchmarkReport) -> list[str]:
    """Return a sentence for each failed configuration, and one if the baseline is among them."""
    notes = [f"{printable(failed.name)} failed: {printable(failed.reason)}" for failed in report.failed]
    if any(failed.name == report.manifest.get("baseline") for failed in report.failed):
        wanted = printable(str(report.manifest["baseline"]))
        notes.append(
            f"{wanted} was meant to be the baseline; the others are compared with {printable(report.baseline)} instead."
        )
    return notes


_SAY_LITTLE = frozenset("corpus queries items documents docs passages collection data dataset test dev train".split())


def manifests_of(report: BenchmarkReport) -> list[Config]:
    """Return the manifest of a benchmark, or those of the folders that were compared."""
    compared = report.manifest.get("compared")
    return list(compared.values()) if isinstance(compared, dict) else [report.manifest]


def dataset_of(report: BenchmarkReport) -> str:
    """Return the corpus and the queries: ``"hover_dev_subset over wiki"``; ``""`` if unknown."""
    names = []
    for manifest in manifests_of(report):
        corpus = manifest.get("corpus")
        loaders = manifest.get("query_loader"), corpus.get("loader") if isinstance(corpus, dict) else None
        names.append(" over ".join(dict.fromkeys(filter(None, map(_named, loaders)))))
    return "; ".join(dict.fromkeys(filter(None, names)))


def _named(loader: Any) -> str:
    """Return the source of a loader: the name of its file, or of the folder if the file's is not informative."""
    if not isinstance(loader, dict):
        return ""
    keys = ("path", "dataset", "url", "name")
    text = next((loader[key] for key in keys if isinstance(loader.get(key), str) and loader[key]), "")
    parts = [part for part in PurePath(text).parts if part not in ("/", ".", "..")]
    stem = parts[-1].partition(".")[0] if parts else ""
    return parts[-2] if stem.lower() in _SAY_LITTLE and len(parts) > 1 else stem


@dataclass(frozen=True)
class Cell:
    """One figure of a configuration, over the queries of a group; ``repeated`` is true of a cost in a group."""

    column: Column
    value: float | None
    text: str
    best: bool
    comparison: Comparison | None
    on_front: bool
    interval: str
    repeated: bool

    @property
    def verdict(self) -> str:
        """``"better"`` or ``"worse"`` than the baseline's according to the corrected test; otherwise empty."""
        decided = "" if self.comparison is None else verdict(self.comparison, ALPHA)
        return decided if decided in ("better", "worse") else ""


@dataclass(frozen=True)
class Row:
    """A configuration's figures over the queries of a group."""

    result: ConfigurationResult
    is_baseline: bool
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class QueryGroup:
    """A group of queries; ``hopeless`` says why no difference in it could have been significant."""

    number: int
    name: str
    count: int | None
    rows: Sequence[Row]
    comparisons: Sequence[Comparison]
    hopeless: str

    def __str__(self) -> str:
        return (self.name or "all queries") + (f" ({self.count:,})" if self.count is not None else "")


class ReportView:
    """A report prepared for display: its cells, Pareto fronts and notes, computed once for all its forms."""

    def __init__(self, report: BenchmarkReport) -> None:
        costs, hopeless = cost_columns(report), out_of_reach(report)
        self.report = report
        self.columns = [*measure_columns(report), *costs]
        self.summary = summary_columns(report)
        self.model_columns = [cost for cost in costs if cost not in COST_COLUMNS and cost.key != "price_per_1000_queries"]
        self.comparisons, self.fronts = by_figure(report), fronts(report)
        reason_of = {group: reason for reason, groups in hopeless.items() for group in groups}
        groups = {
            name: QueryGroup(
                number,
                name,
                report.query_counts.get(name),
                self._rows(name),
                report.comparisons.get(name, []),
                reason_of.get(name, ""),
            )
            for number, name in enumerate(query_groups(report))
        }
        self.groups = list(groups.values())
        self.out_of_reach = {reason: [groups[name] for name in named if name in groups] for reason, named in hopeless.items()}
        self.corpora = corpora_of(report)
        self.main_measure = report.main_measure
        self.dataset = dataset_of(report)
        self.legend, self.front_legend, self.chance = legend(report), front_legend(report), by_chance(report)
        self.cautions, self.failures = comparison_notes(report), failure_notes(report)
        self.counted = counting_note(report)
        self.prices = prices_legend(report)
        self.degraded = self._noted(lambda result: degraded_note(report, result))
        self.latency = self._noted(latency_note)
        self.unpriced = self._noted(lambda result: price_note(report, result))

    def _noted(self, note: Callable[[ConfigurationResult], str]) -> dict[str, str]:
        """Return the notes about configurations by name, without empty ones."""
        notes = {result.name: note(result) for result in self.report.configurations}
        return {name: text for name, text in notes.items() if text}

    def _rows(self, group: str) -> list[Row]:
        results = self.report.configurations
        cells: list[dict[str, Cell]] = [{} for _ in results]
        for column in self.columns:
            values = [column.value(result, group) for result in results]
            best = column.best(values)
            front = self.fronts.get(column.key) if not group else None
            for position, (result, value) in enumerate(zip(results, values, strict=True)):
                span = latency_interval(result) if column.key == "latency_ms" else None
                cells[position][column.key] = Cell(
                    column=column,
                    value=value,
                    text=column.text(value),
                    best=position in best,
                    comparison=self.comparisons.get((group, column.key, result.name)),
                    on_front=front is not None and result.name in front.names,
                    interval=f"{column.text(span[0])} to {column.text(span[1])}" if span else "",
                    repeated=bool(group) and column.cost is not None,
                )
        baseline = self.report.baseline
        return [Row(result, result.name == baseline, of_row) for result, of_row in zip(results, cells, strict=True)]


def view_of(report: BenchmarkReport | ReportView) -> ReportView:
    """Return a report prepared for display."""
    return report if isinstance(report, ReportView) else ReportView(report)
