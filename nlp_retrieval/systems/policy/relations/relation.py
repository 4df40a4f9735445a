"""Relations between two passages: type, confidence, and spans of the evidence in both texts.

A relation never leads from a passage to itself, its confidence is 0 to 1, and a type relates a pair at most once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core import Mask, Rows
from nlp_retrieval.errors import EngineError

__all__ = ["FOLLOWS", "RELATION_TYPES", "TEMPORAL_FOLLOWS", "Relation", "Relations"]

RELATION_TYPES = ("SUPPORTS", "EXPLAINS", "CONTRADICTS", "FOLLOWS", "TEMPORAL_FOLLOWS", "CAUSES")
"""The types; a relation is stored with the number of its type.

The source FOLLOWS the target as the next passage of its document, TEMPORAL_FOLLOWS it in the next version of a document, and
SUPPORTS, EXPLAINS, CONTRADICTS or CAUSES what the target says.
"""

FOLLOWS, TEMPORAL_FOLLOWS = RELATION_TYPES.index("FOLLOWS"), RELATION_TYPES.index("TEMPORAL_FOLLOWS")

Span = tuple[int, int]


@dataclass(frozen=True)
class Relation:
    """A relation between two passages.

    Args:
        source: row of the passage that the relation leaves.
        target: row of the passage that it reaches.
        type: one of :data:`RELATION_TYPES`.
        confidence: 0 to 1.
        source_span: the evidence in the source's content, in characters; empty if there is none.
        target_span: the evidence in the target's content.
        carried: of a temporal relation, the share of words that both have in runs of four; else NaN.
        changed: of a temporal relation, the number of quantities with another value.
    """

    source: int
    target: int
    type: str
    confidence: float
    source_span: Span = (0, 0)
    target_span: Span = (0, 0)
    carried: float = float("nan")
    changed: int = 0


@dataclass(frozen=True, eq=False)
class Relations:
    """Relations as columns, ordered by source, target and type.

    Args:
        sources: rows.
        targets: rows.
        types: numbers of :data:`RELATION_TYPES`.
        confidences: 0 to 1.
        spans: ``[relations, 4]``: begin and end in the source, begin and end in the target.
        carried: see :class:`Relation`.
        changed: see :class:`Relation`.
    """

    sources: Rows
    targets: Rows
    types: NDArray[np.uint8]
    confidences: NDArray[np.float32]
    spans: NDArray[np.int32]
    carried: NDArray[np.float32]
    changed: NDArray[np.int32]

    @classmethod
    def of(cls, relations: Sequence[Relation]) -> Relations:
        """Put relations into columns; of several of one type between the same passages the most certain stays."""
        columns = cls(
            np.array([one.source for one in relations], np.int64),
            np.array([one.target for one in relations], np.int64),
            np.array([RELATION_TYPES.index(one.type) for one in relations], np.uint8),
            np.array([one.confidence for one in relations], np.float32),
            np.array([(*one.source_span, *one.target_span) for one in relations], np.int32).reshape(-1, 4),
            np.array([one.carried for one in relations], np.float32),
            np.array([one.changed for one in relations], np.int32),
        )
        return columns.sorted()

    @classmethod
    def joined(cls, parts: Sequence[Relations]) -> Relations:
        """Put lists of relations together."""
        if not parts:
            return cls.of([])
        columns = ([getattr(part, name) for part in parts] for name in cls.__dataclass_fields__)
        return cls(*(np.concatenate(column) for column in columns)).sorted()

    def __len__(self) -> int:
        """Return the number of relations."""
        return len(self.sources)

    def sorted(self) -> Relations:
        """Return them ordered by source, target and type, each at most once."""
        order = np.lexsort((-self.confidences, self.types, self.targets, self.sources))
        keys = np.stack([self.sources, self.targets, self.types.astype(np.int64)])[:, order]
        first = np.ones(len(order), bool)
        first[1:] = (keys[:, 1:] != keys[:, :-1]).any(0)
        return self.where(order[first])

    def where(self, kept: Mask | Rows) -> Relations:
        """Return those selected by a mask or by positions."""
        return Relations(*(getattr(self, name)[kept] for name in self.__dataclass_fields__))

    def of_new_rows(self, new_rows: Rows) -> Relations:
        """Return the same relations with row r renumbered to ``new_rows[r]``."""
        columns = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return Relations(**columns | {"sources": new_rows[self.sources], "targets": new_rows[self.targets]}).sorted()

    def at(self, number: int) -> Relation:
        """Return a relation by its number."""
        begin, end, target_begin, target_end = self.spans[number].tolist()
        return Relation(
            int(self.sources[number]),
            int(self.targets[number]),
            RELATION_TYPES[int(self.types[number])],
            float(self.confidences[number]),
            (begin, end),
            (target_begin, target_end),
            float(self.carried[number]),
            int(self.changed[number]),
        )

    def checked(self, n_rows: int) -> Relations:
        """Return them after checking that they relate existing passages.

        Raises:
            EngineError: a relation from a passage to itself or to none, a confidence outside 0..1, or an unknown type.
        """
        for name, rows in (("source", self.sources), ("target", self.targets)):
            wrong = np.flatnonzero((rows < 0) | (rows >= n_rows))
            if len(wrong):
                raise EngineError(f"relation {wrong[0]}: its {name} is row {rows[wrong[0]]}; rows are 0..{n_rows - 1}")
        if len(loops := np.flatnonzero(self.sources == self.targets)):
            raise EngineError(f"relation {loops[0]} leads from row {self.sources[loops[0]]} to itself")
        if len(wrong := np.flatnonzero(~((self.confidences >= 0) & (self.confidences <= 1)))):
            raise EngineError(f"relation {wrong[0]} has the confidence {self.confidences[wrong[0]]}; it is 0 to 1")
        if len(wrong := np.flatnonzero(self.types >= len(RELATION_TYPES))):
            raise EngineError(f"relation {wrong[0]} has the type {self.types[wrong[0]]}; there are {len(RELATION_TYPES)}")
        return self
