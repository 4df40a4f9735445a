"""Extracting what the passages of a corpus say into a store, as far as it is not there yet.

A run needs to remember nothing of earlier ones: what is missing is asked of the store, by id and text, so it may be killed at
any time, and another may run beside it. Results are committed by batches, together with the counters. What was answered but
not committed is not paid again, because the model keeps its good answers on disk.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any

from nlp_retrieval import SearchableItem
from nlp_retrieval.core import Advance, progress
from nlp_retrieval.errors import ConfigurationError, RetrievalError
from nlp_retrieval.lm import CallCounter, record_calls
from nlp_retrieval.systems.hipporag.knowledge.extraction.extractor import ExtractedPassage, KnowledgeExtractor
from nlp_retrieval.systems.hipporag.knowledge.extraction.summary import ExtractionSummary
from nlp_retrieval.systems.hipporag.knowledge.extraction.workers import worked_on
from nlp_retrieval.systems.hipporag.knowledge.from_json import ReadKnowledge
from nlp_retrieval.systems.hipporag.knowledge.passage_text import passage_hash, passage_text
from nlp_retrieval.systems.hipporag.knowledge.store.knowledge_store import KnowledgeStore
from nlp_retrieval.systems.hipporag.knowledge.store.rows import ExtractionRun, PassageRecord

__all__ = ["extract_knowledge"]

_LOOKED_UP_AT_ONCE = 500
_MOST_REASONS = 20

Same = list[SearchableItem]
"""Documents with one text."""


def extract_knowledge(
    items: Iterable[SearchableItem], store: KnowledgeStore, extractor: KnowledgeExtractor, *, commit_every: int = 100
) -> ExtractionSummary:
    """Have a language model extract what the passages of a corpus say, as far as a store does not have it yet.

    Memory holds a few hundred passages.

    Args:
        items: the corpus, with ids of its own.
        store: where the knowledge is kept; another prompt or model is another extraction in it.
        extractor: what asks the model, as often at once as the model's ``calls_at_once`` says.
        commit_every: after how many passages results are committed.

    Raises:
        SourceError: the store cannot be read.
        OutputError: the store cannot be written; what was committed is kept.
        ConfigurationError: ``commit_every`` is below 1, or the model's key is not set.
    """
    if commit_every < 1:
        raise ConfigurationError(f"commit_every={commit_every}: commit after at least 1 passage")
    from nlp_retrieval.lm import using

    with record_calls() as calls, using(extractor.lm), progress("extracting", None) as advance:
        run = _Extraction(store, extractor, commit_every, calls, advance)
        store.begin(run.extraction)
        try:
            for group, found in worked_on(run.groups(items), run.ask, extractor.lm.calls_at_once):
                run.came(group, found)
            run.commit("failed" if extractor.given_up else "completed")
        except BaseException:
            # what was interrupted within a transaction may hold its lock as long as this error is told
            if run.between_transactions:
                with suppress(RetrievalError):
                    run.commit("failed")
            raise
        return run.summary()


class _Extraction:
    """One run under way."""

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
        self.between_transactions = True
        self._begin = time.perf_counter()

    def groups(self, items: Iterable[SearchableItem]) -> Iterator[list[Same]]:
        """Yield what goes into one call, until the model is given up."""
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

    def came(self, group: list[Same], found: list[ExtractedPassage]) -> None:
        """Note what came of a group, and commit where there is enough of it."""
        for same, one in zip(group, found, strict=True):
            if not one.asked:
                self._count["not_asked"] += len(same)
                continue
            self._count["failed" if one.read is None else "extracted"] += 1 if one.read is not None else len(same)
            self._count["copied"] += 0 if one.read is None else len(same) - 1
            if one.read is None:
                self._reasons[one.error] += len(same)
            for item in same:
                self._note(item, one.read, one.tries, one.error)
        if len(self._records) >= self._commit_every:
            self.commit()

    def commit(self, status: str = "in_progress") -> None:
        """Write what is noted, and how far the run is."""
        counts = dict(sorted(self._count.items()))
        waiting = counts.get("failed", 0) + counts.get("not_asked", 0)
        done = sum(counts.get(name, 0) for name in ("kept", "extracted", "copied"))
        run = ExtractionRun(self._session, counts.get("documents", 0), done + waiting, status, counts)
        with self._transaction():
            self._store.save(self.extraction, self._records, run)
        self._records = []

    def summary(self) -> ExtractionSummary:
        """Return what came of it."""
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
        """The documents of a chunk that are to be asked about, by their texts; those whose text is known are noted."""
        with self._transaction():
            asked = self._store.missing(self.extraction, chunk)
            missing = [item for item, is_missing in zip(chunk, asked, strict=True) if is_missing]
            found = self._store.knowledge(self.extraction, missing)
        self._count["documents"] += len(chunk)
        self._count["kept"] += len(chunk) - len(missing)
        self._advance(len(chunk) - len(missing))
        by_text: dict[str, Same] = {}
        for item, known in zip(missing, found, strict=True):
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
