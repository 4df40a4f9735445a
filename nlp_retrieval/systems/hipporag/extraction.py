"""Extraction of entities and triples from the passages of a corpus, by a language model, into a store.

Answers are parsed as JSON and never evaluated. Missing or malformed parts are requested again.

A run needs no state of earlier ones: the store says what is missing, by id and text, so a run may be killed at any time, and
another may run concurrently. Results are committed in batches, together with the counters. Uncommitted answers are not paid for
again, because the model caches its good answers on disk.
"""

from __future__ import annotations

import json
import math
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from queue import Queue, SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from nlp_retrieval import LanguageModel, SearchableItem
from nlp_retrieval.core import Advance, has_no_words, progress, without_secrets
from nlp_retrieval.errors import ConfigurationError, RetrievalError
from nlp_retrieval.lm import CallCounter, CallCounts, UnusableAnswerError, fingerprint_of_program, read_object, record_calls
from nlp_retrieval.systems.hipporag.knowledge import (
    Extraction,
    ExtractionRun,
    PassageKnowledge,
    PassageRecord,
    ReadKnowledge,
    knowledge_from_json,
    passage_hash,
    passage_text,
)
from nlp_retrieval.systems.hipporag.store import KnowledgeStore, StoredKnowledge
from nlp_retrieval.text import fenced

if TYPE_CHECKING:
    from nlp_retrieval.benchmarks import ModelPrice
    from nlp_retrieval.lm import Outcome

MOST_PASSAGES = 20
"""The most passages in one call; an answer longer than 20,000 characters is cut and thus unusable."""

_SAYS_NOTHING = ReadKnowledge(PassageKnowledge((), ()))


@dataclass(frozen=True)
class ExtractedPassage:
    """Result for one passage, after some requests; not asked for once the endpoint was given up."""

    read: ReadKnowledge | None
    tries: int
    error: str = ""
    asked: bool = True


class KnowledgeExtractor:
    """Extracts entities and triples with a language model.

    Failures of the endpoint are retried by the model's own settings (``retries``, ``backoff`` doubled with each). An answer
    that cannot be used is requested again at once, as often, because there is nothing to wait for.

    Args:
        lm: the model.
        passages_per_call: number of passages per call, 1 to 20. More are cheaper, but an unusable answer costs more.
        passage_characters: the most characters of each passage that are read.

    Raises:
        ConfigurationError: a number is out of range.
        DependencyError: DSPy is not installed.

    Examples:
        >>> extractor = KnowledgeExtractor(LanguageModel("openai/gpt-4o-mini"), passages_per_call=5)
        >>> extractor.extraction.model
        'openai/gpt-4o-mini'
    """

    def __init__(self, lm: LanguageModel, *, passages_per_call: int = 1, passage_characters: int = 10_000) -> None:
        if not 1 <= passages_per_call <= MOST_PASSAGES:
            raise ConfigurationError(f"passages_per_call={passages_per_call}: a call reads 1 to {MOST_PASSAGES} passages")
        if passage_characters < 1:
            raise ConfigurationError(f"passage_characters={passage_characters}: show at least 1 character")
        from nlp_retrieval.lm import AskingLine, dspy
        from nlp_retrieval.systems.hipporag.programs import ExtractKnowledge

        self.lm = LanguageModel.of_client(lm)
        self.passages_per_call = passages_per_call
        self.passage_characters = passage_characters
        self._program: Any = dspy.Predict(ExtractKnowledge)
        self._line = AskingLine(self.lm.give_up_after)

    @property
    def extraction(self) -> Extraction:
        """Return the settings that determine the answers: prompt, model, temperature, form of passages; not the endpoint."""
        settings = {
            "prompt": fingerprint_of_program(self._program),
            "temperature": self.lm.sampling[0],
            "passages_per_call": self.passages_per_call,
            "passage_characters": self.passage_characters,
        }
        return Extraction(self.lm.model, json.dumps(settings, sort_keys=True))

    @property
    def prompt_characters(self) -> int:
        """Return the number of characters of a prompt without its passages."""
        from nlp_retrieval.lm import dspy

        messages = dspy.ChatAdapter().format(self._program.signature, self._program.demos, {"passages": ""})
        return sum(len(str(message["content"])) for message in messages)

    @property
    def given_up(self) -> str | None:
        """Return why the model is no longer called; None while it is."""
        reason = self._line.given_up
        return None if reason is None else without_secrets(reason)

    def extract(self, texts: Sequence[str]) -> list[ExtractedPassage]:
        """Return the result of each passage, in order; what the model answers raises nothing.

        Args:
            texts: at most ``passages_per_call``; one text may come alone.
        """
        shown = [fenced(text[: self.passage_characters]) for text in ([texts] if isinstance(texts, str) else texts)]
        read = {position: _SAYS_NOTHING for position, text in enumerate(shown) if has_no_words(text)}
        without_call = set(read)
        tries, error, asked = 0, "", True
        while len(read) < len(shown) and tries <= self.lm.endpoint.retries and asked:
            places = [position for position in range(len(shown)) if position not in read]
            outcome = self._outcome([shown[position] for position in places])
            tries += 1
            for number, knowledge in (outcome.value or {}).items():
                read[places[number]] = knowledge
            error = without_secrets(outcome.reason) or "the answer left this passage out"
            if outcome.endpoint_failed:
                asked = outcome.reason != self._line.given_up
                break
        return [
            ExtractedPassage(read[position], 0 if position in without_call else max(tries, 1))
            if position in read
            else ExtractedPassage(None, tries, error, asked)
            for position in range(len(shown))
        ]

    def _outcome(self, shown: list[str]) -> Outcome[dict[int, ReadKnowledge]]:
        from nlp_retrieval.lm import ask, using

        passages = "\n".join(f"{number}: {text}" for number, text in enumerate(shown, start=1))
        asking = partial(ask, self._program, {"passages": passages}, "knowledge", partial(read_or_explain, len(shown)))
        with using(self.lm):
            return self._line.ask(asking)


def read_or_explain(n_passages: int, answer: object) -> dict[int, ReadKnowledge] | None:
    """Return the knowledge in an answer, by passage from 0, for those with readable entries; None if there is none.

    Args:
        n_passages: number of requested passages.
        answer: an object by number of passage, or its JSON text; of one passage, its entry alone will do.

    Raises:
        UnusableAnswerError: entities or triples are there, and none can be read; the message shows the first.
    """
    value = read_object(answer) if isinstance(answer, str) else answer
    entries = dict(value) if isinstance(value, Mapping) else {}
    if n_passages == 1 and "triples" in entries:
        entries = {"1": entries}
    knowledge_of: dict[int, ReadKnowledge] = {}
    unread = None
    for position in range(n_passages):
        entry = entries.get(str(position + 1))
        if not isinstance(entry, Mapping) or "triples" not in entry:  # entities alone may be part of a truncated answer
            continue
        try:
            read = knowledge_from_json(entry.get("entities", []), entry["triples"])
        except ValueError:
            continue
        if read.unread is None:
            knowledge_of[position] = read
        unread = unread or read.unread
    if not knowledge_of and unread is not None:
        raise UnusableAnswerError(f"its entities or triples are in an unsupported form: {unread}")
    return knowledge_of or None


T = TypeVar("T")
R = TypeVar("R")


def worked_on(tasks: Iterable[T], work: Callable[[T], R], n_workers: int) -> Iterator[tuple[T, R]]:
    """Yield tasks with their results, in the order of completion; the first error of ``work`` is raised.

    When the caller stops, or is interrupted, no further task is started; running ones continue in threads that end with the
    process, which a pool's would not.
    """
    waiting: Queue[T | None] = Queue()
    done: SimpleQueue[tuple[T, R] | BaseException] = SimpleQueue()
    stopped = Event()

    def run() -> None:
        while (task := waiting.get()) is not None and not stopped.is_set():
            try:
                done.put((task, work(task)))
            except BaseException as error:  # raised in the caller's thread
                done.put(error)

    def result() -> tuple[T, R]:
        one = done.get()
        if isinstance(one, BaseException):
            raise one
        return one

    for _ in range(n_workers):
        Thread(target=copy_context().run, args=(run,), name="nlp_retrieval-extract", daemon=True).start()
    under_way = 0
    try:
        for task in tasks:
            waiting.put(task)
            under_way += 1
            if under_way > n_workers + 1:
                yield result()
                under_way -= 1
        for _ in range(under_way):
            yield result()
    finally:
        stopped.set()
        for _ in range(n_workers):
            waiting.put(None)


@dataclass(frozen=True)
class ExtractionSummary:
    """Numbers of one run of extraction.

    Args:
        extraction_id: fingerprint of prompt, model and settings.
        model: the language model.
        documents: that were read.
        kept: those of them that the store had already, with this text.
        extracted: those that the model processed in this run.
        copied: those whose text the store had under another id, or that share the text of another in this run.
        failed: those without a usable answer; the next run retries them.
        not_asked: those that were not requested, because the endpoint was given up.
        cut: those that were longer than the part shown to the model.
        entities: in the documents that were extracted or copied.
        triples: in these.
        dropped: invalid entities and triples in the answers.
        seconds: duration.
        calls: calls, tokens and failures of the model.
        stopped: why it ended early; empty if it did not.
        reasons: for missing usable answers, with their numbers, the commonest first.

    Examples:
        >>> summary = ExtractionSummary("3f9a", "openai/gpt-4o-mini", documents=3, extracted=2, failed=1)
        >>> summary.whole  # the next run asks again about the one that failed
        False
    """

    extraction_id: str
    model: str
    documents: int = 0
    kept: int = 0
    extracted: int = 0
    copied: int = 0
    failed: int = 0
    not_asked: int = 0
    cut: int = 0
    entities: int = 0
    triples: int = 0
    dropped: int = 0
    seconds: float = 0.0
    calls: CallCounts = field(default_factory=CallCounts)
    stopped: str = ""
    reasons: dict[str, int] = field(default_factory=dict)

    @property
    def reasons_told(self) -> str:
        """Return the three commonest reasons on one line, such as ``35 times the endpoint gave none: connection refused``."""
        more = len(self.reasons) - 3
        shown = "; ".join(f"{number:,} times {reason}" for reason, number in list(self.reasons.items())[:3])
        return shown + (f"; and {more:,} other reasons" if more > 0 else "")

    @property
    def whole(self) -> bool:
        """Return whether the store now has all documents that were read, and all were read."""
        return not self.failed and not self.not_asked and not self.stopped

    @property
    def per_minute(self) -> float:
        """Return the number of documents extracted or copied per minute."""
        return 60 * (self.extracted + self.copied) / self.seconds if self.seconds else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


_LOOKED_UP_AT_ONCE = 500
_MOST_REASONS = 20

Same = list[SearchableItem]
"""Documents with one text."""


def extract_knowledge(
    items: Iterable[SearchableItem], store: KnowledgeStore, extractor: KnowledgeExtractor, *, commit_every: int = 100
) -> ExtractionSummary:
    """Extract entities and triples from the passages of a corpus that a store lacks, with a language model.

    Memory holds a few hundred passages.

    Args:
        items: the corpus, with ids of its own.
        store: of the knowledge; another prompt or model is another extraction in it.
        extractor: calls the model, with the concurrency of the model's ``calls_at_once``.
        commit_every: number of passages per commit.

    Raises:
        SourceError: the store cannot be read.
        OutputError: the store cannot be written; committed results are kept.
        ConfigurationError: ``commit_every`` is below 1, or the model's key is not set.

    Examples:
        >>> extractor = KnowledgeExtractor(LanguageModel("openai/gpt-4o-mini"), passages_per_call=5)
        >>> with KnowledgeStore("knowledge.db", create=True) as store:  # doctest: +SKIP
        ...     extract_knowledge(items, store, extractor).extracted
        3
    """
    if commit_every < 1:
        raise ConfigurationError(f"commit_every={commit_every}: commit after at least 1 passage")
    if not isinstance(store, KnowledgeStore):
        raise ConfigurationError(f"store={store!r:.60} ({type(store).__name__}): pass KnowledgeStore(path, create=True)")
    if not isinstance(extractor, KnowledgeExtractor):
        raise ConfigurationError(f"extractor={extractor!r:.60} ({type(extractor).__name__}): pass KnowledgeExtractor(lm)")
    from nlp_retrieval.lm import using

    with record_calls() as calls, using(extractor.lm), progress("extracting", None) as advance:
        run = _Extraction(store, extractor, commit_every, calls, advance)
        store.begin(run.extraction)
        run.commit()
        try:
            for group, extracted in worked_on(run.groups(items), run.ask, extractor.lm.endpoint.calls_at_once):
                run.came(group, extracted)
            run.commit("failed" if extractor.given_up else "completed")
        except BaseException:
            # an interrupted transaction may hold its lock until this error is reported
            if run.between_transactions:
                with suppress(RetrievalError):
                    run.commit("failed")
            raise
        return run.summary()


class _Extraction:
    """A running extraction."""

    def __init__(
        self, store: KnowledgeStore, extractor: KnowledgeExtractor, commit_every: int, calls: CallCounter, advance: Advance
    ) -> None:
        self.extraction = extractor.extraction
        self._store, self._extractor, self._commit_every = store, extractor, commit_every
        self._calls, self._advance = calls, advance
        self._records: list[PassageRecord] = []
        self._count: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._session = uuid.uuid4().hex
        self._last = ""
        self.between_transactions = True
        self._begin = time.perf_counter()

    def groups(self, items: Iterable[SearchableItem]) -> Iterator[list[Same]]:
        """Yield the documents of each call, until the model is given up."""
        waiting: list[Same] = []
        size = self._extractor.passages_per_call
        source = iter(items)
        while not self._extractor.given_up and (chunk := list(islice(source, _LOOKED_UP_AT_ONCE))):
            waiting += self._missing(chunk)
            while len(waiting) >= size:
                yield waiting[:size]
                waiting = waiting[size:]
        if waiting:
            yield waiting

    def ask(self, group: list[Same]) -> list[ExtractedPassage]:
        """Ask about one group, in a thread."""
        return self._extractor.extract([_text(same[0]) for same in group])

    def came(self, group: list[Same], extracted: list[ExtractedPassage]) -> None:
        """Record the results of a group, and commit if there are enough."""
        for same, result in zip(group, extracted, strict=True):
            if not result.asked:
                self._count["not_asked"] += len(same)
                continue
            self._count["failed" if result.read is None else "extracted"] += 1 if result.read is not None else len(same)
            self._count["copied"] += 0 if result.read is None else len(same) - 1
            if result.read is None:
                self._reasons[result.error] += len(same)
            for item in same:
                self._note(item, result.read, result.tries, result.error)
        if len(self._records) >= self._commit_every:
            self.commit()

    def commit(self, status: str = "in_progress") -> None:
        """Write the recorded results, and the progress of the run."""
        counts = dict(sorted(self._count.items()))
        waiting = counts.get("failed", 0) + counts.get("not_asked", 0)
        done = sum(counts.get(name, 0) for name in ("kept", "extracted", "copied"))
        if self._records:
            self._last = self._records[-1].document_id
        data = counts | ({"last_document": self._last} if self._last else {})
        run = ExtractionRun(self._session, counts.get("documents", 0), done + waiting, status, data)
        with self._transaction():
            self._store.save(self.extraction, self._records, run)
        self._records = []

    def summary(self) -> ExtractionSummary:
        """Return the summary of the run."""
        counts: dict[str, Any] = dict(self._count)
        return ExtractionSummary(
            self.extraction.extraction_id,
            self.extraction.model,
            **counts,
            seconds=time.perf_counter() - self._begin,
            calls=self._calls.counts,
            stopped=self._extractor.given_up or "",
            reasons=dict(self._reasons.most_common(_MOST_REASONS)),
        )

    def _missing(self, chunk: list[SearchableItem]) -> list[Same]:
        """Return the documents of a chunk to request, by their texts; record those whose text is known."""
        with self._transaction():
            asked = self._store.missing(self.extraction, chunk)
            missing = [item for item, is_missing in zip(chunk, asked, strict=True) if is_missing]
            stored = StoredKnowledge(self._store, self.extraction).of(missing)
        self._count["documents"] += len(chunk)
        self._count["kept"] += len(chunk) - len(missing)
        self._advance(len(chunk) - len(missing))
        by_text: dict[str, Same] = {}
        for item, known in zip(missing, stored, strict=True):
            if known is not None:
                self._count["copied"] += 1
                self._note(item, ReadKnowledge(known), 0)
            else:
                self._count["cut"] += len(_text(item)) > self._extractor.passage_characters
                by_text.setdefault(passage_hash(item.title, item.content), []).append(item)
        return list(by_text.values())

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.between_transactions = False
        yield
        self.between_transactions = True

    def _note(self, item: SearchableItem, read: ReadKnowledge | None, tries: int, error: str = "") -> None:
        if read is not None:
            self._count["entities"] += len(read.knowledge.entities)
            self._count["triples"] += len(read.knowledge.triples)
            self._count["dropped"] += read.dropped
        self._records.append(PassageRecord(item.item_id, passage_hash(item.title, item.content), read, tries, error))
        self._advance(1)


def _text(item: SearchableItem) -> str:
    return passage_text(item.title, item.content)


# Tokens are estimated from characters: 4 a token in prompts, 3.3 in JSON. An answer is 1.8 times as long as its passage, as in
# the published extraction from MuSiQue; a model with thoughts writes more.

_PER_TOKEN, _PER_JSON_TOKEN = 4.0, 3.3
_ANSWER_PER_PASSAGE = 1.8


@dataclass(frozen=True)
class ExtractionPlan:
    """What an extraction will do, known before its first call.

    Args:
        documents: in the corpus.
        missing: those of them that the store lacks.
        calls: of the model; fewer where texts repeat.
        tokens_in: of prompts, estimated.
        tokens_out: of answers, estimated.
        price: of these tokens; None without prices.

    Examples:
        >>> print(ExtractionPlan(documents=9, missing=9, calls=9, tokens_in=4_000, tokens_out=1_200))
        9 of 9 passages to extract: 9 calls, about 4,000 tokens in prompts and 1,200 in answers
    """

    documents: int
    missing: int
    calls: int
    tokens_in: int
    tokens_out: int
    price: float | None = None

    def __str__(self) -> str:
        price = "" if self.price is None else f"; price about {self.price:,.4f}"
        tokens = f"about {self.tokens_in:,} tokens in prompts and {self.tokens_out:,} in answers"
        work = f": {self.calls:,} calls, {tokens}{price}" if self.missing else ""
        return f"{self.missing:,} of {self.documents:,} passages to extract{work}"


def plan_extraction(
    items: Iterable[SearchableItem], store: KnowledgeStore, extractor: KnowledgeExtractor, price: ModelPrice | None = None
) -> ExtractionPlan:
    """Read a corpus, and return what must be extracted from it; the model is not called.

    Args:
        items: the corpus.
        store: of the knowledge.
        extractor: that will be used.
        price: of its model.

    Raises:
        SourceError: the store cannot be read.
    """
    source = iter(items)
    documents = missing = characters = 0
    while chunk := list(islice(source, _LOOKED_UP_AT_ONCE)):
        documents += len(chunk)
        for item, is_missing in zip(chunk, store.missing(extractor.extraction, chunk), strict=True):
            if is_missing:
                missing += 1
                characters += min(len(passage_text(item.title, item.content)), extractor.passage_characters)
    calls = math.ceil(missing / extractor.passages_per_call)
    tokens_in = round((calls * extractor.prompt_characters + characters) / _PER_TOKEN)
    tokens_out = round(_ANSWER_PER_PASSAGE * characters / _PER_JSON_TOKEN)
    spent = None if price is None else price.of(tokens_in, tokens_out)
    return ExtractionPlan(documents, missing, calls, tokens_in, tokens_out, spent)
