"""Writing passages into a knowledge store, within the caller's transaction.

The old rows of a passage are removed first, so writing it again changes nothing, and writing another text leaves nothing of the
old one. Entities without passages are removed last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from nlp_retrieval.systems.hipporag.knowledge.store.keys import in_parts
from nlp_retrieval.systems.hipporag.knowledge.store.rows import ExtractionRun, PassageRecord, Row

if TYPE_CHECKING:
    from sqlalchemy import Column, Connection, Table

    from nlp_retrieval.systems.hipporag.knowledge.store.tables import Tables

__all__ = ["remove_passages", "write_passages", "write_run"]


def write_passages(connection: Connection, tables: Tables, extraction_id: str, records: Sequence[PassageRecord]) -> None:
    """Write passages, replacing existing ones; of two records of one document, the last counts."""
    latest = list({record.document_id: record for record in records}.values())
    keys = [record.passage_row(extraction_id, 0)["passage_id"] for record in latest]
    tries = _tries(connection, tables, keys)
    left = _clear(connection, tables, keys)
    passages = [record.passage_row(extraction_id, tries.get(key, 0)) for key, record in zip(keys, latest, strict=True)]
    entities: dict[str, Row] = {}
    mentions: list[Row] = []
    relationships: list[Row] = []
    for record in latest:
        of_record = record.statement_rows(extraction_id)
        entities.update((row["entity_id"], row) for row in of_record[0])
        mentions.extend(of_record[1])
        relationships.extend(of_record[2])
    there = set(_found(connection, tables.entities.c.entity_id, tables.entities.c.entity_id, entities))
    _insert(connection, tables.passages, passages)
    # in one order for all processes, so that they cannot deadlock
    _insert(connection, tables.entities, [entities[key] for key in sorted(entities.keys() - there)])
    _insert(connection, tables.mentions, mentions)
    _insert(connection, tables.relationships, relationships)
    _remove_unused(connection, tables, left - entities.keys())


def remove_passages(connection: Connection, tables: Tables, keys: Sequence[str]) -> int:
    """Remove passages, and entities that only they had; return their number."""
    there = len(_tries(connection, tables, keys))
    _remove_unused(connection, tables, _clear(connection, tables, keys))
    return there


def write_run(connection: Connection, tables: Tables, extraction_id: str, run: ExtractionRun) -> None:
    """Replace the row of a run."""
    progress = tables.indexing_progress
    connection.execute(progress.delete().where(progress.c.session_id == run.session_id))
    connection.execute(progress.insert(), [run.row(extraction_id)])


def _tries(connection: Connection, tables: Tables, keys: Sequence[str]) -> dict[str, int]:
    from sqlalchemy import select

    passages = tables.passages.c
    found: dict[str, int] = {}
    for part in in_parts(keys):
        rows = connection.execute(select(passages.passage_id, passages.tries).where(passages.passage_id.in_(part)))
        found.update((row[0], row[1] if isinstance(row[1], int) and row[1] >= 0 else 0) for row in rows)
    return found


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
    from sqlalchemy import select

    for part in in_parts(keys):
        yield from connection.execute(select(wanted).where(by.in_(part)).distinct()).scalars()


def _insert(connection: Connection, table: Table, rows: list[Row]) -> None:
    if rows:
        connection.execute(table.insert(), rows)


def _remove_unused(connection: Connection, tables: Tables, keys: set[str]) -> None:
    from sqlalchemy import exists

    entities, mentions, relationships = tables.entities, tables.mentions.c, tables.relationships.c
    used = (
        exists().where(mentions.entity_id == entities.c.entity_id),
        exists().where(relationships.subject_entity_id == entities.c.entity_id),
        exists().where(relationships.object_entity_id == entities.c.entity_id),
    )
    for part in in_parts(keys):
        unused = [entities.c.entity_id.in_(part), *(~use for use in used)]
        connection.execute(entities.delete().where(*unused))
