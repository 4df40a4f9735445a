"""A profile: the questions of a domain, its keywords and patterns, and the weights of signals; read from YAML.

A profile is data. It holds texts, numbers and only RE2 patterns, so that none of it can run code or take more than linear time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from nlp_retrieval.core.components.registry import error_place
from nlp_retrieval.core.files.yaml_text import read_yaml
from nlp_retrieval.errors import ConfigurationError, QueryError, SourceError, nearest
from nlp_retrieval.text.printing import printable
from nlp_retrieval.text.words import LinearPattern, stems_of_language

_FOLDER = Path(__file__).parent / "profiles"
_Text = Annotated[str, Field(min_length=1, max_length=2000)]
_Weight = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_FROZEN = ConfigDict(frozen=True, extra="forbid", strict=True)

ValueKind = Literal["target", "baseline", "finance"]
"""Values that an answer may hold: a target, the year or scenario that one is measured against, an amount of money."""


class SignalWeights(BaseModel):
    """Weights of the signals. Only their proportions matter; not all of them are 0.

    Args:
        transformer: of the likeness of sentence vectors.
        word_vectors: of the likeness of word vectors.
        patterns: of keywords and patterns that are found.
        fuzzy: of words like those of the question.

    Examples:
        >>> SignalWeights(transformer=0.5, word_vectors=0.1, patterns=0.3, fuzzy=0.1).transformer
        0.5
    """

    model_config = _FROZEN

    transformer: _Weight = 0.25
    word_vectors: _Weight = 0.20
    patterns: _Weight = 0.30
    fuzzy: _Weight = 0.25

    @model_validator(mode="after")
    def _not_all_zero(self) -> SignalWeights:
        if not any(self.as_dict().values()):
            raise ValueError("all weights are 0; at least one must be above 0")
        return self

    def as_dict(self) -> dict[str, float]:
        """The weights by the names of the signals, in their order."""
        return {name: getattr(self, name) for name in type(self).model_fields}


class ProfileQuestion(BaseModel):
    """One question that is asked of every subject.

    Args:
        number: from 1, distinct.
        text: the question; ``{subject}`` is replaced by the country, the drug or the contract in question.
        keywords: words and phrases that answers use, distinct.
        groups: names of keyword groups and pattern groups that count for this question, besides those whose keywords it has.
        value: what an answer holds: ``target``, ``baseline`` (what it is measured against) or ``finance``; None for no value.

    Examples:
        >>> question = load_profile("guidelines").questions[0]
        >>> question.number
        1
    """

    model_config = _FROZEN

    number: Annotated[int, Field(ge=1, le=10_000)]
    text: _Text
    keywords: tuple[_Text, ...] = ()
    groups: tuple[_Text, ...] = ()
    value: ValueKind | None = None

    def asked_of(self, subject: str | None) -> str:
        """Return the text of the question for a subject; without one, ``{subject}`` is left out."""
        if subject is None:
            return " ".join(self.text.replace("{subject}", " ").split())
        return self.text.replace("{subject}", subject)


class Profile(BaseModel):
    """Questions and features of a domain. Create profiles by :func:`load_profile` or :meth:`from_mapping`.

    Args:
        name: of the profile.
        description: its purpose.
        subject: the metadata field with the subject of a text; questions are asked per subject.
        groups: keywords by the name of their group; a keyword is a word or a phrase, compared by stems at word borders.
        patterns: RE2 patterns by the name of their group, compared without case; a group of keywords of the same name, if there
            is one, counts together with them.
        questions: numbered from 1 without gaps.
        weights: of the signals.
        min_similarity: lowest score of a result, 0 to 1.
        top_k: length of a result list.
        n_per_document: most results of one document; None for any number.
        fuzzy_threshold: least likeness of similar words, 0 to 1.
        max_hops: most relations to follow, 1 to 3, if no configuration of a study gives it (``hop:``).
        language: of the stemmer (Snowball's names); None compares unstemmed words.

    Examples:
        >>> profile = load_profile("guidelines")
        >>> profile.name, len(profile.questions) > 0
        ('guidelines', True)
    """

    model_config = _FROZEN

    name: _Text
    description: str = ""
    subject: _Text
    groups: Mapping[str, tuple[_Text, ...]] = Field(default_factory=dict)
    patterns: Mapping[str, tuple[_Text, ...]] = Field(default_factory=dict)
    questions: tuple[ProfileQuestion, ...] = ()
    weights: SignalWeights = SignalWeights()
    min_similarity: _Share = 0.2
    top_k: Annotated[int, Field(ge=1)] = 20
    n_per_document: Annotated[int, Field(ge=1)] | None = None
    fuzzy_threshold: _Share = 0.6
    max_hops: Annotated[int, Field(ge=1, le=3)] = 2
    language: str | None = "english"

    @model_validator(mode="after")
    def _consistent(self) -> Profile:
        words = stems_of_language(self.language).words
        _check_repeated(words, [(f"groups.{name}", keywords) for name, keywords in self.groups.items()])
        for name, patterns in self.patterns.items():
            for pattern in patterns:
                LinearPattern.compiled(pattern, f"patterns.{name}")
        numbers = [question.number for question in self.questions]
        if missing := sorted(set(range(1, len(numbers) + 1)) - set(numbers)):
            raise ConfigurationError(f"question {missing[0]} is missing; number the {len(numbers)} questions from 1, each once")
        for question in self.questions:
            _check_repeated(words, [(f"the keywords of question {question.number}", question.keywords)])
            for name in question.groups:
                if name not in (names := {*self.groups, *self.patterns}):
                    raise ConfigurationError(f"question {question.number}: there is no group {name!r}; {nearest(name, names)}")
        return self

    @classmethod
    def from_mapping(cls, settings: Mapping[str, Any], where: str = "profile") -> Profile:
        """Create a profile from plain values, as in YAML; a ConfigurationError says where one is wrong (``where``)."""
        try:
            with error_place(where):
                return cls.model_validate(_tuples(settings))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            location = ".".join(map(str, first["loc"]))
            if first["type"] == "extra_forbidden":
                cure = f"; {nearest(location, cls.model_fields)}" if len(first["loc"]) == 1 else ""
                raise ConfigurationError(f"{where}: unknown key {location!r}{cure}") from None
            given = "" if first["type"] in ("value_error", "missing") else f", not {str(first['input'])[:40]!r}"
            fault = printable(first["msg"].removeprefix("Value error, ")) + given
            raise ConfigurationError(f"{where}{f', {location}' if location else ''}: {fault}") from None

    def question(self, number: int) -> ProfileQuestion:
        """Return a question by its number; a ConfigurationError lists those there are."""
        numbered = next((question for question in self.questions if question.number == number), None)
        if numbered is not None:
            return numbered
        valid = f"they are numbered 1 to {len(self.questions)}" if self.questions else "it has none"
        raise ConfigurationError(f"the profile {self.name!r} has no question {number!r}; {valid}")

    def chosen_questions(self, numbers: int | Sequence[int] | None) -> list[ProfileQuestion]:
        """Return questions by their numbers, each once; None for all."""
        if numbers is None:
            return list(self.questions)
        chosen = [numbers] if isinstance(numbers, int) else list(dict.fromkeys(numbers))
        if not chosen:
            raise QueryError("the list of questions is empty; leave it out to ask all")
        return [self.question(number) for number in chosen]


def profile_names() -> list[str]:
    """Return the names of the profiles that come with the package."""
    return sorted(file.stem for file in _FOLDER.glob("*.yaml"))


def load_profile(name_or_path: str | Path) -> Profile:
    """Read a profile.

    Args:
        name_or_path: the name of one that comes with the package, or the path of a YAML file.

    Raises:
        ConfigurationError: there is no profile of that name, or something in it is wrong.
        SourceError: the file is missing or cannot be read.

    Examples:
        >>> profile = load_profile("guidelines")
        >>> profile.name, len(profile.questions) > 0
        ('guidelines', True)
    """
    path = profile_path(name_or_path)
    return Profile.from_mapping(read_yaml(path), str(path))


def profile_path(name_or_path: str | Path) -> Path:
    """Return the path of a profile, without reading it."""
    text = str(name_or_path)
    is_path = isinstance(name_or_path, Path) or text.endswith((".yaml", ".yml")) or "/" in text or "\\" in text
    path = Path(text) if is_path else _FOLDER / f"{text}.yaml"
    if os.path.isfile(path):  # noqa: PTH113 -- False for a name that is too long, or has a zero byte
        return path
    known = profile_names()
    if is_path:
        raise SourceError(f"there is no profile at {printable(text)}; profiles of the package: {', '.join(known)}")
    raise ConfigurationError(
        f"there is no profile {printable(text)!r}; {nearest(text, known)}; name a file of your own by its path: ./mine.yaml"
    )


def _tuples(value: Any) -> Any:
    """Lists as tuples: a frozen model holds only immutable values."""
    if isinstance(value, list | tuple):
        return tuple(_tuples(inner) for inner in value)
    if isinstance(value, Mapping):
        return {key: _tuples(inner) for key, inner in value.items()}
    return value


def _check_repeated(words: Callable[[str], list[str]], lists: Iterable[tuple[str, Iterable[str]]]) -> None:
    """Refuse keywords without a word in them, and two of the same stems."""
    seen: dict[tuple[str, ...], str] = {}
    for where, keywords in lists:
        for keyword in keywords:
            stems = tuple(words(keyword))
            if not stems:
                raise ConfigurationError(f"{where}: the keyword {keyword!r} has no word in it; leave it out")
            if stems in seen:
                raise ConfigurationError(
                    f"{where}: the keyword {keyword!r} repeats {seen[stems]} (words are compared by their stems); keep one"
                )
            seen[stems] = f"{keyword!r} in {where}"
