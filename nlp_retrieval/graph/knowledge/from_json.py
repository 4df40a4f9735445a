"""Entities and triples as JSON has them, from a file or a language model, checked before anybody believes them.

What is no list is refused. Within a list, what is no entity or no triple is left out and counted: a number, a nested value, a
triple without three parts, an empty or endless text, and whatever stands behind the most that one passage may say.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from nlp_retrieval.core.surrogates import half_of_pair
from nlp_retrieval.graph.knowledge.statements import PassageKnowledge, Triple
from nlp_retrieval.text.printable import printable

__all__ = ["MAX_CHARACTERS", "MAX_STATEMENTS", "ReadKnowledge", "knowledge_from_json"]

MAX_CHARACTERS = 500
"""The longest entity, or part of a triple, in characters; longer ones are sentences, not names."""

MAX_STATEMENTS = 1_000
"""The most entities, and the most triples, that one passage has; a passage of 1,000 words has about 100."""


@dataclass(frozen=True)
class ReadKnowledge:
    """What was read.

    Args:
        knowledge: all that is sound.
        dropped: how many entities and triples were left out. Repeated ones are not counted.
    """

    knowledge: PassageKnowledge
    dropped: int


def knowledge_from_json(entities: JsonValue, triples: JsonValue) -> ReadKnowledge:
    """Read what one passage says.

    Args:
        entities: a list of texts.
        triples: a list of lists, each of three texts.

    Raises:
        ValueError: one of them is no list; the message is half a sentence.
    """
    if not isinstance(entities, list) or not isinstance(triples, list):
        raise ValueError(f"the {'triples' if isinstance(entities, list) else 'entities'} are no list")  # noqa: TRY004
    names = {name: None for value in entities[:MAX_STATEMENTS] if (name := _phrase(value))}
    statements = [triple for value in triples[:MAX_STATEMENTS] if (triple := _triple(value))]
    sound = sum(_phrase(value) is not None for value in entities[:MAX_STATEMENTS]) + len(statements)
    return ReadKnowledge(
        PassageKnowledge(tuple(names), tuple(dict.fromkeys(statements))), dropped=len(entities) + len(triples) - sound
    )


def _phrase(value: JsonValue) -> str | None:
    """A text on one line without control characters; None for what is no name."""
    if not isinstance(value, str) or len(value) > MAX_CHARACTERS or half_of_pair(value) is not None:
        return None
    return printable(" ".join(value.split())) or None


def _triple(value: JsonValue) -> Triple | None:
    if not isinstance(value, list) or len(value) != 3:
        return None
    subject, predicate, object_ = map(_phrase, value)
    return Triple(subject, predicate, object_) if subject and predicate and object_ else None
