"""Cost of a configuration: the queries of a sample are searched one at a time, and all queries in one call.

The sample comes first: a language model is then really called, unless an earlier run or configuration left its answers on disk;
the counts beside the seconds show it. It is searched without the results of shared stages, at a cutoff that is stated, so its
seconds are those of such a search. They are kept with the results of stages, for this machine alone.
"""

from __future__ import annotations

import math
import random
import statistics
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice

import numpy as np

from nlp_retrieval.benchmarks.cost import AnsweringCost, Cost, LanguageModelCost, ModelTokens
from nlp_retrieval.benchmarks.entrants import Searching, generation_of
from nlp_retrieval.benchmarks.filters import Unfiltered, grouped, search_each, search_where
from nlp_retrieval.benchmarks.shared_stages import Reranked, Retrieved, SearchTrace, SharedStages
from nlp_retrieval.benchmarks.stage_store import Entry, StageStore, corpus_of, hardware, key_of
from nlp_retrieval.core.candidates import CandidateBatch, Rows, Scores, entries_of, offsets_of
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.context import record_stages
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.index.manifest import RetrieverRecord
from nlp_retrieval.core.models import RetrievalResult
from nlp_retrieval.core.processes import OtherProcesses, PeakMemory
from nlp_retrieval.core.progress_bars import tracked_each
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.core.search.stages import Stages, using_stages
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.lm.counting import CallCounts, record_calls, summed

# Traces of searches for groups of queries, merged into that of one search for all of them, in the order of the queries.


@dataclass(frozen=True)
class GroupTrace:
    """Trace of the search for some of the queries.

    Args:
        positions: positions of the queries.
        trace: the trace of their search.
    """

    positions: list[int]
    trace: SearchTrace


def lists_of(searcher: Searcher, trace: SearchTrace, n_queries: int) -> Rows:
    """Return the start of each query's lists: one each, or one for each of its sub-queries.

    Args:
        searcher: the searcher.
        trace: the trace of its search.
        n_queries: number of queries in the search.
    """
    if searcher.scope == "pooled" or trace.processed is None:
        return np.arange(n_queries + 1)
    return offsets_of([len(subqueries) for subqueries in trace.processed])


def joined_traces(searcher: Searcher, groups: Sequence[GroupTrace]) -> SearchTrace:
    """Return the trace of all queries.

    A group that never reached a stage, because no item meets its filter, has empty lists there. Searches by a part of a
    retriever itself are left out if there are several groups: they do not belong to one query.

    Args:
        searcher: the searcher.
        groups: groups of queries; each query is in one group.
    """
    if len(groups) == 1:
        return groups[0].trace
    traces = [group.trace for group in groups]
    if searcher.processor is not None:
        for group in groups:
            group.trace.processed = group.trace.processed or [[] for _ in group.positions]
    joining = _Joining(searcher, groups)
    whole = SearchTrace(
        processed=joining.by_query([trace.processed for trace in traces if trace.processed is not None]),
        saved_seconds=sum(trace.saved_seconds for trace in traces),
        peak_bytes=max(trace.peak_bytes for trace in traces),
        computed=[stage for trace in traces for stage in trace.computed],
        reused=[stage for trace in traces for stage in trace.reused],
        beside=any(trace.beside for trace in traces),
    )
    for label in dict.fromkeys(label for trace in traces for label in trace.retrieved):
        parts = [trace.retrieved.get(label) for trace in traces]
        if (batch := joining.batch([part.batch if part else None for part in parts])) is None:
            continue
        first = next(part for part in parts if part is not None)
        asked = joining.by_list([part.processed if part else None for part in parts])
        whole.retrieved[label] = Retrieved(first.retriever, asked, first.depth, batch)
    for label in dict.fromkeys(label for trace in traces for label in trace.reranked):
        scored = [trace.reranked.get(label) for trace in traces]
        if (batch := joining.batch([part.batch if part else None for part in scored])) is None:
            continue
        known = [part for part in scored if part is not None]
        names = dict.fromkeys(name for part in known for name in part.columns)
        columns = {name: joining.column([part.columns[name] for part in known]) for name in names}
        whole.reranked[label] = Reranked(known[0].reranker, batch, columns)
    return whole


class _Joining:
    """Reorders the results of groups, one after another, into the order of the queries."""

    def __init__(self, searcher: Searcher, groups: Sequence[GroupTrace]) -> None:
        lists = [lists_of(searcher, group.trace, len(group.positions)) for group in groups]
        self._n_lists = [int(starts[-1]) for starts in lists]
        positions = [position for group in groups for position in group.positions]
        self._queries = np.argsort(positions, kind="stable").tolist()
        owner = np.repeat(positions, np.concatenate([np.diff(starts) for starts in lists]))
        self._lists = np.argsort(owner, kind="stable")
        self._entries = np.zeros(0, np.int64)

    def by_query(self, parts: Sequence[list[list[str]]]) -> list[list[str]] | None:
        """Merge the groups' values for each query; None if they have none."""
        values = [value for part in parts for value in part]
        return [values[position] for position in self._queries] if values else None

    def by_list(self, parts: Sequence[list[list[str]] | None]) -> list[list[str]]:
        """Merge the groups' values for each list, empty if one has none."""
        empty: list[list[list[str]]] = [[[]] * count for count in self._n_lists]
        values = [value for part, none in zip(parts, empty, strict=True) for value in (none if part is None else part)]
        return [values[position] for position in self._lists.tolist()]

    def batch(self, parts: Sequence[CandidateBatch | None]) -> CandidateBatch | None:
        """Merge candidates; None if a group's candidates do not match its lists."""
        batches = [part or CandidateBatch.empty(count) for part, count in zip(parts, self._n_lists, strict=True)]
        if [batch.n_lists for batch in batches] != self._n_lists:
            return None
        keys = dict.fromkeys(key for batch in batches for key in batch.signals)
        whole = CandidateBatch(
            offsets_of(np.concatenate([np.diff(batch.offsets) for batch in batches])),
            np.concatenate([batch.rows for batch in batches]),
            np.concatenate([batch.scores for batch in batches]),
            np.concatenate([batch.subquery for batch in batches]),
            {key: np.concatenate([_signal(batch, key) for batch in batches]) for key in keys},
        )
        self._entries, counts = entries_of(whole.offsets, self._lists)
        return whole.take(self._entries, offsets_of(counts))

    def column(self, parts: Sequence[Scores]) -> Scores:
        """Merge a column of the candidates merged last."""
        return np.concatenate(parts)[self._entries]


def _signal(batch: CandidateBatch, key: str) -> Scores:
    return batch.signals.get(key, np.full(len(batch.rows), np.nan))


_GROUP = "latency"
COMPOSED = (Searcher, Unfiltered)


def measure(
    searcher: Searching,
    stages: SharedStages | None,
    sample: Sample,
    k: int,
    latency_k: int,
    others: OtherProcesses | None = None,
) -> Measured:
    """Search for the queries of a sample one at a time, then for all queries together.

    Args:
        searcher: opened.
        stages: shared with other configurations, for the search over all queries; None: none are.
        sample: the queries, and those of them that are timed one at a time.
        k: length of the lists.
        latency_k: length of the lists of the queries that are timed.
        others: the other processes on this machine.

    Returns:
        Throughput and memory as if each stage had been computed for this configuration alone; no throughput if workers
        computed stages in parallel.
    """
    timing = timed(searcher, sample, latency_k, stages.store if stages is not None else None, others)
    with PeakMemory() as peak, record_calls() as searched:
        begin = time.perf_counter()
        if stages is None:
            parts: list[GroupTrace] = []
            results = search_each(searcher, sample.texts, k, sample.filters)
        else:
            with using_stages(stages):
                results, parts = _searched(searcher, stages, sample, k)
        elapsed = time.perf_counter() - begin
    took = max(elapsed + sum(part.trace.saved_seconds for part in parts), 1e-9)  # a clock's differences can be negative
    measured = Measured(
        results,
        timing,
        None if any(part.trace.beside for part in parts) else len(sample.texts) / took,
        max([peak.bytes, *(part.trace.peak_bytes for part in parts)]),
        searched.by_model,
    )
    if stages is None or not isinstance(searcher, Searcher) or type(searcher) not in COMPOSED:
        return measured
    trace = joined_traces(searcher, parts)
    return replace(measured, candidates=trace.retrieved, lists=lists_of(searcher, trace, len(sample.texts)))


@dataclass(frozen=True)
class Timing:
    """Searches of a sample, one query at a time.

    Args:
        seconds: ``[sample]``.
        by_stage: the same by stage.
        calls: usage of language models, without the warm-up.
        other_cores: number of cores that other processes kept busy meanwhile; None if unknown.
    """

    seconds: Scores
    by_stage: dict[str, Scores]
    calls: CallCounts
    other_cores: float | None = None


def timed(
    searcher: Searching, sample: Sample, k: int, store: StageStore | None, others: OtherProcesses | None = None
) -> Timing:
    """Return the timing of a configuration: the one that is kept for this machine, or a new one, which is kept.

    Args:
        searcher: opened.
        sample: the queries.
        k: length of the lists.
        store: where timings are kept; None: nowhere.
        others: the other processes on this machine.
    """
    generation = generation_of(searcher)
    if store is None or generation is None:  # the corpus of a searcher without a generation is not known
        return time_queries(searcher, sample, k, others)
    content = {"searcher": searcher.fingerprint, "stages": searcher.stages, "corpus": corpus_of(generation), "k": k}
    key = key_of(_GROUP, content | sample.timed() | {"hardware": hardware()})
    entry = store.find(_GROUP, key)
    if entry is None:
        timing = time_queries(searcher, sample, k, others)
        stages = {f"stage:{name}": seconds for name, seconds in timing.by_stage.items()}
        about = {"calls": asdict(timing.calls), "other_cores": timing.other_cores}
        entry = Entry(about, {"seconds": timing.seconds} | stages)
        store.remember(_GROUP, key, entry)
        if not timing.calls.degraded:  # an endpoint that is down answers fast
            store.keep(_GROUP, key, entry)
    by_stage = {name: entry.arrays[f"stage:{name}"] for name in searcher.stages}
    return Timing(entry.arrays["seconds"], by_stage, CallCounts(**entry.about["calls"]), entry.about.get("other_cores"))


def _searched(
    searcher: Searching, stages: SharedStages, sample: Sample, k: int
) -> tuple[list[list[RetrievalResult]], list[GroupTrace]]:
    """Search for all queries, grouped by filter."""
    results: list[list[RetrievalResult]] = [[] for _ in sample.texts]
    groups = []
    for where, positions in grouped(sample.filters):
        with stages.recording() as trace:
            found = search_where(searcher, [sample.texts[position] for position in positions], k, where)
        for position, hits in zip(positions, found, strict=True):
            results[position] = hits
        groups.append(GroupTrace(positions, trace))
    return results, groups


_WARM_UP = 2


_LEVEL = 0.05


@dataclass(frozen=True)
class Sample:
    """Queries, and the sample of them that is searched one at a time.

    Args:
        texts: all of them.
        positions: positions of the sample, in search order.
        warm_up: positions of queries searched before the sample, so that models and indexes are open.
        filters: filters of all queries; None for a query without a filter.
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
            count: size of the sample; all of them if there are fewer.
            seed: seed of the sample.
            filters: filters of the queries; none by default.
        """
        positions = random.Random(seed).sample(range(len(texts)), min(count, len(texts)))  # noqa: S311 -- a sample
        drawn = {texts[position] for position in positions}  # asking a model about these would leave its answers on disk
        others = (position for position, text in enumerate(texts) if text not in drawn and not has_no_words(text))
        warm_up = list(islice(others, _WARM_UP)) or positions[:_WARM_UP]
        return cls(texts, positions, warm_up, list(filters) or [None] * len(texts))

    def timed(self) -> Config:
        """Return the queries searched one at a time as plain values, with their filters if they have any."""
        filters = [self.filters[position] for position in self.positions]
        queries = [self.texts[position] for position in self.positions]
        return {"queries": queries} | ({"filters": filters} if any(filters) else {})

    def search(self, searcher: Searching, position: int, k: int) -> list[list[RetrievalResult]]:
        """Search for one query."""
        return search_where(searcher, [self.texts[position]], k, self.filters[position])


@dataclass(frozen=True)
class Measured:
    """A configuration's search over all queries, and its cost.

    Args:
        results: per query.
        timing: of the sample.
        queries_per_second: throughput of one call with all queries; None if stages were computed in parallel with others.
        peak_bytes: largest resident memory of the process.
        searched: usage of each language model in the search over all queries.
        candidates: output of each retriever for all queries, by label; empty if stages are not shared.
        lists: ``[queries + 1]``, start of each query's lists in those: one each, or one for each of its sub-queries.
    """

    results: list[list[RetrievalResult]]
    timing: Timing
    queries_per_second: float | None
    peak_bytes: int
    searched: dict[str, CallCounts]
    candidates: dict[str, Retrieved] = field(default_factory=dict)
    lists: Rows | None = None


def time_queries(searcher: Searching, sample: Sample, k: int, others: OtherProcesses | None = None) -> Timing:
    """Search for the queries of a sample one at a time, after a warm-up."""
    seconds = np.zeros(len(sample.positions))
    by_stage = {stage: np.zeros(len(sample.positions)) for stage in searcher.stages}
    with using_stages(Stages()), warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)  # the search over all queries warns once
        for position in sample.warm_up:
            sample.search(searcher, position, k)
        with record_calls() as asked:
            for number, position in enumerate(tracked_each("timing queries", sample.positions)):
                with record_stages() as stages:
                    begin = time.perf_counter()
                    sample.search(searcher, position, k)
                    seconds[number] = time.perf_counter() - begin
                for stage, durations in by_stage.items():
                    durations[number] = stages.get(stage, 0.0)
    return Timing(seconds, by_stage, asked.counts, others.cores if others is not None else None)


def cost_of(
    records: Sequence[RetrieverRecord],
    asked: Mapping[str, CallCounts],
    measured: Measured,
    answering: AnsweringCost | None = None,
    answered: Mapping[str, CallCounts] | None = None,
) -> Cost:
    """Return the cost of a configuration.

    Args:
        records: the index's records of its retrievers.
        asked: usage of each language model while it was measured, in the sample and the search over all queries.
        measured: the measured searches.
        answering: the cost of answering.
        answered: usage of each language model for the answers.
    """
    timing = measured.timing
    low, high = median_interval(1000 * timing.seconds) or (None, None)
    return Cost(
        index_seconds=sum(record.cost.seconds for record in records),
        index_bytes=sum(segment.bytes for record in records for segment in record.segments),
        index_peak_bytes=max((record.cost.peak_bytes for record in records), default=0),
        stage_ms={stage: 1000 * statistics.median(values.tolist()) for stage, values in timing.by_stage.items()},
        latency_ms=1000 * statistics.median(timing.seconds.tolist()),
        latency_p95_ms=1000 * float(np.percentile(timing.seconds, 95)),
        queries_per_second=measured.queries_per_second,
        search_peak_bytes=measured.peak_bytes,
        language_model=_language_model_cost(asked, measured, answered or {}),
        answering=answering,
        latency_low_ms=low,
        latency_high_ms=high,
        other_cores=timing.other_cores,
    )


def median_interval(values: Scores) -> tuple[float, float] | None:
    """Return the 95% interval of a median, from one value of the sample to another; None for fewer than six values.

    The number of values below the median is binomial with p = 1/2, whatever their distribution (Thompson 1936; Conover,
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
    """Return the cost of language models; None if none was used."""
    total, sampled, searched = summed(asked.values()), measured.timing.calls, summed(measured.searched.values())
    if total == CallCounts():
        return None
    n_queries = len(measured.results)
    whole = _tokens(total, searched + summed(answered.values()), n_queries)
    models = {
        model: _tokens(
            counts, summed(counted[model] for counted in (measured.searched, answered) if model in counted), n_queries
        )
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
