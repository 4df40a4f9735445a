"""Relations between chunks in the table, by the ids of items."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nlp_retrieval.core import parse_json
from nlp_retrieval.errors import ItemError, SourceError, nearest
from nlp_retrieval.systems.policy.chunk_tables.ids import chunk_uuid, relation_uuid
from nlp_retrieval.systems.policy.chunk_tables.layout import CHUNKS, RELATIONS, Layout
from nlp_retrieval.systems.policy.chunk_tables.rows import own_id
from nlp_retrieval.systems.policy.chunk_tables.writing import chunk_table
from nlp_retrieval.systems.policy.relations.relation import RELATION_TYPES

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["ChunkRelation", "refuse_dangling", "relations_in", "write_relations"]

_PART = 1000
_SHOWN = 3


@dataclass(frozen=True)
class ChunkRelation:
    """Relation from one chunk to another.

    Args:
        source_id: id of the item that the relation leaves.
        target_id: id of the item that it reaches.
        type: one of ``SUPPORTS``, ``EXPLAINS``, ``CONTRADICTS``, ``FOLLOWS``, ``TEMPORAL_FOLLOWS``, ``CAUSES``.
        confidence: 0 to 1.
        metadata: JSON values, such as ``evidence`` and ``method``.

    Raises:
        ItemError: both ends are the same, its type is unknown, or its confidence out of range.
    """

    source_id: str
    target_id: str
    type: str
    confidence: float
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        told = f"relation of {self.source_id!r:.80} with {self.target_id!r:.80}"
        if self.source_id == self.target_id:
            raise ItemError(f"{told}: it leads to where it begins; a relation is between two chunks")
        if self.type not in RELATION_TYPES:
            raise ItemError(f"{told}: there is no type {self.type!r:.80}; {nearest(str(self.type), RELATION_TYPES)}")
        if not 0 <= self.confidence <= 1:
            raise ItemError(f"{told}: its confidence is {self.confidence!r}; it is 0 to 1")


def write_relations(connection: Connection, layout: Layout, relations: Sequence[ChunkRelation]) -> None:
    """Write relations, replacing those of the same chunks and type, within the caller's transaction.

    Raises:
        ItemError: a relation leads from or to a missing chunk.
    """
    from sqlalchemy import select
    from sqlalchemy.dialects.postgresql import insert

    latest = {(one.source_id, one.target_id, one.type): one for one in relations}
    keys = {item_id: chunk_uuid(item_id) for one in latest.values() for item_id in (one.source_id, one.target_id)}
    chunks, table = chunk_table(layout, CHUNKS), chunk_table(layout, RELATIONS)
    wanted, there = list(keys.values()), set[uuid.UUID]()
    for start in range(0, len(wanted), _PART):
        there |= set(connection.execute(select(chunks.c.id).where(chunks.c.id.in_(wanted[start : start + _PART]))).scalars())
    if missing := [item_id for item_id, key in keys.items() if key not in there]:
        shown = ", ".join(map(repr, missing[:_SHOWN]))
        raise ItemError(f"{len(missing):,} items of relations have no chunk (the first: {shown}); write the chunks first")
    rows = [
        {
            "id": relation_uuid(keys[one.source_id], keys[one.target_id], one.type),
            "source_chunk_id": keys[one.source_id],
            "target_chunk_id": keys[one.target_id],
            "relationship_type": one.type,
            "confidence_score": float(one.confidence),
            "metadata": dict(one.metadata),
        }
        for _, one in sorted(latest.items())
    ]
    put = insert(table)
    changed = {name: put.excluded[name] for name in ("confidence_score", "metadata")}
    for start in range(0, len(rows), _PART):
        connection.execute(put.on_conflict_do_update(index_elements=["id"], set_=changed), rows[start : start + _PART])


def refuse_dangling(connection: Connection, layout: Layout, shown: str) -> None:
    """Refuse relations from or to a missing chunk; tables of other programs may allow them.

    Raises:
        SourceError: there are some; the message names the first.
    """
    from sqlalchemy import Text, cast, func, or_, select

    table, chunk = layout.table(RELATIONS), layout.table(CHUNKS).c
    relation = table.c
    ids = select(cast(chunk.id, Text))
    ends = (cast(relation.source_chunk_id, Text), cast(relation.target_chunk_id, Text))
    dangling = or_(*(or_(end.is_(None), end.not_in(ids)) for end in ends))
    count = connection.execute(select(func.count()).select_from(table).where(dangling)).scalar() or 0
    if count:
        rows = connection.execute(select(*ends).where(dangling).order_by(*ends).limit(_SHOWN)).all()
        first = ", ".join(f"{source} -> {target}" for source, target in rows)
        raise SourceError(
            f"{shown}: {count:,} relations lead from or to a chunk that is not there (the first: {first}); delete them from "
            f"{RELATIONS}, or restore the chunks"
        )


def relations_in(connection: Connection, layout: Layout, shown: str) -> Iterator[ChunkRelation]:
    """Yield all relations, streamed, in the order of their chunks.

    Raises:
        SourceError: a row is not a relation.
    """
    from sqlalchemy import Text, cast, null, select
    from sqlalchemy.dialects.postgresql import JSONB

    from nlp_retrieval.systems.policy.chunk_tables.rows import ID_KEY

    relation = layout.table(RELATIONS)
    ends = [layout.table(CHUNKS).alias(name) for name in ("source", "target")]
    rows = relation
    kept = []
    for end, name in zip(ends, ("source_chunk_id", "target_chunk_id"), strict=True):
        rows = rows.join(end, cast(end.c.id, Text) == cast(relation.c[name], Text))  # type: ignore[assignment]
        kept.append(cast(end.c.chunk_data, JSONB)[ID_KEY].astext if "chunk_data" in end.c else cast(null(), Text))
    told = cast(relation.c.metadata, Text) if "metadata" in relation.c else cast(null(), Text)
    source, target = (cast(end.c.id, Text) for end in ends)
    statement = (
        select(source, kept[0], target, kept[1], relation.c.relationship_type, relation.c.confidence_score, told)
        .select_from(rows)
        .order_by(ends[0].c.id, ends[1].c.id, relation.c.relationship_type)
    )
    with connection.execution_options(yield_per=_PART).execute(statement) as read:
        for row in read:
            try:
                about = {} if row[6] is None else parse_json(row[6])
                ids = own_id(row[0], row[1]), own_id(row[2], row[3])
                confidence = float("nan") if row[5] is None else float(row[5])
                relation_of_row = ChunkRelation(
                    *ids, row[4], confidence, about if isinstance(about, dict) else {"metadata": about}
                )
            except (ItemError, ValueError) as error:
                raise SourceError(f"{shown}: {RELATIONS}: {error}") from None
            yield relation_of_row
