"""Knowledge of one passage: its entities, and its statements as triples of subject, predicate and object.

This is open information extraction. Its source, a language model or a file, is not trusted: sizes are limited, and texts are
only strings, never numbers and never evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from nlp_retrieval import SearchableItem
from nlp_retrieval.text import words_of


@dataclass(frozen=True)
class Triple:
    """One statement: ``("Erik Hort", "was born in", "Montebello")``. No part is empty."""

    subject: str
    predicate: str
    object: str


@dataclass(frozen=True)
class PassageKnowledge:
    """Knowledge of one passage.

    Args:
        entities: names as written in the passage, each once, in order of first appearance.
        triples: statements, each once, in order. Their subjects and objects need not be among the entities.
    """

    entities: tuple[str, ...]
    triples: tuple[Triple, ...]


def phrase_of(text: str) -> str:
    """Return a name, or a part of a triple, for comparison: its words without case, accents and punctuation.

    Empty if it has no words. So "Erik Hort" and "ERIK HORT'S" are one entity.
    """
    return " ".join(words_of(text))


class KnowledgeSource(Protocol):
    """Source of the knowledge of passages: a store, or a published file."""

    def of(self, items: Sequence[SearchableItem]) -> list[PassageKnowledge | None]:
        """Return the knowledge of each item, in order; None for an item that the source lacks.

        An item is identified by title and text, not by its id alone: one that has changed since is not known.
        """
