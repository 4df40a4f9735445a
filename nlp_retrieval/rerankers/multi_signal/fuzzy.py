"""The fuzzy signal: words of a passage that resemble those of the query, such as misspelt, inflected or compound ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.errors import DependencyError, install
from nlp_retrieval.rerankers.multi_signal.texts import KnownText, KnownTexts, Numbers, Rarity, joined
from nlp_retrieval.text.mentions import FUNCTION_WORDS
from nlp_retrieval.text.words import Stems

_SHORTEST = 4
"""Shorter words, and words with a digit, have no similar words: 2030 is not 2035, and bus is not bau."""

_KEPT = 2048
_MOST_TERMS = 100
_GAP = 3
"""Most words from one word of a phrase to the next; function words may stand between them."""

_PHRASES = 0.15
"""Share of the score that phrases have: two words of the query that follow each other."""


class FuzzyWords:
    """Likeness of the words of queries to those of passages."""

    def __init__(self, stems: Stems, threshold: float) -> None:
        self._stems = stems
        self._threshold = threshold
        self._function_words = frozenset(map(stems.stem, FUNCTION_WORDS))

    def scores(self, query: str, read: KnownTexts, texts: Sequence[KnownText], rarity: Rarity | None) -> Scores | None:
        """Score passages: the mean, over the words and the phrases of the query, of the likeness of what is most like it.

        Likeness is rescaled to 0 at the threshold and 1 for equal words, and squared. A phrase is two words of the query that
        follow each other, function words aside; it is as alike as the less alike of its words, where these follow each other in
        the passage. Rarer words count more, if their rarity is known.
        """
        words = dict.fromkeys(word for word in self._stems.words(query) if word not in self._function_words)
        terms = list(words)[:_MOST_TERMS]
        if not terms:
            return None
        weights = [1.0 if rarity is None else rarity.of(read.numbers.get(term)) for term in terms]
        alike = [self._similar_words(term, read) for term in terms]
        met = np.unique(np.concatenate([numbers for numbers, _ in alike]))
        compact = np.full(len(read.vocabulary), -1, np.int64)
        compact[met] = np.arange(len(met))
        likeness = np.zeros((len(terms), len(met)))
        for row, (numbers, values) in zip(likeness, alike, strict=True):
            row[compact[numbers]] = values
        sequence, owner = joined(text.words for text in texts)
        sequence = compact[sequence]
        places = np.flatnonzero(sequence >= 0)
        sequence, owner = sequence[places], owner[places]
        best = [_best_of(row[sequence], owner, len(texts)) for row in likeness]
        scores = _mean(best, weights)
        if len(terms) > 1:
            scores = (1 - _PHRASES) * scores + _PHRASES * _mean(
                *_phrases(likeness, weights, sequence, owner, places, len(texts))
            )
        within: Scores = np.minimum(scores, 1.0)
        return within

    def _similar_words(self, term: str, read: KnownTexts) -> tuple[Numbers, Scores]:
        """The words of the vocabulary that resemble a term, with their likeness; earlier comparisons are remembered."""
        words, values, compared = read.similar.pop(term, (np.zeros(0, np.int64), np.zeros(0), 0))
        if compared < len(read.vocabulary):
            more, likeness = self._compare(term, read.vocabulary[compared:])
            words, values = np.concatenate([words, compared + more]), np.concatenate([values, likeness])
        if len(read.similar) >= _KEPT:
            del read.similar[next(iter(read.similar))]
        read.similar[term] = words, values, len(read.vocabulary)
        return words, values

    def _compare(self, term: str, vocabulary: list[str]) -> tuple[Numbers, Scores]:
        if not _comparable(term) or self._threshold == 1:
            same = np.array([number for number, word in enumerate(vocabulary) if word == term], np.int64)
            return same, np.ones(len(same))
        ratios = _indel()([term], vocabulary)[0].astype(np.float64)
        close = np.flatnonzero(ratios > self._threshold)
        close = close[[_comparable(vocabulary[number]) for number in close.tolist()]] if len(close) else close
        return close, ((ratios[close] - self._threshold) / (1.0 - self._threshold)) ** 2


def _phrases(
    likeness: Scores, weights: Sequence[float], sequence: Numbers, owner: Rows, places: Rows, n_passages: int
) -> tuple[list[Scores], list[float]]:
    """Return the likeness of each phrase of a query to those of passages, and the weights of the phrases."""
    pairs = []
    for step in range(1, _GAP + 1):
        first = np.flatnonzero((owner[step:] == owner[:-step]) & (places[step:] - places[:-step] <= _GAP))
        pairs.append((sequence[first], sequence[first + step], owner[first]))
    before, after, owners = (np.concatenate(column) for column in zip(*pairs, strict=True))
    best = [_best_of(np.minimum(one[before], other[after]), owners, n_passages) for one, other in pairwise(likeness)]
    return best, [(one + other) / 2 for one, other in pairwise(weights)]


def _best_of(values: Scores, owner: Rows, n_passages: int) -> Scores:
    """Return the highest value of each passage; 0 without any."""
    best = np.zeros(n_passages)
    there = np.flatnonzero(values)
    np.maximum.at(best, owner[there], values[there])
    return best


def _mean(columns: Sequence[Scores], weights: Sequence[float]) -> Scores:
    total = np.zeros(len(columns[0]))
    for column, weight in zip(columns, weights, strict=True):
        total += weight * column
    mean: Scores = total / sum(weights)
    return mean


def _comparable(word: str) -> bool:
    return len(word) >= _SHORTEST and not any(letter.isdigit() for letter in word)


def _indel() -> Any:
    try:
        from rapidfuzz.distance import Indel
        from rapidfuzz.process import cdist
    except ImportError:
        raise DependencyError(f"fuzzy matching needs rapidfuzz: {install('signals')}") from None

    def ratios(terms: list[str], words: list[str]) -> Any:
        return cdist(terms, words, scorer=Indel.normalized_similarity, dtype=np.float32, workers=1)

    return ratios
