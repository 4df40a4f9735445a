"""A measure with its cutoff as a value: parsed from ``recall@5``, printed as that, with a label and a sort key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

LABELS = {
    "perfect_recall": "Perfect recall",
    "recall": "Recall",
    "ndcg": "nDCG",
    "mrr": "MRR",
    "map": "MAP",
    "precision": "Precision",
    "f1": "F1",
    "answer_em": "Answer EM",
    "answer_f1": "Answer F1",
    "sp_em": "Facts EM",
    "sp_f1": "Facts F1",
    "sp_recall": "Facts recall",
    "joint_em": "Joint EM",
    "joint_f1": "Joint F1",
}
"""Display names of families of measures, in display order."""


@dataclass(frozen=True)
class Measure:
    """A measure, by its family and its cutoff.

    Args:
        family: ``recall``, ``ndcg``, ...; a family of another tool keeps its own name.
        cutoff: how many results count; None for a measure without a cutoff.
    """

    family: str
    cutoff: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the measure written as a text; without a valid cutoff, all of it is the family."""
        family, _, cutoff = text.rpartition("@")
        if family and cutoff.isascii() and cutoff.isdecimal() and cutoff == str(int(cutoff)):
            return cls(family, int(cutoff))
        return cls(text)

    def __str__(self) -> str:
        return self.family if self.cutoff is None else f"{self.family}@{self.cutoff}"

    @property
    def family_label(self) -> str:
        """Display name of the family: ``nDCG``."""
        return LABELS.get(self.family, self.family)

    @property
    def label(self) -> str:
        """Heading: ``nDCG @10``."""
        return self.family_label if self.cutoff is None else f"{self.family_label} @{self.cutoff}"

    @property
    def order(self) -> tuple[int, str, int]:
        """Return the sort key of measures for display: families in the order of ``LABELS``, then cutoffs."""
        known = list(LABELS)
        place = known.index(self.family) if self.family in LABELS else len(known)
        return place, self.family, self.cutoff or 0
