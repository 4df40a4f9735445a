"""Warnings about a configuration's figures, in sentences to be shown with them.

The terminal and the page show them word for word.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from nlp_retrieval.benchmarks.cost import unpriced
from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult
from nlp_retrieval.benchmarks.runs import cautions_in, corpora_note, corpora_of
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.reports.columns import language_model_of, price_columns
from nlp_retrieval.text.printing import printable

_FEW = 50
"""Queries."""

_BUSY = 0.1
"""Share of the cores."""

CALLS_AND_TOKENS = "Calls and tokens are what this run sent; tokens per query count answers from disk too."


def degraded_note(report: BenchmarkReport, result: ConfigurationResult) -> str:
    """Return how many questions are missing from the quality; ``""`` if none.

    Args:
        report: a finished benchmark.
        result: one of its configurations.
    """
    cost = language_model_of(result)
    if cost is None or not cost.degraded:
        return ""
    questions, theirs = ("question", "its query was") if cost.degraded == 1 else ("questions", "their queries were")
    return (
        f"{cost.degraded:,} {questions} about {report.query_counts.get('', 0):,} queries got no usable answer from the "
        f"language model; {theirs} searched without it."
    )


def latency_note(result: ConfigurationResult) -> str:
    """Return how much of a latency excludes the language model, because answers were on disk; ``""`` if none.

    Args:
        result: a configuration.
    """
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
    """Return why a configuration's price is unknown; ``""`` if it is known, or nothing is priced.

    Args:
        report: a finished benchmark.
        result: one of its configurations.
    """
    if report.prices is None or result.cost is None:
        return ""
    reasons = unpriced(result.cost, report.prices)
    return f"its price is not known: {'; '.join(reasons)}." if reasons else ""


def prices_legend(report: BenchmarkReport) -> str:
    """Return the basis of the prices, and the table that they come from; ``""`` if none is shown.

    Args:
        report: a finished benchmark.
    """
    if report.prices is None or not price_columns(report):
        return ""
    asked = {model for result in report.configurations if (cost := language_model_of(result)) for model in cost.models}
    table = "; ".join(
        f"{model} {price.input:.10g} in, {price.output:.10g} out"
        for model, price in report.prices.models.items()
        if model in asked
    )
    return (
        "A price is of the tokens of language models alone; that of 1,000 queries counts answers from disk too. "
        f"{report.prices.currency} per million tokens, as given: {table}."
    )


def comparison_notes(report: BenchmarkReport) -> list[str]:
    """Return warnings about all figures: filters and, for separate runs, their corpora, families and groups.

    Args:
        report: a finished benchmark, or runs that are compared.
    """
    if "compared" not in report.manifest:
        return [note] if (note := _filters_note(report.manifest)) else []
    return [note for note in (corpora_note(corpora_of(report)), *cautions_in(report)) if note]


def counting_note(report: BenchmarkReport) -> str:
    """Return in one line which queries were counted and which were not; ``""`` if unknown.

    Args:
        report: a finished benchmark, or runs that are compared.
    """
    one = report.counted
    if one is None:
        return ""
    empty = {result.name: result.empty_queries for result in report.configurations if result.empty_queries}
    said = [f"Counted: {counted(one.queries, 'query', 'queries')}"]
    if one.without_relevant:
        said.append(f"{one.without_relevant:,} of them without a relevant document score 0{_first(report, 'without_relevant')}")
    if empty:
        said.append(f"queries without results score 0 ({listed([f'{name}: {number:,}' for name, number in empty.items()])})")
    if one.missing_documents and one.gold_missing != "drop":
        of = counted(one.missing_queries, "query", "queries")
        documents = counted(one.missing_documents, "relevant document")
        said.append(f"as not found {documents} of {of} that the corpus lacks{_first(report, 'missing_documents')}")
    if one.own_gold:
        said.append(f"the hit that is the query itself, of {counted(one.own_gold, 'query', 'queries')} that have it as gold")
    if one.same_ids:
        whose = counted(one.same_ids, "query", "queries")
        said.append(f"hits that have the id of their query, of {whose}: they count as other items")
    left_out = []
    if one.unjudged:
        left_out.append(f"{counted(one.unjudged, 'query', 'queries')} without judgements{_first(report, 'unjudged')}")
    if one.unasked:
        judged = counted(one.unasked, "judged query", "judged queries")
        left_out.append(f"{judged} that {'is' if one.unasked == 1 else 'are'} not asked{_first(report, 'unasked')}")
    if one.missing_documents and one.gold_missing == "drop":
        documents = counted(one.missing_documents, "relevant document")
        left_out.append(f"{documents} that the corpus lacks{_first(report, 'missing_documents')}")
    if one.dropped:
        whose = counted(one.dropped, "query", "queries")
        left_out.append(f"{whose} of whose relevant documents the corpus has none{_first(report, 'dropped')}")
    if one.own_ids:
        left_out.append(f"the hit that is the query itself, of {counted(one.own_ids, 'query', 'queries')} (same id)")
    if one.ungrouped:
        whose = counted(one.ungrouped, "query", "queries")
        left_out.append(f"in any group {whose} without {one.group_by!r}{_first(report, 'ungrouped')}")
    counted_line = "; ".join(said) + "."
    return printable(f"{counted_line} Not counted: {'; '.join(left_out)}." if left_out else counted_line)


def _first(report: BenchmarkReport, what: str) -> str:
    first = report.counted.first.get(what) if report.counted is not None else None
    return f" (first: {first!r})" if first is not None else ""


def small_sample_note(report: BenchmarkReport) -> str:
    """Return a note if figures or latencies are based on few queries; otherwise ``""``.

    Args:
        report: a finished benchmark.
    """
    queries = report.query_counts.get("", 0)
    timed = (report.manifest.get("latency") or {}).get("queries")
    few = [f"figures are means of {counted(queries, 'query', 'queries')}"] if 0 < queries < _FEW else []
    if isinstance(timed, int) and 0 < timed < _FEW and any(result.cost is not None for result in report.configurations):
        few.append(
            f"latencies are medians of {timed:,}" if few else f"latencies are medians of {counted(timed, 'query', 'queries')}"
        )
    return f"Small samples: {listed(few)}. Their intervals are wide." if few else ""


def timing_note(report: BenchmarkReport) -> str:
    """Return warnings about times: the machine, and whether it was busy; ``""`` if there are none.

    Args:
        report: a finished benchmark.
    """
    return " ".join(filter(None, [_busy_note(report), _beside_note(report)]))


def _busy_note(report: BenchmarkReport) -> str:
    """Return a note that other processes kept the machine busy during the timing."""
    busy = max((one.cost.other_cores or 0.0 for one in report.configurations if one.cost is not None), default=0.0)
    cores = (report.manifest.get("hardware") or {}).get("cores")
    if busy < _BUSY * (cores if isinstance(cores, int) and cores > 0 else 1):
        return ""
    of = f" of {cores}" if isinstance(cores, int) and cores > 0 else ""
    return (
        f"The machine was busy: other processes used {busy:.1f}{of} cores on average while times were taken, so latencies may "
        "be too long and queries per second too few."
    )


def _beside_note(report: BenchmarkReport) -> str:
    """Return where latencies were timed, and why throughputs were not; ``""`` if one process searched alone."""
    beside = [one.name for one in report.configurations if one.cost is not None and one.cost.queries_per_second is None]
    if not beside:
        return ""
    host = report.manifest.get("timed_on")
    where = f" on {printable(host)}" if isinstance(host, str) else ""
    whose = "All configurations" if len(beside) == len(report.configurations) else printable(listed(beside))
    return (
        f"{whose} searched all queries by several workers at once, so queries per second were not measured. Latencies were: "
        f"afterwards, in one process{where}, one query at a time and with no worker beside it."
    )


def _filters_note(manifest: Config) -> str:
    """The filters of a benchmark's queries; ``""`` if there are none."""
    if not manifest.get("filters"):
        return ""
    pairs = manifest.get("where_from") or {}
    parts = [f"{key} as the query's {source}" for key, source in pairs.items()]
    parts += [json.dumps(where, ensure_ascii=False)] if (where := manifest.get("where")) else []
    return f"Queries find only what meets a filter ({printable('; '.join(parts))}); configurations named unfiltered find all."


def failure_notes(report: BenchmarkReport) -> list[str]:
    """Return a sentence for each failed configuration, and one if the baseline is among them."""
    notes = [f"{printable(failed.name)} failed: {printable(failed.reason)}" for failed in report.failed]
    if any(failed.name == report.manifest.get("baseline") for failed in report.failed):
        wanted = printable(str(report.manifest["baseline"]))
        notes.append(f"{wanted} was to be the baseline; the others are compared with {printable(report.baseline)} instead.")
    return notes


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``"1 query"``, ``"1,200 queries"``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: ``"5, 10 and 21"``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
