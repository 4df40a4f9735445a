"""Whether a claim and a passage say opposite things: negation in one of them alone, or words that mean the opposite."""

from __future__ import annotations

import re

from nlp_retrieval.text.lookalikes import as_latin

__all__ = ["ANTONYMS", "negations", "opposite_words"]

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
)  # fmt: skip


def _antonyms() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for pair in _PAIRS:
        one, other = pair.split()
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return {word: frozenset(others) for word, others in found.items()}


ANTONYMS = _antonyms()
"""Words that mean the opposite of a word."""

_WORD = re.compile(r"[a-z]+")


def negations(text: str) -> int:
    """Return how many words of a text negate.

    Args:
        text: a claim, or a sentence of a passage.
    """
    return sum(1 for _ in _NEGATION.finditer(as_latin(text)))


def opposite_words(claim: str, sentence: str) -> list[tuple[str, str]]:
    """Return words of a claim beside a word of a sentence that means the opposite, where the sentence lacks the word itself.

    Args:
        claim: a statement.
        sentence: of a passage.
    """
    said, there = set(_WORD.findall(claim.lower())), set(_WORD.findall(sentence.lower()))
    return [
        (word, other)
        for word in sorted(said & ANTONYMS.keys())
        if word not in there
        for other in sorted(ANTONYMS[word] & there - said)
    ]
