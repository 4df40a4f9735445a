"""Tables of a knowledge store, in types that all of SQLAlchemy's dialects have.

Keys are fingerprints of their content, so that the same extraction writes the same rows, in any order. An entity is a name and
its type within one extraction; its mentions are a separate table, because an entity of 100,000 documents would otherwise be one
row that every batch rewrites.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Column, DateTime, Float, ForeignKey, Index, Integer, MetaData, String, Table, Unicode, UnicodeText

from nlp_retrieval.systems.hipporag.knowledge.from_json import MAX_CHARACTERS
from nlp_retrieval.systems.hipporag.knowledge.store.keys import KEY_LENGTH

__all__ = ["Tables"]


@dataclass(frozen=True)
class Tables:
    """The tables in one schema.

    Args:
        metadata: all of them.
        extractions: one row for each prompt and model.
        passages: the result of each document in each extraction.
        entities: names.
        mentions: entities of passages.
        relationships: triples.
        indexing_progress: one row for each run.
    """

    metadata: MetaData
    extractions: Table
    passages: Table
    entities: Table
    mentions: Table
    relationships: Table
    indexing_progress: Table

    @classmethod
    def of_schema(cls, schema: str | None = None) -> Tables:
        """Describe the tables.

        Args:
            schema: of the database; None for its default.
        """
        metadata = MetaData(schema=schema)

        def key(name: str, to: Column[str] | None = None, *, primary_key: bool = False, index: bool = False) -> Column[str]:
            target = () if to is None else (ForeignKey(to),)
            return Column(name, String(KEY_LENGTH), *target, nullable=False, primary_key=primary_key, index=index or None)

        extractions = Table(
            "extractions",
            metadata,
            key("extraction_id", primary_key=True),
            Column("model", Unicode(MAX_CHARACTERS), nullable=False),
            Column("settings", UnicodeText, nullable=False),
        )
        passages = Table(
            "passages",
            metadata,
            key("passage_id", primary_key=True),
            key("extraction_id", extractions.c.extraction_id),
            Column("document_id", UnicodeText, nullable=False),
            key("content_hash"),
            Column("status", String(16), nullable=False),
            Column("tries", Integer, nullable=False),
            Column("dropped", Integer, nullable=False),
            Column("error", Unicode(MAX_CHARACTERS)),
        )
        Index("ix_passages_extraction_content", passages.c.extraction_id, passages.c.content_hash)
        entities = Table(
            "entities",
            metadata,
            key("entity_id", primary_key=True),
            key("extraction_id", extractions.c.extraction_id),
            Column("entity_text", Unicode(MAX_CHARACTERS), nullable=False),
            Column("entity_type", String(16), nullable=False),
            Column("confidence_score", Float),
        )
        mentions = Table(
            "mentions",
            metadata,
            key("passage_id", passages.c.passage_id, primary_key=True),
            Column("place", Integer, primary_key=True, autoincrement=False),
            key("entity_id", entities.c.entity_id, index=True),
        )
        relationships = Table(
            "relationships",
            metadata,
            key("relationship_id", primary_key=True),
            key("source_passage_id", passages.c.passage_id, index=True),
            Column("place", Integer, nullable=False),
            key("subject_entity_id", entities.c.entity_id, index=True),
            Column("predicate", Unicode(MAX_CHARACTERS), nullable=False),
            key("object_entity_id", entities.c.entity_id, index=True),
            Column("confidence_score", Float),
        )
        progress = Table(
            "indexing_progress",
            metadata,
            Column("session_id", String(50), primary_key=True),
            key("extraction_id", extractions.c.extraction_id),
            Column("total_documents", Integer, nullable=False),
            Column("processed_documents", Integer, nullable=False),
            Column("last_checkpoint_timestamp", DateTime, nullable=False),
            Column("status", String(16), nullable=False),
            Column("checkpoint_data", UnicodeText, nullable=False),
        )
        return cls(metadata, extractions, passages, entities, mentions, relationships, progress)
