"""Conversion of relations between the table, by ids of items, and the graph, by rows of items.

The spans of a relation in both texts, and the share carried over, are in its metadata under ``evidence``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from nlp_retrieval.errors import ItemError
from nlp_retrieval.systems.policy.chunk_tables.relations import ChunkRelation
from nlp_retrieval.systems.policy.relations.relation import Relation, Relations

__all__ = ["chunk_relations", "graph_relations"]


def chunk_relations(relations: Relations, item_ids: Sequence[str], method: str = "nlp_retrieval") -> Iterator[ChunkRelation]:
    """Yield relations between rows as relations between items.

    Args:
        relations: by rows.
        item_ids: of all rows.
        method: that found them; stored with each.
    """
    for number in range(len(relations)):
        one = relations.at(number)
        evidence: dict[str, Any] = {"source": list(one.source_span), "target": list(one.target_span)}
        if not math.isnan(one.carried):
            evidence |= {"carried": one.carried, "changed": one.changed}
        about = {"method": method, "evidence": evidence}
        yield ChunkRelation(item_ids[one.source], item_ids[one.target], one.type, one.confidence, about)


def graph_relations(relations: Iterable[ChunkRelation], rows: Mapping[str, int]) -> Relations:
    """Return relations between items as relations between rows.

    Args:
        relations: of a table.
        rows: of the items, by their ids.

    Raises:
        ItemError: a relation leads from or to an item without a row; the message names the first.
    """
    made: list[Relation] = []
    missing: list[str] = []
    for one in relations:
        missing += [item_id for item_id in (one.source_id, one.target_id) if item_id not in rows]
        if missing:
            continue
        evidence = one.metadata.get("evidence")
        told = evidence if isinstance(evidence, Mapping) else {}
        made.append(
            Relation(
                rows[one.source_id],
                rows[one.target_id],
                one.type,
                one.confidence,
                _span(told.get("source")),
                _span(told.get("target")),
                _number(told.get("carried"), math.nan),
                int(_number(told.get("changed"), 0)),
            )
        )
    if missing:
        shown = ", ".join(map(repr, dict.fromkeys(missing[:3])))
        raise ItemError(
            f"{len(missing):,} ends of relations are items that are not here (the first: {shown}); take the items of the same "
            "tables, all of them, or the relations between those that there are"
        )
    return Relations.of(made)


def _span(told: object) -> tuple[int, int]:
    if isinstance(told, list) and len(told) == 2 and all(isinstance(end, int) and 0 <= end < 2**31 for end in told):
        return (told[0], told[1])
    return (0, 0)


def _number(told: object, otherwise: float) -> float:
    known = isinstance(told, int | float) and math.isfinite(told) and abs(told) < 2**31
    return float(told) if known and not isinstance(told, bool) else otherwise  # type: ignore[arg-type]
