"""Where a passage stands: of which subject, in which version, in which document, at which position.

The metadata say so. A family is what has versions: all passages of one subject, or of one document where there is no subject.
Versions are ordered by one or several metadata fields: by numbers, by dates (``2025``, ``2025-05``, ``2025-05-09``), or by
words whose order is told. What cannot be ordered is in no version.
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
    """Where a passage stands.

    Args:
        family: its subject, or else its document; empty where it has neither.
        document: empty where it has none.
        position: in the document; None where that is not known.
        version: greater for later ones; None where the passage is in no version.
    """

    family: str
    document: str
    position: float | None
    version: tuple[float, ...] | None

    @property
    def name(self) -> str:
        """Subject, or document; empty where it has neither."""
        return self.family.partition("\0")[2]

    @property
    def edition(self) -> str:
        """Family and version as one key; empty without a family."""
        return f"{self.family}\0{self.version}" if self.family else ""


@dataclass(frozen=True)
class RelationFields:
    """Which metadata say where a passage stands.

    Args:
        subject: what versions are about.
        document: which document it belongs to.
        position: a number that orders the passages of a document.
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
        """The metadata keys that count."""
        return {self.subject, self.document, self.position, *self.version}

    def place_of(self, item: SearchableItem) -> Place:
        """Return where a passage stands."""
        subject, document = _name(item.metadata.get(self.subject)), _name(item.metadata.get(self.document))
        position = item.metadata.get(self.position)
        number = _number(position)
        keys = tuple(self._order_of(item.metadata.get(field)) for field in self.version)
        family = f"subject\0{subject}" if subject else f"document\0{document}" if document else ""
        return Place(family, document, number, keys if family and any(key > -math.inf for key in keys) else None)

    def _order_of(self, value: object) -> float:
        """Return where a value stands among versions; minus infinity where that is not known."""
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
    """The versions of some passages, the earliest first."""
    return sorted({place.version for place in places if place.version is not None})
