"""Knowledge of passages: entities, and statements as triples; read from JSON, and as rows of a store.

This is open information extraction. Its source, a language model or a file, is not trusted: sizes are limited, and texts are
only strings, never numbers and never evaluated.

Models write a triple as a list, as an object (``{"subject": ..., "predicate": ..., "object": ...}``) or as one text
(``a | b | c``), an entity as a text, a pair or an object. Unambiguous forms are read. Values other than lists are refused.
Invalid entities or triples in a list are dropped and counted: a number, a triple without three parts, an empty or overlong
text, and anything beyond the most statements of one passage.

A passage is known by its text, not by its id. Title and content count as one text, and any white space as equal, since files
and databases break lines differently.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Protocol

from pydantic import JsonValue

from nlp_retrieval import SearchableItem
from nlp_retrieval.core import find_lone_surrogate
from nlp_retrieval.errors import ItemError
from nlp_retrieval.text import printable, words_of


@dataclass(frozen=True)
class Triple:
    """One statement: ``("Erik Hort", "was born in", "Montebello")``. No part is empty.

    Examples:
        >>> Triple("Erik Hort", "was born in", "Montebello").object
        'Montebello'
    """

    subject: str
    predicate: str
    object: str


@dataclass(frozen=True)
class PassageKnowledge:
    """Knowledge of one passage.

    Args:
        entities: names as written in the passage, each once, in order of first appearance.
        triples: statements, each once, in order. Their subjects and objects need not be among the entities.

    Examples:
        >>> knowledge = PassageKnowledge(("Blue whale", "krill"), (Triple("Blue whale", "eats", "krill"),))
        >>> [triple.predicate for triple in knowledge.triples]
        ['eats']
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


def passage_text(title: str, content: str) -> str:
    """Return the text of a passage to read: the title, if there is one, on a line of its own, then the content."""
    return f"{title}\n{content}" if title else content


def passage_hash(title: str, content: str) -> str:
    """Return the fingerprint of a passage's text, 32 hexadecimal digits."""
    words = " ".join(passage_text(title, content).split())
    return blake2b(words.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


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
    unread = next((items[0] for items, read in ((triples, statements), (entities, typed)) if items and not read), None)
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


KEY_LENGTH = 32
"""Hexadecimal digits of a key."""


def key_of(*parts: str) -> str:
    """Return the key of these parts together."""
    digest = blake2b(digest_size=KEY_LENGTH // 2)
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.hexdigest()


def in_parts(keys: Collection[str]) -> Iterator[list[str]]:
    """Yield sorted keys in lists that a query may hold; some databases take no more than 1,000 values."""
    ordered = sorted(keys)
    for start in range(0, len(ordered), _IN_ONE_QUERY):
        yield ordered[start : start + _IN_ONE_QUERY]


_IN_ONE_QUERY = 500

DONE, FAILED = "done", "failed"
Row = dict[str, Any]


@dataclass(frozen=True)
class Extraction:
    """A prompt, a model and their settings. Any change of these makes a separate extraction.

    Args:
        model: the language model, by its name in the configuration.
        settings: everything that determines its answers, as JSON text.
    """

    model: str
    settings: str

    @property
    def extraction_id(self) -> str:
        """Return its fingerprint, 32 hexadecimal digits."""
        return key_of(self.model, self.settings)


@dataclass(frozen=True)
class StoreCounts:
    """Counts of an extraction in a store.

    Args:
        done: passages with knowledge, which may be empty.
        failed: passages without a usable answer; the next run retries them.
        entities: names, each with its type once.
        relationships: triples, once for each passage.
    """

    done: int
    failed: int
    entities: int
    relationships: int


@dataclass(frozen=True)
class ExtractionRun:
    """Progress of one run, as stored in its row.

    Args:
        session_id: of the run.
        total: documents read so far; all of the corpus when completed.
        processed: those of them that are finished in this run.
        status: ``in_progress``, ``completed`` or ``failed``.
        data: counters, and ``last_document``, the id of the last committed one, as JSON values.
        saved: when the row was written, in UTC; empty before.
    """

    session_id: str
    total: int
    processed: int
    status: str = "in_progress"
    data: dict[str, Any] = field(default_factory=dict)
    saved: str = ""

    def row(self, extraction_id: str) -> Row:
        """Return it as a row of the table."""
        return {
            "session_id": self.session_id,
            "extraction_id": extraction_id,
            "total_documents": self.total,
            "processed_documents": self.processed,
            "last_checkpoint_timestamp": datetime.now(UTC).replace(tzinfo=None, microsecond=0),
            "status": self.status,
            "checkpoint_data": json.dumps(self.data),
        }


@dataclass(frozen=True)
class PassageRecord:
    """Result of one passage in a run.

    Args:
        document_id: its item's id.
        content_hash: of its text; see :func:`passage_hash`.
        read: its knowledge; None without a usable answer.
        tries: number of requests in this run.
        error: why there is no answer.

    Raises:
        ItemError: the id holds a NUL character or a lone surrogate, which no database stores.
    """

    document_id: str
    content_hash: str
    read: ReadKnowledge | None
    tries: int
    error: str = ""

    def __post_init__(self) -> None:
        if "\0" in self.document_id or find_lone_surrogate(self.document_id) is not None:
            raise ItemError(
                f"item id {self.document_id!r:.80}: it holds a character that databases cannot store; change the id"
            )

    def passage_row(self, extraction_id: str, earlier_tries: int) -> Row:
        """Return its row in ``passages``."""
        return {
            "passage_id": key_of(extraction_id, self.document_id),
            "extraction_id": extraction_id,
            "document_id": self.document_id,
            "content_hash": self.content_hash,
            "status": FAILED if self.read is None else DONE,
            "tries": min(earlier_tries + self.tries, 2**31 - 1),
            "dropped": 0 if self.read is None else min(self.read.dropped, 2**31 - 1),
            "error": printable(self.error)[:MAX_CHARACTERS] or None,
        }

    def statement_rows(self, extraction_id: str) -> tuple[list[Row], list[Row], list[Row]]:
        """Return its rows in ``entities``, ``mentions`` and ``relationships``."""
        if self.read is None:
            return [], [], []
        passage_id = key_of(extraction_id, self.document_id)
        entities: dict[str, Row] = {}

        def entity(name: str) -> str:
            type_ = types.get(name, UNKNOWN_TYPE)
            key = key_of(extraction_id, name, type_)
            entities[key] = {"entity_id": key, "extraction_id": extraction_id, "entity_text": name, "entity_type": type_}
            return key

        types, knowledge = self.read.types, self.read.knowledge
        mentions = [
            {"passage_id": passage_id, "place": position, "entity_id": entity(name)}
            for position, name in enumerate(knowledge.entities)
        ]

        def relationship(position: int, triple: Triple) -> Row:
            return {
                "relationship_id": key_of(passage_id, *asdict(triple).values()),
                "source_passage_id": passage_id,
                "place": position,
                "subject_entity_id": entity(triple.subject),
                "predicate": triple.predicate,
                "object_entity_id": entity(triple.object),
            }

        relationships = [relationship(position, triple) for position, triple in enumerate(knowledge.triples)]
        return list(entities.values()), mentions, relationships
