"""The features of a profile: keywords as runs of stems, and RE2 patterns; and the groups that a query asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.rerankers.multi_signal.profile import Profile, ProfileQuestion
from nlp_retrieval.text.mentions import FUNCTION_WORDS
from nlp_retrieval.text.quantities import Quantity, quantities_of, same_value, years_of
from nlp_retrieval.text.words import LinearPattern, Stems, in_characters, stems_of_language

SIGNALS = ("transformer", "word_vectors", "patterns", "fuzzy")


def weighted_mean(columns: Mapping[str, Scores], weights: Mapping[str, float], n_passages: int) -> Scores:
    """Return the weighted mean of the signals that a passage has; the weights of the others are left out."""
    total, weight = np.zeros(n_passages), np.zeros(n_passages)
    for name, column in columns.items():
        present = ~np.isnan(column)
        total[present] += weights[name] * column[present]
        weight[present] += weights[name]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Scores = np.where(weight > 0, total / weight, np.nan)
    return mean


MENTIONED, KEYWORDS_OF_QUESTION, GROUP_OF_QUESTION = 1.0, 0.25, 0.1
"""Weights of a group that the query mentions, of the keywords of the nearest question, and of a group named there."""

COUNTED = 3
"""Most matches of a pattern that count."""


@dataclass(frozen=True)
class PatternMatch:
    """A match of a keyword or a pattern in a text.

    Args:
        group: of the profile, or ``question 3`` for a keyword of a question.
        begin: where it begins, in characters.
        end: where it ends.
        text: the match itself.

    Examples:
        >>> PatternMatch("targets", 0, 4, "2030").text
        '2030'
    """

    group: str
    begin: int
    end: int
    text: str


class FocusGroup(NamedTuple):
    """A group of features that counts for a query: its name, the numbers of its features, and its weight."""

    name: str
    features: NDArray[np.int64]
    weight: float


class Features:
    """The keywords and the patterns of a profile, numbered; one pass over a text finds all of them."""

    def __init__(self, profile: Profile, stems: Stems) -> None:
        self._profile = profile
        self._stems = stems
        self._keywords: dict[tuple[str, ...], int] = {}
        self._starts: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        self._patterns: list[LinearPattern] = []
        self._members: dict[str, list[int]] = {}
        for name, keywords in profile.groups.items():
            self._members[name] = [self._numbered(keyword) for keyword in keywords]
        for question in profile.questions:
            self._members[_of(question)] = [self._numbered(keyword) for keyword in question.keywords]
        self.n_keywords = len(self._keywords)
        for name, patterns in profile.patterns.items():
            for pattern in patterns:
                self._members.setdefault(name, []).append(self.n_keywords + len(self._patterns))
                self._patterns.append(LinearPattern.compiled(pattern, f"patterns.{name}"))
        self._function_words = frozenset(map(stems.stem, FUNCTION_WORDS))
        self._topics = [self._topic(question) for question in profile.questions]
        self._shared = Counter(stem for topic in self._topics for stem in topic)

    def __len__(self) -> int:
        return self.n_keywords + len(self._patterns)

    def find(self, words: Sequence[str], text: str) -> dict[int, int]:
        """Return how often each feature occurs in a text, if it does; a pattern up to three times."""
        counts: Counter[int] = Counter(number for number, _, _ in self._runs(words))
        if self._patterns:
            data = text.encode("utf-8", "replace")
            for number, pattern in enumerate(self._patterns, self.n_keywords):
                if spans := pattern.spans(data, COUNTED):
                    counts[number] = len(spans)
        return counts

    def focus(self, query: str) -> list[FocusGroup]:
        """Return the groups of features that count for a query: those whose keywords or patterns it has.

        The keywords of the profile's nearest question, which shares most words with the query, and the groups that it names,
        count less.
        """
        words = self._stems.words(query)
        present = self.find(words, query).keys()
        weights: dict[str, float] = {}
        question = self._nearest({word for word in words if word not in self._function_words})
        if question is not None:
            if question.keywords:
                weights[_of(question)] = KEYWORDS_OF_QUESTION
            weights |= dict.fromkeys(question.groups, GROUP_OF_QUESTION)
        for name in [*self._profile.groups, *self._profile.patterns]:
            if not present.isdisjoint(self._members[name]):
                weights[name] = MENTIONED
        return [
            FocusGroup(name, np.unique(np.array(members, np.int64)), weights[name])
            for name, members in self._members.items()
            if name in weights
        ]

    def matches(self, focus: Sequence[FocusGroup], text: str) -> list[PatternMatch]:
        """Return the matches of counting features in a text; a feature of several groups yields a match for each."""
        groups: dict[int, list[str]] = {}
        for group in focus:
            for number in group.features.tolist():
                groups.setdefault(number, []).append(group.name)
        spans = self._stems.spans(text)
        runs = self._runs([stem for stem, _, _ in spans])
        places = [(number, spans[first][1], spans[last - 1][2]) for number, first, last in runs if number in groups]
        data = text.encode("utf-8", "replace")
        for number, pattern in enumerate(self._patterns, self.n_keywords):
            if number in groups:
                places += [(number, begin, end) for begin, end in in_characters(data, pattern.spans(data))]
        return [PatternMatch(group, begin, end, text[begin:end]) for number, begin, end in places for group in groups[number]]

    def _numbered(self, keyword: str) -> int:
        stems = tuple(self._stems.words(keyword))
        if stems not in self._keywords:
            number = self._keywords[stems] = len(self._keywords)
            self._starts.setdefault(stems[0], []).append((stems[1:], number))
        return self._keywords[stems]

    def _runs(self, words: Sequence[str]) -> Iterator[tuple[int, int, int]]:
        """Yield the keywords in a text with the first of their words, and the one after the last."""
        starts = self._starts
        for begin, word in enumerate(words):
            for rest, number in starts.get(word, ()):
                end = begin + 1 + len(rest)
                if not rest or tuple(words[begin + 1 : end]) == rest:
                    yield number, begin, end

    def _topic(self, question: ProfileQuestion) -> frozenset[str]:
        words = {word for text in (question.asked_of(None), *question.keywords) for word in self._stems.words(text)}
        return frozenset(words - self._function_words)

    def _nearest(self, words: set[str]) -> ProfileQuestion | None:
        shares = [sum(1.0 / self._shared[word] for word in words & topic) for topic in self._topics]
        if not shares or max(shares) == 0:
            return None
        return self._profile.questions[int(np.argmax(shares))]


def _of(question: ProfileQuestion) -> str:
    return f"question {question.number}"


# The signal of patterns: the share of a query's keywords, patterns and numbers that a passage has.


def group_scores(
    focus: Sequence[FocusGroup],
    n_keywords: int,
    features: NDArray[np.int64],
    counts: NDArray[np.int64],
    owner: NDArray[np.int64],
    n: int,
) -> tuple[Scores, float]:
    """Return the weighted sum of the groups' scores of passages, ``[passages]``, and the sum of the weights.

    A passage has m distinct keywords and matches of patterns of a group, up to three times each; the group scores 1 - 2^-m, so
    that each further match adds half as much as the one before.
    """
    total = np.zeros(n)
    counted = np.where(features < n_keywords, 1, np.minimum(counts, COUNTED))
    for group in focus:
        matching = np.isin(features, group.features)
        total += group.weight * saturated(np.bincount(owner[matching], counted[matching], n).astype(np.float64))
    return total, sum(group.weight for group in focus)


def saturated(matches: Scores) -> Scores:
    """1 - 2^-m."""
    share: Scores = -np.expm1(-np.log(2.0) * matches)
    return share


# Numbers with units, and years: those of a query that a passage has too, in whatever unit.

QUANTITIES, YEARS = "quantities", "years"


@dataclass(frozen=True)
class AskedNumbers:
    """The numbers that a query names."""

    years: frozenset[str]
    quantities: tuple[Quantity, ...]

    @classmethod
    def of(cls, query: str) -> AskedNumbers:
        """Read the numbers of a query."""
        years = frozenset(str(end) for year in years_of(query) for end in (year.first, year.last))
        return cls(years, tuple(quantities_of(query)))

    def __bool__(self) -> bool:
        return bool(self.years or self.quantities)

    def agreeing(self, quantities: Sequence[Quantity]) -> int:
        """Return how many of the wanted quantities are among others."""
        return sum(any(_agree(wanted, other) for other in quantities) for wanted in self.quantities)

    def matches(self, text: str) -> list[PatternMatch]:
        """Return the positions of the wanted numbers in a text."""
        matches = [
            PatternMatch(QUANTITIES, other.begin, other.end, text[other.begin : other.end])
            for other in (quantities_of(text) if self.quantities else [])
            if any(_agree(quantity, other) for quantity in self.quantities)
        ]
        words = stems_of_language(None).spans(text) if self.years else []
        return matches + [PatternMatch(YEARS, begin, end, text[begin:end]) for word, begin, end in words if word in self.years]


def _agree(first: Quantity, second: Quantity) -> bool:
    return first.unit == second.unit and same_value(first, second)
