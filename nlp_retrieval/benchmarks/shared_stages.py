"""Stages with a cache: results computed for one configuration are reused by the next one and the next run.

Sub-queries are stored per processor and batch of queries, candidates per retriever, sub-queries and depth, scores per reranker
and pair, vectors per encoder and query. Warnings of a stage are repeated when its result is read. Language model calls
are counted again as answers from disk; if a question got no usable answer, the sub-queries
are used for the configurations of this run alone and are not written.
"""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray
from pydantic import ValidationError

from nlp_retrieval.benchmarks.cost import AnsweringCost
from nlp_retrieval.benchmarks.stage_store import (
    CANDIDATES,
    Entry,
    PairTable,
    StageStore,
    VectorTable,
    candidates_key,
    corpus_of,
    identity_of,
    index_of,
    key_of,
    packed,
    pairs_entry,
    pairs_key,
    parts_between_lists,
    scores_group,
    unpacked,
    vectors_entry,
)
from nlp_retrieval.core.candidates import CandidateBatch, Mask, Rows, Scores
from nlp_retrieval.core.components.component import BaseUserQueryProcessor, Component, Config
from nlp_retrieval.core.context import changed_context, search_context
from nlp_retrieval.core.index.generation import Generation
from nlp_retrieval.core.models import Answer, RetrievalResult
from nlp_retrieval.core.processes import PeakMemory
from nlp_retrieval.core.search.joining import FOUND_NOTHING
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.core.search.stages import Encode, Stages, using_stages
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.lm.answering import AnsweredQuestion, BaseAnswerer
from nlp_retrieval.lm.counting import CallCounter, CallCounts, count, record_calls, summed

# Traces of searches: the input and output of every stage, and whether it was computed for them.


@dataclass(frozen=True)
class Retrieved:
    """A retriever's part in a search: its input and output."""

    retriever: BaseRetriever
    processed: list[list[str]]
    depth: int
    batch: CandidateBatch


@dataclass(frozen=True)
class Reranked:
    """A reranker's part in a search: the candidates it received, and its columns for them."""

    reranker: BaseReranker
    batch: CandidateBatch
    columns: dict[str, Scores]


@dataclass
class SearchTrace:
    """Stages of the searches while they were recorded.

    Args:
        processed: the sub-queries, if there is a processor.
        retrieved: by label.
        reranked: by label; rerankers of whole lists are not shared and not in it.
        saved_seconds: additional time if each stage had been computed for these searches.
        peak_bytes: largest resident memory of the process while their stages were computed, now or before.
        computed: the stages that were computed now, at least in part, in order.
        reused: the stages that were completely available.
        beside: whether a stage was computed in parallel with others, so that its seconds are not those it takes alone.
    """

    processed: list[list[str]] | None = None
    retrieved: dict[str, Retrieved] = field(default_factory=dict)
    reranked: dict[str, Reranked] = field(default_factory=dict)
    saved_seconds: float = 0.0
    peak_bytes: int = 0
    computed: list[str] = field(default_factory=list)
    reused: list[str] = field(default_factory=list)
    beside: bool = False


T = TypeVar("T")

_PAIRS_AT_ONCE = 8192
"""Scores are written whenever the queries so far have this many candidates: an interruption loses no more."""


@dataclass
class _Use:
    """Sources of a stage's result: the metadata of entries, each with the share that is used."""

    about: list[tuple[Config, float]] = field(default_factory=list)
    computed: bool = False


class SharedStages(Stages):
    """Computes each distinct stage once for all searches that share a store; one thread at a time.

    Args:
        store: store for the results.
        beside: whether other stages are computed at the same time, so that timings say little.
    """

    def __init__(self, store: StageStore, *, beside: bool = False) -> None:
        self.store, self._beside = store, beside
        self._pairs: dict[str, PairTable] = {}
        self._vectors: dict[str, VectorTable] = {}
        self._opened: dict[tuple[Path, str], BaseRetriever] = {}
        self._warm: set[tuple[Path, str]] = set()
        self._trace = SearchTrace()
        self._saved = 0.0

    @contextmanager
    def recording(self) -> Iterator[SearchTrace]:
        """Record the stages of the searches inside the block."""
        before = self._trace, self._saved
        trace = self._trace = SearchTrace()
        self._saved = 0.0
        try:
            yield trace
        finally:
            trace.saved_seconds = self._saved
            self._trace, self._saved = before

    def opened(self, retriever: BaseRetriever, generation: Generation) -> BaseRetriever:
        """Return a copy shared by all equal retrievers; its data is in memory only once."""
        searched = {"corpus": corpus_of(generation), "index": index_of(generation, retriever)}
        key = generation.path, key_of("opened", {"retriever": identity_of(retriever)} | searched)
        if key not in self._opened:
            self._opened[key] = super().opened(retriever, generation)
        return self._opened[key]

    def subqueries(self, processor: BaseUserQueryProcessor, nlqs: list[str]) -> list[list[str]]:
        key = key_of("subqueries by model", {"processor": identity_of(processor), "queries": nlqs})
        with self._account(f"subqueries of {processor.name}") as use:
            entry = self.store.find("subqueries", key)
            if entry is not None:
                for model, counts in entry.about["calls"].items():
                    count(CallCounter(model), from_disk(CallCounts(**counts)))
            else:
                with record_calls() as calls:
                    computed, about = self._computed(use, partial(super().subqueries, processor, nlqs))
                asked = {model: asdict(counts) for model, counts in calls.by_model.items()}
                entry = Entry({"subqueries": computed, "calls": asked} | about)
                self.store.remember("subqueries", key, entry)
                if not calls.counts.degraded:
                    self.store.keep("subqueries", key, entry)
            use.about.append((entry.about, 1.0))
        processed: list[list[str]] = entry.about["subqueries"]
        self._trace.processed = processed
        return processed

    def candidates(
        self,
        retriever: BaseRetriever,
        processed: list[list[str]],
        depth: int,
        generation: Generation,
        label: str,
        allowed: Mask | None = None,
    ) -> CandidateBatch:
        key = candidates_key(retriever, processed, depth, generation, allowed)
        with self._account(f"candidates of {retriever.name}") as use:
            entry = self.store.find(CANDIDATES, key)
            if entry is not None:
                batch = unpacked(entry, label)
                use.about.append((entry.about, 1.0))
            else:
                warm_up = partial(Stages().candidates, retriever, processed[:1], depth, generation, label, allowed)
                self._warm_up(retriever, generation, warm_up)
                compute = partial(super().candidates, retriever, processed, depth, generation, label, allowed)
                with changed_context(notes_empty=True):  # a later reader may want the note
                    batch, about = self._computed(use, compute)
                if (entry := packed(batch, label, about)) is not None:
                    self.store.remember(CANDIDATES, key, entry)
                    self.store.keep(CANDIDATES, key, entry)
                use.about.append((about, 1.0))
        self._trace.retrieved[label] = Retrieved(retriever, processed, depth, batch)
        return batch

    def encoded(self, encoder: Component, queries: list[str], encode: Encode) -> NDArray[Any]:
        group = f"vectors/{key_of('vectors', {'encoder': identity_of(encoder)})}"
        if group not in self._vectors:
            self._vectors[group] = VectorTable(self.store.entries(group))
        table = self._vectors[group]
        with self._account(f"vectors of {encoder.name}") as use:
            if asked := table.unknown(queries):
                computed, about = self._computed(use, partial(encode, asked))
                entry = vectors_entry(asked, computed, about)
                self.store.keep(group, key_of("vectors", {"queries": asked}), entry)
                table.add(entry)
            vectors, use.about = table.vectors(queries)
        return vectors

    def reranked(
        self, reranker: BaseReranker, nlqs: Sequence[str], batch: CandidateBatch, generation: Generation, label: str
    ) -> CandidateBatch:
        if type(reranker).rerank_batch is not BaseReranker.rerank_batch:  # it may need whole lists
            return super().reranked(reranker, nlqs, batch, generation, label)
        group = scores_group(reranker, generation)
        table = self.pairs_of(group, generation)
        keys = table.keys(nlqs, batch.owner, batch.rows)
        with self._account(f"scores of {reranker.name}") as use:
            for queries, rows in unknown_pairs(table, keys, reranker, nlqs, batch):
                table.add(self._scored(use, group, reranker, queries, rows, generation))
            columns, use.about = table.scores(keys)
        reranker.warn_of_cut(_summed(about["cut"] for about, _ in use.about))
        self._trace.reranked[label] = Reranked(reranker, batch, columns)
        return reranker.reordered(batch, columns, label)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Keep the stages of a search inside a stage out of the trace, except for what they cost."""
        outer, self._trace = self._trace, SearchTrace()
        try:
            yield
        finally:
            inner, self._trace = self._trace, outer
            outer.peak_bytes, outer.beside = max(outer.peak_bytes, inner.peak_bytes), outer.beside or inner.beside
            outer.computed += inner.computed
            outer.reused += inner.reused

    def pairs_of(self, group: str, generation: Generation) -> PairTable:
        """Return the known scores of a reranker, by their group."""
        if group not in self._pairs:
            self._pairs[group] = PairTable(len(generation.items), self.store.entries(group))
        return self._pairs[group]

    def score(self, reranker: BaseReranker, queries: list[str], rows: Rows, generation: Generation) -> None:
        """Score pairs ``[pairs]`` and store their scores."""
        with self._account(f"scores of {reranker.name}") as use:
            self._scored(use, scores_group(reranker, generation), reranker, queries, rows, generation)

    def _scored(
        self, use: _Use, group: str, reranker: BaseReranker, queries: list[str], rows: Rows, generation: Generation
    ) -> Entry:
        key = pairs_key(queries, rows)

        def score() -> tuple[dict[str, Scores], dict[str, tuple[int, int]]]:
            return reranker.scored(queries, generation.items.items(rows))

        self._warm_up(reranker, generation, lambda: reranker.scored(queries[:1], generation.items.items(rows[:1])))
        (columns, cut), about = self._computed(use, score)
        about |= {"cut": {what: list(numbers) for what, numbers in cut.items()}}
        entry = pairs_entry(queries, rows, columns, about)
        self.store.keep(group, key, entry)
        return entry

    def _warm_up(self, component: Component, generation: Generation, run: Callable[[], object]) -> None:
        """Let a component open its models and compile its loops before it is timed, once."""
        key = generation.path, key_of("warm", {"component": identity_of(component)})
        if key in self._warm:
            return
        self._warm.add(key)
        with using_stages(Stages()), warnings.catch_warnings():
            warnings.simplefilter("ignore", RetrievalWarning)  # it warns again when it works on everything
            run()

    @contextmanager
    def _account(self, stage: str) -> Iterator[_Use]:
        """Record a stage. Savings and costs of a stage inside another are part of the outer one."""
        outer, self._saved = self._saved, 0.0
        begin = time.perf_counter()
        use = _Use()
        yield use
        elapsed = time.perf_counter() - begin
        self._saved = outer + sum(about["seconds"] * share for about, share in use.about) - elapsed
        trace = self._trace
        trace.beside |= any(about.get("beside", False) for about, _ in use.about)
        trace.peak_bytes = max([trace.peak_bytes, *(about["peak_bytes"] for about, _ in use.about)])
        (trace.computed if use.computed else trace.reused).append(stage)
        notes_empty = search_context().notes_empty
        for text in dict.fromkeys(text for about, _ in use.about for text in about["warnings"]):
            if FOUND_NOTHING in text and not notes_empty:
                continue
            warnings.warn(text, RetrievalWarning, stacklevel=4)

    def _computed(self, use: _Use, compute: Callable[[], T]) -> tuple[T, Config]:
        """Compute a result, and return it with its metadata: seconds, memory and warnings."""
        use.computed = True
        saved = self._saved
        with PeakMemory() as peak, collected_warnings() as texts:
            begin = time.perf_counter()
            result = compute()
            seconds = time.perf_counter() - begin
        seconds += self._saved - saved
        about: Config = {"seconds": seconds, "peak_bytes": peak.bytes, "warnings": texts}
        return result, about | ({"beside": True} if self._beside else {})


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Collect the project's own warnings inside the block instead of showing them; others pass."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", category=RetrievalWarning)
        yield texts
    for warning in caught:
        if issubclass(warning.category, RetrievalWarning):
            texts.append(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def from_disk(calls: CallCounts) -> CallCounts:
    """Return recorded calls as they count when read again."""
    return CallCounts(
        cache_hits=calls.answers,
        degraded=calls.degraded,
        kept_tokens_in=calls.tokens_in + calls.kept_tokens_in,
        kept_tokens_out=calls.tokens_out + calls.kept_tokens_out,
    )


def _summed(cuts: Iterator[Mapping[str, Sequence[int]]]) -> dict[str, tuple[int, int]]:
    summed: dict[str, tuple[int, int]] = {}
    for cut in cuts:
        for what, (n_cut, n_all) in cut.items():
            before = summed.get(what, (0, 0))
            summed[what] = before[0] + n_cut, before[1] + n_all
    return summed


def unknown_pairs(
    table: PairTable, keys: Rows, reranker: BaseReranker, nlqs: Sequence[str], batch: CandidateBatch
) -> Iterator[tuple[list[str], Rows]]:
    """Yield the queries and rows of pairs that are missing from a table, in batches as scored.

    Args:
        table: the known pairs; may grow between two batches.
        keys: ``[pairs]``, of the table.
        reranker: that scores them.
        nlqs: a query per list.
        batch: the lists.
    """
    owner = batch.owner
    for first, last in parts_between_lists(batch.offsets, max(reranker.batch_size, _PAIRS_AT_ONCE)):
        missing = first + table.unknown(keys[first:last])
        if len(missing):
            yield [nlqs[position] for position in owner[missing].tolist()], batch.rows[missing]


# Answering as a stage: answers to the same questions and passages are reused, in this run and later ones.
#
# A result depends on the answerer, the questions, and the passages that it reads, with everything in the items. If it
# failed on a question, the result is used in this run alone, and the next run asks again.

_GROUP = "answers"


@dataclass(frozen=True)
class Answered:
    """The questions of a benchmark with their answers, and the cost.

    Args:
        questions: in order.
        cost: cost of answering them.
        calls: usage of each language model, as counted by this run.
    """

    questions: list[AnsweredQuestion]
    cost: AnsweringCost
    calls: Mapping[str, CallCounts]

    @property
    def answers(self) -> list[Answer]:
        """The answers, in the order of the questions."""
        return [question.answer for question in self.questions]


def answer_stage(
    answerer: BaseAnswerer,
    questions: Sequence[str],
    results: Sequence[Sequence[RetrievalResult]],
    store: StageStore | None,
) -> Answered:
    """Answer all questions, or reuse stored answers.

    Args:
        answerer: reads the first results.
        questions: the questions.
        results: the results for each.
        store: store for results of stages; None: do not store them.
    """
    read = [list(hits[: answerer.passages]) for hits in results]
    key = _key(answerer, questions, read) if store is not None else ""
    with record_calls() as calls:
        entry = store.find(_GROUP, key) if store is not None else None
        answers = _checked_answers(entry, len(questions)) if entry is not None else None
        if entry is None or answers is None:
            entry, answers = _computed(answerer, questions, read)
            if store is not None:
                store.remember(_GROUP, key, entry)
                if not any(answer.failed for answer in answers):
                    store.keep(_GROUP, key, entry)
        else:
            for model, counts in entry.about["calls"].items():
                count(CallCounter(model), from_disk(CallCounts(**counts)))
    for text in entry.about["warnings"]:
        warnings.warn(text, RetrievalWarning, stacklevel=2)
    asked = summed(CallCounts(**counts) for counts in entry.about["calls"].values())
    cost = AnsweringCost(
        seconds=entry.about["seconds"],
        model_answers=asked.answers,
        model_cache_hits=asked.cache_hits,
        unanswered=sum(not answer.text and not answer.failed for answer in answers),
        failed=sum(answer.failed for answer in answers),
        dropped=sum(answer.dropped for answer in answers),
    )
    whole = [AnsweredQuestion(*fields) for fields in zip(questions, read, answers, strict=True)]
    return Answered(whole, cost, calls.by_model)


def _computed(
    answerer: BaseAnswerer, questions: Sequence[str], read: Sequence[Sequence[RetrievalResult]]
) -> tuple[Entry, list[Answer]]:
    with record_calls() as calls, collected_warnings() as texts:
        begin = time.perf_counter()
        answers = answerer.answer(questions, read)
        seconds = time.perf_counter() - begin
    about: Config = {
        "answers": [answer.model_dump(mode="json") for answer in answers],
        "calls": {model: asdict(counts) for model, counts in calls.by_model.items()},
        "seconds": seconds,
        "warnings": list(dict.fromkeys(texts)),
    }
    return Entry(about), answers


def _checked_answers(entry: Entry, n_questions: int) -> list[Answer] | None:
    try:
        answers = [Answer.model_validate(recorded, strict=False) for recorded in entry.about["answers"]]
    except (ValidationError, KeyError, TypeError):
        return None
    return answers if len(answers) == n_questions else None


def _key(answerer: BaseAnswerer, questions: Sequence[str], read: Sequence[Sequence[RetrievalResult]]) -> str:
    digest = hashlib.sha256()
    for hits in read:
        digest.update(f"{len(hits)}:".encode())
        for result in hits:
            item = result.item.model_dump_json().encode("utf-8", "surrogatepass")
            digest.update(f"{len(item)}:".encode() + item)
    content = {"answerer": identity_of(answerer), "questions": list(questions), "passages": digest.hexdigest()}
    return key_of("answers", content)
