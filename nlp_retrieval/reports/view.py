"""Content of all forms of a report, computed once: cells, marks, Pareto fronts, groups of queries, prices and notes.

The terminal, the page, the tables in files and Weights & Biases take their content from here and only format it, so that
all of them agree on which figures are best, on a front or better than the baseline.
"""

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
from nlp_retrieval.reports.figures import (
    ALPHA,
    ASCII_MARK,
    COST_COLUMNS,
    DAGGERS,
    MARK,
    SIGNS,
    TRIANGLES,
    Column,
    Front,
    Marks,
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
    empty = {result.name: result.empty_queries for result in report.configurations if result.empty_queries}
    parts = [f"Counted: {counted(counts.queries, 'query', 'queries')}"]
    if counts.without_relevant:
        parts.append(
            f"{counts.without_relevant:,} of them without a relevant document score 0{_first(report, 'without_relevant')}"
        )
    if empty:
        parts.append(f"queries without results score 0 ({listed([f'{name}: {number:,}' for name, number in empty.items()])})")
    if counts.missing_documents and counts.gold_missing != "drop":
        of = counted(counts.missing_queries, "query", "queries")
        documents = counted(counts.missing_documents, "relevant document")
        parts.append(f"{documents} of {of} that the corpus lacks, as not found{_first(report, 'missing_documents')}")
    if counts.own_gold:
        parts.append(
            f"the hit that is the query itself, of {counted(counts.own_gold, 'query', 'queries')} that have it as gold"
        )
    if counts.same_ids:
        whose = counted(counts.same_ids, "query", "queries")
        parts.append(f"hits that have the id of their query, of {whose}: they count as other items")
    left_out = []
    if counts.unjudged:
        left_out.append(f"{counted(counts.unjudged, 'query', 'queries')} without judgements{_first(report, 'unjudged')}")
    if counts.unasked:
        judged = counted(counts.unasked, "judged query", "judged queries")
        left_out.append(f"{judged} that {'is' if counts.unasked == 1 else 'are'} not asked{_first(report, 'unasked')}")
    if counts.missing_documents and counts.gold_missing == "drop":
        documents = counted(counts.missing_documents, "relevant document")
        left_out.append(f"{documents} that the corpus lacks{_first(report, 'missing_documents')}")
    if counts.dropped:
        whose = counted(counts.dropped, "query", "queries")
        left_out.append(f"{whose} without any relevant document in the corpus{_first(report, 'dropped')}")
    if counts.own_ids:
        left_out.append(f"the hit that is the query itself, of {counted(counts.own_ids, 'query', 'queries')} (same id)")
    if counts.ungrouped:
        whose = counted(counts.ungrouped, "query", "queries")
        left_out.append(f"{whose} without {counts.group_by!r} in any group{_first(report, 'ungrouped')}")
    counted_line = "; ".join(parts) + "."
    return printable(f"{counted_line} Not counted: {'; '.join(left_out)}." if left_out else counted_line)


def _first(report: BenchmarkReport, what: str) -> str:
    first = report.counted.first.get(what) if report.counted is not None else None
    return f" (first: {first!r})" if first is not None else ""


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
    """Return warnings about times: the machine, and whether it was busy; ``""`` if there are none."""
    return _busy_note(report)


def _busy_note(report: BenchmarkReport) -> str:
    """Return a note that other processes kept the machine busy during the timing."""
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


# The subject of a benchmark in a few words: the names of its queries and of its corpus, from its manifest.

_SAY_LITTLE = {
    "corpus",
    "queries",
    "items",
    "documents",
    "docs",
    "passages",
    "collection",
    "data",
    "dataset",
    "test",
    "dev",
    "train",
}
_NAMING = ("path", "dataset", "url", "name")


def dataset_of(report: BenchmarkReport) -> str:
    """Return the corpus and the queries: ``"hover_dev_subset over wiki"``; ``""`` if unknown."""
    compared = report.manifest.get("compared")
    manifests = list(compared.values()) if isinstance(compared, dict) else [report.manifest]
    return "; ".join(dict.fromkeys(filter(None, map(_of_manifest, manifests))))


def _of_manifest(manifest: Config) -> str:
    corpus = manifest.get("corpus")
    names = [_named(manifest.get("query_loader")), _named(corpus.get("loader") if isinstance(corpus, dict) else None)]
    return " over ".join(dict.fromkeys(filter(None, names)))


def _named(loader: Any) -> str:
    """Return the source of a loader: the name of its file, or of the folder if the file's is not informative."""
    if not isinstance(loader, dict):
        return ""
    text = next((loader[key] for key in _NAMING if isinstance(loader.get(key), str) and loader[key]), "")
    parts = [part for part in PurePath(text).parts if part not in ("/", ".", "..")]
    stem = parts[-1].partition(".")[0] if parts else ""
    return parts[-2] if stem.lower() in _SAY_LITTLE and len(parts) > 1 else stem


@dataclass(frozen=True)
class Cell:
    """One figure of a configuration, over the queries of a group.

    Args:
        column: its column.
        value: as measured; None if it was not.
        text: as printed.
        best: whether it is the best value of its column, or prints the same.
        difference: to the baseline's figure, as printed; empty for the baseline's own.
        comparison: with the baseline's figure; None if it was not tested.
        on_front: whether its configuration is on the Pareto front of this cost. Fronts are of all queries.
        tied: whether it cannot be distinguished from one on that front.
        interval: interval of a median latency, as printed; empty if unknown.
        repeated: true of a cost in a group: cost is measured over all queries.
    """

    column: Column
    value: float | None
    text: str
    best: bool
    difference: str
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
    """A configuration's figures over the queries of a group.

    Args:
        result: the configuration.
        is_baseline: whether it is the baseline.
        cells: by the key of their column.
    """

    result: ConfigurationResult
    is_baseline: bool
    cells: Mapping[str, Cell]

    @property
    def fronts(self) -> list[str]:
        """The keys of the costs on whose Pareto fronts it is."""
        return [key for key, cell in self.cells.items() if cell.on_front]

    @property
    def prices(self) -> dict[str, float]:
        """Return the price and the actual cost of its language models, by column, as far as known."""
        cells = (self.cells.get(key) for key in ("price_per_1000_queries", "price_spent"))
        return {cell.column.key: cell.value for cell in cells if cell is not None and cell.value is not None}


@dataclass(frozen=True)
class QueryGroup:
    """A group of queries.

    Args:
        number: its position among the groups.
        name: empty for all queries.
        count: number of queries, if known.
        rows: one for each configuration.
        comparisons: comparisons of the other configurations with the baseline, in every measure.
        hopeless: why no difference could have been significant; empty if one could.
    """

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
        legends: the meaning of the marks of a verdict, and their test, for each set of symbols.
        front_legends: the meaning of a front's mark, by the mark; empty if there is no front.
        main_measure: the measure to show if there is room for one.
        corpora: the corpus that each configuration was run on; None if unknown.
        chance: the expected number of false marks; empty if none is needed.
        out_of_reach: why no difference could have been significant, with the groups concerned.
        prices: the basis of the prices; empty if none is known.
        cautions: warnings about comparing separate runs.
        failures: a sentence for each failed configuration, and one if the baseline failed.
        degraded: how many questions are missing from the quality, by configuration.
        latency: how much of a latency excludes the language model, by configuration.
        unpriced: why a price is unknown, by configuration.
        dataset: the corpus and the queries; empty if unknown.
        small_sample: a note if little was measured; otherwise empty.
        timing: warnings about latencies; empty if there are none.
        counted: in one line, which queries were counted and which were not; empty if unknown.
    """

    report: BenchmarkReport
    columns: Sequence[Column]
    summary: Sequence[Column]
    model_columns: Sequence[Column]
    groups: Sequence[QueryGroup]
    comparisons: Mapping[tuple[str, str, str], Comparison]
    fronts: Mapping[str, Front]
    legends: Mapping[Marks, str]
    front_legends: Mapping[str, str]
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
    timing: str
    counted: str


def view_of(report: BenchmarkReport | ReportView) -> ReportView:
    """Return a report prepared for display."""
    if isinstance(report, ReportView):
        return report
    measures, costs = measure_columns(report), cost_columns(report)
    names, summary = query_groups(report), summary_columns(report)
    comparisons, reasons = by_figure(report), out_of_reach(report)
    legends, chance = {marks: legend(report, marks) for marks in (TRIANGLES, SIGNS, DAGGERS)}, by_chance(report)
    on_fronts = fronts(report)
    front_legends = {mark: front_legend(report, mark) for mark in (MARK, ASCII_MARK)}
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
        legends=legends,
        front_legends=front_legends,
        main_measure=report.main_measure,
        corpora=corpora_of(report),
        chance=chance,
        out_of_reach={reason: [groups[name] for name in named if name in groups] for reason, named in reasons.items()},
        prices=prices_legend(report),
        cautions=comparison_notes(report),
        failures=failure_notes(report),
        degraded=noted(lambda result: degraded_note(report, result)),
        latency=noted(latency_note),
        unpriced=noted(lambda result: price_note(report, result)),
        dataset=dataset_of(report),
        small_sample=small_sample_note(report),
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
        baseline = values[names.index(report.baseline)] if report.baseline in names else None
        front = on_fronts.get(column.key) if not group else None
        for position, (name, value) in enumerate(zip(names, values, strict=True)):
            cells[position][column.key] = Cell(
                column=column,
                value=value,
                text=column.text(value),
                best=position in best,
                difference="" if name == report.baseline else column.difference(value, baseline),
                comparison=comparisons.get((group, column.key, name)),
                on_front=front is not None and name in front.names,
                tied=front is not None and name in front.tied,
                interval=_interval(report.configurations[position], column),
                repeated=bool(group) and column.cost is not None,
            )
    return [
        Row(result, result.name == report.baseline, of_row) for result, of_row in zip(report.configurations, cells, strict=True)
    ]
