"""Records of a knowledge store, for its callers, and their rows in its tables."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from nlp_retrieval.core import find_lone_surrogate
from nlp_retrieval.errors import ItemError
from nlp_retrieval.systems.hipporag.knowledge.from_json import MAX_CHARACTERS, UNKNOWN_TYPE, ReadKnowledge
from nlp_retrieval.systems.hipporag.knowledge.statements import Triple
from nlp_retrieval.systems.hipporag.knowledge.store.keys import key_of
from nlp_retrieval.text import printable

__all__ = ["DONE", "FAILED", "Extraction", "ExtractionRun", "PassageRecord", "StoreCounts"]

DONE, FAILED = "done", "failed"
Row = dict[str, Any]


@dataclass(frozen=True)
class Extraction:
    """A prompt, a model and their settings. Any change of these makes a separate extraction.

    Args:
        model: the language model, by its name in the configuration.
        settings: everything that determines its answers, as JSON text.
    """

    model: str
    settings: str

    @property
    def extraction_id(self) -> str:
        """Return its fingerprint, 32 hexadecimal digits."""
        return key_of(self.model, self.settings)


@dataclass(frozen=True)
class StoreCounts:
    """Counts of an extraction in a store.

    Args:
        done: passages with knowledge, which may be empty.
        failed: passages without a usable answer; the next run retries them.
        entities: names, each with its type once.
        relationships: triples, once for each passage.
    """

    done: int
    failed: int
    entities: int
    relationships: int


@dataclass(frozen=True)
class ExtractionRun:
    """Progress of one run, as stored in its row.

    Args:
        session_id: of the run.
        total: documents read so far; all of the corpus when completed.
        processed: those of them that are finished in this run.
        status: ``in_progress``, ``completed`` or ``failed``.
        data: counters, as JSON values.
    """

    session_id: str
    total: int
    processed: int
    status: str = "in_progress"
    data: dict[str, Any] = field(default_factory=dict)

    def row(self, extraction_id: str) -> Row:
        """Return it as a row of the table."""
        return {
            "session_id": self.session_id,
            "extraction_id": extraction_id,
            "total_documents": self.total,
            "processed_documents": self.processed,
            "last_checkpoint_timestamp": datetime.now(UTC).replace(tzinfo=None, microsecond=0),
            "status": self.status,
            "checkpoint_data": json.dumps(self.data),
        }


@dataclass(frozen=True)
class PassageRecord:
    """Result of one passage in a run.

    Args:
        document_id: its item's id.
        content_hash: of its text; see :func:`nlp_retrieval.systems.hipporag.knowledge.passage_text.passage_hash`.
        read: its knowledge; None without a usable answer.
        tries: number of requests in this run.
        error: why there is no answer.

    Raises:
        ItemError: the id holds a NUL character or a lone surrogate, which no database stores.
    """

    document_id: str
    content_hash: str
    read: ReadKnowledge | None
    tries: int
    error: str = ""

    def __post_init__(self) -> None:
        if "\0" in self.document_id or find_lone_surrogate(self.document_id) is not None:
            raise ItemError(f"item id {self.document_id!r:.80}: it holds a character that no database stores; give it another")

    def passage_row(self, extraction_id: str, earlier_tries: int) -> Row:
        """Return its row in ``passages``."""
        return {
            "passage_id": key_of(extraction_id, self.document_id),
            "extraction_id": extraction_id,
            "document_id": self.document_id,
            "content_hash": self.content_hash,
            "status": FAILED if self.read is None else DONE,
            "tries": min(earlier_tries + self.tries, 2**31 - 1),
            "dropped": 0 if self.read is None else min(self.read.dropped, 2**31 - 1),
            "error": printable(self.error)[:MAX_CHARACTERS] or None,
        }

    def statement_rows(self, extraction_id: str) -> tuple[list[Row], list[Row], list[Row]]:
        """Return its rows in ``entities``, ``mentions`` and ``relationships``."""
        if self.read is None:
            return [], [], []
        passage_id = key_of(extraction_id, self.document_id)
        entities: dict[str, Row] = {}

        def entity(name: str) -> str:
            type_ = types.get(name, UNKNOWN_TYPE)
            key = key_of(extraction_id, name, type_)
            entities[key] = {"entity_id": key, "extraction_id": extraction_id, "entity_text": name, "entity_type": type_}
            return key

        types, knowledge = self.read.types, self.read.knowledge
        mentions = [
            {"passage_id": passage_id, "place": place, "entity_id": entity(name)}
            for place, name in enumerate(knowledge.entities)
        ]

        def relationship(place: int, triple: Triple) -> Row:
            return {
                "relationship_id": key_of(passage_id, *asdict(triple).values()),
                "source_passage_id": passage_id,
                "place": place,
                "subject_entity_id": entity(triple.subject),
                "predicate": triple.predicate,
                "object_entity_id": entity(triple.object),
            }

        relationships = [relationship(place, triple) for place, triple in enumerate(knowledge.triples)]
        return list(entities.values()), mentions, relationships
