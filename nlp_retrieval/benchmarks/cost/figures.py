"""The figures of what searching costs: seconds, bytes, calls and tokens, each of one configuration."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class ModelTokens:
    """The tokens of one language model; of what and when they count, see :class:`LanguageModelCost`.

    Args:
        tokens_in: of the prompts sent.
        tokens_out: of its answers.
        query_tokens_in: tokens of prompts per query.
        query_tokens_out: the same of the answers.
    """

    tokens_in: int
    tokens_out: int
    query_tokens_in: float
    query_tokens_out: float


@dataclass(frozen=True)
class LanguageModelCost:
    """What the language models of one configuration were asked while it was measured.

    ``calls``, ``cache_hits``, ``tokens_in``, ``tokens_out`` and ``failures`` are of the whole measurement: warm-up, latency
    sample, the search over all queries and, where questions are answered, the answers. They are what this run spent, so what
    an earlier run, or another configuration, left on disk makes them smaller. Tokens per query do not depend on what was on
    disk.

    Args:
        calls: requests that were sent, retries among them.
        cache_hits: answers that came from disk.
        tokens_in: of the prompts sent, as the server counts them; 0 where it does not say.
        tokens_out: of its answers.
        failures: requests that brought no answer.
        degraded: questions that were left without a usable answer in the search over all queries, the one that quality is
            judged on. A query may ask several questions.
        query_tokens_in: tokens of prompts per query, in the search over all queries and for their answers; an answer from
            disk counts with what it took when it was asked for.
        query_tokens_out: the same of the answers.
        latency_answers: how many answers there were in the latency sample.
        latency_cache_hits: how many of those came from disk; in their time no model was asked.
        search_answers: how many answers there were in the search over all queries, which throughput is measured on.
        search_cache_hits: how many of those came from disk; the latency sample's are among them.
        models: the tokens by model, named as in its configuration; they add up to those above.
    """

    calls: int
    cache_hits: int
    tokens_in: int
    tokens_out: int
    failures: int
    degraded: int
    query_tokens_in: float
    query_tokens_out: float
    latency_answers: int
    latency_cache_hits: int
    search_answers: int
    search_cache_hits: int
    models: dict[str, ModelTokens] = field(default_factory=dict)


@dataclass(frozen=True)
class AnsweringCost:
    """What answering all questions took, after the search; what its language models took is part of theirs.

    Args:
        seconds: for all questions in one call, when they were first answered.
        model_answers: how many answers of language models there were then.
        model_cache_hits: how many of those came from disk; in their time no model was asked.
        unanswered: questions that were found to have no answer.
        failed: questions that the answerer failed at.
        dropped: citations of what the answerer was not given.
    """

    seconds: float
    model_answers: int
    model_cache_hits: int
    unanswered: int
    failed: int
    dropped: int


@dataclass(frozen=True)
class Cost:
    """What one configuration costs.

    Args:
        index_seconds: to build its part of the index from the items; the sum over its retrievers, also where the index
            was found built (then it is what building it took at the time).
        index_bytes: size on disk of its part of the index, the items not counted.
        index_peak_bytes: largest resident memory of the process while its part of the index was built. It is of the whole
            process, so what was loaded before counts too: it depends on the order of the configurations, and no table has it.
        stage_ms: median milliseconds by stage for one query at a time, in the order of the stages.
        latency_ms: median milliseconds for one query, all stages together.
        latency_p95_ms: 95th percentile of the same.
        queries_per_second: throughput of one ``search`` call over all queries; None where workers computed stages beside one
            another, which says little of what one search takes.
        search_peak_bytes: largest resident memory of the process while the configuration was searched; as above.
        language_model: what its language models were asked; None where none was.
        answering: what answering took; None where nothing was answered.
        latency_low_ms: where the 95% interval of the median latency begins; None where fewer than six queries were timed.
        latency_high_ms: where it ends.
        other_cores: how many cores other processes kept busy on average while the run was timed; None where that is not known.
    """

    index_seconds: float
    index_bytes: int
    index_peak_bytes: int
    stage_ms: dict[str, float]
    latency_ms: float
    latency_p95_ms: float
    queries_per_second: float | None
    search_peak_bytes: int
    language_model: LanguageModelCost | None = None
    answering: AnsweringCost | None = None
    latency_low_ms: float | None = None
    latency_high_ms: float | None = None
    other_cores: float | None = None


_OF_THE_PROCESS = ("index_peak_bytes", "search_peak_bytes")


def comparable_figures(cost: Cost) -> dict[str, Any]:
    """Return the figures of a cost as plain values, without those that depend on what the process did before."""
    return {name: value for name, value in asdict(cost).items() if name not in _OF_THE_PROCESS}
