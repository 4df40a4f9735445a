"""Asking a language model what passages say: one call for entities and triples, of one passage or of several.

Answers are parsed as JSON and never evaluated. What an answer leaves out, or does not say in the right form, is asked again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from nlp_retrieval import LanguageModel
from nlp_retrieval.core import has_no_words
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.lm import UnusableAnswerError, fingerprint_of_program, read_object
from nlp_retrieval.systems.hipporag.knowledge.from_json import ReadKnowledge, knowledge_from_json
from nlp_retrieval.systems.hipporag.knowledge.statements import PassageKnowledge
from nlp_retrieval.systems.hipporag.knowledge.store.rows import Extraction
from nlp_retrieval.text import fenced

if TYPE_CHECKING:
    from nlp_retrieval.lm import Outcome

__all__ = ["ExtractedPassage", "KnowledgeExtractor"]

MOST_PASSAGES = 20
"""The most passages in one call; an answer longer than 20,000 characters is cut, and then is none."""

_ENTITIES = ("entities", "named_entities", "extracted_entities", "entity", "nodes")
_TRIPLES = (
    "triples", "triplets", "relations", "relationships", "facts", "statements", "extracted_triples", "triple", "edges",
)  # fmt: skip
_NUMBER_KEYS = ("passage", "id", "number", "passage_id", "index")
_NUMBER = re.compile(r"(?:passage[ _]?)?(\d{1,3})\.?", re.IGNORECASE)
_DEEPEST = 3

_SAYS_NOTHING = ReadKnowledge(PassageKnowledge((), ()))


@dataclass(frozen=True)
class ExtractedPassage:
    """What came of one passage.

    Args:
        read: what it says; None without a usable answer.
        tries: how often it was asked about.
        error: why there is no answer.
        asked: whether it was: not after the endpoint was given up.
    """

    read: ReadKnowledge | None
    tries: int
    error: str = ""
    asked: bool = True


class KnowledgeExtractor:
    """Has a language model write down entities and triples.

    Failures of the endpoint are retried by the model's own settings (``retries``, ``backoff`` doubled with each). An answer
    that cannot be used is asked for again at once, as often, because there is nothing to wait for.

    Args:
        lm: the model.
        passages_per_call: how many passages it reads at once, 1 to 20. More are cheaper, and an answer that cannot be used
            costs more.
        passage_characters: of each passage that it is shown; the rest of a longer one is not read.

    Raises:
        ConfigurationError: a number is out of range.
        DependencyError: DSPy is not installed.
    """

    def __init__(self, lm: LanguageModel, *, passages_per_call: int = 1, passage_characters: int = 10_000) -> None:
        if not 1 <= passages_per_call <= MOST_PASSAGES:
            raise ConfigurationError(
                f"passages_per_call={passages_per_call}: read from 1 to {MOST_PASSAGES} passages in a call"
            )
        if passage_characters < 1:
            raise ConfigurationError(f"passage_characters={passage_characters}: show at least 1 character")
        from nlp_retrieval.lm import AskingLine, dspy
        from nlp_retrieval.systems.hipporag.knowledge.extraction.signature import ExtractKnowledge

        self.lm = lm
        self.passages_per_call = passages_per_call
        self.passage_characters = passage_characters
        self._program: Any = dspy.Predict(ExtractKnowledge)
        self._line = AskingLine(lm.give_up_after)

    @property
    def extraction(self) -> Extraction:
        """What determines the answers: prompt, model, temperature, how passages are shown; not where the model runs."""
        settings = {
            "prompt": fingerprint_of_program(self._program),
            "temperature": self.lm.sampling[0],
            "passages_per_call": self.passages_per_call,
            "passage_characters": self.passage_characters,
        }
        return Extraction(self.lm.model, json.dumps(settings, sort_keys=True))

    @property
    def given_up(self) -> str | None:
        """Why the model is not asked any more; None as long as it is."""
        reason = self._line.given_up
        return None if reason is None else self.lm.hidden(reason)

    def extract(self, texts: Sequence[str]) -> list[ExtractedPassage]:
        """Return what came of each passage, in order; asks the model of DSPy's settings, and raises nothing.

        Args:
            texts: at most ``passages_per_call``.
        """
        shown = [fenced(text[: self.passage_characters]) for text in texts]
        read = {place: _SAYS_NOTHING for place, text in enumerate(shown) if has_no_words(text)}
        without_call = set(read)
        tries, error, asked = 0, "", True
        while len(read) < len(shown) and tries <= self.lm.retries and asked:
            places = [place for place in range(len(shown)) if place not in read]
            outcome = self._outcome([shown[place] for place in places])
            tries += 1
            for number, one in (outcome.value or {}).items():
                read[places[number]] = one
            error = self.lm.hidden(outcome.reason) or "the answer left this passage out"
            if outcome.endpoint_failed:
                asked = outcome.reason != self._line.given_up
                break
        return [
            ExtractedPassage(read[place], 0 if place in without_call else max(tries, 1))
            if place in read
            else ExtractedPassage(None, tries, error, asked)
            for place in range(len(shown))
        ]

    def _outcome(self, shown: list[str]) -> Outcome[dict[int, ReadKnowledge]]:
        from nlp_retrieval.lm import ask

        passages = "\n".join(f"{number}: {text}" for number, text in enumerate(shown, start=1))
        asking = partial(ask, self._program, {"passages": passages}, "knowledge", partial(read_or_explain, len(shown)))
        return self._line.ask(asking)


def read_or_explain(n_passages: int, answer: object) -> dict[int, ReadKnowledge] | None:
    """Return what an answer says, by passage from 0, for those that it says it of in a form that can be read.

    Args:
        n_passages: how many it was asked about.
        answer: text with a JSON object by number of passage, also within another object or as a list; of one passage, the
            entry alone will do.

    Returns:
        None where nothing can be read.

    Raises:
        UnusableAnswerError: entities or triples are there, and none can be read; the message shows the first.
    """
    value = _read_json(answer) if isinstance(answer, str) else answer
    found: dict[int, ReadKnowledge] = {}
    unread = None
    for place, entry in _entries(value, n_passages).items():
        read = _read_entry(entry) or next(map(_read_entry, _entries(entry, 1).values()), None)
        if read is not None and read.unread is None:
            found[place] = read
        elif read is not None:
            unread = unread or read.unread
    if not found and unread is not None:
        raise UnusableAnswerError(f"its entities or triples are in a form that is not read: {unread}")
    return found or None


def _read_json(answer: str) -> object:
    """The JSON object in a text, or the list where that begins first."""
    begin = answer.find("[")
    if 0 <= begin < (answer.find("{") % (len(answer) + 1)):
        listed = read_object('{"": ' + answer[begin : answer.rfind("]") + 1] + "}")
        if listed is not None:
            return listed[""]
    return read_object(answer)


def _entries(value: object, n_passages: int, depth: int = 0) -> dict[int, Mapping[str, JsonValue]]:
    """What is said of each passage, by its place; empty where that cannot be told."""
    if isinstance(value, Mapping):
        if any(_key_of(value, keys) for keys in (_ENTITIES, _TRIPLES)):
            return {0: value} if n_passages == 1 else {}
        entries = {}
        for key, entry in value.items():
            number = _NUMBER.fullmatch(str(key))
            if number is not None and isinstance(entry, Mapping) and 1 <= int(number[1]) <= n_passages:
                entries[int(number[1]) - 1] = entry
        if entries or depth == _DEEPEST:
            return entries
        inner = [part for key, part in value.items() if isinstance(part, Mapping | list) and not _NUMBER.fullmatch(str(key))]
        return _entries(inner[0], n_passages, depth + 1) if len(inner) == 1 else {}
    if isinstance(value, list) and value and all(isinstance(entry, Mapping) for entry in value):
        numbers = [next((entry[key] for key in _NUMBER_KEYS if key in entry), None) for entry in value]
        if all(number is None for number in numbers) and len(value) == n_passages:
            return dict(enumerate(value))
        numbered = {str(number): entry for number, entry in zip(numbers, value, strict=True) if number is not None}
        return _entries(numbered, n_passages, _DEEPEST) if len(numbered) == len(value) else {}
    return {}


def _key_of(entry: Mapping[str, JsonValue], keys: tuple[str, ...]) -> str | None:
    """The first of some keys with something behind it; or else the first that is there."""
    present = [key for key in keys if key in entry]
    return next((key for key in present if entry[key]), present[0] if present else None)


def _read_entry(entry: Mapping[str, JsonValue]) -> ReadKnowledge | None:
    entities, triples = _key_of(entry, _ENTITIES), _key_of(entry, _TRIPLES)
    if triples is None:  # entities alone may be a part of an answer that breaks off; triples name theirs
        return None
    try:
        read = knowledge_from_json(entry[entities] if entities else [], entry[triples])
    except ValueError:
        return None
    return read
