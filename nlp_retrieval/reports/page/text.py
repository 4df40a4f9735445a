"""Text for the page: escaped, counted, listed."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult
from nlp_retrieval.reports.columns import language_model_of
from nlp_retrieval.reports.notes import latency_note
from nlp_retrieval.text.printable import printable


def escaped(text: object) -> str:
    """Return text as it may stand in the page, between tags or in an attribute."""
    return escape(printable(str(text)))


def isolated(name: str) -> str:
    """Return a name apart from its line: one with right-to-left marks must not turn the figures beside it around."""
    return f"<bdi>{escaped(name)}</bdi>"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``"1 query"``, ``"1,200 queries"``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: ``"5, 10 and 21"``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def group_label(report: BenchmarkReport, group: str) -> str:
    """Return a group of queries with its size; ``""`` is all of them."""
    number = report.query_counts.get(group)
    return escaped(group or "all queries") + (f" ({number:,})" if number is not None else "")


def tags(report: BenchmarkReport, result: ConfigurationResult, group: str = "") -> str:
    """Return what stands small beside a configuration's name; what is counted over all queries, only there."""
    found = '<small class="tag">baseline</small>' if result.name == report.baseline else ""
    if result.empty_queries and not group:
        found += f'<small class="tag">{counted(result.empty_queries, "query", "queries")} found nothing</small>'
    model = language_model_of(result)
    if model is not None and model.degraded and not group:
        found += f'<small class="tag">{counted(model.degraded, "question")} without an answer</small>'
    return found


def cautions(notes: Sequence[tuple[ConfigurationResult, str]]) -> str:
    """Return what must be known of configurations as a list; empty where nothing must."""
    said = "".join(f"<li>{isolated(result.name)}: {escaped(note)}</li>" for result, note in notes if note)
    return f'\n<ul class="cautions">{said}</ul>' if said else ""


def latency_cautions(report: BenchmarkReport) -> str:
    """Return which latencies are without the language model."""
    return cautions([(result, latency_note(result)) for result in report.configurations])
