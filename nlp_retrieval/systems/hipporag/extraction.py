"""Extraction of entities and triples from the passages of a corpus, by a language model, into a store.

A run needs no state of earlier ones: the store says what is missing, by id and text, so a run may be killed at any time, and
another may run concurrently. Results are committed in batches, together with the counters. Uncommitted answers are not paid for
again, because the model caches its good answers on disk.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from nlp_retrieval import LanguageModel, SearchableItem
from nlp_retrieval.core import has_no_words, progress, without_secrets
from nlp_retrieval.errors import ConfigurationError, ItemError
from nlp_retrieval.lm import CallCounts, fingerprint_of_program, read_object, record_calls, side_by_side
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

MOST_PASSAGES = 20
"""The most passages in one call; an answer longer than 20,000 characters is cut and thus unusable."""

PASSAGE_CHARACTERS = 10_000
"""The most characters of a passage that are read."""

_SAYS_NOTHING = ReadKnowledge(PassageKnowledge((), ()))


@dataclass(frozen=True)
class ExtractedPassage:
    """Result for one passage: what was read, or why nothing was; not asked for once the endpoint was given up."""

    read: ReadKnowledge | None
    error: str = ""
    asked: bool = True


class KnowledgeExtractor:
    """Extracts entities and triples with a language model.

    Failures of the endpoint are retried by the model's own settings (``retries``, ``backoff`` doubled with each). An answer
    that cannot be used is requested again at once, as often, because there is nothing to wait for.

    Args:
        lm: the model.
        passages_per_call: number of passages per call, 1 to 20. More are cheaper, but an unusable answer costs more.

    Raises:
        ConfigurationError: the number is out of range.
        DependencyError: DSPy is not installed.

    Examples:
        >>> extractor = KnowledgeExtractor(LanguageModel("openai/gpt-4o-mini"), passages_per_call=5)
        >>> extractor.extraction.model
        'openai/gpt-4o-mini'
    """

    def __init__(self, lm: LanguageModel, *, passages_per_call: int = 1) -> None:
        if not 1 <= passages_per_call <= MOST_PASSAGES:
            raise ConfigurationError(f"passages_per_call={passages_per_call}: a call reads 1 to {MOST_PASSAGES} passages")
        from nlp_retrieval.lm import AskingLine, dspy
        from nlp_retrieval.systems.hipporag.programs import ExtractKnowledge

        self.lm = LanguageModel.of_client(lm)
        self.model = self.lm.model
        self.passages_per_call = passages_per_call
        self._program: Any = dspy.Predict(ExtractKnowledge)
        self._line = AskingLine()

    @property
    def extraction(self) -> Extraction:
        """Return the settings that determine the answers: prompt, model, temperature, form of passages; not the endpoint."""
        settings = {
            "prompt": fingerprint_of_program(self._program),
            "temperature": self.lm.sampling[0],
            "passages_per_call": self.passages_per_call,
            "passage_characters": PASSAGE_CHARACTERS,
        }
        return Extraction(self.model, json.dumps(settings, sort_keys=True))

    @property
    def given_up(self) -> str | None:
        """Return why the model is no longer called; None while it is."""
        reason = self._line.given_up
        return None if reason is None else without_secrets(reason)

    def extract(self, texts: Sequence[str]) -> list[ExtractedPassage]:
        """Return the result of each of at most ``passages_per_call`` texts, in order; what the model answers raises nothing."""
        shown = [fenced(text[:PASSAGE_CHARACTERS]) for text in ([texts] if isinstance(texts, str) else texts)]
        read = {position: _SAYS_NOTHING for position, text in enumerate(shown) if has_no_words(text)}
        failed = ExtractedPassage(None)
        for _ in range(self.lm.endpoint.retries + 1):
            places = [position for position in range(len(shown)) if position not in read]
            if not places:
                break
            passages = "\n".join(f"{number}: {shown[position]}" for number, position in enumerate(places, start=1))
            read_answer = partial(knowledge_in, len(places))
            outcome = self._line.ask(self.lm, self._program, {"passages": passages}, "knowledge", read_answer)
            read |= {places[number]: knowledge for number, knowledge in (outcome.value or {}).items()}
            asked = not outcome.endpoint_failed or outcome.reason != self._line.given_up
            failed = ExtractedPassage(None, without_secrets(outcome.reason) or "the answer left this passage out", asked)
            if outcome.endpoint_failed:
                break
        return [ExtractedPassage(read[position]) if position in read else failed for position in range(len(shown))]


def knowledge_in(n_passages: int, answer: object) -> dict[int, ReadKnowledge] | None:
    """Return the knowledge in an answer, by passage from 0, for those with readable entries; None if there is none."""
    value = read_object(answer) if isinstance(answer, str) else answer
    entries = value if isinstance(value, Mapping) else {}
    inner = next(iter(entries.values())) if len(entries) == 1 else None
    if isinstance(inner, Mapping) and (n_passages == 1 or "triples" not in inner):
        entries = inner  # of {"passages": {"1": ...}}
    if isinstance(inner, list) and len(inner) == n_passages and "triples" not in entries:
        entries = {str(number): entry for number, entry in enumerate(inner, 1)}  # of {"passages": [...]}
    if n_passages == 1 and "triples" in entries:
        entries = {"1": entries}
    numbered = [(re.search(r"\d+", str(key)), entry) for key, entry in entries.items() if isinstance(entry, Mapping)]
    by_number = {number[0]: entry for number, entry in reversed(numbered) if number}  # of two with one number the first counts
    knowledge_of: dict[int, ReadKnowledge] = {}
    for position in range(n_passages):
        if "triples" in (entry := by_number.get(str(position + 1), {})):  # entities alone may be part of a truncated answer
            try:
                read = knowledge_from_json(entry.get("entities") or [], entry["triples"])
            except ValueError:
                continue
            if not read.nothing_read:
                knowledge_of[position] = read
    return knowledge_of or None


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

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


_LOOKED_UP_AT_ONCE = 500
_MOST_REASONS = 20


def extract_knowledge(
    items: Iterable[SearchableItem], store: KnowledgeStore, extractor: KnowledgeExtractor, *, commit_every: int = 100
) -> ExtractionSummary:
    """Extract entities and triples from the passages of a corpus that a store lacks, with a language model.

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
    begin = time.perf_counter()
    with record_calls() as calls, progress("extracting", None) as advance:
        run = _Extraction(store, extractor, advance)
        store.begin(run.extraction)
        run.save()
        missing = run.missing(items)
        while batch := list(islice(missing, commit_every)):
            run.extract(batch)
            run.save()
        run.save("failed" if extractor.given_up else "completed")
    return ExtractionSummary(
        run.extraction.extraction_id,
        run.extraction.model,
        **dict[str, Any](run.count),
        seconds=time.perf_counter() - begin,
        calls=calls.counts,
        stopped=extractor.given_up or "",
        reasons=dict(run.reasons.most_common(_MOST_REASONS)),
    )


class _Extraction:
    """A running extraction: its counts, and results that are not yet committed."""

    def __init__(self, store: KnowledgeStore, extractor: KnowledgeExtractor, advance: Callable[[int], object]) -> None:
        self.extraction = extractor.extraction
        self.count: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self._store, self._extractor, self._advance = store, extractor, advance
        self._records: list[PassageRecord] = []
        self._session, self._last = uuid.uuid4().hex, ""

    def missing(self, items: Iterable[SearchableItem]) -> Iterator[list[SearchableItem]]:
        """Yield the documents to request, by their texts, until the model is given up; record those whose text is known."""
        source = iter(items)
        while not self._extractor.given_up and (chunk := list(islice(source, _LOOKED_UP_AT_ONCE))):
            if wrong := [item.item_id for item in chunk if "\0" in item.item_id]:
                raise ItemError(f"item id {wrong[0]!r:.80}: it holds a character that databases cannot store; change the id")
            asked = self._store.missing(self.extraction, chunk)
            missing = [item for item, is_missing in zip(chunk, asked, strict=True) if is_missing]
            self.count["documents"] += len(chunk)
            self.count["kept"] += len(chunk) - len(missing)
            self._advance(len(chunk) - len(missing))
            by_text: dict[str, list[SearchableItem]] = {}
            for item, known in zip(missing, StoredKnowledge(self._store, self.extraction).of(missing), strict=True):
                if known is None:
                    by_text.setdefault(passage_hash(item.title, item.content), []).append(item)
                else:
                    self.count["copied"] += 1
                    self._note(item, ExtractedPassage(ReadKnowledge(known)))
            if len(self._records) >= _LOOKED_UP_AT_ONCE:
                self.save()
            yield from by_text.values()

    def extract(self, batch: list[list[SearchableItem]]) -> None:
        """Ask about documents, and record the answers."""
        size = self._extractor.passages_per_call
        groups = [batch[first : first + size] for first in range(0, len(batch), size)]

        def ask(group: list[list[SearchableItem]], _: Callable[[], bool]) -> list[ExtractedPassage]:
            return self._extractor.extract([passage_text(same[0].title, same[0].content) for same in group])

        answers = side_by_side(ask, groups, self._extractor.lm.endpoint.calls_at_once)
        for same, result in zip(batch, (one for of_group in answers for one in of_group), strict=True):
            self.count["cut"] += len(same) * (len(passage_text(same[0].title, same[0].content)) > PASSAGE_CHARACTERS)
            if not result.asked:
                self.count["not_asked"] += len(same)
                continue
            if result.read is None:
                self.count["failed"] += len(same)
                self.reasons[result.error] += len(same)
            else:
                self.count["extracted"] += 1
                self.count["copied"] += len(same) - 1
            for item in same:
                self._note(item, result)

    def save(self, status: str = "in_progress") -> None:
        """Commit the recorded results, and the progress of the run."""
        counts = dict(sorted(self.count.items()))
        done = sum(counts.get(name, 0) for name in ("kept", "extracted", "copied", "failed", "not_asked"))
        if self._records:
            self._last = self._records[-1].document_id
        data = counts | ({"last_document": self._last} if self._last else {})
        run = ExtractionRun(self._session, counts.get("documents", 0), done, status, data)
        self._store.save(self.extraction, self._records, run)
        self._records = []

    def _note(self, item: SearchableItem, result: ExtractedPassage) -> None:
        if result.read is not None:
            self.count["entities"] += len(result.read.knowledge.entities)
            self.count["triples"] += len(result.read.knowledge.triples)
            self.count["dropped"] += result.read.dropped
        self._records.append(PassageRecord(item.item_id, passage_hash(item.title, item.content), result.read, result.error))
        self._advance(1)
