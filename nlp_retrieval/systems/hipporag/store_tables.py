"""Tables of a knowledge store. This module needs SQLAlchemy.

Types are those that all of SQLAlchemy's dialects have. Keys are fingerprints of their content, so that the same extraction
writes the same rows, in any order. An entity is a name and its type within one extraction; its mentions are a separate table,
because an entity of 100,000 documents would otherwise be one row that every batch rewrites.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Column,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Select,
    String,
    Table,
    Unicode,
    UnicodeText,
    select,
)

from nlp_retrieval.systems.hipporag.knowledge import MAX_CHARACTERS, UNKNOWN_TYPE, PassageRecord, key_of
from nlp_retrieval.text import printable

DONE, FAILED = "done", "failed"
Row = dict[str, Any]


def _key(name: str, to: Column[str] | None = None, **settings: Any) -> Column[str]:
    return Column(name, String(32), *(() if to is None else (ForeignKey(to),)), nullable=False, **settings)


@dataclass(frozen=True)
class Tables:
    """The tables in one schema."""

    metadata: MetaData
    extractions: Table
    passages: Table
    entities: Table
    mentions: Table
    relationships: Table
    indexing_progress: Table

    @classmethod
    def of_schema(cls, schema: str | None = None) -> Tables:
        """Describe the tables in a schema; None for the default of the database."""
        metadata = MetaData(schema=schema)
        extractions = Table(
            "extractions",
            metadata,
            _key("extraction_id", primary_key=True),
            Column("model", Unicode(MAX_CHARACTERS), nullable=False),
            Column("settings", UnicodeText, nullable=False),
        )
        passages = Table(
            "passages",
            metadata,
            _key("passage_id", primary_key=True),
            _key("extraction_id", extractions.c.extraction_id),
            Column("document_id", UnicodeText, nullable=False),
            _key("content_hash"),
            Column("status", String(16), nullable=False),
            Column("error", Unicode(MAX_CHARACTERS)),
        )
        Index("ix_passages_extraction_content", passages.c.extraction_id, passages.c.content_hash)
        entities = Table(
            "entities",
            metadata,
            _key("entity_id", primary_key=True),
            _key("extraction_id", extractions.c.extraction_id),
            Column("entity_text", Unicode(MAX_CHARACTERS), nullable=False),
            Column("entity_type", String(16), nullable=False),
            Column("confidence_score", Float),
        )
        mentions = Table(
            "mentions",
            metadata,
            _key("passage_id", passages.c.passage_id, primary_key=True),
            Column("place", Integer, primary_key=True, autoincrement=False),
            _key("entity_id", entities.c.entity_id, index=True),
        )
        relationships = Table(
            "relationships",
            metadata,
            _key("relationship_id", primary_key=True),
            _key("source_passage_id", passages.c.passage_id, index=True),
            Column("place", Integer, nullable=False),
            _key("subject_entity_id", entities.c.entity_id, index=True),
            Column("predicate", Unicode(MAX_CHARACTERS), nullable=False),
            _key("object_entity_id", entities.c.entity_id, index=True),
            Column("confidence_score", Float),
        )
        progress = Table(
            "indexing_progress",
            metadata,
            Column("session_id", String(50), primary_key=True),
            _key("extraction_id", extractions.c.extraction_id),
            Column("total_documents", Integer, nullable=False),
            Column("processed_documents", Integer, nullable=False),
            Column("last_checkpoint_timestamp", DateTime, nullable=False),
            Column("status", String(16), nullable=False),
            Column("checkpoint_data", UnicodeText, nullable=False),
        )
        return cls(metadata, extractions, passages, entities, mentions, relationships, progress)

    def named(self) -> Select[Any]:
        """Select passage, name and type of all mentions, in order."""
        mentions, entities = self.mentions.c, self.entities.c
        query = select(mentions.passage_id, entities.entity_text, entities.entity_type)
        return query.select_from(self.mentions.join(self.entities)).order_by(mentions.passage_id, mentions.place)

    def stated(self) -> Select[Any]:
        """Select passage, subject, predicate and object of all relationships, in order."""
        of = self.relationships.c
        subjects, objects = self.entities.alias("subjects"), self.entities.alias("objects")
        joined = self.relationships.join(subjects, of.subject_entity_id == subjects.c.entity_id)
        joined = joined.join(objects, of.object_entity_id == objects.c.entity_id)
        query = select(of.source_passage_id, subjects.c.entity_text, of.predicate, objects.c.entity_text)
        return query.select_from(joined).order_by(of.source_passage_id, of.place)


def rows_of(extraction_id: str, records: Iterable[PassageRecord]) -> dict[str, list[Row]]:
    """Return the rows of some passages by the name of their table, parents before children."""
    passages: list[Row] = []
    entities: dict[str, Row] = {}
    mentions: list[Row] = []
    relationships: list[Row] = []
    for record in records:
        passage_id = key_of(extraction_id, record.document_id)
        passages.append(
            {
                "passage_id": passage_id,
                "extraction_id": extraction_id,
                "document_id": record.document_id,
                "content_hash": record.content_hash,
                "status": FAILED if record.read is None else DONE,
                "error": printable(record.error)[:MAX_CHARACTERS] or None,
            }
        )
        if record.read is None:
            continue
        key_of_name: dict[str, str] = {}
        knowledge, types = record.read.knowledge, record.read.types
        for name in (*knowledge.entities, *(end for triple in knowledge.triples for end in (triple.subject, triple.object))):
            type_ = types.get(name, UNKNOWN_TYPE)
            key = key_of_name[name] = key_of(extraction_id, name, type_)
            entities[key] = {"entity_id": key, "extraction_id": extraction_id, "entity_text": name, "entity_type": type_}
        mentions += [
            {"passage_id": passage_id, "place": place, "entity_id": key_of_name[name]}
            for place, name in enumerate(knowledge.entities)
        ]
        relationships += [
            {
                "relationship_id": key_of(passage_id, triple.subject, triple.predicate, triple.object),
                "source_passage_id": passage_id,
                "place": place,
                "subject_entity_id": key_of_name[triple.subject],
                "predicate": triple.predicate,
                "object_entity_id": key_of_name[triple.object],
            }
            for place, triple in enumerate(knowledge.triples)
        ]
    # entities in one order for all processes, so that they cannot deadlock
    in_order = [entities[key] for key in sorted(entities)]
    return {"passages": passages, "entities": in_order, "mentions": mentions, "relationships": relationships}
