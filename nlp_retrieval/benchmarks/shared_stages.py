"""Stages with a store: what one configuration computed is used by the next one, and after an interruption.

Sub-queries are kept per processor and batch of queries, candidates per retriever, sub-queries and depth, scores per reranker
and pair, vectors per encoder and query, answers per answerer, questions and passages. Calls of language models are counted
again as answers from disk. What a model failed at serves its own run alone.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.benchmarks.cost import AnsweringCost
from nlp_retrieval.benchmarks.entrants import search_each
from nlp_retrieval.benchmarks.environment import describe_environment
from nlp_retrieval.benchmarks.stage_store import (
    Entry,
    PairTable,
    StageStore,
    candidates_key,
    corpus_of,
    identity_of,
    index_of,
    key_of,
    packed_candidates,
    pairs_entry,
    scores_group,
    unpacked_candidates,
)
from nlp_retrieval.core.candidates import Hits, Mask
from nlp_retrieval.core.components.component import BaseUserQueryProcessor, Component, Config, with_held
from nlp_retrieval.core.components.registry import build
from nlp_retrieval.core.context import changed_context
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.index.generation import Generation, open_generation
from nlp_retrieval.core.models import Answer, RetrievalResult
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.retriever import BaseRetriever, Encode, Stages
from nlp_retrieval.errors import IndexMissingError, RetrievalError, first_line
from nlp_retrieval.lm.answering import AnsweredQuestion, BaseAnswerer
from nlp_retrieval.lm.counting import CallCounter, CallCounts, count, record_calls, summed

_PAIRS_AT_ONCE = 8192
"""Scores are written whenever the queries so far have this many candidates: an interruption loses no more."""


class SharedStages(Stages):
    """Computes each distinct stage once for all searches that share a store; one thread at a time."""

    def __init__(self, store: StageStore) -> None:
        self.store = store
        self._pairs: dict[str, PairTable] = {}
        self._vectors: dict[str, dict[str, NDArray[np.float32]]] = {}
        self._opened: dict[tuple[Path, str], BaseRetriever] = {}

    def opened(self, retriever: BaseRetriever, generation: Generation) -> BaseRetriever:
        """Return a copy shared by all equal retrievers; its data is in memory only once."""
        searched = {"corpus": corpus_of(generation), "index": index_of(generation, retriever)}
        key = generation.path, key_of("opened", {"retriever": identity_of(retriever)} | searched)
        if key not in self._opened:
            self._opened[key] = super().opened(retriever, generation)
        return self._opened[key]

    def subqueries(self, processor: BaseUserQueryProcessor, nlqs: list[str]) -> list[list[str]]:
        key = key_of("subqueries", {"processor": identity_of(processor), "queries": nlqs})
        entry = self.store.find("subqueries", key)
        if entry is not None:
            _count_again(entry)
        else:
            with record_calls() as calls:
                entry = Entry({"subqueries": super().subqueries(processor, nlqs)})
            entry.about["calls"] = _counted(calls.by_model)
            put = self.store.hold if calls.counts.degraded else self.store.keep
            put("subqueries", key, entry)
        computed: list[list[str]] = entry.about["subqueries"]
        return computed

    def candidates(
        self,
        retriever: BaseRetriever,
        processed: list[list[str]],
        depth: int,
        generation: Generation,
        label: str,
        allowed: Mask | None = None,
    ) -> Hits:
        key = candidates_key(retriever, processed, depth, generation, allowed)
        if (entry := self.store.find("candidates", key)) is not None:
            return unpacked_candidates(entry, label)
        batch = super().candidates(retriever, processed, depth, generation, label, allowed)
        if (entry := packed_candidates(batch, label)) is not None:
            self.store.keep("candidates", key, entry)
        return batch

    def encoded(self, encoder: Component, queries: list[str], encode: Encode) -> NDArray[Any]:
        group = f"vectors/{key_of('vectors', {'encoder': identity_of(encoder)})}"
        if group not in self._vectors:
            self._vectors[group] = {}
            for entry in self.store.entries(group):
                self._add_vectors(group, entry)
        known = self._vectors[group]
        if asked := [query for query in dict.fromkeys(queries) if query not in known]:
            entry = Entry({"queries": asked}, {"vectors": encode(asked).astype(np.float32, copy=False)})
            self.store.keep(group, key_of("vectors", entry.about), entry)
            self._add_vectors(group, entry)
        return np.stack([known[query] for query in queries])

    def _add_vectors(self, group: str, entry: Entry) -> None:
        for query, vector in zip(entry.about["queries"], entry.arrays["vectors"], strict=True):
            self._vectors[group].setdefault(query, vector)

    def reranked(self, reranker: BaseReranker, nlqs: Sequence[str], batch: Hits, generation: Generation, label: str) -> Hits:
        if type(reranker).rerank_batch is not BaseReranker.rerank_batch:  # it may need whole lists
            return super().reranked(reranker, nlqs, batch, generation, label)
        group = scores_group(reranker, generation)
        if group not in self._pairs:
            self._pairs[group] = PairTable(len(generation.items), self.store.entries(group))
        table, owner = self._pairs[group], batch.owner
        keys = table.keys(nlqs, owner, batch.rows)
        for first, last in _parts_between_lists(batch.offsets.tolist(), max(reranker.batch_size, _PAIRS_AT_ONCE)):
            missing = first + table.unknown(keys[first:last])
            if len(missing):
                queries, rows = [nlqs[position] for position in owner[missing].tolist()], batch.rows[missing]
                columns = reranker.scored(queries, generation.items.items(rows))
                entry = pairs_entry(queries, rows, columns)
                pairs = {"queries": queries, "rows": hashlib.sha256(rows.astype(np.int64).tobytes()).hexdigest()}
                self.store.keep(group, key_of("scores", pairs), entry)
                table.add(entry)
        return reranker.reordered(batch, table.scores(keys), label)


def _parts_between_lists(offsets: Sequence[int], at_least: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of parts of a minimum size, split between lists."""
    first = 0
    for end in offsets[1:]:
        if end - first >= at_least or (end == offsets[-1] and end > first):
            yield first, end
            first = end


def _counted(calls: Mapping[str, CallCounts]) -> Config:
    return {model: asdict(counts) for model, counts in calls.items()}


def _count_again(entry: Entry) -> None:
    """Count the calls behind a result as answers from disk."""
    for model, recorded in entry.about["calls"].items():
        calls = CallCounts(**recorded)
        tokens = calls.tokens_in + calls.kept_tokens_in, calls.tokens_out + calls.kept_tokens_out
        again = CallCounts(0, calls.answers, degraded=calls.degraded, kept_tokens_in=tokens[0], kept_tokens_out=tokens[1])
        count(CallCounter(model), again)


# Answering as a stage: answers to the same questions and passages are used again.


@dataclass(frozen=True)
class Answered:
    """The questions of a benchmark with their answers, the cost, and the calls of each model as this run counted them."""

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
    """Answer all questions from their results, or read the answers from the store, if there is one."""
    read = [list(hits[: answerer.passages]) for hits in results]
    key = _answers_key(answerer, questions, read) if store is not None else ""
    with record_calls() as calls:
        entry = store.find("answers", key) if store is not None else None
        if entry is not None:
            _count_again(entry)
        else:
            entry = _answers(answerer, questions, read)
            if store is not None:
                put = store.hold if any(answer["failed"] for answer in entry.about["answers"]) else store.keep
                put("answers", key, entry)
    answers = [Answer.model_validate(recorded, strict=False) for recorded in entry.about["answers"]]
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


def _answers(answerer: BaseAnswerer, questions: Sequence[str], read: Sequence[Sequence[RetrievalResult]]) -> Entry:
    with record_calls() as calls:
        begin = time.perf_counter()
        answers = answerer.answer(questions, read)
        seconds = time.perf_counter() - begin
    plain = [answer.model_dump(mode="json") for answer in answers]
    return Entry({"answers": plain, "calls": _counted(calls.by_model), "seconds": seconds})


def _answers_key(answerer: BaseAnswerer, questions: Sequence[str], read: Sequence[Sequence[RetrievalResult]]) -> str:
    digest = hashlib.sha256()
    for hits in read:
        digest.update(f"{len(hits)}:".encode())
        for result in hits:
            item = result.item.model_dump_json().encode("utf-8", "surrogatepass")
            digest.update(f"{len(item)}:".encode() + item)
    content = {"answerer": identity_of(answerer), "questions": list(questions), "passages": digest.hexdigest()}
    return key_of("answers", content)


# Configurations of a sweep as tasks of workers: processes of this machine, or a Ray cluster. A task leaves the stages of one
# configuration in the folder of the run, and the process that asked then searches as always, and finds them there.


@dataclass(frozen=True)
class ConfigurationTask:
    """Searches with configurations, in a worker."""

    index: str
    stages: str
    k: int

    def facts(self) -> dict[str, str]:
        """Return what must be equal wherever stages are computed; processors of two kinds may differ in the last bit."""
        described = describe_environment()
        try:
            corpus = corpus_of(open_generation(self.index))
        except IndexMissingError:
            corpus = "none"
        facts = {"versions": str(described["versions"]), "processor": str(described["hardware"]["cpu"])}
        return facts | {f"index at {self.index}": corpus}

    def do(self, work: tuple[Config, list[str], list[Where | None]]) -> str:
        """Search with one configuration, and return why it could not be done; empty if it was."""
        config, texts, filters = work
        try:
            searcher: Any = build("searchers", config)
            searcher.open(self.index)
            with changed_context(stages=SharedStages(StageStore(self.stages))):
                search_each(searcher, texts, self.k, filters)
        except Exception as error:  # the process that asked does it itself, and reports the error
            return str(error) if isinstance(error, RetrievalError) else f"{type(error).__name__}: {first_line(error)}"
        return ""


def search_elsewhere(
    searchers: Mapping[str, Any],
    task: ConfigurationTask,
    texts: Sequence[str],
    filters: Sequence[Where | None],
    say: Callable[[str], None],
) -> dict[str, str]:
    """Let workers search with configurations, and return, by name, why others are left to this process."""
    from nlp_retrieval.encoders.passages import pool_at_hand

    here = {name: reason for name, searcher in searchers.items() if (reason := why_here(searcher))}
    sent = [name for name in searchers if name not in here]
    if sent and (pool := pool_at_hand()) is not None:
        say(f"workers search: {', '.join(sent)}")
        works = [(searchers[name].config, list(texts), list(filters)) for name in sent]
        here |= {name: reason for name, (_, reason) in zip(sent, pool.results(task, works), strict=True) if reason}
    for name, reason in here.items():
        say(f"{name}: searched by this process: {reason}")
    return here


def why_here(searcher: object) -> str:
    """Return why only this process can search with a configuration; empty if another one can create an equal searcher."""
    from nlp_retrieval.encoders.passages import names_gpu
    from nlp_retrieval.retrievers.servers.retriever import ServerRetriever

    if not isinstance(searcher, BaseSearcher):
        return "it is not a registered searcher"
    parts = list(with_held(searcher))
    asks = searcher.calls_per_query() != 0 or not all(getattr(part, "in_workers", True) for part in parts)
    if asks or any(isinstance(part, ServerRetriever) for part in parts):
        return "it asks a server or a language model"
    if names_gpu(searcher):
        return "it names a GPU, which workers do not have"
    try:
        rebuilt = build("searchers", searcher.to_config())
    except RetrievalError as error:
        return first_line(error)
    same = rebuilt == searcher and list(map(type, with_held(rebuilt))) == list(map(type, parts))
    return "" if same else "the registry creates another component from its configuration"
