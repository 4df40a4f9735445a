"""Latency of a configuration: a sample of the queries, searched one at a time after a warm-up, without shared stages.

The sample comes before the search over all queries: a language model is then really called, unless an earlier run or
configuration left its answers on disk; the counts beside the seconds show it. Seconds are kept with the results of stages, for
this machine alone.
"""

from __future__ import annotations

import math
import random
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice

import numpy as np

from nlp_retrieval.benchmarks.cost import Cost, LanguageModelCost, ModelTokens
from nlp_retrieval.benchmarks.entrants import generation_of, search_where
from nlp_retrieval.benchmarks.environment import describe_environment
from nlp_retrieval.benchmarks.shared_stages import Answered
from nlp_retrieval.benchmarks.stage_store import Entry, StageStore, corpus_of, key_of
from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.core.context import changed_context, record_stages
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.index.generation import RetrieverRecord
from nlp_retrieval.core.progress_bars import tracked_each
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.core.search.retriever import Stages
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.lm.counting import CallCounts, record_calls, summed

LATENCY_K = 10
"""Hits that a timed search asks for."""

_WARM_UP = 2
_LEVEL = 0.05
_STAGE = "stage:"

Asked = list[tuple[str, Where | None]]


@dataclass(frozen=True)
class Timing:
    """Searches of a sample one by one: ``[sample]`` seconds, in all and by stage, and the calls of language models."""

    seconds: Scores
    by_stage: dict[str, Scores]
    calls: CallCounts


def drawn_sample(texts: Sequence[str], count: int, seed: int, filters: Sequence[Where | None]) -> tuple[Asked, Asked]:
    """Return some of the queries, drawn without replacement, and others to search before them, so that everything is open."""
    asked = list(zip(texts, filters, strict=True))
    sample = random.Random(seed).sample(asked, min(count, len(asked)))  # noqa: S311 -- a sample
    drawn = {text for text, _ in sample}  # asking a model about these would leave its answers on disk
    others = (one for one in asked if one[0] not in drawn and not has_no_words(one[0]))
    return sample, list(islice(others, _WARM_UP)) or sample[:_WARM_UP]


def timed(searcher: BaseSearcher, sample: Asked, warm_up: Asked, store: StageStore | None) -> Timing:
    """Return the timing of a configuration: the one that is kept for this machine, or a new one, which is kept."""
    generation = generation_of(searcher)
    if store is None or generation is None:  # the corpus of a searcher without a generation is not known
        return _timed(searcher, sample, warm_up)
    content = {"searcher": searcher.fingerprint, "corpus": corpus_of(generation), "k": LATENCY_K}
    key = key_of("latency", content | {"sample": sample, "hardware": describe_environment()["hardware"]})
    entry = store.find("latency", key)
    if entry is not None:
        by_stage = {name.removeprefix(_STAGE): each for name, each in entry.arrays.items() if name.startswith(_STAGE)}
        return Timing(entry.arrays["seconds"], by_stage, CallCounts(**entry.about["calls"]))
    timing = _timed(searcher, sample, warm_up)
    stages = {f"{_STAGE}{name}": seconds for name, seconds in timing.by_stage.items()}
    put = store.hold if timing.calls.degraded else store.keep  # an endpoint that is down answers fast
    put("latency", key, Entry({"calls": asdict(timing.calls)}, {"seconds": timing.seconds} | stages))
    return timing


def _timed(searcher: BaseSearcher, sample: Asked, warm_up: Asked) -> Timing:
    seconds = np.zeros(len(sample))
    by_stage = {stage: np.zeros(len(sample)) for stage in searcher.stages}
    with changed_context(stages=Stages()), warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)  # the search over all queries warns once
        for text, where in warm_up:
            search_where(searcher, [text], LATENCY_K, where)
        with record_calls() as asked:
            for number, (text, where) in enumerate(tracked_each("timing queries", sample)):
                with record_stages() as stages:
                    begin = time.perf_counter()
                    search_where(searcher, [text], LATENCY_K, where)
                    seconds[number] = time.perf_counter() - begin
                for stage, durations in by_stage.items():
                    durations[number] = stages.get(stage, 0.0)
    return Timing(seconds, by_stage, asked.counts)


def median_interval(values: Scores) -> tuple[float, float] | None:
    """Return the 95% interval of a median, from one value ``[sample]`` to another; None for fewer than six values."""
    n, below, chance = len(values), 0, 0.5 ** len(values)
    if 2 * chance > _LEVEL:
        return None
    while 2 * (chance + math.comb(n, below + 1) * 0.5**n) <= _LEVEL:
        below += 1
        chance += math.comb(n, below) * 0.5**n
    ordered = np.sort(values)
    return float(ordered[below]), float(ordered[n - 1 - below])


def cost_of(
    records: Sequence[RetrieverRecord],
    timing: Timing,
    asked: Mapping[str, CallCounts],
    searched: Mapping[str, CallCounts],
    n_queries: int,
    answered: Answered | None,
) -> Cost:
    """Return the cost of a configuration; language models were asked for all of it, and in the search over all queries."""
    low, high = median_interval(1000 * timing.seconds) or (None, None)
    answering = answered.calls if answered is not None else {}
    return Cost(
        index_seconds=sum(record.seconds for record in records),
        index_bytes=sum(segment.bytes for record in records for segment in record.segments),
        stage_ms={stage: 1000 * float(np.median(values)) for stage, values in timing.by_stage.items()},
        latency_ms=1000 * float(np.median(timing.seconds)),
        latency_p95_ms=1000 * float(np.percentile(timing.seconds, 95)),
        language_model=_language_model_cost(asked, timing.calls, searched, answering, n_queries),
        answering=answered.cost if answered is not None else None,
        latency_low_ms=low,
        latency_high_ms=high,
    )


def _language_model_cost(
    asked: Mapping[str, CallCounts],
    sampled: CallCounts,
    searched: Mapping[str, CallCounts],
    answered: Mapping[str, CallCounts],
    n_queries: int,
) -> LanguageModelCost | None:
    """Return the cost of language models; None if none was used."""
    total, search = summed(asked.values()), summed(searched.values())
    if total == CallCounts():
        return None

    def per_query(counts: CallCounts) -> tuple[float, float]:
        both = counts.tokens_in + counts.kept_tokens_in, counts.tokens_out + counts.kept_tokens_out
        return both[0] / n_queries, both[1] / n_queries

    models = {}
    for model, counts in asked.items():
        of_queries = summed(counted[model] for counted in (searched, answered) if model in counted)
        models[model] = ModelTokens(counts.tokens_in, counts.tokens_out, *per_query(of_queries))
    query_tokens_in, query_tokens_out = per_query(search + summed(answered.values()))
    return LanguageModelCost(
        calls=total.calls,
        cache_hits=total.cache_hits,
        tokens_in=total.tokens_in,
        tokens_out=total.tokens_out,
        failures=total.failures,
        degraded=search.degraded,
        query_tokens_in=query_tokens_in,
        query_tokens_out=query_tokens_out,
        latency_answers=sampled.answers,
        latency_cache_hits=sampled.cache_hits,
        search_answers=search.answers,
        search_cache_hits=search.cache_hits,
        models=models,
    )
