"""Opposition of a claim and a passage: negation in only one of them, or words of opposite meaning."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from nlp_retrieval.text import as_latin, stems_of_language

_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|neither|nor|cannot|without|lacks?|lacked|lacking|fail(?:s|ed)?|unable|absence|"
    r"hardly|barely|rarely|unlikely|false|untrue|myth|incorrect|refuted?|denie[sd]|reject(?:s|ed)?)\b|n['\u2019]t\b",
    re.IGNORECASE,
)

_PAIRS = (
    "increase decrease", "increases decreases", "increased decreased", "increasing decreasing", "increase reduce",
    "increases reduces", "increased reduced", "increasing reducing", "higher lower", "high low", "highest lowest",
    "more less", "more fewer", "most least", "greater smaller", "greater lower", "larger smaller", "large small",
    "largest smallest", "longer shorter", "long short", "before after", "earlier later", "early late", "first last",
    "better worse", "best worst", "positive negative", "positively negatively", "promote inhibit", "promotes inhibits",
    "promoted inhibited", "activate inhibit", "activates inhibits", "activation inhibition", "activation suppression",
    "enhance impair", "enhances impairs", "enhances reduces", "enhanced impaired", "enhances suppresses",
    "induces suppresses", "induces prevents", "induces inhibits", "stimulates inhibits", "upregulated downregulated",
    "upregulates downregulates", "presence absence", "present absent", "cause prevent", "causes prevents",
    "improve worsen", "improves worsens", "improved worsened", "gain loss", "gains losses", "gained lost", "win lose",
    "won lost", "wins loses", "success failure", "successful unsuccessful", "effective ineffective", "able unable",
    "likely unlikely", "common rare", "often rarely", "always never", "all none", "above below", "over under", "north south",
    "northern southern", "east west", "eastern western", "left right", "male female", "man woman", "men women",
    "father mother", "son daughter", "brother sister", "husband wife", "born died", "alive dead", "living dead", "old young",
    "older younger", "oldest youngest", "hot cold", "warm cool", "warmer cooler", "warming cooling", "wet dry", "fast slow",
    "faster slower", "strong weak", "stronger weaker", "rich poor", "safe dangerous", "safe unsafe", "good bad", "true false",
    "legal illegal", "public private", "rise fall", "rises falls", "rose fell", "rising falling", "grow shrink",
    "growing shrinking", "grew shrank", "expand contract", "accept reject", "accepted rejected", "agree disagree",
    "support oppose", "supports opposes", "supported opposed", "allow forbid", "allowed banned", "include exclude",
    "includes excludes", "included excluded", "maximum minimum", "major minor", "majority minority", "upper lower",
    "sensitive resistant", "sensitivity resistance", "susceptible resistant", "dependent independent", "same different",
    "similar different", "acute chronic", "benign malignant", "active inactive", "complete incomplete", "known unknown",
    "same other", "only also", "full empty", "open closed", "start end", "begins ends", "began ended", "started stopped",
    "beneficial harmful", "benefit harm", "protects harms", "hero villain", "fiction nonfiction", "fictional real",
    "solo group", "single married", "domestic foreign", "import export", "buy sell", "bought sold", "arrive depart",
    "opened closed", "opens closes", "appear disappear", "appeared disappeared", "create destroy", "created destroyed",
    "attack defend", "attacked defended", "add remove", "added removed", "enter leave", "entered left", "approve reject",
    "approved rejected", "pass fail", "passed failed", "cheap expensive", "deep shallow", "easy difficult", "near far",
    "guilty innocent", "inside outside", "inner outer", "internal external", "wide narrow", "natural artificial",
    "permanent temporary", "possible impossible", "rural urban", "simple complex", "tall short", "victory defeat",
    "voluntary mandatory", "optional mandatory", "direct indirect", "regular irregular", "significant insignificant",
    "visible invisible", "stable unstable", "necessary unnecessary", "popular unpopular", "related unrelated",
    "certain uncertain", "usual unusual", "healthy unhealthy", "accurate inaccurate", "consistent inconsistent",
    "correct incorrect", "efficient inefficient", "sufficient insufficient", "adequate inadequate", "accelerate slow",
    "accelerated slowed", "strengthen weaken", "strengthens weakens", "strengthened weakened", "raise lower",
    "raises lowers", "raised lowered", "widen narrow", "widened narrowed", "shortened lengthened", "shortens lengthens",
)  # fmt: skip

_STANCES = (
    "recommendation against", "recommended against", "advice against", "advised against", "urged against", "request against",
    "support against", "support objection", "support protest", "support opposition", "consent objection", "approval objection",
    "recommendation objection", "recommended opposed", "recommended objected", "advised opposed", "urged opposed",
    "welcomed opposed", "welcomed criticised", "praised criticised", "backed opposed", "endorsed opposed", "favoured opposed",
    "defended criticised",
)  # fmt: skip
"""Opposite stances to something; nothing to put in a word's place, since they take other words around them."""


def _antonyms() -> dict[str, frozenset[str]]:
    antonyms: dict[str, set[str]] = {}
    for pair in _PAIRS:
        first, second = pair.split()
        antonyms.setdefault(first, set()).add(second)
        antonyms.setdefault(second, set()).add(first)
    return {word: frozenset(others) for word, others in antonyms.items()}


ANTONYMS = _antonyms()
"""Words of the opposite meaning, by word."""


@cache
def _opposite_stems() -> dict[str, frozenset[str]]:
    """Return the stems of antonyms by the stems of words, so that every form of a word matches every form of its antonyms."""
    stem = stems_of_language("english").stem
    opposites: dict[str, set[str]] = {}
    for word, others in ANTONYMS.items():
        opposites.setdefault(stem(word), set()).update(map(stem, others))
    for first, second in (map(stem, pair.split()) for pair in _STANCES):
        opposites.setdefault(first, set()).add(second)
        opposites.setdefault(second, set()).add(first)
    return {word: frozenset(others - {word}) for word, others in opposites.items()}


_AGAINST = re.compile(
    r"\b(?:advis|warn|argu|vot|decid|rul|recommend|campaign|sp[eo]ak|spok|protest|appeal|c[ao]me out)"
    r"\w*\s+(?:\w+\s+){0,2}?against\b"
    r"|\bagainst\s+(?:the\s+)?(?:advice|recommendations?|wish(?:es)?|will|requests?)\b",
    re.IGNORECASE,
)
"""Words that mean the opposite of a recommendation; the verb alone may mean one."""

_CLAUSE = re.compile(r"[,;:()\u2013\u2014]\s|\b(?:although|though|while|whereas|but|because)\b", re.IGNORECASE)


def clauses_of(sentence: str) -> list[str]:
    """Return the clauses of a sentence, as far as commas and conjunctions show them."""
    return [clause for clause in _CLAUSE.split(sentence) if clause.strip()]


def negations(text: str) -> int:
    """Return the number of negating words in a text."""
    latin = as_latin(text)
    compares = "without" in latin.lower() and re.search(r"\bwith\b", latin, re.IGNORECASE) is not None
    return sum(1 for match in _NEGATION.finditer(latin) if not (compares and match[0].lower() == "without"))


class Opposites(NamedTuple):
    """The words of a claim, and the opposites of those that have one; by stems, so that all forms match.

    Args:
        said: each word as it is written, by its stem.
        looked_for: the stems of words that have an opposite, in order.
    """

    said: dict[str, str]
    looked_for: list[str]

    @classmethod
    def of(cls, claim: str) -> Opposites:
        """Return those of a claim."""
        stems = _by_stem(claim)
        return cls(stems, sorted(stems.keys() & _opposite_stems().keys()))

    def met(self, sentence: str) -> list[tuple[str, str]]:
        """Return pairs of a word of the claim and its opposite in a sentence, if the sentence lacks the word."""
        if not self.looked_for:
            return []
        stems, opposites = _by_stem(sentence), _opposite_stems()
        return [
            (self.said[word], stems[other])
            for word in self.looked_for
            if word not in stems
            for other in sorted(opposites[word] & stems.keys() - self.said.keys())
        ]


def _by_stem(text: str) -> dict[str, str]:
    stems = stems_of_language("english")
    return {stems.stem(word): word for word in reversed(stems.as_written(_AGAINST.sub("against", text)))}
