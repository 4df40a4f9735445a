"""Entities and triples from JSON of a file or a language model, after validation.

Models write a triple as a list, as an object (``{"subject": ..., "predicate": ..., "object": ...}``) or as one text
(``a | b | c``), an entity as a text, a pair or an object. Unambiguous forms are read. Values other than lists are refused.
Invalid entities or triples in a list are dropped and counted: a number, a triple without three parts, an empty or overlong
text, and anything beyond the most statements of one passage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from nlp_retrieval.core import find_lone_surrogate
from nlp_retrieval.systems.hipporag.knowledge.statements import PassageKnowledge, Triple
from nlp_retrieval.text import printable

__all__ = ["ENTITY_TYPES", "MAX_CHARACTERS", "MAX_STATEMENTS", "UNKNOWN_TYPE", "ReadKnowledge", "knowledge_from_json"]

MAX_CHARACTERS = 500
"""The longest entity, or part of a triple, in characters; longer ones are sentences, not names."""

MAX_STATEMENTS = 1_000
"""The most entities, and the most triples, that one passage has; a passage of 1,000 words has about 100."""


ENTITY_TYPES = frozenset({"person", "place", "organization", "concept"})
"""Types of entities."""

UNKNOWN_TYPE = "unknown"
"""Type of all other entities."""

_NAMES = ("text", "name", "entity", "mention", "title", "value", "surface", "word", "span", "label", "id")
_TYPES = ("type", "entity_type", "category", "class", "kind", "label")
_SUBJECTS = ("subject", "head", "source", "subj", "s", "from", "entity1", "entity_1", "arg1", "start", "node_1")
_PREDICATES = ("predicate", "relation", "relationship", "relation_type", "rel", "pred", "verb", "edge", "p", "label", "type")
_OBJECTS = ("object", "tail", "target", "obj", "o", "to", "entity2", "entity_2", "arg2", "end", "node_2", "value")
_WRAPPED = (("(", ")"), ("[", "]"), ("<", ">"), ("{", "}"))
_SEPARATORS = ("|", "\t", "->", "\u2192", ";")
_MOST_PARTS = 16


@dataclass(frozen=True)
class ReadKnowledge:
    """Result of reading.

    Args:
        knowledge: all valid statements.
        dropped: number of invalid entities and triples. Repeated ones are not counted.
        unread: the first of the entities, or of the triples, if there are some and none could be read; else None.
        types: of entities, in ``ENTITY_TYPES``, by name, as far as given.
    """

    knowledge: PassageKnowledge
    dropped: int = 0
    types: dict[str, str] = field(default_factory=dict)
    unread: str | None = None


def knowledge_from_json(entities: JsonValue, triples: JsonValue) -> ReadKnowledge:
    """Read the knowledge of one passage.

    Args:
        entities: a list of texts, of pairs of a text and its type, or of objects; or an object of types by name, or of lists
            of names by type.
        triples: a list of lists of three texts, of objects, or of texts of three parts.

    Raises:
        ValueError: one of them is neither; the message is half a sentence.
    """
    entities, triples = _listed_entities(entities), _listed(triples)
    if not isinstance(entities, list) or not isinstance(triples, list):
        raise ValueError(f"the {'triples' if isinstance(entities, list) else 'entities'} are no list")  # noqa: TRY004
    typed = [pair for value in entities[:MAX_STATEMENTS] if (pair := _entity(value))]
    statements = [triple for value in triples[:MAX_STATEMENTS] if (triple := _triple(value))]
    types: dict[str, str] = {}
    for name, type_ in typed:
        if type_ in ENTITY_TYPES:
            types.setdefault(name, type_)
    names = tuple(dict.fromkeys(name for name, _ in typed))
    dropped = len(entities) + len(triples) - len(typed) - len(statements)
    unread = next((given[0] for given, read in ((triples, statements), (entities, typed)) if given and not read), None)
    shown = None if unread is None else printable(repr(unread)[:80])
    return ReadKnowledge(PassageKnowledge(names, tuple(dict.fromkeys(statements))), dropped, types, shown)


def _listed(value: JsonValue) -> JsonValue:
    """Return the values of an object of lists or objects, such as numbered triples; anything else unchanged."""
    if isinstance(value, dict) and value and all(isinstance(part, list | dict) for part in value.values()):
        return list(value.values())
    return value


def _listed_entities(value: JsonValue) -> JsonValue:
    """Return names by type, or types by name, as a list of pairs; anything else unchanged."""
    if not isinstance(value, dict) or not value:
        return value
    if all(isinstance(part, list) for part in value.values()):
        by_type = {key.lower(): part for key, part in value.items() if isinstance(part, list)}
        return [
            [name, next((type_ for type_ in ENTITY_TYPES if key in (type_, f"{type_}s")), key)]
            if isinstance(name, str)
            else name
            for key, names in by_type.items()
            for name in names
        ]
    if all(isinstance(part, str) for part in value.values()):
        return [[part, key.lower()] if key.lower() in ENTITY_TYPES else [key, part] for key, part in value.items()]
    return list(value.values()) if all(isinstance(part, dict) for part in value.values()) else value


def _entity(value: JsonValue) -> tuple[str, str] | None:
    """Return a name and its type; None if it is not a name."""
    type_: JsonValue = ""
    if isinstance(value, dict):
        fields = _fields(value)
        name_key = next((key for key in _NAMES if isinstance(fields.get(key), str)), None)
        if name_key is None:
            ((key, type_),) = value.items() if len(value) == 1 else (("", ""),)
            value = key if isinstance(type_, str) and type_.strip().lower() in ENTITY_TYPES else None
        else:
            value = fields[name_key]
            type_ = next((fields[key] for key in _TYPES if key != name_key and key in fields), "")
    elif isinstance(value, list) and (len(value) == 2 or (len(value) > 2 and _is_type(value[1]))):
        value, type_ = value[:2]
    name = _phrase(value)
    return None if name is None else (name, type_.strip().lower() if isinstance(type_, str) else "")


def _is_type(value: JsonValue) -> bool:
    return isinstance(value, str) and value.strip().lower() in ENTITY_TYPES


def _phrase(value: JsonValue) -> str | None:
    """Return a text on one line without control characters; None if it is not a name."""
    if not isinstance(value, str) or len(value) > MAX_CHARACTERS or find_lone_surrogate(value) is not None:
        return None
    return printable(" ".join(value.split())) or None


def _triple(value: JsonValue) -> Triple | None:
    parts = list(map(_part, _parts_of(value)))
    if len(parts) != 3:
        return None
    subject, predicate, object_ = parts
    return Triple(subject, predicate, object_) if subject and predicate and object_ else None


def _part(value: JsonValue) -> str | None:
    """Return a part of a triple, which may be an entity with its type."""
    if isinstance(value, dict):
        entity = _entity(value)
        return None if entity is None else entity[0]
    return _phrase(value)


def _parts_of(value: JsonValue) -> Sequence[JsonValue]:
    """Return the parts of a triple in any form; empty if it is ambiguous."""
    if isinstance(value, str):
        return _split(value)
    if isinstance(value, dict):
        fields = _fields(value)
        if len(fields) == 1:
            (inner,) = fields.values()
            return _parts_of(inner) if isinstance(inner, list | dict) else ()
        subject, object_ = _first(fields, _SUBJECTS), _first(fields, _OBJECTS)
        return [fields[subject], *_predicate(fields, subject, object_), fields[object_]] if subject and object_ else ()
    if not isinstance(value, list):
        return ()
    # a number before or after the three is a count or a confidence
    begin = len(value) > 3 and isinstance(value[0], int | float)
    end = len(value) > 3 + begin and (value[-1] is None or isinstance(value[-1], int | float))
    return value[begin : len(value) - end]


def _predicate(fields: Mapping[str, JsonValue], *others: str | None) -> Iterator[JsonValue]:
    named = _first({key: value for key, value in fields.items() if key not in others}, _PREDICATES)
    if named is not None:
        yield fields[named]


def _first(fields: Mapping[str, JsonValue], keys: Sequence[str]) -> str | None:
    return next((key for key in keys if key in fields), None)


def _fields(value: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {key.strip().lower(): part for key, part in list(value.items())[:_MOST_PARTS]}


def _split(text: str) -> Sequence[JsonValue]:
    """Return the parts of a triple that is one text: ``a | b | c``, ``(a, b, c)``, ``a -> b -> c``, ``(a)-[b]->(c)``."""
    if len(text) > 4 * MAX_CHARACTERS:
        return ()
    bare, commas = text.strip(), False
    bare = bare.replace("-[", "->").replace("]->", "->")
    for opening, closing in _WRAPPED:
        if bare.startswith(opening) and bare.endswith(closing) and opening not in bare[1:]:
            bare, commas = bare[1:-1], True
    for separator in (*_SEPARATORS, *([","] if commas else [])):
        parts = [
            part.strip(" \t\n\"'()") if separator in ("->", ",") else part.strip(" \t\n\"'") for part in bare.split(separator)
        ]
        if len(parts) == 3:
            return list(parts)
    return ()
