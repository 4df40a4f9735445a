"""Reading and validating passages of a knowledge store, within the caller's transaction.

A store is not trusted. Data that no extraction writes (another type, an empty or overlong text, a control character, more
statements than a passage may have) count as damage, and are an error. So is a text under a wrong key: an index is identified by
the digest of a store, which is computed from keys.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from nlp_retrieval.core import find_lone_surrogate
from nlp_retrieval.systems.hipporag.knowledge.from_json import MAX_CHARACTERS, MAX_STATEMENTS
from nlp_retrieval.systems.hipporag.knowledge.statements import PassageKnowledge, Triple
from nlp_retrieval.systems.hipporag.knowledge.store.keys import in_parts, key_of
from nlp_retrieval.systems.hipporag.knowledge.store.rows import DONE, Extraction, StoreCounts
from nlp_retrieval.text import printable

if TYPE_CHECKING:
    from sqlalchemy import Connection, Select

    from nlp_retrieval.systems.hipporag.knowledge.store.tables import Tables

__all__ = ["DamagedStoreError", "digest_of_done", "extractions_in", "hashes_of_done", "knowledge_by_hash", "passage_counts"]

_MOST_EXTRACTIONS = 1_000
_ROWS_AT_ONCE = 1_000


class DamagedStoreError(ValueError):
    """Error for data that no extraction wrote; the message names them in half a sentence."""


def extractions_in(connection: Connection, tables: Tables) -> list[Extraction]:
    """Return the extractions of a store, ordered by model and settings."""
    from sqlalchemy import select

    columns = tables.extractions.c
    rows = connection.execute(select(columns.model, columns.settings).limit(_MOST_EXTRACTIONS))
    found = [Extraction(_text(model, "a model"), _text(settings, "settings", 2**16)) for model, settings in rows]
    return sorted(found, key=lambda extraction: (extraction.model, extraction.settings))


def hashes_of_done(connection: Connection, tables: Tables, keys: Collection[str]) -> dict[str, str]:
    """Return the hashes of the texts with knowledge, by passage, for those of these passages that are done."""
    from sqlalchemy import select

    passages = tables.passages.c
    found: dict[str, str] = {}
    for part in in_parts(keys):
        query = select(passages.passage_id, passages.content_hash).where(passages.passage_id.in_(part), passages.status == DONE)
        found.update((str(key), str(content_hash)) for key, content_hash in connection.execute(query))
    return found


def knowledge_by_hash(
    connection: Connection, tables: Tables, extraction_id: str, hashes: Collection[str]
) -> dict[str, PassageKnowledge]:
    """Return the knowledge of passages, by the hashes of their texts, for those that are done.

    Raises:
        DamagedStoreError: the store holds data that no extraction wrote.
    """
    from sqlalchemy import func, select

    passages = tables.passages.c
    found: dict[str, PassageKnowledge] = {}
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
            found[content_hash] = PassageKnowledge(tuple(names), tuple(statements))
    return found


def digest_of_done(connection: Connection, tables: Tables, extraction_id: str) -> str:
    """Return the SHA-256 of an extraction and of the fingerprints of its results: texts, entities and triples."""
    from sqlalchemy import select

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
    from sqlalchemy import func, select

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
    from sqlalchemy import select

    mentions, entities = tables.mentions.c, tables.entities.c
    query = select(mentions.passage_id, entities.entity_id, entities.entity_text, entities.entity_type).select_from(
        tables.mentions.join(tables.entities)
    )
    return query.where(mentions.passage_id.in_(keys)).order_by(mentions.passage_id, mentions.place)


def _triples(tables: Tables, keys: list[str]) -> Select[Any]:
    from sqlalchemy import select

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
    found: dict[str, list[tuple[object, ...]]] = {}
    for key, *values in connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query):
        rows = found.setdefault(str(key), [])
        if len(rows) == MAX_STATEMENTS:
            raise DamagedStoreError(f"a passage with more than {MAX_STATEMENTS:,} entities or triples")
        rows.append(tuple(values))
    return found


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
        raise DamagedStoreError(f"{what} that is empty, too long or no plain text")
    return value
