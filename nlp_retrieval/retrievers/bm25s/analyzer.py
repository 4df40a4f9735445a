"""Texts as the numbers of their terms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.text.words.words import Words

_WORDS_REMEMBERED = 1_000_000
"""How many distinct words of users a long-lived process caches at most."""

_NO_TERM = -1


class Analyzer:
    """Turns passages, or queries to an index of them, into term numbers.

    Args:
        words: splits texts, and says which term a word is.
        vocabulary: numbers by term, for queries; None for passages, whose terms make a vocabulary.
    """

    def __init__(self, words: Words, vocabulary: dict[str, int] | None = None) -> None:
        self._words = words
        self._of_passages = vocabulary is None
        self.vocabulary = {} if vocabulary is None else vocabulary
        self._number_of = _NumberOfWord(words, self.vocabulary, grow=self._of_passages).__getitem__

    def analyze(self, texts: list[str]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return how many terms each text has, and the numbers of all terms one after another."""
        lengths = np.zeros(len(texts), np.int64)
        numbers: list[int] = []
        for position, text in enumerate(texts):
            words = self._words.split(text, passage=self._of_passages)
            numbers += map(self._number_of, words)
            lengths[position] = len(words)
        terms = np.array(numbers, np.int32)
        is_term = terms != _NO_TERM
        owners = np.repeat(np.arange(len(texts)), lengths)[is_term]
        return np.bincount(owners, minlength=len(texts)).astype(np.int32), terms[is_term]


class _NumberOfWord(dict[str, int]):
    """The number of the term that each word is, found when the word first occurs; -1 for a stop word or unknown term."""

    def __init__(self, words: Words, vocabulary: dict[str, int], *, grow: bool) -> None:
        super().__init__()
        self._words, self._vocabulary, self._grow = words, vocabulary, grow

    def __missing__(self, word: str) -> int:
        term = self._words.term(word)
        if term is None:
            number = _NO_TERM
        elif self._grow:
            number = self._vocabulary.setdefault(term, len(self._vocabulary))
        else:
            number = self._vocabulary.get(term, _NO_TERM)
        if len(self) < _WORDS_REMEMBERED:
            self[word] = number
        return number
