"""Statements of a passage: its sentences, with the words, names and quantities of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import islice

from nlp_retrieval.text import FUNCTION_WORDS, Quantity, quantities_of, sentences_of

__all__ = ["Statement", "clause_terms", "overlap_of", "statements_of", "terms_of"]

_MOST_SENTENCES, _MOST_CHARACTERS = 30, 20_000
_WORD = re.compile(r"[^\W\d_]{2,}")
_CLAUSE = re.compile(r"[,;:()\u2013\u2014](?!\d)")
_GENERAL = frozenset(
    "reach achieve plan install total expect aim set target goal project foresee estimate amount account country government "
    "level new newly now also current currently still further overall commit commitment pledge want intend seek least most "
    "more than around about approximate nearly almost only already remain stand come become make give show says say according "
    "year end well up down near over under per capita share number value figure".split()
)
_NEGATION = re.compile(r"\b(?:not|no|never|none|neither|nor|cannot|without)\b|n['\u2019]t\b", re.IGNORECASE)
_ENDINGS = ("ations", "ation", "ments", "ment", "ings", "ing", "ies", "ied", "ed", "es", "ly", "s")
_UNITS = frozenset(
    "percent cent per million billion trillion thousand mt gt kt tco mtco gtco ktco co eq mw gw kw tw mwh gwh twh ha usd"
    " eur".split()
)

_EXPLAINS = re.compile(
    r"\b(?:because|in other words|that is to say|i\.e\.|namely|which means|this means|the reason|for example|for instance|"
    r"is defined as|are defined as|refers? to|consists? of|in order to|so that)\b",
    re.IGNORECASE,
)
_LEADS_TO = re.compile(
    r"\b(?:leads? to|led to|leading to|results? in|resulted in|resulting in|causes?|caused|causing|drives?|drove|"
    r"brings? about|brought about|gives? rise to|triggers?|triggered|contributes? to|contributed to)\b(?!\s+by\b)",
    re.IGNORECASE,
)
_COMES_FROM = re.compile(
    r"\b(?:due to|owing to|because of|caused by|driven by|as a result of|as a consequence of|thanks to|attributable to|"
    r"stems? from|results? from|resulted from)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Statement:
    """A sentence.

    Args:
        begin: of the sentence in the passage, in characters.
        end: of the sentence.
        text: the sentence.
        terms: stems of its words without numbers, units, function words and parentheses.
        names: its capitalised words except the first of the sentence, as stems.
        quantities: its numbers with units, with positions in the sentence.
        negated: whether it holds a negation.
        explains: whether it holds explaining words.
        cause: the terms of a cause that it states; may be empty.
        effect: the terms of the effect of that cause.
    """

    begin: int
    end: int
    text: str
    terms: frozenset[str]
    names: frozenset[str]
    quantities: tuple[Quantity, ...]
    negated: bool
    explains: bool
    cause: frozenset[str]
    effect: frozenset[str]


def statements_of(text: str) -> tuple[Statement, ...]:
    """Return the sentences of a passage, at most 30, of its first 20,000 characters.

    Args:
        text: the content of a passage.
    """
    text = text[:_MOST_CHARACTERS]
    return tuple(_statement(text, begin, end) for begin, end in islice(sentences_of(text), _MOST_SENTENCES))


def terms_of(text: str) -> frozenset[str]:
    """Return the stems of the content words of a text.

    Args:
        text: a sentence, or a part of one.
    """
    words = (word.casefold() for word in _WORD.findall(text))
    return frozenset(_stem(word) for word in words if word not in FUNCTION_WORDS and word not in _UNITS)


def overlap_of(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of the terms of the shorter that the longer has too; 0 if one has none.

    Args:
        one: terms.
        other: terms.
    """
    return len(one & other) / min(len(one), len(other)) if one and other else 0.0


def clause_terms(statement: Statement, quantity: Quantity, besides: frozenset[str]) -> frozenset[str]:
    """Return the subject of a quantity: the terms of its clause, without general words.

    Args:
        statement: a sentence.
        quantity: one of its quantities.
        besides: further terms to ignore, such as those of the subject of the whole document.
    """
    begin, end = 0, len(statement.text)
    for match in _CLAUSE.finditer(statement.text):
        if match.end() <= quantity.begin:
            begin = match.end()
        elif match.start() >= quantity.end:
            end = match.start()
            break
    return terms_of(statement.text[begin:end]) - _general_stems() - besides


@cache
def _general_stems() -> frozenset[str]:
    return frozenset(map(_stem, _GENERAL)) | _GENERAL


def _statement(text: str, begin: int, end: int) -> Statement:
    sentence = text[begin:end]
    words = list(_WORD.finditer(sentence))
    names = frozenset(
        _stem(word[0].casefold()) for word in words[1:] if word[0][0].isupper() and word[0].casefold() not in _UNITS
    )
    quantities = tuple(quantities_of(sentence))
    negated, explains = (pattern.search(sentence) is not None for pattern in (_NEGATION, _EXPLAINS))
    return Statement(
        begin, end, sentence, terms_of(sentence), names, quantities, negated, explains, *_cause_and_effect(sentence)
    )


def _cause_and_effect(sentence: str) -> tuple[frozenset[str], frozenset[str]]:
    backward = _COMES_FROM.search(sentence)
    match = backward or _LEADS_TO.search(sentence)
    if match is None:
        return frozenset(), frozenset()
    before, after = terms_of(sentence[: match.start()]), terms_of(sentence[match.end() :])
    return (after, before) if backward else (before, after)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word
