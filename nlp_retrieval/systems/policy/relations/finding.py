"""Finding the relations of passages: of all of an index, or of those that join one.

What follows what is told of each family that the passages belong to, as a whole. All other relations are judged between a
passage and its nearest neighbours before it: within the same version of its family, and a few of other families. So passages
that join an index, in whatever portions, have the relations they would have in an index built at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nlp_retrieval.core import ItemTable, Mask, Rows, progress
from nlp_retrieval.retrievers import Hashes, hash_of
from nlp_retrieval.systems.policy.relations.centrality import centrality_of
from nlp_retrieval.systems.policy.relations.judging import Passage, relations_between
from nlp_retrieval.systems.policy.relations.neighbours import Pairs, VectorsAt, neighbours_before
from nlp_retrieval.systems.policy.relations.places import Place, RelationFields
from nlp_retrieval.systems.policy.relations.relation import Relation, Relations
from nlp_retrieval.systems.policy.relations.statements import statements_of, terms_of
from nlp_retrieval.systems.policy.relations.structure import nearness_of, structure_of
from nlp_retrieval.systems.policy.relations.tables import Nodes, RelationTables, is_structure

__all__ = ["RelationSettings", "find_relations"]

_ROWS_AT_ONCE, _READ_AT_ONCE, _KEPT = 128, 1024, 4096


@dataclass(frozen=True)
class RelationSettings:
    """How relations are found.

    Args:
        fields: which metadata say where a passage stands.
        neighbours: how many neighbours in its family a passage is judged with.
        across: how many of other families.
        min_similarity: the least cosine of neighbours.
        min_carried: the least share of common words of passages that correspond in two versions.
    """

    fields: RelationFields
    neighbours: int
    across: int
    min_similarity: float
    min_carried: float


def find_relations(
    everything: ItemTable,
    first_row: int,
    before: RelationTables | None,
    vectors_at: VectorsAt,
    settings: RelationSettings,
    live: Mask,
) -> RelationTables:
    """Return the tables of the rows from ``first_row`` on.

    Args:
        everything: the items of the whole index.
        first_row: the first row that joins; 0 for an index that is built.
        before: the tables of the rows before; None where there are none.
        vectors_at: vectors of rows of the whole index.
        settings: how relations are found.
        live: ``[rows]``, which items are not deleted.
    """  # fmt: skip
    n_rows = len(everything)
    places = _places_of(everything, first_row, settings.fields)
    families, editions = (
        np.array([_hash(getattr(place, name)) for place in places], np.uint64) for name in ("family", "edition")
    )
    all_families = families if before is None else np.concatenate([before.families, families])
    all_editions = editions if before is None else np.concatenate([before.editions, editions])
    new_rows = np.arange(first_row, n_rows)
    new_rows = new_rows[live[new_rows]]
    members = _members(all_families, live)
    told = np.unique(families)
    told = told[told > 0]
    found: list[Relations] = []
    nodes: list[Nodes] = []
    with progress("relations: comparing versions", len(told)) as advance:
        for family in told:
            part = _family(everything, int(family), members.get(int(family), new_rows[:0]), vectors_at, settings)
            found.append(Relations.of(part[0]))
            nodes.append(part[1])
            advance(1)
    pairs = _pairs(new_rows, all_families, all_editions, vectors_at, settings, live)
    found.append(Relations.of(list(_judged(everything, pairs, all_families, settings))))
    relations = Relations.joined(found).checked(n_rows)
    everything_related = relations
    if before is not None:
        kept = ~(is_structure(before.relations) & np.isin(all_families[before.relations.sources], told))
        everything_related = Relations.joined([before.relations.where(kept), relations])
    centrality = centrality_of(everything_related, n_rows)
    return RelationTables(relations, families, editions, told, Nodes.joined(nodes), centrality)


def _places_of(everything: ItemTable, first_row: int, fields: RelationFields) -> list[Place]:
    places = []
    for first in range(first_row, len(everything), _READ_AT_ONCE):
        rows = np.arange(first, min(first + _READ_AT_ONCE, len(everything)))
        places += [fields.place_of(item) for item in everything.items(rows)]
    return places


def _hash(key: str) -> int:
    return max(1, hash_of(key.encode(errors="replace").decode())) if key else 0


def _members(keys: Hashes, live: Mask) -> dict[int, Rows]:
    """The rows that are not deleted, by their keys, ascending; those of key 0 have none."""
    rows = np.flatnonzero(live & (keys > 0))
    rows = rows[np.argsort(keys[rows], kind="stable")]
    _, first = np.unique(keys[rows], return_index=True)
    return {int(keys[part[0]]): part for part in np.split(rows, first[1:]) if len(part)}


def _family(
    everything: ItemTable, family: int, rows: Rows, vectors_at: VectorsAt, settings: RelationSettings
) -> tuple[list[Relation], Nodes]:
    items = everything.items(rows)
    places = [settings.fields.place_of(item) for item in items]
    found = structure_of(rows, places, [item.content for item in items], vectors_at(rows), settings.min_carried)
    told_by = np.full(len(rows), family, np.uint64)
    nodes = Nodes(rows, found.versions, found.new.astype(np.float32), found.gone.astype(np.float32), told_by)
    return found.relations, nodes


def _pairs(
    new_rows: Rows, families: Hashes, editions: Hashes, vectors_at: VectorsAt, settings: RelationSettings, live: Mask
) -> Pairs:
    """Pairs to judge, ordered by row."""
    least, parts = settings.min_similarity, []
    members = _members(editions, live)
    for edition in np.unique(editions[new_rows]).tolist():
        if edition:
            rows = members[edition]
            new = rows[np.searchsorted(rows, new_rows[0]) :]
            parts.append(neighbours_before(new, rows, vectors_at, settings.neighbours, least))
    _, apart = np.unique(families, return_inverse=True)
    alone = np.flatnonzero(families == 0)
    apart[alone] = -1 - alone  # what belongs to no family is another one each
    parts.append(neighbours_before(new_rows, np.flatnonzero(live), vectors_at, settings.across, least, apart))
    pairs = Pairs.joined(parts)
    order = np.lexsort((pairs.before, pairs.rows))
    return Pairs(pairs.rows[order], pairs.before[order], pairs.similarities[order])


def _judged(everything: ItemTable, pairs: Pairs, families: Hashes, settings: RelationSettings) -> Iterator[Relation]:
    read: dict[int, tuple[Passage, Place]] = {}
    begins = [*np.flatnonzero(np.diff(pairs.rows, prepend=-1)).tolist(), len(pairs.rows)]
    with progress("relations: judging neighbours", len(pairs.rows)) as advance:
        for number in range(0, len(begins) - 1, _ROWS_AT_ONCE):
            part = slice(begins[number], begins[min(number + _ROWS_AT_ONCE, len(begins) - 1)])
            rows, others, similarities = pairs.rows[part], pairs.before[part], pairs.similarities[part]
            if len(read) > _KEPT:
                read.clear()
            wanted = np.array(sorted(set(rows.tolist()) | set(others.tolist()) - read.keys()), np.int64)
            wanted = wanted[[row not in read for row in wanted.tolist()]]
            for row, item in zip(wanted.tolist(), everything.items(wanted), strict=True):
                read[row] = Passage(row, statements_of(item.content)), settings.fields.place_of(item)
            for row, other, similarity in zip(rows.tolist(), others.tolist(), similarities.tolist(), strict=True):
                (one, its_place), (passage, place) = read[row], read[other]
                subject = terms_of(place.name) if families[row] == families[other] != 0 else None
                yield from relations_between(one, passage, similarity, nearness_of(its_place, place), subject)
            advance(len(rows))
