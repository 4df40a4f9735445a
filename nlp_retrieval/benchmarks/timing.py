"""Costs of configurations that share stages: each distinct stage is timed once, and a configuration's cost is the sum.

A stage is timed with the component itself, one query of the sample at a time, on the input that the query has in the search
over all queries, and never by reading its result. Seconds are stored next to the results, for this machine alone. The work that
each configuration does itself (fusing, blending, interleaving, creating items) is timed for each, with its stages' results
available. A processor is timed before it runs on all queries: a language model is really called, unless an earlier run left
its answers on disk; the counts stored with the seconds show it. A searcher that is not a composition of stages is timed as
a whole.
"""

from __future__ import annotations

import hashlib
import math
import random
import statistics
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from nlp_retrieval.benchmarks.cost import AnsweringCost, Cost, LanguageModelCost, ModelTokens
from nlp_retrieval.benchmarks.entrants import Searching, generation_of
from nlp_retrieval.benchmarks.filters import Unfiltered, grouped, search_each, search_where
from nlp_retrieval.benchmarks.shared_stages import Reranked, Retrieved, SearchTrace, SharedStages
from nlp_retrieval.benchmarks.stage_store import Entry, corpus_of, hardware, identity_of, key_of
from nlp_retrieval.core.candidates import CandidateBatch, Mask, Rows, Scores, entries_of, offsets_of
from nlp_retrieval.core.components.component import BaseUserQueryProcessor, Config
from nlp_retrieval.core.context import StageSeconds, record_stages
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.index.generation import Generation
from nlp_retrieval.core.index.manifest import RetrieverRecord
from nlp_retrieval.core.models import RetrievalResult
from nlp_retrieval.core.processes import OtherProcesses, PeakMemory
from nlp_retrieval.core.progress_bars import tracked_each
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.retriever import BaseRetriever
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


Timing = tuple[Scores, dict[str, Scores], CallCounts]
"""Seconds ``[sample]``, the same by stage, and the usage of language models."""

_GROUP = "latency"
COMPOSED = (Searcher, Unfiltered)


def measure_by_stages(
    searcher: Searching, stages: SharedStages, sample: Sample, k: int, others: OtherProcesses | None = None
) -> Measured:
    """Search for all queries with stages shared with other configurations, and sum up their costs.

    Args:
        searcher: opened.
        stages: the shared stages.
        sample: the queries, and those of them that are timed one at a time.
        k: length of the lists.
        others: the other processes on this machine.

    Returns:
        Throughput and memory as if each stage had been computed for this configuration alone; no throughput if workers
        computed stages in parallel.
    """
    clock = StageClock(stages, sample, k, others)
    with PeakMemory() as peak:
        composed = searcher if isinstance(searcher, Searcher) and type(searcher) in COMPOSED else None
        timing = clock.whole(searcher) if composed is None else None
        processing = clock.processing(composed.processor) if composed and composed.processor else None
        with using_stages(stages), record_calls() as searched:
            begin = time.perf_counter()
            results, parts = _searched(searcher, stages, sample, k)
            elapsed = time.perf_counter() - begin
        trace = joined_traces(composed, parts) if composed else SearchTrace()
        if timing is None:
            timing = clock.composed(composed, trace, processing) if composed else clock.whole(searcher)
    seconds, by_stage, sampled = timing
    # differences of two clock readings can be negative
    took = max(float(elapsed + sum(part.trace.saved_seconds for part in parts)), 1e-9)
    peak_bytes = max([peak.bytes, *(part.trace.peak_bytes for part in parts)])
    rate = None if any(part.trace.beside for part in parts) else len(sample.texts) / took
    measured = Measured(results, seconds, by_stage, rate, peak_bytes, sampled, searched.by_model, other_cores=clock.other_cores)
    if composed is None:
        return measured
    return replace(measured, candidates=trace.retrieved, lists=lists_of(composed, trace, len(sample.texts)))


class StageClock:
    """Times stages, or reuses stored timings."""

    def __init__(self, stages: SharedStages, sample: Sample, k: int, others: OtherProcesses | None = None) -> None:
        self._others = others
        self.other_cores: float | None = None
        """Number of cores kept busy by other processes during the timing, in this run or in the one that timed it."""
        self._store = stages.store
        self._sample = sample
        self._k = k

    def whole(self, searcher: Searching) -> Timing:
        """Time whole searches."""

        def time_all() -> Timing:
            with using_stages(Stages()):
                return time_queries(searcher, self._sample, self._k)

        return self._kept_of(searcher, self._sample.told(), time_all)

    def processing(self, processor: BaseUserQueryProcessor) -> Entry:
        """Time a processor."""
        content = {"processor": identity_of(processor), "queries": self._sample.taken()}
        texts = self._sample.texts
        return self._kept(content, partial(self._timed, lambda position: partial(processor.process, [texts[position]])))

    def composed(self, searcher: Searcher, trace: SearchTrace, processing: Entry | None) -> Timing:
        """Sum up the stages of a search, and time the rest."""
        some = any(len(own.batch.rows) for own in trace.retrieved.values())
        if some and trace.reranked.keys() != searcher.rerankers.keys():
            return self.whole(searcher)  # a reranker of whole lists is not a shared stage
        generation = searcher.opened
        lists = lists_of(searcher, trace, len(self._sample.texts))
        shared = {"process": processing.arrays["seconds"]} if processing is not None else {}
        for label, retrieved in trace.retrieved.items():
            shared[label] = self._retrieving(retrieved, label, lists, generation)
        for label, reranked in trace.reranked.items():
            shared[label] = self._scoring(reranked, lists, generation)
        asked = [trace.processed[position] for position in self._sample.positions] if trace.processed is not None else []
        content = self._sample.told() | {"stages at hand": asked}
        seconds, by_stage, _ = self._kept_of(searcher, content, partial(self._time_replayed, searcher, trace, lists))
        for name, duration in shared.items():
            seconds = seconds + duration
            by_stage |= {name: by_stage[name] + duration}
        calls = CallCounts() if processing is None else CallCounts(**processing.about["calls"])
        return seconds, by_stage, calls

    def _retrieving(self, retrieved: Retrieved, label: str, lists: Rows, generation: Generation) -> Scores:
        def asked(position: int) -> list[list[str]]:
            return retrieved.processed[lists[position] : lists[position + 1]]

        def prepared(position: int) -> Callable[[], object]:
            allowed = generation.items.mask(self._sample.filters[position])
            return partial(
                Stages().candidates, retrieved.retriever, asked(position), retrieved.depth, generation, label, allowed
            )

        content = {
            "retriever": identity_of(retrieved.retriever),
            "corpus": corpus_of(generation),
            "queries": [asked(position) for position in self._sample.positions],
            "depth": retrieved.depth,
        }
        if (filters := self._sample.told().get("filters")) is not None:
            content["filters"] = filters
        return self._kept(content, partial(self._timed, prepared)).arrays["seconds"]

    def _scoring(self, reranked: Reranked, lists: Rows, generation: Generation) -> Scores:
        """Time the scoring of pairs, each once; their previous order does not matter."""
        offsets, rows = reranked.batch.offsets, reranked.batch.rows

        def pool(position: int) -> Rows:
            return np.unique(rows[offsets[lists[position]] : offsets[lists[position + 1]]])

        def score(wanted: Rows, texts: list[str]) -> object:
            return reranked.reranker.scored(texts, generation.items.items(wanted)) if len(wanted) else None

        def prepared(position: int) -> Callable[[], object]:
            wanted = pool(position)
            return partial(score, wanted, [self._sample.texts[position]] * len(wanted))

        pools = [hashlib.sha256(pool(position).tobytes()).hexdigest() for position in self._sample.positions]
        content = {
            "reranker": identity_of(reranked.reranker, without="blend"),
            "corpus": corpus_of(generation),
            "queries": self._sample.taken(),
            "pools": pools,
        }
        return self._kept(content, partial(self._timed, prepared)).arrays["seconds"]

    def _time_replayed(self, searcher: Searcher, trace: SearchTrace, lists: Rows) -> Timing:
        """Time a search whose stages are available."""

        def search(position: int) -> tuple[float, StageSeconds]:
            prepared = ReplayedStages(trace, position, int(lists[position]), int(lists[position + 1]))
            with using_stages(prepared), record_stages() as seconds_by_stage:
                begin = time.perf_counter()
                self._sample.search(searcher, position, self._k)
                return time.perf_counter() - begin, seconds_by_stage

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RetrievalWarning)
            for position in self._sample.warm_up:
                search(position)
            timed = [search(position) for position in tracked_each("timing queries", self._sample.positions)]
        by_stage = {
            name: np.array([seconds_by_stage.get(name, 0.0) for _, seconds_by_stage in timed]) for name in searcher.stages
        }
        return np.array([elapsed for elapsed, _ in timed]), by_stage, CallCounts()

    def _timed(self, prepared: Callable[[int], Callable[[], object]]) -> Entry:
        """Run a function for each query of the sample, after a warm-up; its preparation is not timed."""
        seconds = np.zeros(len(self._sample.positions))
        with using_stages(Stages()), warnings.catch_warnings():
            warnings.simplefilter("ignore", RetrievalWarning)  # the search over all queries warns once
            for position in self._sample.warm_up:
                prepared(position)()
            with record_calls() as calls:
                for number, position in enumerate(tracked_each("timing queries", self._sample.positions)):
                    run = prepared(position)
                    begin = time.perf_counter()
                    run()
                    seconds[number] = time.perf_counter() - begin
        return Entry({"calls": asdict(calls.counts)}, {"seconds": seconds})

    def _kept_of(self, searcher: Searching, content: Mapping[str, Any], measure: Callable[[], Timing]) -> Timing:
        """Return the stored results of a configuration, stage by stage."""

        def entry_of() -> Entry:
            seconds, by_stage, calls = measure()
            arrays = {"seconds": seconds} | {f"stage:{name}": seconds_of_stage for name, seconds_of_stage in by_stage.items()}
            return Entry({"calls": asdict(calls)}, arrays)

        generation = generation_of(searcher)
        if generation is None:
            return measure()  # its corpus is unknown, so its timings cannot be reused
        whose = {
            "searcher": searcher.fingerprint,
            "stages": searcher.stages,
            "corpus": corpus_of(generation),
            "k": self._k,
        }
        entry = self._kept(whose | dict(content), entry_of)
        by_stage = {name: entry.arrays[f"stage:{name}"] for name in searcher.stages}
        return entry.arrays["seconds"], by_stage, CallCounts(**entry.about["calls"])

    def _kept(self, content: Mapping[str, Any], measure: Callable[[], Entry]) -> Entry:
        key = key_of(_GROUP, dict(content) | {"hardware": hardware()})
        entry = self._store.find(_GROUP, key)
        if entry is None:
            entry = measure()
            cores = self._others.cores if self._others is not None else None
            entry = replace(entry, about=entry.about | {"other_cores": cores})
            self._store.remember(_GROUP, key, entry)
            if not entry.about["calls"]["degraded"]:  # an endpoint that is down answers fast
                self._store.keep(_GROUP, key, entry)
        busy = [cores for cores in (self.other_cores, entry.about.get("other_cores")) if cores is not None]
        self.other_cores = max(busy, default=None)
        return entry


class ReplayedStages(Stages):
    """The stages of one query, taken from those of all queries: nothing is computed.

    Args:
        trace: trace of the search over all queries.
        position: position of the query.
        first: its first list.
        last: start of the next query's lists.
    """

    def __init__(self, trace: SearchTrace, position: int, first: int, last: int) -> None:
        self._processed = [trace.processed[position]] if trace.processed is not None else []
        self._batches = {label: _lists_of(retrieved.batch, first, last) for label, retrieved in trace.retrieved.items()}
        self._columns: dict[str, dict[str, Scores]] = {}
        for label, reranked in trace.reranked.items():
            begin, end = reranked.batch.offsets[[first, last]]
            self._columns[label] = {name: column[begin:end] for name, column in reranked.columns.items()}

    def subqueries(self, processor: BaseUserQueryProcessor, nlqs: list[str]) -> list[list[str]]:
        del processor, nlqs
        return self._processed

    def candidates(
        self,
        retriever: BaseRetriever,
        processed: list[list[str]],
        depth: int,
        generation: Generation,
        label: str,
        allowed: Mask | None = None,
    ) -> CandidateBatch:
        del retriever, processed, depth, generation, allowed
        return self._batches[label]

    def reranked(
        self, reranker: BaseReranker, nlqs: Sequence[str], batch: CandidateBatch, generation: Generation, label: str
    ) -> CandidateBatch:
        del nlqs, generation
        return reranker.reordered(batch, self._columns[label], label)


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


def _lists_of(batch: CandidateBatch, first: int, last: int) -> CandidateBatch:
    begin, end = batch.offsets[[first, last]]
    return batch.take(np.arange(begin, end), batch.offsets[first : last + 1] - begin)


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

    def taken(self) -> list[str]:
        """The queries of the sample."""
        return [self.texts[position] for position in self.positions]

    def told(self) -> Config:
        """Return the queries searched one at a time as plain values, with their filters if they have any."""
        filters = [self.filters[position] for position in self.positions]
        return {"queries": self.taken()} | ({"filters": filters} if any(filters) else {})

    def search(self, searcher: Searching, position: int, k: int) -> list[list[RetrievalResult]]:
        """Search for one query."""
        return search_where(searcher, [self.texts[position]], k, self.filters[position])


@dataclass(frozen=True)
class Measured:
    """A configuration's search over all queries, and its cost.

    Args:
        results: per query.
        seconds: ``[sample]``, one query at a time.
        stage_seconds: by stage.
        queries_per_second: throughput of one call with all queries; None if stages were computed in parallel with others.
        peak_bytes: largest resident memory of the process.
        sampled: usage of language models in the sample.
        searched: usage of each language model in the search over all queries.
        candidates: output of each retriever for all queries, by label; empty if stages are not shared.
        lists: ``[queries + 1]``, start of each query's lists in those: one each, or one for each of its sub-queries.
        other_cores: number of cores kept busy by other processes meanwhile; None if unknown.
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
    """Search one query at a time, then all together, without stages shared with other configurations.

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
        Seconds ``[sample]``, the same by stage, and the usage of language models, not counting the warm-up.
    """
    seconds = np.zeros(len(sample.positions))
    by_stage = {stage: np.zeros(len(sample.positions)) for stage in searcher.stages}
    with warnings.catch_warnings():
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
    return seconds, by_stage, asked.counts


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
    total, sampled, searched = summed(asked.values()), measured.sampled, summed(measured.searched.values())
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
