"""The subjects of a text: its entities, proper nouns and phrases, by rules.

An entity is a run of capitalised words, joined by words such as "of" or "de", or a quoted title; a proper noun is a capitalised
word or a year; a phrase is a run of at least two words without a function word. Words are compared without case and accents.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path, PurePath
from typing import Annotated, Any

from pydantic import Field

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.model_files import ModelFiles
from nlp_retrieval.core.files.opening import expanded
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.errors import DependencyError, ModelError, install
from nlp_retrieval.text.words import marks, unaccented

_WORD = re.compile(r"[^\W_]+(?:['\u2019.&-][^\W_]+)*")
_QUOTED = re.compile(
    r'"([^"]{2,80})"|\u201c([^\u201d]{2,80})\u201d|[\u300c\u300e\u300a\u3008]([^\u3008-\u300f]{2,80})[\u300d\u300f\u300b\u3009]'
    r"|\u00ab([^\u00ab\u00bb]{2,80})\u00bb|\u201e([^\u201c-\u201e]{2,80})[\u201c\u201d]"
)
_BREAK = re.compile(r"[,;:.!?()\[\]\"“”\n«»„।॥،؛؟\u06d4\u3001\u3002\u3008-\u300f\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]")
_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}")
_POSSESSIVE = re.compile(r"'s?$")
_ELIDED = re.compile(r"[^\W\d_A-Z]{1,4}['\u2019](?=[^\W\d_a-z])")
"""An article or preposition before a name in French or Italian: l'Université."""
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
"""Words that are no part of a phrase, in lower case."""


@dataclass(frozen=True)
class Mentions:
    """Mentions in a text, normalised."""

    entities: frozenset[str]
    proper_nouns: frozenset[str]
    phrases: frozenset[str]
    words: str


def normalize(text: str) -> str:
    """Return a text in lower case, without accents, punctuation between words and possessive endings."""
    return " ".join(word for word, _ in _words(text))


@cache
def _marked_word() -> re.Pattern[str]:
    """A word whose letters may carry marks, as those of Hindi do."""
    return re.compile(_WORD.pattern.replace(r"[^\W_]+", rf"[^\W_](?:[^\W_]|[{marks()}])*"))


def _words(text: str) -> Iterable[tuple[str, bool]]:
    """Each word in its compared form, and whether punctuation separates it from the word before."""
    plain = unaccented(text).replace("\u2019", "'")
    end = 0
    for match in (_WORD if plain.isascii() else _marked_word()).finditer(plain):
        yield _POSSESSIVE.sub("", match.group()).casefold(), _BREAK.search(plain, end, match.start()) is not None
        end = match.end()


@lru_cache(maxsize=50_000)
def mentions_by_rules(text: str) -> Mentions:
    """Find mentions without a model."""
    proper_nouns: set[str] = set(_YEAR.findall(text))
    for run in _capitalised_runs(text):
        proper_nouns.update(normalize(word) for word in run if word.casefold() not in FUNCTION_WORDS | _JOINTS)
    return mentions_of(text, entities_by_rules(text), proper_nouns)


def entities_by_rules(text: str) -> set[str]:
    """Find entities only, without a model; nothing is cached, so that a whole corpus may be read.

    Examples:
        >>> sorted(entities_by_rules("Was Stanley Kubrick born in New York City?"))
        ['new york city', 'stanley kubrick']
    """
    return {normalize(name) for name in (*map("".join, _QUOTED.findall(text)), *names_by_rules(text))} - {""}


def names_by_rules(text: str) -> Iterator[str]:
    """Yield the names in a text as it writes them, those in quotes apart."""
    return (" ".join(run) for run in _capitalised_runs(text))


def _capitalised_runs(text: str) -> Iterable[list[str]]:
    """Runs of capitalised words, without function words at either end; punctuation ends a run."""
    run: list[str] = []
    end = 0
    for match in _WORD.finditer(text):
        word = match.group()
        between = text[end : match.start()]
        apart = "\n" in between or between.strip() not in {"", "'", "\u2019"}
        elided = _ELIDED.match(word)
        if elided and not run:
            word = word[elided.end() :]
        capital = word[0].isupper() or (bool(run) and (word[0].isdigit() or elided is not None))
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


def mentions_of(text: str, entities: Iterable[str], proper_nouns: Iterable[str]) -> Mentions:
    """Return the mentions in a text: the given entities and proper nouns, and the phrases, which are found here."""
    words = list(_words(text))
    runs: list[list[str]] = [[]]
    for word, apart in words:
        if apart or word in FUNCTION_WORDS:
            runs.append([])
        if word not in FUNCTION_WORDS:
            runs[-1].append(word)
    return Mentions(
        frozenset(filter(None, entities)),
        frozenset(filter(None, proper_nouns)),
        frozenset(" ".join(run) for run in runs if len(run) > 1),
        f" {' '.join(word for word, _ in words)} ",
    )


_reading = Lock()
"""Held while a pipeline reads texts: threads share the pipeline and its cache."""


class SpacyMentions:
    """Mentions by a spaCy pipeline with a tagger and a named entity recogniser."""

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._files: ModelFiles | None = None
        self._loaded: Any = None
        self._known: dict[str, Mentions] = {}

    def find(self, texts: list[str]) -> list[Mentions]:
        """Find mentions in texts; each distinct text is read once, and the last 50,000 are cached."""
        with _reading:
            new = [text for text in dict.fromkeys(texts) if text not in self._known]
            for text, document in zip(new, self._load().pipe(new), strict=True):
                proper = {token for token in document if token.pos_ == "PROPN"}
                proper |= {token for entity in document.ents for token in entity if token.text[:1].isupper()}
                entities = {normalize(entity.text) for entity in document.ents}
                self._known[text] = mentions_of(text, entities, {normalize(token.text) for token in proper})
            mentions = [self._known[text] for text in texts]
            while len(self._known) > 50_000:
                self._known.pop(next(iter(self._known)))
            return mentions

    def entities(self, texts: Iterable[str]) -> Iterator[set[str]]:
        """Yield the entities of each text; nothing is cached, so that a whole corpus may be read."""
        stream = iter(texts)
        while part := list(islice(stream, 256)):
            with _reading:
                names = [{normalize(entity.text) for entity in document.ents} - {""} for document in self._load().pipe(part)]
            yield from names

    @property
    def files(self) -> ModelFiles:
        """The pipeline's files at the time of first use."""
        with _reading:  # threads that ask at the same time get the same fingerprint
            self._files = self._files or ModelFiles.of(_folder_of(self._pipeline))
        return self._files

    def identity(self, parameter: str) -> Config:
        """Return the identity that this pipeline adds to a component, without loading it."""
        return {parameter: PurePath(self._pipeline).name, "model_fingerprint": self.files.fingerprint}

    def _load(self) -> Any:
        with _reading:
            if self._loaded is None:
                self._loaded = _opened(self._pipeline, self.files.folder)
            return self._loaded


def _folder_of(pipeline: str) -> Path:
    """The folder of a pipeline's files; like spaCy, this prefers an installed package to a folder of the same name."""
    if importlib.util.find_spec("spacy") is None:
        raise DependencyError(f"spacy_pipeline needs spaCy: {install('spacy')}")
    package = importlib.util.find_spec(pipeline) if pipeline.isidentifier() else None
    inside = (package and package.submodule_search_locations) or ()
    folders = [config.parent for place in inside for config in Path(place).glob("*-*/config.cfg")] or [expanded(pipeline)]
    if not (folders[0] / "config.cfg").is_file():
        raise _does_not_load(pipeline, "it is neither an installed package nor the folder of a pipeline")
    return folders[0]


def _opened(pipeline: str, folder: Path) -> Any:
    import spacy

    try:
        opened = spacy.load(folder)
    except (OSError, ValueError) as error:
        raise _does_not_load(pipeline, str(error).splitlines()[0]) from error
    if not {"ner", "entity_ruler"} & set(opened.pipe_names):
        names = ", ".join(opened.pipe_names) or "nothing"
        raise ModelError(f"the spaCy pipeline {pipeline!r} recognises no entities (it has: {names})")
    return opened


def _does_not_load(pipeline: str, reason: str) -> ModelError:
    return ModelError(
        f"{pipeline!r} does not load as a spaCy pipeline ({reason}); pass the name of an installed pipeline "
        "(python -m spacy download en_core_web_sm) or its folder"
    )


RULES = "rules"
"""Runs of capitalised words and quoted titles, without any model."""

EntityRule = Annotated[str, Field(min_length=1)]
"""Method of finding entities: :data:`RULES`, or the name or folder of a spaCy pipeline."""


class EntityFinder:
    """Finds the entities of texts; a pipeline is loaded at first use."""

    def __init__(self, rule: EntityRule) -> None:
        self._spacy = SpacyMentions(rule) if rule != RULES else None

    def identity(self) -> Config:
        """Return the identity that this finder adds to a component, besides the rule itself."""
        return {} if self._spacy is None else self._spacy.identity("mentions")

    def find(self, texts: Iterable[str]) -> Iterator[set[str]]:
        """Yield the entities of each text, normalised; nothing is cached, so that a whole corpus can be read."""
        return map(entities_by_rules, texts) if self._spacy is None else self._spacy.entities(texts)
