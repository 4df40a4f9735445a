"""The features of a profile: keywords as runs of stems, and RE2 patterns; and the groups that a query asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.rerankers.multi_signal.profile import Profile, ProfileQuestion
from nlp_retrieval.text.mentions import FUNCTION_WORDS
from nlp_retrieval.text.words import LinearPattern, Stems, in_characters

__all__ = ["Features", "Focus", "PatternMatch"]

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
    """

    group: str
    begin: int
    end: int
    text: str


@dataclass(frozen=True)
class Focus:
    """The features that count for a query.

    Args:
        groups: names, in the order of the profile.
        features: per group, the numbers of its features.
        weights: per group.
        question: the nearest question of the profile, if any.
    """

    groups: tuple[str, ...]
    features: tuple[NDArray[np.int64], ...]
    weights: tuple[float, ...]
    question: ProfileQuestion | None


class Features:
    """The keywords and the patterns of a profile, numbered; one pass over a text finds all of them.

    Args:
        profile: that holds them.
        stems: splits texts into words.
    """

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
        """Return how often each feature occurs in a text, if it does; a pattern up to three times.

        Args:
            words: the stems of the text.
            text: the text itself.
        """
        found: Counter[int] = Counter(number for number, _, _ in self._runs(words))
        if self._patterns:
            data = text.encode("utf-8", "replace")
            for number, pattern in enumerate(self._patterns, self.n_keywords):
                if spans := pattern.spans(data, COUNTED):
                    found[number] = len(spans)
        return found

    def focus(self, query: str) -> Focus:
        """Return the features that count for a query.

        A group counts if the query has its keywords (or patterns). The keywords of the profile's nearest question, and the
        groups that it names, count less. The nearest question shares most words with the query; a word that several questions
        use is divided among them; of equal ones the first.
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
        names = [name for name in self._members if name in weights]
        return Focus(
            tuple(names),
            tuple(np.unique(np.array(self._members[name], np.int64)) for name in names),
            tuple(weights[name] for name in names),
            question,
        )

    def matches(self, focus: Focus, text: str) -> list[PatternMatch]:
        """Return the matches of counting features in a text, in order; a feature of several groups yields a match for each."""
        groups: dict[int, list[str]] = {}
        for name, members in zip(focus.groups, focus.features, strict=True):
            for number in members.tolist():
                groups.setdefault(number, []).append(name)
        spans = self._stems.spans(text)
        places = [
            (number, spans[first][1], spans[last - 1][2])
            for number, first, last in self._runs([stem for stem, _, _ in spans])
            if number in groups
        ]
        data = text.encode("utf-8", "replace")
        for number, pattern in enumerate(self._patterns, self.n_keywords):
            if number in groups:
                places += [(number, begin, end) for begin, end in in_characters(data, pattern.spans(data))]
        made = {PatternMatch(group, begin, end, text[begin:end]) for number, begin, end in places for group in groups[number]}
        return sorted(made, key=lambda match: (match.begin, match.end, match.group))

    def _numbered(self, keyword: str) -> int:
        stems = tuple(self._stems.words(keyword))
        if stems not in self._keywords:
            number = self._keywords[stems] = len(self._keywords)
            self._starts.setdefault(stems[0], []).append((stems[1:], number))
        return self._keywords[stems]

    def _runs(self, words: Sequence[str]) -> Iterator[tuple[int, int, int]]:
        """Yield the keywords in a text with the first of their words, and the one after the last."""
        starts = self._starts
        for place, word in enumerate(words):
            for rest, number in starts.get(word, ()):
                end = place + 1 + len(rest)
                if not rest or tuple(words[place + 1 : end]) == rest:
                    yield number, place, end

    def _topic(self, question: ProfileQuestion) -> frozenset[str]:
        words = {word for text in (question.asked_of(None), *question.keywords) for word in self._stems.words(text)}
        return frozenset(words - self._function_words)

    def _nearest(self, words: set[str]) -> ProfileQuestion | None:
        shares = [sum(1.0 / self._shared[word] for word in words & topic) for topic in self._topics]
        if not shares or max(shares) == 0:
            return None
        return self._profile.questions[int(np.argmax(shares))]


def _of(question: Any) -> str:
    return f"question {question.number}"
