"""Knowledge of passages: entities, and statements as triples.

Its source, a language model or a file, is not trusted: sizes are limited, and texts are only strings, never evaluated. An
entity is a text, or a list of a text and its type; a triple is a list of three texts; an object counts as its values, by the
names of its keys. A number counts as its text. Anything else in the two lists is dropped and counted.

A passage is known by its text, not by its id. Title and content count as one text, and any white space as equal, since files
and databases break lines differently.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Protocol

from pydantic import JsonValue

from nlp_retrieval import SearchableItem
from nlp_retrieval.core import find_lone_surrogate
from nlp_retrieval.text import printable, words_of

MAX_CHARACTERS = 500
"""The longest entity, or part of a triple, in characters; longer ones are sentences, not names."""

MAX_STATEMENTS = 1_000
"""The most entities, and the most triples, that one passage has; a passage of 1,000 words has about 100."""

ENTITY_TYPES = frozenset({"person", "place", "organization", "concept"})
UNKNOWN_TYPE = "unknown"


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


class KnowledgeSource(Protocol):
    """Source of the knowledge of passages: a store, or a published file."""

    def of(self, items: Sequence[SearchableItem]) -> list[PassageKnowledge | None]:
        """Return the knowledge of each item, in order; None for an item that the source lacks.

        An item is identified by title and text, not by its id alone: one that has changed since is not known.
        """


_MONEY = "[$¢-¥\u20a0-\u20cf]"
_SIGNS = re.compile(
    r"(?<=\w)[+#♯♭]+|(?<![^\s(\[])[-\N{MINUS SIGN}](?=\d)|(?:(?<=\b\w)|(?<=\b\w\w))[-\N{MINUS SIGN}*](?!\w)|"
    rf"(?<=\d)(?:[\u2070-\u2079¹²³]|\s?[%‰°]|\s?{_MONEY}|\s?m(?=[A-Z][a-z]?\b))|{_MONEY}(?=\s?\d)|"
    r"(?<![<>=-])[<>≤≥±](?=\s?[.\d])|(?<!\S)(?:[~≈](?=\s?\d)|\.(?=\w))|&"
)
"""Signs that are part of a name: in C++, F#, -5, O-, A*, 10³, 40%, 5 mW, $5, >5 and .NET; most as Unicode calls them."""

_INNER = re.compile(r"(?<=\d),(?=\d{3}(?!\d))|(?<=\b[^\W\d_])\.\s?(?=[^\W\d_]\b)|(?<=\d0)['\u2019](?=s\b)")
"""Marks that are written in a name and are no part of it: in 1,000, U.S. and 1990's."""

_SPOKEN = {"-": "minus", "#": "sharp", "♯": "sharp", "♭": "flat", ".": "dot", ">": "more than", "≤": "at most", "≥": "at least"}
_SPOKEN |= {"&": "and", "m": "milli"}


def phrase_of(text: str) -> str:
    """Return a name, or a part of a triple, for comparison: its words without case, accents and punctuation."""
    return " ".join(words_of(_SIGNS.sub(_spoken, _INNER.sub("", text))))


def _spoken(match: re.Match[str]) -> str:
    names = (_SPOKEN.get(sign) or unicodedata.name(sign, "").removesuffix(" SIGN") for sign in match[0].strip())
    return f" {' '.join(names)} "


def passage_text(title: str, content: str) -> str:
    """Return the text of a passage to read: the title, if there is one, on a line of its own, then the content."""
    return f"{title}\n{content}" if title else content


def passage_hash(title: str, content: str) -> str:
    """Return the fingerprint of a passage's text, 32 hexadecimal digits."""
    words = " ".join(passage_text(title, content).split())
    return blake2b(words.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def key_of(*parts: str) -> str:
    """Return the key of these parts together, 32 hexadecimal digits."""
    digest = blake2b(digest_size=16)
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.hexdigest()


@dataclass(frozen=True)
class ReadKnowledge:
    """Result of reading."""

    knowledge: PassageKnowledge  # all valid statements
    dropped: int = 0  # number of invalid entities and triples. Repeated ones are not counted
    types: dict[str, str] = field(default_factory=dict)  # of entities, in ENTITY_TYPES, by name, as far as given
    nothing_read: bool = False  # whether there are entities or triples, and none could be read


def knowledge_from_json(entities: JsonValue, triples: JsonValue) -> ReadKnowledge:
    """Read the knowledge of one passage."""
    if not isinstance(entities, list) or not isinstance(triples, list):
        raise ValueError(f"the {'triples' if isinstance(entities, list) else 'entities'} are no list")  # noqa: TRY004
    typed = [pair for value in entities[:MAX_STATEMENTS] if (pair := _entity(value))]
    statements = [triple for value in triples[:MAX_STATEMENTS] if (triple := _triple(value))]
    types = {name: type_ for name, type_ in reversed(typed) if type_ in ENTITY_TYPES}  # of several the first counts
    names = tuple(dict.fromkeys(name for name, _ in typed))
    dropped = len(entities) + len(triples) - len(typed) - len(statements)
    nothing_read = not statements and bool(triples or (entities and not typed))
    return ReadKnowledge(PassageKnowledge(names, tuple(dict.fromkeys(statements))), dropped, types, nothing_read)


_ENTITY = ("name", "entity", "entity_name", "text"), ("type", "entity_type", "category")
_TRIPLE = ("subject", "head", "source"), ("predicate", "relation", "relationship", "verb", "type"), ("object", "tail", "target")
"""Usual keys of the parts of an object, the surest first; keys of other names are the parts that are missing, in order."""


def _parts(value: JsonValue, names_of_parts: Sequence[Sequence[str]]) -> list[JsonValue]:
    if not isinstance(value, dict):
        return value if isinstance(value, list) else [value]
    plain = {key.lower(): inner for key, inner in value.items()}
    keys = [next((name for name in names if name in plain), None) for names in names_of_parts]
    others = [inner for key, inner in plain.items() if key not in keys]
    missing = iter(others if len(others) <= keys.count(None) else [])
    return [next(missing, None) if key is None else plain[key] for key in keys]


def _entity(value: JsonValue) -> tuple[str, str] | None:
    """Return a name and its type; None if it is not a name."""
    name, type_, *_ = [*map(_phrase, _parts(value, _ENTITY)), None, None]
    return None if name is None else (name, (type_ or "").lower())


def _triple(value: JsonValue) -> Triple | None:
    parts = list(map(_phrase, _parts(value, _TRIPLE)))
    return Triple(*map(str, parts)) if len(parts) == 3 and all(parts) else None


def _phrase(value: JsonValue) -> str | None:
    """Return a text or number, or the name of an object, on one line without control characters; None if it is not a name."""
    value = _parts(value, _ENTITY)[0] if isinstance(value, dict) else value
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or len(value) > MAX_CHARACTERS or find_lone_surrogate(value) is not None:
        return None
    return printable(" ".join(value.split())) or None


@dataclass(frozen=True)
class Extraction:
    """A prompt, a model and their settings. Any change of these makes a separate extraction."""

    model: str  # the language model, by its name in the configuration
    settings: str  # everything that determines its answers, as JSON text

    @property
    def extraction_id(self) -> str:
        """Return its fingerprint, 32 hexadecimal digits."""
        return key_of(self.model, self.settings)


@dataclass(frozen=True)
class ExtractionRun:
    """Progress of one run: documents read and finished, and counters, with the id of the last committed document."""

    session_id: str
    total: int
    processed: int
    status: str = "in_progress"
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PassageRecord:
    """Result of one passage in a run; without a usable answer ``read`` is None, and ``error`` says why."""

    document_id: str
    content_hash: str
    read: ReadKnowledge | None
    error: str = ""
