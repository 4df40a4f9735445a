"""What must be known of a configuration's figures before they are compared, in sentences that go with them.

The terminal and the page say them word for word.
"""

from __future__ import annotations

from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult

CALLS_AND_TOKENS = "Calls and tokens are what this run sent; tokens per query count answers from disk too."


def degraded_note(report: BenchmarkReport, result: ConfigurationResult) -> str:
    """Return how many questions quality was judged without; ``""`` where there was none.

    Args:
        report: a finished benchmark.
        result: one of its configurations.
    """
    cost = result.cost.language_model
    if cost is None or not cost.degraded:
        return ""
    questions, theirs = ("question", "its query was") if cost.degraded == 1 else ("questions", "their queries were")
    return (
        f"{cost.degraded:,} {questions} about {report.query_counts.get('', 0):,} queries got no usable answer from the "
        f"language model; {theirs} searched without it."
    )


def latency_note(result: ConfigurationResult) -> str:
    """Return how much of a latency is without the language model, because answers were on disk; ``""`` where none is.

    Args:
        result: a configuration's.
    """
    cost = result.cost.language_model
    if cost is None or not cost.latency_cache_hits:
        return ""
    every = cost.latency_cache_hits == cost.latency_answers
    number = f"{cost.latency_cache_hits:,}" if every else f"{cost.latency_cache_hits:,} of {cost.latency_answers:,}"
    return (
        f"{'all ' if every else ''}{number} answers of the language model in the latency sample came from disk; "
        f"the latency {'is' if every else 'is in part'} that of reading them, not of the model."
    )
