"""Place of a passage: its subject, version, document and position.

It comes from the metadata. A family has versions: all passages of one subject, or of one document if there is no subject.
Versions are ordered by one or several metadata fields: by numbers, by dates (``2025``, ``2025-05``, ``2025-05-09``), or by
words in a given order. Passages that cannot be ordered are in no version.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from nlp_retrieval import SearchableItem

__all__ = ["Place", "RelationFields", "version_order"]

_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2})(?:[T ].{0,40})?)?)?")
_NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{1,12})?")
_LONGEST = 1000


@dataclass(frozen=True)
class Place:
    """Place of a passage.

    Args:
        family: its subject, or else its document; empty if it has neither.
        document: empty if it has none.
        position: in the document; None if unknown.
        version: greater for later ones; None if the passage is in no version.
    """

    family: str
    document: str
    position: float | None
    version: tuple[float, ...] | None

    @property
    def name(self) -> str:
        """Return the subject, or document; empty if it has neither."""
        return self.family.partition("\0")[2]

    @property
    def edition(self) -> str:
        """Return family and version as one key; empty without a family."""
        return f"{self.family}\0{self.version}" if self.family else ""


@dataclass(frozen=True)
class RelationFields:
    """Metadata fields of the place of a passage.

    Args:
        subject: key of the subject, which has versions.
        document: key of the document.
        position: key of a number that orders the passages of a document.
        version: fields that order versions, the first one first.
        order: words that the version fields may hold, the earliest first.
    """

    subject: str
    document: str
    position: str
    version: tuple[str, ...]
    order: tuple[str, ...]

    @property
    def read(self) -> set[str]:
        """Return the metadata keys in use."""
        return {self.subject, self.document, self.position, *self.version}

    def place_of(self, item: SearchableItem) -> Place:
        """Return the place of a passage."""
        subject, document = _name(item.metadata.get(self.subject)), _name(item.metadata.get(self.document))
        position = item.metadata.get(self.position)
        number = _number(position)
        keys = tuple(self._order_of(item.metadata.get(field)) for field in self.version)
        family = f"subject\0{subject}" if subject else f"document\0{document}" if document else ""
        return Place(family, document, number, keys if family and any(key > -math.inf for key in keys) else None)

    def _order_of(self, value: object) -> float:
        """Return the sort key of a value among versions; minus infinity if unknown."""
        if (number := _number(value)) is not None:
            return number
        if not isinstance(value, str) or len(value) > _LONGEST:
            return -math.inf
        text = value.strip()
        words = [word.casefold() for word in self.order]
        if text.casefold() in words:
            return float(words.index(text.casefold()))
        if date := _DATE.fullmatch(text):
            year, month, day = (int(part or 1) for part in date.groups())
            return year + (month - 1) / 12 + (day - 1) / 372
        return float(text) if _NUMBER.fullmatch(text) else -math.inf


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(float(value)) else None
    except OverflowError:
        return None


def _name(value: object) -> str:
    if not isinstance(value, str | int | float):
        return ""
    try:
        return str(value).strip()[:_LONGEST]
    except ValueError:  # a number of thousands of digits
        return ""


def version_order(places: Sequence[Place]) -> list[tuple[float, ...]]:
    """Return the versions of some passages, the earliest first."""
    return sorted({place.version for place in places if place.version is not None})
