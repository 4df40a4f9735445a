"""Relations of the order of passages: in their document, and in the editions of one subject's plan.

FOLLOWS leads from a passage to the one before it in its document, TEMPORAL_FOLLOWS to its counterpart in the edition before. A
family is one subject, or one document if there is no subject; it is compared as a whole, because an edition that comes between
two others changes their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from nlp_retrieval import SearchableItem
from nlp_retrieval.core import ItemTable, Mask, progress
from nlp_retrieval.retrievers import Hashes, hash_of
from nlp_retrieval.systems.policy.answers import named_document
from nlp_retrieval.systems.policy.editions import aligned, edition_numbers, order_of
from nlp_retrieval.systems.policy.hop.ranking import EDITED
from nlp_retrieval.systems.policy.hop.relation import Relation, Relations, RelationTables
from nlp_retrieval.text import changed_quantities

_READ_AT_ONCE = 1024
_BESIDE = 0.85
"""Confidence that a passage is about the matter of the one before it; that of a counterpart is the share of words kept."""
_POSITION = ("position", "chunk")
"""Metadata that order the passages of a document: the first that has an order."""


def find_relations(everything: ItemTable, live: Mask, subject: str, before: RelationTables | None) -> RelationTables:
    """Return the tables of an index."""
    known = RelationTables.empty(0) if before is None else before
    n_before = len(known.families)
    families = np.concatenate([known.families, _families(everything, n_before, subject)])
    touched = np.setdiff1d(families[n_before:], [0])
    unknown = np.full(len(everything) - n_before, np.nan)
    versions = np.concatenate([known.versions, np.full(len(unknown), -1, np.int32)])
    new, gone = np.concatenate([known.new, unknown]), np.concatenate([known.gone, unknown])
    relations = list(known.relations.where(~np.isin(families[known.relations.sources], touched)))
    order = np.argsort(families, kind="stable")
    begins, ends = (np.searchsorted(families[order], touched, side) for side in ("left", "right"))
    with progress("relations: comparing editions", len(touched)) as advance:
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            rows = order[begin:end]
            rows = rows[live[rows]]
            items = everything.items(rows)
            numbers = np.array([-1 if number is None else number for number in edition_numbers(items)], np.int32)
            versions[rows] = numbers
            shares = np.full((2, len(rows)), np.nan)
            ordered = [*_next_to_each_other(items, numbers.tolist()), *_between_editions(items, numbers, shares)]
            new[rows], gone[rows] = shares
            relations += [Relation(int(rows[one]), int(rows[two]), kind, worth) for one, two, kind, worth in ordered]
            advance(1)
    return RelationTables(Relations.of(relations), families, versions, new, gone)


def _families(everything: ItemTable, first_row: int, subject: str) -> Hashes:
    keys: list[int] = []
    for first in range(first_row, len(everything), _READ_AT_ONCE):
        for item in everything.items(np.arange(first, min(first + _READ_AT_ONCE, len(everything)))):
            name, document = item.metadata.get(subject), named_document(item)
            kind, text = (subject, str(name)) if isinstance(name, str | int | float) and name != "" else ("", document)
            keys.append(max(1, hash_of(f"{kind}\0{text}".encode(errors="replace").decode())) if text else 0)
    return np.array(keys, np.uint64)


Found = tuple[int, int, str, float]
"""Places of a source and a target in their family, the type of the relation, and its confidence."""


def _next_to_each_other(items: Sequence[SearchableItem], editions: Sequence[int]) -> Iterator[Found]:
    """Yield each passage and the one before it in its document; of equal positions the lower row comes first."""
    documents: dict[tuple[str, int], list[tuple[tuple[int, float], int]]] = {}
    for place, (item, edition) in enumerate(zip(items, editions, strict=True)):
        document, position = named_document(item), _position(item)
        if document and position is not None:
            documents.setdefault((document, edition), []).append((position, place))
    for members in documents.values():
        yield from ((after, before, "FOLLOWS", _BESIDE) for (_, before), (_, after) in pairwise(sorted(members)))


def _position(item: SearchableItem) -> tuple[int, float] | None:
    return next((order for key in _POSITION if (order := order_of(item.metadata.get(key))) is not None), None)


def _between_editions(items: Sequence[SearchableItem], editions: np.ndarray, shares: np.ndarray) -> Iterator[Found]:
    """Yield the counterparts of each edition and the one before; fills ``shares``, what is new and what is gone."""
    new, gone = shares
    for number in range(1, int(editions.max(initial=0)) + 1):
        old, young = np.flatnonzero(editions == number - 1), np.flatnonzero(editions == number)
        before, now = ([items[place].content for place in side.tolist()] for side in (old, young))
        alignment = aligned(before, now)
        new[young], gone[old] = alignment.new, alignment.gone
        closest = {pair.later: pair for pair in sorted(alignment.counterparts, key=lambda pair: (pair.carried, -pair.earlier))}
        for pair in alignment.counterparts:
            later, earlier = int(young[pair.later]), int(old[pair.earlier])
            if closest[pair.later] is pair and changed_quantities(before[pair.earlier], now[pair.later]):
                new[later], gone[earlier] = max(new[later], 2 * EDITED), max(gone[earlier], 2 * EDITED)
            yield later, earlier, "TEMPORAL_FOLLOWS", round(pair.carried, 6)
