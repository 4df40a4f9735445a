"""What searching with a configuration gives and takes: all queries in one call, and a sample of them one at a time."""

from __future__ import annotations

import math
import random
import statistics
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

import numpy as np

from nlp_retrieval.benchmarks.cost.figures import AnsweringCost, Cost, LanguageModelCost, ModelTokens
from nlp_retrieval.benchmarks.filters.searching import search_each, search_where
from nlp_retrieval.benchmarks.stages.trace import Retrieved
from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.index.generation import Generation
from nlp_retrieval.core.index.manifest import RetrieverRecord
from nlp_retrieval.core.measure import OtherProcesses, PeakMemory, record_stages
from nlp_retrieval.core.models import RetrievalResult
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.lm.counting import CallCounts, record_calls, summed

_WARM_UP = 2
_LEVEL = 0.05


class Searching(Protocol):
    """What can be measured."""

    @property
    def fingerprint(self) -> str:
        """Equal for equal configurations."""

    @property
    def stages(self) -> list[str]:
        """The names of its stages, in order."""

    @property
    def opened(self) -> Generation | None:
        """The generation of the index that it searches; None where it keeps its items in some other way."""

    def search(self, queries: Sequence[str], k: int) -> list[list[RetrievalResult]]:
        """Search."""


def generation_of(searcher: Searching) -> Generation | None:
    """Return the generation that a searcher has opened, by which it tells what it searches; None where it has none."""
    opened = getattr(searcher, "opened", None)
    return opened if isinstance(opened, Generation) else None


@dataclass(frozen=True)
class Sample:
    """Queries, and those of them that are searched one at a time.

    Args:
        texts: all of them.
        positions: of the sample, in the order in which it is searched.
        warm_up: positions of queries that are searched before it, so that models and indexes are open.
        filters: of all queries; None where one may find everything.
    """

    texts: list[str]
    positions: list[int]
    warm_up: list[int]
    filters: list[Where | None]

    @classmethod
    def draw(cls, texts: list[str], count: int, seed: int, filters: Sequence[Where | None] = ()) -> Sample:
        """Draw a sample, without replacement.

        Args:
            texts: the queries.
            count: how many; all of them where there are fewer.
            seed: of the draw.
            filters: of the queries; none by default.
        """
        positions = random.Random(seed).sample(range(len(texts)), min(count, len(texts)))  # noqa: S311 -- a sample
        drawn = {texts[position] for position in positions}  # a model asked about these would leave its answers on disk
        others = (position for position, text in enumerate(texts) if text not in drawn and not has_no_words(text))
        warm_up = list(islice(others, _WARM_UP)) or positions[:_WARM_UP]
        return cls(texts, positions, warm_up, list(filters) or [None] * len(texts))

    def taken(self) -> list[str]:
        """The queries of the sample."""
        return [self.texts[position] for position in self.positions]

    def told(self) -> Config:
        """Return what is searched one at a time as plain values: the queries, and their filters where they have any."""
        filters = [self.filters[position] for position in self.positions]
        return {"queries": self.taken()} | ({"filters": filters} if any(filters) else {})

    def search(self, searcher: Searching, position: int, k: int) -> list[list[RetrievalResult]]:
        """Search for one query."""
        return search_where(searcher, [self.texts[position]], k, self.filters[position])


@dataclass(frozen=True)
class Measured:
    """A configuration's search over all queries, and what it takes.

    Args:
        results: per query.
        seconds: ``[sample]``, one query at a time.
        stage_seconds: the same by stage.
        queries_per_second: throughput of one call with all queries; None where stages were computed beside others.
        peak_bytes: largest resident memory of the process.
        sampled: what language models were asked in the sample.
        searched: what each of them was asked in the search over all queries.
        candidates: what each retriever gave for all queries, by label; empty where stages are not shared.
        lists: ``[queries + 1]``, where each query's lists begin in those: one each, or one for each of its sub-queries.
        other_cores: how many cores other processes kept busy meanwhile; None where that is not known.
    """

    results: list[list[RetrievalResult]]
    seconds: Scores
    stage_seconds: dict[str, Scores]
    queries_per_second: float | None
    peak_bytes: int
    sampled: CallCounts
    searched: dict[str, CallCounts]
    candidates: dict[str, Retrieved] = field(default_factory=dict)
    lists: Rows | None = None
    other_cores: float | None = None


def measure_alone(searcher: Searching, sample: Sample, k: int, others: OtherProcesses | None = None) -> Measured:
    """Search one query at a time, then for all; whatever other configurations have in common with this one.

    Args:
        searcher: opened.
        sample: the queries.
        k: length of the lists.
        others: the other processes on this machine.
    """
    with PeakMemory() as peak:
        seconds, by_stage, sampled = time_queries(searcher, sample, k)
        with record_calls() as searched:
            begin = time.perf_counter()
            results = search_each(searcher, sample.texts, k, sample.filters)
            elapsed = time.perf_counter() - begin
    rate = len(sample.texts) / elapsed
    other_cores = others.cores if others is not None else None
    return Measured(results, seconds, by_stage, rate, peak.bytes, sampled, searched.by_model, other_cores=other_cores)


def time_queries(searcher: Searching, sample: Sample, k: int) -> tuple[Scores, dict[str, Scores], CallCounts]:
    """Search for the queries of a sample one at a time, after a warm-up.

    Returns:
        Seconds ``[sample]``, the same by stage, and what language models were asked, the warm-up not counted.
    """
    seconds = np.zeros(len(sample.positions))
    by_stage = {stage: np.zeros(len(sample.positions)) for stage in searcher.stages}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)  # the search over all queries says it once
        for position in sample.warm_up:
            sample.search(searcher, position, k)
        with record_calls() as asked:
            for number, position in enumerate(sample.positions):
                with record_stages() as stages:
                    begin = time.perf_counter()
                    sample.search(searcher, position, k)
                    seconds[number] = time.perf_counter() - begin
                for stage, taken in by_stage.items():
                    taken[number] = stages.get(stage, 0.0)
    return seconds, by_stage, asked.counts


def cost_of(
    records: Sequence[RetrieverRecord],
    asked: Mapping[str, CallCounts],
    measured: Measured,
    answering: AnsweringCost | None = None,
    answered: Mapping[str, CallCounts] | None = None,
) -> Cost:
    """Return what a configuration costs.

    Args:
        records: what the index says of its retrievers.
        asked: what each language model was asked while it was measured, sample and search over all queries.
        measured: its searches.
        answering: what answering took.
        answered: what each language model was asked for the answers.
    """
    low, high = median_interval(1000 * measured.seconds) or (None, None)
    return Cost(
        index_seconds=sum(record.cost.seconds for record in records),
        index_bytes=sum(segment.bytes for record in records for segment in record.segments),
        index_peak_bytes=max((record.cost.peak_bytes for record in records), default=0),
        stage_ms={stage: 1000 * statistics.median(values.tolist()) for stage, values in measured.stage_seconds.items()},
        latency_ms=1000 * statistics.median(measured.seconds.tolist()),
        latency_p95_ms=1000 * float(np.percentile(measured.seconds, 95)),
        queries_per_second=measured.queries_per_second,
        search_peak_bytes=measured.peak_bytes,
        language_model=_language_model_cost(asked, measured, answered or {}),
        answering=answering,
        latency_low_ms=low,
        latency_high_ms=high,
        other_cores=measured.other_cores,
    )


def median_interval(values: Scores) -> tuple[float, float] | None:
    """Return the 95% interval of a median, from one value of the sample to another; None where there are fewer than six.

    How many values lie below the median is binomial with one half, whatever their distribution (Thompson 1936; Conover,
    Practical Nonparametric Statistics, 3.2).

    Args:
        values: ``[sample]``.
    """
    n, below, chance = len(values), 0, 0.5 ** len(values)
    if 2 * chance > _LEVEL:
        return None
    while 2 * (chance + math.comb(n, below + 1) * 0.5**n) <= _LEVEL:
        below += 1
        chance += math.comb(n, below) * 0.5**n
    ordered = np.sort(values)
    return float(ordered[below]), float(ordered[n - 1 - below])


def _language_model_cost(
    asked: Mapping[str, CallCounts], measured: Measured, answered: Mapping[str, CallCounts]
) -> LanguageModelCost | None:
    """What language models cost; None where none was asked."""
    total, sampled, searched = summed(asked.values()), measured.sampled, summed(measured.searched.values())
    if total == CallCounts():
        return None
    n_queries = len(measured.results)
    whole = _tokens(total, searched + summed(answered.values()), n_queries)
    models = {
        model: _tokens(counts, summed(one[model] for one in (measured.searched, answered) if model in one), n_queries)
        for model, counts in asked.items()
    }
    return LanguageModelCost(
        calls=total.calls,
        cache_hits=total.cache_hits,
        tokens_in=whole.tokens_in,
        tokens_out=whole.tokens_out,
        failures=total.failures,
        degraded=searched.degraded,
        query_tokens_in=whole.query_tokens_in,
        query_tokens_out=whole.query_tokens_out,
        latency_answers=sampled.answers,
        latency_cache_hits=sampled.cache_hits,
        search_answers=searched.answers,
        search_cache_hits=searched.cache_hits,
        models=models,
    )


def _tokens(asked: CallCounts, searched: CallCounts, n_queries: int) -> ModelTokens:
    return ModelTokens(
        tokens_in=asked.tokens_in,
        tokens_out=asked.tokens_out,
        query_tokens_in=(searched.tokens_in + searched.kept_tokens_in) / n_queries,
        query_tokens_out=(searched.tokens_out + searched.kept_tokens_out) / n_queries,
    )
