"""Changes of passages from one edition of a subject's plan to the next: unchanged, edited, added or dropped.

Editions are documents with an order: by the first of ``year``, ``version``, ``edition``, ``date`` and ``captured`` that all of
them have. Passages are paired by the words that they share, the most similar first, each with one other at most.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Literal

from nlp_retrieval import SearchableItem
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.systems.policy.answers import document_of
from nlp_retrieval.text import printable

__all__ = ["EditionChanges", "PassageChange", "changes_between", "changes_of", "editions_of", "word_runs"]

Relation = Literal["unchanged", "edited", "added", "dropped"]

ORDERED_BY = ("year", "version", "edition", "date", "captured")
"""Metadata that may order the editions of a plan; text is ordered by ``WORDS``, or alphabetically."""

WORDS = ("first", "earlier", "previous", "old", "second", "later", "current", "new", "third", "fourth", "fifth", "latest")

_LEAST_SHARED = 0.3
"""Least share of common words of an edited passage; passages of two chapters from one template share less."""

_MOST = 2000
_LONGEST = 3000
"""The most passages of an edition that are paired, and the most words and marks of a text that are compared."""

_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")


@dataclass(frozen=True)
class PassageChange:
    """A passage of one edition and its counterpart in the next.

    Args:
        relation: between the two.
        earlier: None for an added one.
        later: None for a dropped one.
    """

    relation: Relation
    earlier: SearchableItem | None
    later: SearchableItem | None


@dataclass(frozen=True)
class EditionChanges:
    """Changes between two consecutive editions.

    Args:
        earlier: name of the document.
        later: name of the document.
        changes: in the order of the later one; dropped passages come last.
    """

    earlier: str
    later: str
    changes: tuple[PassageChange, ...]

    def counts(self) -> dict[Relation, int]:
        """Return the number of passages by relation."""
        counted = Counter(change.relation for change in self.changes)
        return {relation: counted[relation] for relation in _RELATIONS}


_RELATIONS: tuple[Relation, ...] = ("unchanged", "edited", "added", "dropped")


def changes_of(items: Iterable[SearchableItem]) -> list[EditionChanges]:
    """Return the changes between the editions of one subject, from the earliest on; empty for fewer than two.

    Editions of more than 2,000 passages are not compared, because every passage is compared with every other one; a warning
    names them.
    """
    compared = []
    for (earlier, before), (later, after) in pairwise(editions_of(items)):
        if max(len(before), len(after)) > _MOST:
            warnings.warn(
                f"what changed from {printable(earlier)!r} to {printable(later)!r} is not computed: they have "
                f"{len(before):,} and {len(after):,} passages, and at most {_MOST:,} are compared; index larger chunks",
                RetrievalWarning,
                stacklevel=2,
            )
            continue
        compared.append(EditionChanges(earlier, later, tuple(changes_between(before, after))))
    return compared


def editions_of(items: Iterable[SearchableItem]) -> list[tuple[str, list[SearchableItem]]]:
    """Return the documents of a subject with their passages, the earliest first; empty if they have no order."""
    documents: dict[str, list[SearchableItem]] = {}
    for item in items:
        documents.setdefault(document_of(item), []).append(item)
    for key in ORDERED_BY:
        values = {name: _order(passages[0].metadata.get(key)) for name, passages in documents.items()}
        if len(documents) > 1 and None not in values.values() and len(set(values.values())) == len(documents):
            return sorted(documents.items(), key=lambda pair: values[pair[0]] or (0, 0.0, ""))
    return []


def n_editions(items: Sequence[SearchableItem]) -> int | None:
    """Return the number of editions of one subject's plan; None if its documents have no order."""
    return 1 if len({document_of(item) for item in items}) == 1 else len(editions_of(items)) or None


def changes_between(earlier: Sequence[SearchableItem], later: Sequence[SearchableItem]) -> list[PassageChange]:
    """Return the change of each passage."""
    bags = [[Counter(_WORD.findall(item.content.lower())) for item in side] for side in (earlier, later)]
    pairs = sorted(
        (-share, abs(old / len(earlier) - new / len(later)), old, new)
        for old, before in enumerate(bags[0])
        for new, after in enumerate(bags[1])
        if (share := _shared(before, after)) >= _LEAST_SHARED
    )
    of_old: dict[int, int] = {}
    of_new: dict[int, int] = {}
    for _, _, old, new in pairs:
        if old not in of_old and new not in of_new:
            of_old[old], of_new[new] = new, old
    changes = []
    for new, item in enumerate(later):
        if new not in of_new:
            changes.append(PassageChange("added", None, item))
            continue
        before = earlier[of_new[new]]
        changes.append(PassageChange("unchanged" if before.content == item.content else "edited", before, item))
    return changes + [PassageChange("dropped", item, None) for old, item in enumerate(earlier) if old not in of_old]


def word_runs(before: str, after: str) -> list[tuple[str, str]]:
    """Return the readable difference of two texts, as runs of words: ``("same" | "gone" | "new", text)``."""
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    if max(len(old), len(new)) > _LONGEST:  # comparing takes quadratic time, or worse
        return [("gone", before), ("new", after)] if before != after else [("same", after)]
    runs: list[tuple[str, str]] = []
    for what, begin, end, start, stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "equal":
            runs.append(("same", "".join(new[start:stop])))
            continue
        for name, text in (("gone", "".join(old[begin:end])), ("new", "".join(new[start:stop]))):
            if text:
                runs.append((name, text))
    return runs


def _shared(before: Counter[str], after: Counter[str]) -> float:
    """Return the share of words that two texts have in common (Jaccard, counted with repeats)."""
    n_common = (before & after).total()
    return n_common / (before.total() + after.total() - n_common) if n_common else 0.0


def _order(value: object) -> tuple[int, float, str] | None:
    """Return the sort key of an edition: numbers, words that have an order, other text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str) or value == "":
        return None
    if isinstance(value, str):
        word = value.casefold()
        return (1, float(WORDS.index(word)), "") if word in WORDS else (2, 0.0, value)
    return 0, float(value), ""
