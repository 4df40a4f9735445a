"""The statements of a passage: its sentences, with the words, names and quantities that say what each is about."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from nlp_retrieval.text.mentions import FUNCTION_WORDS
from nlp_retrieval.text.quantities import Quantity, quantities_of
from nlp_retrieval.text.sentences import sentences_of

__all__ = ["Statement", "overlap_of", "statements_of", "terms_of"]

_MOST_SENTENCES, _MOST_CHARACTERS = 30, 20_000
_WORD = re.compile(r"[^\W\d_]{2,}")
_NEGATION = re.compile(r"\b(?:not|no|never|none|neither|nor|cannot|without)\b|n['\u2019]t\b", re.IGNORECASE)
_ENDINGS = ("ations", "ation", "ments", "ment", "ings", "ing", "ies", "ied", "ed", "es", "ly", "s")
_UNITS = frozenset(
    "percent cent per million billion trillion thousand mt gt kt tco mtco gtco ktco co eq mw gw kw tw mwh gwh twh ha usd"
    " eur".split()
)


@dataclass(frozen=True)
class Statement:
    """A sentence.

    Args:
        begin: where it begins in the passage, in characters.
        end: where it ends.
        text: the sentence.
        terms: stems of its words without numbers, units and function words.
        names: its capitalised words but for the first of the sentence, as stems.
        quantities: its numbers with units, their places counted in the sentence.
        negated: whether it holds a negation.
    """

    begin: int
    end: int
    text: str
    terms: frozenset[str]
    names: frozenset[str]
    quantities: tuple[Quantity, ...]
    negated: bool


def statements_of(text: str) -> tuple[Statement, ...]:
    """Return the sentences of a passage, at most 30, of its first 20,000 characters.

    Args:
        text: the content of a passage.
    """
    text = text[:_MOST_CHARACTERS]
    return tuple(_statement(text, begin, end) for begin, end in islice(sentences_of(text), _MOST_SENTENCES))


def terms_of(text: str) -> frozenset[str]:
    """Return the stems of the words of a text that say what it is about.

    Args:
        text: a sentence, or a part of one.
    """
    words = (word.casefold() for word in _WORD.findall(text))
    return frozenset(_stem(word) for word in words if word not in FUNCTION_WORDS and word not in _UNITS)


def overlap_of(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of the terms of the shorter that the longer has too; 0 where one has none.

    Args:
        one: terms.
        other: terms.
    """
    return len(one & other) / min(len(one), len(other)) if one and other else 0.0


def _statement(text: str, begin: int, end: int) -> Statement:
    sentence = text[begin:end]
    words = list(_WORD.finditer(sentence))
    names = frozenset(
        _stem(word[0].casefold()) for word in words[1:] if word[0][0].isupper() and word[0].casefold() not in _UNITS
    )
    quantities = tuple(quantities_of(sentence))
    return Statement(begin, end, sentence, terms_of(sentence), names, quantities, _NEGATION.search(sentence) is not None)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word
