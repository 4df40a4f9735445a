"""Order in a family of passages: the next passage of a document, and the counterpart in the next version.

A family is computed as a whole, because a version inserted between two others changes their order. Each of its passages also
has the share that is new since the version before, and the share that is gone in the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core import Rows, Scores
from nlp_retrieval.systems.policy.relations.alignment import aligned
from nlp_retrieval.systems.policy.relations.judging import confidence_of
from nlp_retrieval.systems.policy.relations.places import Place, version_order
from nlp_retrieval.systems.policy.relations.relation import Relation
from nlp_retrieval.text import changed_quantities

__all__ = ["ACROSS_DOCUMENTS", "EDITED", "Structure", "nearness_of", "structure_of"]

ACROSS_DOCUMENTS = 0.1
"""Nearness of passages of different documents."""

EDITED = 0.05
"""Least share of new words of an edited passage; another quantity is an edit too."""


@dataclass(frozen=True, eq=False)
class Structure:
    """A family of passages.

    Args:
        rows: its passages, ascending.
        versions: by passage, the number of its version from 0; -1 if it is in none.
        new: by passage, the share of its words that the version before does not have; NaN if there is none before.
        gone: by passage, the share of its words that the next version does not have; NaN if there is none.
        relations: FOLLOWS and TEMPORAL_FOLLOWS.
    """

    rows: Rows
    versions: NDArray[np.int32]
    new: Scores
    gone: Scores
    relations: list[Relation]


def nearness_of(one: Place, other: Place) -> float:
    """Return the nearness of two passages: 1 for neighbours, .001 less for each passage between, and at least .1.

    Args:
        one: place of a passage.
        other: place of the other.
    """
    same = one.document == other.document != "" and one.edition == other.edition
    if not same or one.position is None or other.position is None:
        return ACROSS_DOCUMENTS
    return max(ACROSS_DOCUMENTS, 1 - 0.001 * max(0.0, abs(one.position - other.position) - 1))


def structure_of(
    rows: Rows, places: Sequence[Place], texts: Sequence[str], vectors: NDArray[np.float32], carried: float
) -> Structure:
    """Compute the order in a family.

    Args:
        rows: the passages of one family, ascending.
        places: of the passages.
        texts: their contents.
        vectors: ``[rows, dimension]``.
        carried: the least share of common words of corresponding passages of two versions.
    """
    unit = vectors.astype(np.float64)
    unit /= np.maximum(np.sqrt(np.einsum("ij,ij->i", unit, unit)), 1e-12)[:, None]

    def likeness(one: int, other: int) -> float:
        return float((unit[one] @ unit[other]).round(6))

    versions = np.full(len(rows), -1, np.int32)
    order = {version: number for number, version in enumerate(version_order(places))}
    for number, place in enumerate(places):
        if place.version is not None:
            versions[number] = order[place.version]
    relations = []
    for before, after in _next_to_each_other(places):
        nearness = nearness_of(places[before], places[after])
        confidence = confidence_of(likeness(before, after), 1.0, nearness)
        relations.append(Relation(int(rows[after]), int(rows[before]), "FOLLOWS", confidence))
    new, gone = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    for version in range(1, len(order)):
        old, young = np.flatnonzero(versions == version - 1), np.flatnonzero(versions == version)
        found = aligned([texts[one] for one in old.tolist()], [texts[one] for one in young.tolist()], carried)
        new[young], gone[old] = found.new, found.gone
        closest = {pair.later: pair for pair in sorted(found.counterparts, key=lambda pair: (pair.carried, -pair.earlier))}
        for pair in found.counterparts:
            later, earlier = int(young[pair.later]), int(old[pair.earlier])
            changed = len(changed_quantities(texts[earlier], texts[later]))
            if changed and closest[pair.later] is pair:  # another figure is a change, however few words differ
                new[later], gone[earlier] = max(new[later], 2 * EDITED), max(gone[earlier], 2 * EDITED)
            confidence = confidence_of(likeness(later, earlier), pair.carried, ACROSS_DOCUMENTS)
            ends, spans = (int(rows[later]), int(rows[earlier])), (pair.later_span, pair.earlier_span)
            relations.append(Relation(*ends, "TEMPORAL_FOLLOWS", confidence, *spans, pair.carried, changed))
    return Structure(rows, versions, new, gone, relations)


def _next_to_each_other(places: Sequence[Place]) -> list[tuple[int, int]]:
    """Return passages and the next of their document, by number; of equal positions the lower row comes first."""
    documents: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for number, place in enumerate(places):
        if place.document and place.position is not None:
            documents.setdefault((place.document, place.edition), []).append((place.position, number))
    return [(one, other) for members in documents.values() for (_, one), (_, other) in pairwise(sorted(members))]
