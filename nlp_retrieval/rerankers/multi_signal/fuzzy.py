"""The fuzzy signal: words of a passage that are like those of the query, be they misspelt, inflected or compounded."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.errors import DependencyError, install
from nlp_retrieval.rerankers.multi_signal.texts import AnalysedTexts, Rarity
from nlp_retrieval.text.mentions import FUNCTION_WORDS
from nlp_retrieval.text.stems import Stems

__all__ = ["FuzzyWords"]

_SHORTEST = 4
"""Shorter words, and words with a digit in them, are like themselves only: 2030 is not 2035, and bus not bau."""

_KEPT = 2048
_MOST_TERMS = 100


class FuzzyWords:
    """Likeness of the words of queries to those of passages.

    Two words are compared by their stems: 1 - d / (n + m), d being the fewest letters to insert and delete that make one of
    the other, n and m their lengths.

    Args:
        stems: splits texts into words.
        threshold: words less alike than this are not alike at all, 0 to 1.
    """

    def __init__(self, stems: Stems, threshold: float) -> None:
        self._stems = stems
        self._threshold = threshold
        self._function_words = frozenset(map(stems.stem, FUNCTION_WORDS))
        self._known: OrderedDict[str, tuple[NDArray[np.int64], NDArray[np.float64], int]] = OrderedDict()
        self._epoch = -1

    def terms(self, query: str) -> list[str]:
        """Return the stems of a query's words without function words, each once; the first 100."""
        words = dict.fromkeys(word for word in self._stems.words(query) if word not in self._function_words)
        return list(words)[:_MOST_TERMS]

    def scores(self, query: str, texts: AnalysedTexts, slots: Rows, rarity: Rarity | None = None) -> Scores | None:
        """Score passages: the mean, over the words of the query, of the likeness of the word most like it.

        A likeness counts from the threshold, where it is 0, to 1, and as its square: the same word is worth much more than a
        like one. Rarer words count more, where it is known how rare they are. The score is between 0 and 1, and never lower
        with a word more in the passage.

        Args:
            query: what was asked.
            texts: hold the passages.
            slots: ``[passages]``.
            rarity: how rare words are; None to count all alike.

        Returns:
            ``[passages]``; None where the query has no word but function words.

        Raises:
            DependencyError: rapidfuzz is not installed.
        """
        terms = self.terms(query)
        if not terms:
            return None
        weights = [1.0 if rarity is None else rarity.of(texts.number_of(term)) for term in terms]
        alike = [self._alike(term, texts) for term in terms]
        met = np.zeros(len(texts.vocabulary), np.bool_)
        for words, _ in alike:
            met[words] = True
        found, owner = texts.words.of(slots)
        here = np.flatnonzero(met[found])
        found, owner = found[here], owner[here]
        total = np.zeros(len(slots))
        likeness = np.zeros(len(met))
        for weight, (words, values) in zip(weights, alike, strict=True):
            likeness[words] = values
            values_there = likeness[found]
            alike_there = np.flatnonzero(values_there)
            best = np.zeros(len(slots))
            np.maximum.at(best, owner[alike_there], values_there[alike_there])
            total += weight * best
            likeness[words] = 0.0
        scores: Scores = np.minimum(total / sum(weights), 1.0)
        return scores

    def _alike(self, term: str, texts: AnalysedTexts) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The words of the vocabulary that are like a term, and how much; what was compared before is remembered."""
        if self._epoch != texts.epoch:
            self._known.clear()
            self._epoch = texts.epoch
        words, values, compared = self._known.get(term, (np.zeros(0, np.int64), np.zeros(0), 0))
        if compared < len(texts.vocabulary):
            more, how = self._compare(term, texts.vocabulary[compared:])
            words, values = np.concatenate([words, compared + more]), np.concatenate([values, how])
            self._known[term] = words, values, len(texts.vocabulary)
        self._known.move_to_end(term)
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return words, values

    def _compare(self, term: str, vocabulary: list[str]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        if not _comparable(term) or self._threshold == 1:
            same = np.array([number for number, word in enumerate(vocabulary) if word == term], np.int64)
            return same, np.ones(len(same))
        ratios = _indel()([term], vocabulary)[0].astype(np.float64)
        close = np.flatnonzero(ratios > self._threshold)
        close = close[[_comparable(vocabulary[number]) for number in close.tolist()]] if len(close) else close
        return close, ((ratios[close] - self._threshold) / (1.0 - self._threshold)) ** 2


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
