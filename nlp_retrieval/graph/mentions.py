"""What a text talks about: its entities, proper nouns and phrases, by rules or by a spaCy pipeline.

The rules need no model. An entity is a run of capitalised words, joined by words such as "of" or "de", or a quoted
title; a proper noun is a capitalised word or a year; a phrase is a run of at least two words without a function word.
Words are compared without case, accents and possessive endings.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from nlp_retrieval.errors import DependencyError, ModelError

_WORD = re.compile(r"[^\W_]+(?:['\u2019.&-][^\W_]+)*")
_QUOTED = re.compile(r'"([^"]{2,80})"|\u201c([^\u201d]{2,80})\u201d')
_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}")
_POSSESSIVE = re.compile(r"['\u2019]s?$")
_JOINTS = frozenset(["of", "the", "de", "la", "le", "du", "des", "da", "di", "do", "dos", "del", "della", "van", "von", "der"])
FUNCTION_WORDS = frozenset(
    """
    a an the this that these those it its he she they his their her them who whom whose which what where when why how and
    or but nor so yet if then than as of in on at by for with from to into onto over under between among during before
    after about against through while is are was were be been being has have had do does did no not both either neither
    each all some any one two three first also same other another there here i we you my our your can could will would
    shall should may might must
    """.split()
)


@dataclass(frozen=True)
class Mentions:
    """What a text talks about, normalised.

    Args:
        entities: names of one or more words.
        proper_nouns: single words.
        phrases: runs of at least two words.
        words: the whole text as normalised words, with a space before, between and after, to look phrases up in.
    """

    entities: frozenset[str]
    proper_nouns: frozenset[str]
    phrases: frozenset[str]
    words: str


def normalize(text: str) -> str:
    """Lower case, no accents, no punctuation between words, no possessive endings."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return " ".join(_POSSESSIVE.sub("", word).casefold() for word in _WORD.findall(plain))


@lru_cache(maxsize=50_000)
def mentions_by_rules(text: str) -> Mentions:
    """Find mentions without a model."""
    proper_nouns: set[str] = set(_YEAR.findall(text))
    for run in _capitalised_runs(text):
        proper_nouns.update(normalize(word) for word in run if word.casefold() not in FUNCTION_WORDS | _JOINTS)
    return _mentions(text, entities_by_rules(text), proper_nouns)


def entities_by_rules(text: str) -> set[str]:
    """Find entities alone, without a model; nothing is remembered, so that a whole corpus may pass."""
    quoted = {normalize(one or other) for one, other in _QUOTED.findall(text)}
    return (quoted | {normalize(" ".join(run)) for run in _capitalised_runs(text)}) - {""}


def _capitalised_runs(text: str) -> Iterable[list[str]]:
    """Runs of capitalised words; a function word at either end does not belong to one, nor does punctuation inside."""
    run: list[str] = []
    end = 0
    for match in _WORD.finditer(text):
        word = match.group()
        between = text[end : match.start()]
        apart = "\n" in between or between.strip() not in {"", "'", "\u2019"}
        capital = word[0].isupper() or (word[0].isdigit() and bool(run))
        if run and (apart or not (capital or word in _JOINTS)):
            yield from _trimmed(run)
            run = []
        if capital or run:
            run.append(word)
        end = match.end()
    yield from _trimmed(run)


def _trimmed(run: list[str]) -> Iterable[list[str]]:
    start, stop = 0, len(run)
    while start < stop and run[start].casefold() in FUNCTION_WORDS:
        start += 1
    while start < stop and (run[stop - 1] in _JOINTS or run[stop - 1].casefold() in FUNCTION_WORDS):
        stop -= 1
    if start < stop:
        yield run[start:stop]


def _mentions(text: str, entities: Iterable[str], proper_nouns: Iterable[str]) -> Mentions:
    phrases: set[str] = set()
    for part in re.split(r"[,;:.!?()\[\]\"“”\n]\s*", text):
        run: list[str] = []
        for word in [*normalize(part).split(), "the"]:
            if word not in FUNCTION_WORDS:
                run.append(word)
                continue
            if len(run) > 1:
                phrases.add(" ".join(run))
            run = []
    return Mentions(
        frozenset(filter(None, entities)),
        frozenset(filter(None, proper_nouns)),
        frozenset(phrases),
        f" {normalize(text)} ",
    )


_reading = threading.RLock()
"""To be held while a pipeline reads queries: threads share it, and what it remembers."""


class SpacyMentions:
    """Mentions by a spaCy pipeline with a tagger and a named entity recogniser.

    Args:
        pipeline: name or folder of the pipeline.
    """

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._loaded: Any = None
        self._known: dict[str, Mentions] = {}

    def find(self, texts: list[str]) -> list[Mentions]:
        """Find mentions in texts; each distinct text is read once, and the last 50,000 are remembered.

        Raises:
            DependencyError: spaCy is not installed.
            ModelError: the pipeline does not load, or recognises no entities.
        """
        with _reading:
            new = [text for text in dict.fromkeys(texts) if text not in self._known]
            for text, document in zip(new, self._load().pipe(new), strict=True):
                entities = {normalize(entity.text) for entity in document.ents}
                proper = {normalize(token.text) for token in document if token.pos_ == "PROPN"}
                inside = {normalize(token.text) for entity in document.ents for token in entity if token.text[:1].isupper()}
                self._known[text] = _mentions(text, entities, proper | inside)
            found = [self._known[text] for text in texts]
            while len(self._known) > 50_000:
                self._known.pop(next(iter(self._known)))
            return found

    def entities(self, texts: Iterable[str]) -> Iterator[set[str]]:
        """Yield the entities of each text; nothing is remembered, so that a whole corpus may pass.

        Raises:
            DependencyError: spaCy is not installed.
            ModelError: the pipeline does not load, or recognises no entities.
        """
        for document in self._load().pipe(texts):
            yield {normalize(entity.text) for entity in document.ents} - {""}

    def _load(self) -> Any:
        with _reading:
            if self._loaded is None:
                self._loaded = _opened(self._pipeline)
            return self._loaded


def _opened(pipeline: str) -> Any:
    try:
        import spacy
    except ImportError:
        raise DependencyError("spacy_pipeline needs spaCy: pip install 'nlp_retrieval[spacy]'") from None
    try:
        opened = spacy.load(pipeline)
    except (OSError, ValueError) as error:
        raise ModelError(
            f"{pipeline!r} does not load as a spaCy pipeline ({str(error).splitlines()[0]}); pass the name of an "
            "installed pipeline (python -m spacy download en_core_web_sm) or its folder"
        ) from error
    if not {"ner", "entity_ruler"} & set(opened.pipe_names):
        found = ", ".join(opened.pipe_names) or "nothing"
        raise ModelError(f"the spaCy pipeline {pipeline!r} recognises no entities (it has: {found})")
    return opened
