"""Order of passages in documents, and of versions of a text: places, words carried over, and the relations that follow.

The place of a passage comes from its metadata. A family has versions: all passages of one subject, or of one document if there
is no subject. Versions are ordered by one or several metadata fields: by numbers, by dates (``2025``, ``2025-05``,
``2025-05-09``), or by words in a given order. Passages that cannot be ordered are in no version.

A word is carried over into the next version if it is in a run of four words that the other version has anywhere: passages that
are split, joined or moved are not new. A passage of fewer than four words is carried over if the other version has one with the
same words. The work is linear in the words, except for runs that many passages share.

A family is computed as a whole, because a version inserted between two others changes their order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval import SearchableItem
from nlp_retrieval.core import Mask, Rows, Scores
from nlp_retrieval.systems.policy.hop.judging import confidence_of
from nlp_retrieval.systems.policy.hop.relation import Relation
from nlp_retrieval.text import changed_quantities

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


_WORD = re.compile(r"[^\W_]+")
_RUN = 4
_MOST_SHARING = 20
_MOST_WORDS = 20_000
Gram = tuple[str, ...]


@dataclass(frozen=True)
class Counterpart:
    """A passage of the later version, and the one of the earlier version that it replaces.

    Args:
        later: number of the passage among those of the later version.
        earlier: number among those of the earlier version.
        carried: twice the words carried over, over the words of both; 0 to 1.
        later_span: the longest run that both have, in characters of the later passage; empty if they share none.
        earlier_span: the same run in the earlier passage.
    """

    later: int
    earlier: int
    carried: float
    later_span: tuple[int, int]
    earlier_span: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Aligned:
    """Alignment of two versions.

    Args:
        counterparts: in the order of the later passages.
        new: ``[later]``, the share of a passage's words that the earlier version does not have.
        gone: ``[earlier]``, the share that the later version does not have.
    """

    counterparts: list[Counterpart]
    new: Scores
    gone: Scores


class _Passage:
    """A passage as words."""

    def __init__(self, text: str) -> None:
        self.spans = [match.span() for _, match in zip(range(_MOST_WORDS), _WORD.finditer(text), strict=False)]
        self.words = [text[begin:end].casefold() for begin, end in self.spans]
        self.size = min(_RUN, len(self.words))

    def grams(self) -> Iterator[tuple[int, Gram]]:
        """Yield each run of four words and its begin; of a shorter passage all its words."""
        if self.words:
            for first in range(len(self.words) - self.size + 1):
                yield first, tuple(self.words[first : first + self.size])


def aligned(earlier: Sequence[str], later: Sequence[str], least: float) -> Aligned:
    """Align two versions.

    Args:
        earlier: the passages of the earlier version.
        later: those of the later one.
        least: the least ``carried`` of passages that correspond.
    """
    old, new = [_Passage(text) for text in earlier], [_Passage(text) for text in later]
    places: dict[Gram, list[int]] = {}
    for number, passage in enumerate(old):
        for gram in {gram for _, gram in passage.grams()}:
            places.setdefault(gram, []).append(number)
    pairs: dict[tuple[int, int], Counterpart] = {}
    best_of_old: dict[int, Counterpart] = {}
    new_shares = np.zeros(len(new))
    for number, passage in enumerate(new):
        carried = np.zeros(len(passage.words), bool)
        shared: dict[int, Mask] = {}
        for first, gram in passage.grams():
            owners = places.get(gram)
            if owners is None:
                continue
            carried[first : first + passage.size] = True
            for owner in owners[:_MOST_SHARING]:
                mask = shared.setdefault(owner, np.zeros(len(passage.words), bool))
                mask[first : first + passage.size] = True
        new_shares[number] = 1 - carried.mean() if len(carried) else 0.0
        candidates = [_pair(number, passage, owner, old[owner], mask) for owner, mask in shared.items()]
        if candidates:
            best = min(candidates, key=lambda pair: (-pair.carried, abs(pair.earlier - number), pair.earlier))
            pairs[number, best.earlier] = best
        for pair in candidates:  # a passage that was merged into a longer one keeps a counterpart too
            known = best_of_old.get(pair.earlier)
            if known is None or pair.carried > known.carried:
                best_of_old[pair.earlier] = pair
    for pair in best_of_old.values():
        pairs.setdefault((pair.later, pair.earlier), pair)
    kept = sorted((pair for pair in pairs.values() if pair.carried >= least), key=lambda pair: (pair.later, pair.earlier))
    later_grams = {gram for passage in new for _, gram in passage.grams()}
    return Aligned(
        [_shown(pair, new, old) for pair in kept],
        new_shares,
        np.array([_share_uncarried(passage, later_grams) for passage in old]),
    )


def _pair(number: int, passage: _Passage, owner: int, other: _Passage, mask: Mask) -> Counterpart:
    words = len(passage.words) + len(other.words)
    return Counterpart(number, owner, min(1.0, 2 * float(mask.sum()) / words), (0, 0), (0, 0))


def _share_uncarried(passage: _Passage, grams_there: set[Gram]) -> float:
    carried = np.zeros(len(passage.words), bool)
    for first, gram in passage.grams():
        if gram in grams_there:
            carried[first : first + passage.size] = True
    return float(1 - carried.mean()) if len(carried) else 0.0


def _shown(pair: Counterpart, new: Sequence[_Passage], old: Sequence[_Passage]) -> Counterpart:
    """Return the pair with the longest sequence of runs that both have in the same order."""
    later, earlier = new[pair.later], old[pair.earlier]
    begins = {gram: first for first, gram in reversed(list(earlier.grams()))}
    best = (0, 0, 0)  # length, first in later, first in earlier
    length, expected = 0, -1
    for first, gram in later.grams():
        position = begins.get(gram, -1)
        if position >= 0 and position == expected:
            length += 1
        else:
            length = 1 if position >= 0 else 0
        expected = position + 1 if position >= 0 else -1
        if length > best[0]:
            best = (length, first - length + 1, position - length + 1)
    length, first, position = best
    if not length:
        return pair
    last = length - 1 + later.size - 1
    return Counterpart(
        pair.later,
        pair.earlier,
        pair.carried,
        (later.spans[first][0], later.spans[first + last][1]),
        (earlier.spans[position][0], earlier.spans[position + last][1]),
    )


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
    """Return the nearness of two passages: 1 for neighbours, .001 less for each passage between, and at least .1."""
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

    def likeness(first: int, second: int) -> float:
        return float((unit[first] @ unit[second]).round(6))

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
        alignment = aligned([texts[number] for number in old.tolist()], [texts[number] for number in young.tolist()], carried)
        new[young], gone[old] = alignment.new, alignment.gone
        closest = {pair.later: pair for pair in sorted(alignment.counterparts, key=lambda pair: (pair.carried, -pair.earlier))}
        for pair in alignment.counterparts:
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
    return [(first, second) for members in documents.values() for (_, first), (_, second) in pairwise(sorted(members))]
