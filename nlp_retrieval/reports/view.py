"""Content of all forms of a report, computed once: cells, marks, Pareto fronts, groups of queries, prices and notes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from nlp_retrieval.benchmarks.cost import unpriced
from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult
from nlp_retrieval.benchmarks.runs import RunCorpus, cautions_in, corpora_note, corpora_of
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.evaluation.comparison import Comparison, verdict
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.reports.figures import (
    ALPHA,
    COST_COLUMNS,
    Column,
    Front,
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
from nlp_retrieval.text.printing import printable

_FEW = 50
"""Queries."""

_BUSY = 0.1
"""Share of the cores."""

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
    dropped, found = (counts.missing_documents * (counts.gold_missing == "drop"), counts.missing_documents)
    parts = [
        f"Counted: {queries(counts.queries)}",
        part(counts.without_relevant, f"{counts.without_relevant:,}", " of them without a relevant document score 0",
             "without_relevant"),
        f"queries without results score 0 ({listed(empty)})" if empty else "",
        part(found - dropped, lacking, f" of {queries(counts.missing_queries)} that the corpus lacks, as not found",
             "missing_documents"),
        part(counts.own_gold, "the hit that is the query itself, of ", f"{queries(counts.own_gold)} that have it as gold"),
    ]  # fmt: skip
    asked = "is" if counts.unasked == 1 else "are"
    left_out = [
        part(counts.unjudged, queries(counts.unjudged), " without judgements", "unjudged"),
        part(counts.unasked, queries(counts.unasked, "judged query", "judged queries"), f" that {asked} not asked", "unasked"),
        part(dropped, lacking, " that the corpus lacks", "missing_documents"),
        part(counts.dropped, queries(counts.dropped), " without any relevant document in the corpus", "dropped"),
        part(counts.own_ids, "the hit that is the query itself, of ", f"{queries(counts.own_ids)} (same id)"),
        part(counts.ungrouped, queries(counts.ungrouped), f" without {counts.group_by!r} in any group", "ungrouped"),
    ]
    said = f"{'; '.join(filter(None, parts))}."
    return printable(f"{said} Not counted: {'; '.join(filter(None, left_out))}." if any(left_out) else said)


def same_ids_note(report: BenchmarkReport) -> str:
    """Return how many queries share their id with another item; ``""`` if none. The page says it once."""
    shared = report.counted.same_ids if report.counted is not None else 0
    whose = counted(shared, "query", "queries")
    return f"Hits that have the id of their query, of {whose}, count: they are other items." if shared else ""


def small_sample_note(report: BenchmarkReport) -> str:
    """Return a note if figures or latencies are based on few queries; otherwise ``""``."""
    queries = report.query_counts.get("", 0)
    timed = (report.manifest.get("latency") or {}).get("queries")
    few = [f"figures are means of {counted(queries, 'query', 'queries')}"] if 0 < queries < _FEW else []
    if isinstance(timed, int) and 0 < timed < _FEW and any(result.cost is not None for result in report.configurations):
        few.append(
            f"latencies are medians of {timed:,}" if few else f"latencies are medians of {counted(timed, 'query', 'queries')}"
        )
    return f"Small samples: {listed(few)}. Their intervals are wide." if few else ""


def timing_note(report: BenchmarkReport) -> str:
    """Return a note that other processes kept the machine busy during the timing; ``""`` if they did not."""
    busy = max((result.cost.other_cores or 0.0 for result in report.configurations if result.cost is not None), default=0.0)
    cores = (report.manifest.get("hardware") or {}).get("cores")
    if busy < _BUSY * (cores if isinstance(cores, int) and cores > 0 else 1):
        return ""
    of = f" of {cores}" if isinstance(cores, int) and cores > 0 else ""
    return (
        f"The machine was busy: other processes used {busy:.1f}{of} cores on average while times were taken, so latencies may "
        "be too long."
    )


def _filters_note(manifest: Config) -> str:
    """The filters of a benchmark's queries; ``""`` if there are none."""
    if not manifest.get("filters"):
        return ""
    pairs = manifest.get("where_from") or {}
    parts = [f"{key} as the query's {source}" for key, source in pairs.items()]
    parts += [json.dumps(where, ensure_ascii=False)] if (where := manifest.get("where")) else []
    return f"Queries are filtered ({printable('; '.join(parts))}), except in configurations named unfiltered."


def failure_notes(report: BenchmarkReport) -> list[str]:
    """Return a sentence for each failed configuration, and one if the baseline is among them."""
    notes = [f"{printable(failed.name)} failed: {printable(failed.reason)}" for failed in report.failed]
    if any(failed.name == report.manifest.get("baseline") for failed in report.failed):
        wanted = printable(str(report.manifest["baseline"]))
        notes.append(
            f"{wanted} was meant to be the baseline; the others are compared with {printable(report.baseline)} instead."
        )
    return notes


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``"1 query"``, ``"1,200 queries"``.

    Examples:
        >>> counted(1, "query"), counted(1200, "query", "queries")
        ('1 query', '1,200 queries')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: ``"5, 10 and 21"``.

    Examples:
        >>> listed(["5", "10", "21"])
        '5, 10 and 21'
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


_SAY_LITTLE = frozenset("corpus queries items documents docs passages collection data dataset test dev train".split())


def dataset_of(report: BenchmarkReport) -> str:
    """Return the corpus and the queries: ``"hover_dev_subset over wiki"``; ``""`` if unknown."""
    compared = report.manifest.get("compared")
    manifests = list(compared.values()) if isinstance(compared, dict) else [report.manifest]
    names = []
    for manifest in manifests:
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
    tied: bool
    interval: str
    repeated: bool

    @property
    def verdict(self) -> str:
        """``"better"`` or ``"worse"`` than the baseline's according to the corrected test; otherwise empty."""
        found = "" if self.comparison is None else verdict(self.comparison, ALPHA)
        return found if found in ("better", "worse") else ""


@dataclass(frozen=True)
class Row:
    """A configuration's figures over the queries of a group."""

    result: ConfigurationResult
    is_baseline: bool
    cells: Mapping[str, Cell]

    @property
    def prices(self) -> dict[str, float]:
        """Return the price and the actual cost of its language models, by column, as far as known."""
        cells = (self.cells.get(key) for key in ("price_per_1000_queries", "price_spent"))
        return {cell.column.key: cell.value for cell in cells if cell is not None and cell.value is not None}


@dataclass(frozen=True)
class QueryGroup:
    """A group of queries."""

    number: int
    name: str
    count: int | None
    rows: Sequence[Row]
    comparisons: Sequence[Comparison]
    hopeless: str

    def __str__(self) -> str:
        return (self.name or "all queries") + (f" ({self.count:,})" if self.count is not None else "")


@dataclass(frozen=True)
class ReportView:
    """A report prepared for display.

    Args:
        report: a finished benchmark.
        columns: every measure, then every cost.
        summary: the columns to show if space is limited.
        model_columns: usage and cost of language models; empty if none was used.
        groups: groups of queries, all of them first.
        comparisons: with the baseline, by group, measure and configuration.
        fronts: the Pareto fronts, by the key of their cost.
        legend: the meaning of the marks of a verdict, and their test; so with ``front_legend``.
        corpora: the corpus that each configuration was run on; None if unknown.
        out_of_reach: why no difference could have been significant, with the groups concerned.
        degraded: how many questions are missing from the quality, by configuration; so with ``latency`` and ``unpriced``.
        chance: a note, empty if there is none; so with the others that are texts.
    """

    report: BenchmarkReport
    columns: Sequence[Column]
    summary: Sequence[Column]
    model_columns: Sequence[Column]
    groups: Sequence[QueryGroup]
    comparisons: Mapping[tuple[str, str, str], Comparison]
    fronts: Mapping[str, Front]
    legend: str
    front_legend: str
    main_measure: str
    corpora: Mapping[str, RunCorpus | None]
    chance: str
    out_of_reach: Mapping[str, Sequence[QueryGroup]]
    prices: str
    cautions: Sequence[str]
    failures: Sequence[str]
    degraded: Mapping[str, str]
    latency: Mapping[str, str]
    unpriced: Mapping[str, str]
    dataset: str
    small_sample: str
    same_ids: str
    timing: str
    counted: str

    @property
    def main_label(self) -> str:
        """The main measure as it is shown: ``nDCG@10``."""
        return Measure.parse(self.main_measure).label


def view_of(report: BenchmarkReport | ReportView) -> ReportView:
    """Return a report prepared for display."""
    if isinstance(report, ReportView):
        return report
    measures, costs = measure_columns(report), cost_columns(report)
    names, summary = query_groups(report), summary_columns(report)
    comparisons, reasons = by_figure(report), out_of_reach(report)
    on_fronts = fronts(report)
    hopeless = {group: reason for reason, groups in reasons.items() for group in groups}
    groups = {
        name: QueryGroup(
            number,
            name,
            report.query_counts.get(name),
            _rows(report, [*measures, *costs], name, comparisons, on_fronts),
            report.comparisons.get(name, []),
            hopeless.get(name, ""),
        )
        for number, name in enumerate(names)
    }

    def noted(note: Callable[[ConfigurationResult], str]) -> dict[str, str]:
        notes = {result.name: note(result) for result in report.configurations}
        return {name: text for name, text in notes.items() if text}

    return ReportView(
        report=report,
        columns=[*measures, *costs],
        summary=summary,
        model_columns=[cost for cost in costs if cost not in COST_COLUMNS and cost.key != "price_per_1000_queries"],
        groups=list(groups.values()),
        comparisons=comparisons,
        fronts=on_fronts,
        legend=legend(report),
        front_legend=front_legend(report),
        main_measure=report.main_measure,
        corpora=corpora_of(report),
        chance=by_chance(report),
        out_of_reach={reason: [groups[name] for name in named if name in groups] for reason, named in reasons.items()},
        prices=prices_legend(report),
        cautions=comparison_notes(report),
        failures=failure_notes(report),
        degraded=noted(lambda result: degraded_note(report, result)),
        latency=noted(latency_note),
        unpriced=noted(lambda result: price_note(report, result)),
        dataset=dataset_of(report),
        small_sample=small_sample_note(report),
        same_ids=same_ids_note(report),
        timing=timing_note(report),
        counted=counting_note(report),
    )


def _interval(result: ConfigurationResult, column: Column) -> str:
    interval = latency_interval(result) if column.key == "latency_ms" else None
    return f"{column.text(interval[0])} to {column.text(interval[1])}" if interval else ""


def _rows(
    report: BenchmarkReport,
    columns: Sequence[Column],
    group: str,
    comparisons: Mapping[tuple[str, str, str], Comparison],
    on_fronts: Mapping[str, Front],
) -> list[Row]:
    cells: list[dict[str, Cell]] = [{} for _ in report.configurations]
    names = [result.name for result in report.configurations]
    for column in columns:
        values = [column.value(result, group) for result in report.configurations]
        best = column.best(values)
        front = on_fronts.get(column.key) if not group else None
        for position, (name, value) in enumerate(zip(names, values, strict=True)):
            cells[position][column.key] = Cell(
                column=column,
                value=value,
                text=column.text(value),
                best=position in best,
                comparison=comparisons.get((group, column.key, name)),
                on_front=front is not None and name in front.names,
                tied=front is not None and name in front.tied,
                interval=_interval(report.configurations[position], column),
                repeated=bool(group) and column.cost is not None,
            )
    return [
        Row(result, result.name == report.baseline, of_row) for result, of_row in zip(report.configurations, cells, strict=True)
    ]
