"""Tables of a knowledge store, and the statements that read and write them. This module needs SQLAlchemy.

Types are those that all of SQLAlchemy's dialects have. Keys are fingerprints of their content, so that the same extraction
writes the same rows, in any order. An entity is a name and its type within one extraction; its mentions are a separate table,
because an entity of 100,000 documents would otherwise be one row that every batch rewrites.

A store is not trusted. Data that no extraction writes (another type, an empty or overlong text, a control character, more
statements than a passage may have) count as damage, and are an error. So is a text under a wrong key: an index is identified by
the digest of a store, which is computed from keys.

The old rows of a passage are removed before it is written, so writing it again changes nothing, and writing another text leaves
nothing of the old one. Entities without passages are removed last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
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
    exists,
    func,
    select,
)

from nlp_retrieval.core import find_lone_surrogate, parse_json
from nlp_retrieval.systems.hipporag.knowledge import (
    DONE,
    KEY_LENGTH,
    MAX_CHARACTERS,
    MAX_STATEMENTS,
    Extraction,
    ExtractionRun,
    PassageKnowledge,
    PassageRecord,
    Row,
    StoreCounts,
    Triple,
    in_parts,
    key_of,
)
from nlp_retrieval.text import printable


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


_MOST_EXTRACTIONS = 1_000
_MOST_RUNS = 20
_ROWS_AT_ONCE = 1_000


class DamagedStoreError(ValueError):
    """Error for data that no extraction wrote; the message names them in half a sentence."""


def extractions_in(connection: Connection, tables: Tables) -> list[Extraction]:
    """Return the extractions of a store, ordered by model and settings."""
    columns = tables.extractions.c
    rows = connection.execute(select(columns.model, columns.settings).limit(_MOST_EXTRACTIONS))
    extractions = [Extraction(_text(model, "a model"), _text(settings, "settings", 2**16)) for model, settings in rows]
    return sorted(extractions, key=lambda extraction: (extraction.model, extraction.settings))


def hashes_of_done(connection: Connection, tables: Tables, keys: Collection[str]) -> dict[str, str]:
    """Return the hashes of the texts with knowledge, by passage, for those of these passages that are done."""
    passages = tables.passages.c
    hashes: dict[str, str] = {}
    for part in in_parts(keys):
        query = select(passages.passage_id, passages.content_hash).where(passages.passage_id.in_(part), passages.status == DONE)
        hashes.update((str(key), str(content_hash)) for key, content_hash in connection.execute(query))
    return hashes


def knowledge_by_hash(
    connection: Connection, tables: Tables, extraction_id: str, hashes: Collection[str]
) -> dict[str, PassageKnowledge]:
    """Return the knowledge of passages, by the hashes of their texts, for those that are done.

    Raises:
        DamagedStoreError: the store holds data that no extraction wrote.
    """
    passages = tables.passages.c
    knowledge: dict[str, PassageKnowledge] = {}
    for part in in_parts(set(hashes)):
        known = (passages.extraction_id == extraction_id, passages.status == DONE, passages.content_hash.in_(part))
        # several documents may have one text
        query = select(passages.content_hash, func.min(passages.passage_id)).where(*known).group_by(passages.content_hash)
        by_passage = {str(key): str(content_hash) for content_hash, key in connection.execute(query)}
        entities = _by_passage(connection, _entities(tables, list(by_passage)))
        triples = _by_passage(connection, _triples(tables, list(by_passage)))
        for key, content_hash in by_passage.items():
            names = [_entity(extraction_id, *row) for row in entities.get(key, ())]
            statements = [_triple(key, *row) for row in triples.get(key, ())]
            knowledge[content_hash] = PassageKnowledge(tuple(names), tuple(statements))
    return knowledge


def digest_of_done(connection: Connection, tables: Tables, extraction_id: str) -> str:
    """Return the SHA-256 of an extraction and of the fingerprints of its results: texts, entities and triples."""
    passages, mentions, relationships = tables.passages.c, tables.mentions.c, tables.relationships.c
    of_it = (passages.extraction_id == extraction_id, passages.status == DONE)
    queries = (
        select(passages.passage_id, passages.content_hash).order_by(passages.passage_id),
        select(mentions.passage_id, mentions.entity_id)
        .select_from(tables.mentions.join(tables.passages))
        .order_by(mentions.passage_id, mentions.place),
        select(relationships.relationship_id, relationships.source_passage_id)
        .select_from(tables.relationships.join(tables.passages))
        .order_by(relationships.relationship_id),
    )
    digest = sha256(extraction_id.encode())
    for query in queries:
        digest.update(b"\n")
        for row in connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query.where(*of_it)):
            digest.update(f"{row[0]} {row[1]}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def passage_counts(connection: Connection, tables: Tables, extraction_id: str) -> StoreCounts:
    """Return the counts of an extraction."""

    def count(query: Select[Any]) -> int:
        return int(connection.execute(query).scalar_one())

    passages, entities = tables.passages.c, tables.entities.c
    of_it = select(func.count()).select_from(tables.passages).where(passages.extraction_id == extraction_id)
    done = count(of_it.where(passages.status == DONE))
    joined = tables.relationships.join(tables.passages)
    return StoreCounts(
        done=done,
        failed=count(of_it) - done,
        entities=count(select(func.count()).select_from(tables.entities).where(entities.extraction_id == extraction_id)),
        relationships=count(select(func.count()).select_from(joined).where(passages.extraction_id == extraction_id)),
    )


def _entities(tables: Tables, keys: list[str]) -> Select[Any]:
    mentions, entities = tables.mentions.c, tables.entities.c
    query = select(mentions.passage_id, entities.entity_id, entities.entity_text, entities.entity_type).select_from(
        tables.mentions.join(tables.entities)
    )
    return query.where(mentions.passage_id.in_(keys)).order_by(mentions.passage_id, mentions.place)


def _triples(tables: Tables, keys: list[str]) -> Select[Any]:
    relationships = tables.relationships.c
    subjects, objects = tables.entities.alias("subjects"), tables.entities.alias("objects")
    joined = tables.relationships.join(subjects, relationships.subject_entity_id == subjects.c.entity_id).join(
        objects, relationships.object_entity_id == objects.c.entity_id
    )
    query = select(
        relationships.source_passage_id,
        relationships.relationship_id,
        subjects.c.entity_text,
        relationships.predicate,
        objects.c.entity_text,
    ).select_from(joined)
    return query.where(relationships.source_passage_id.in_(keys)).order_by(relationships.source_passage_id, relationships.place)


def _by_passage(connection: Connection, query: Select[Any]) -> dict[str, list[tuple[object, ...]]]:
    rows_of: dict[str, list[tuple[object, ...]]] = {}
    for key, *values in connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query):
        rows = rows_of.setdefault(str(key), [])
        if len(rows) == MAX_STATEMENTS:
            raise DamagedStoreError(f"a passage with more than {MAX_STATEMENTS:,} entities or triples")
        rows.append(tuple(values))
    return rows_of


def _entity(extraction_id: str, key: object, name: object, type_: object) -> str:
    text = _text(name, "an entity")
    if key != key_of(extraction_id, text, _text(type_, "the type of an entity")):
        raise DamagedStoreError("an entity under the key of another one")
    return text


def _triple(passage_id: str, key: object, *values: object) -> Triple:
    parts = [_text(value, "a triple") for value in values]
    if key != key_of(passage_id, *parts):
        raise DamagedStoreError("a triple under the key of another one")
    return Triple(*parts)


def _text(value: object, what: str, longest: int = MAX_CHARACTERS) -> str:
    sound = isinstance(value, str) and 0 < len(value) <= longest and find_lone_surrogate(value) is None
    if not isinstance(value, str) or not sound or printable(value) != value:
        raise DamagedStoreError(f"{what} that is empty, too long or not plain text")
    return value


def write_passages(connection: Connection, tables: Tables, extraction_id: str, records: Sequence[PassageRecord]) -> None:
    """Write passages, replacing existing ones; of two records of one document, the last counts."""
    latest = list({record.document_id: record for record in records}.values())
    keys = [record.passage_row(extraction_id, 0)["passage_id"] for record in latest]
    tries = _tries_of(connection, tables, keys)
    orphans = _clear(connection, tables, keys)
    passages = [record.passage_row(extraction_id, tries.get(key, 0)) for key, record in zip(keys, latest, strict=True)]
    entities: dict[str, Row] = {}
    mentions: list[Row] = []
    relationships: list[Row] = []
    for record in latest:
        of_record = record.statement_rows(extraction_id)
        entities.update((row["entity_id"], row) for row in of_record[0])
        mentions.extend(of_record[1])
        relationships.extend(of_record[2])
    existing = set(_found(connection, tables.entities.c.entity_id, tables.entities.c.entity_id, entities))
    _insert(connection, tables.passages, passages)
    # in one order for all processes, so that they cannot deadlock
    _insert(connection, tables.entities, [entities[key] for key in sorted(entities.keys() - existing)])
    _insert(connection, tables.mentions, mentions)
    _insert(connection, tables.relationships, relationships)
    _remove_unused(connection, tables, orphans - entities.keys())


def remove_passages(connection: Connection, tables: Tables, keys: Sequence[str]) -> int:
    """Remove passages, and entities that only they had; return their number."""
    n_existing = len(_tries_of(connection, tables, keys))
    _remove_unused(connection, tables, _clear(connection, tables, keys))
    return n_existing


def write_run(connection: Connection, tables: Tables, extraction_id: str, run: ExtractionRun) -> None:
    """Replace the row of a run."""
    progress = tables.indexing_progress
    connection.execute(progress.delete().where(progress.c.session_id == run.session_id))
    connection.execute(progress.insert(), [run.row(extraction_id)])


def unfinished_runs(connection: Connection, tables: Tables, extraction_id: str) -> list[ExtractionRun]:
    """Return the runs of an extraction that are not ended, the latest first; at most 20."""
    progress = tables.indexing_progress.c
    query = tables.indexing_progress.select().where(progress.extraction_id == extraction_id, progress.status == "in_progress")
    rows = connection.execute(query.order_by(progress.last_checkpoint_timestamp.desc()).limit(_MOST_RUNS))
    return [
        ExtractionRun(
            str(row.session_id),
            _number(row.total_documents),
            _number(row.processed_documents),
            data=_json_object(row.checkpoint_data),
            saved=f"{row.last_checkpoint_timestamp} UTC",
        )
        for row in rows
    ]


def end_runs(connection: Connection, tables: Tables, extraction_id: str) -> None:
    """Mark the runs of an extraction that are not ended as failed; one that still runs corrects that at its next commit."""
    progress = tables.indexing_progress.c
    unfinished = (progress.extraction_id == extraction_id, progress.status == "in_progress")
    connection.execute(tables.indexing_progress.update().where(*unfinished).values(status="failed"))


def _number(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def _json_object(text: object) -> dict[str, Any]:
    try:
        value = parse_json(text) if isinstance(text, str) else None
    except ValueError:
        return {}
    return dict(value) if isinstance(value, dict) else {}


def _tries_of(connection: Connection, tables: Tables, keys: Sequence[str]) -> dict[str, int]:
    passages = tables.passages.c
    tries: dict[str, int] = {}
    for part in in_parts(keys):
        rows = connection.execute(select(passages.passage_id, passages.tries).where(passages.passage_id.in_(part)))
        tries.update((row[0], row[1] if isinstance(row[1], int) and row[1] >= 0 else 0) for row in rows)
    return tries


def _clear(connection: Connection, tables: Tables, keys: Sequence[str]) -> set[str]:
    """Remove passages and their statements; return the entities that they had."""
    had: set[str] = set()
    mentions, relationships = tables.mentions.c, tables.relationships.c
    had.update(_found(connection, mentions.entity_id, mentions.passage_id, keys))
    for column in (relationships.subject_entity_id, relationships.object_entity_id):
        had.update(_found(connection, column, relationships.source_passage_id, keys))
    for part in in_parts(keys):
        connection.execute(tables.mentions.delete().where(mentions.passage_id.in_(part)))
        connection.execute(tables.relationships.delete().where(relationships.source_passage_id.in_(part)))
        connection.execute(tables.passages.delete().where(tables.passages.c.passage_id.in_(part)))
    return had


def _found(connection: Connection, wanted: Column[Any], by: Column[Any], keys: Collection[str]) -> Iterator[str]:
    for part in in_parts(keys):
        yield from connection.execute(select(wanted).where(by.in_(part)).distinct()).scalars()


def _insert(connection: Connection, table: Table, rows: list[Row]) -> None:
    if rows:
        connection.execute(table.insert(), rows)


def _remove_unused(connection: Connection, tables: Tables, keys: set[str]) -> None:
    entities, mentions, relationships = tables.entities, tables.mentions.c, tables.relationships.c
    used = (
        exists().where(mentions.entity_id == entities.c.entity_id),
        exists().where(relationships.subject_entity_id == entities.c.entity_id),
        exists().where(relationships.object_entity_id == entities.c.entity_id),
    )
    for part in in_parts(keys):
        unused = [entities.c.entity_id.in_(part), *(~use for use in used)]
        connection.execute(entities.delete().where(*unused))
