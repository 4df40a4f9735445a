"""What one passage says: its entities, and its statements as triples of subject, predicate and object.

That is open information extraction. Whatever gives them, a language model or a file, is not trusted: sizes are limited, and a
text is a text, never a number and never evaluated.
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
    """What one passage says.

    Args:
        entities: names as the passage has them, each once, in order of first appearance.
        triples: statements, each once, in order. Their subjects and objects need not stand among the entities.
    """

    entities: tuple[str, ...]
    triples: tuple[Triple, ...]


def phrase_of(text: str) -> str:
    """Return a name, or a part of a triple, as it is compared: its words without case, accents and punctuation.

    Empty where it has no words. So "Erik Hort" and "ERIK HORT'S" are one entity.
    """
    return " ".join(words_of(text))


class KnowledgeSource(Protocol):
    """Where the knowledge of passages is looked up: a store, or a published file."""

    def of(self, items: Sequence[SearchableItem]) -> list[PassageKnowledge | None]:
        """Return what each item says, in their order; None for an item that the source has nothing about.

        An item is known by what it says (title and text), not by its id alone: one that was changed since is not known.
        """
