"""Words of a text for comparison, its clauses, and the lists of words that the lookups know."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from nlp_retrieval.core import read_yaml
from nlp_retrieval.text import FUNCTION_WORDS, sentences_of, words_of

Span = tuple[int, int]

_ENDINGS = ("ations", "ation", "ments", "ment", "ings", "ing", "ies", "ied", "ed", "es", "ly", "y", "s", "e")
_SHORTEST_STEM = 4
_CLAUSE = re.compile(r"[,;:()\u2013\u2014]\s|\b(?:although|though|while|whereas|but|because)\b", re.IGNORECASE)
_ENDS_SENTENCE = re.compile(r"[.!?\u3002\u2026:;,|][\"'\u201d\u2019)\]]*\Z")
_LONGEST_HEADING, _MOST_WORDS = 12, 300
KNOWN: dict[str, Any] = read_yaml(Path(__file__).with_name("words.yaml"))
"""The lists of ``words.yaml``."""
_VERBS = {form: forms.split()[0] for forms in KNOWN["irregular"] for form in forms.split()}


def pattern(name: str, form: str = r"\b(?:{})\b") -> re.Pattern[str]:
    """Return one of the patterns of ``words.yaml``, compiled within a form."""
    return re.compile(form.replace("{}", KNOWN[name].replace("| ", "|")), re.IGNORECASE)


WORD_OF_CHANGE = pattern("changing", r"(?:{})\Z")


def lines_of(name: str) -> list[str]:
    """Return the lines of a file of words beside this module, without comments."""
    lines = Path(__file__).with_name(name).read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def stemmed(text: str) -> list[str]:
    """Return the words of a text except function words, in order, without common endings if four letters are left."""
    return [_stem(word) for word in words_of(text) if word not in FUNCTION_WORDS]


@lru_cache(131_072)
def _stem(word: str) -> str:
    word = _VERBS.get(word, word)
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) == 4 and word.endswith(("se", "xe")) else word  # "buses", "taxes"


def content(text: str) -> frozenset[str]:
    """Return the different words of :func:`stemmed`."""
    return frozenset(stemmed(text))


def is_form(one: str, other: str) -> bool:
    """Return whether two stems may be of one word: "remov" and "removal"."""
    short, long = sorted((one, other), key=len)
    return len(long) - len(short) <= 3 and long.startswith(short[: max(3, len(short) - 1)])


def share(wanted: frozenset[str], available: frozenset[str]) -> float:
    """Return which share of some words is available; 0 if there are none."""
    return len(wanted & available) / len(wanted) if wanted else 0.0


class Sentence(NamedTuple):
    """A sentence of a text: its span, its text and its content words."""

    span: Span
    text: str
    content: frozenset[str]

    @property
    def is_heading(self) -> bool:
        """Return whether it is short and has no mark at its end, as a heading, which states nothing."""
        return _ENDS_SENTENCE.search(self.text) is None and len(self.text.split()) <= _LONGEST_HEADING


@lru_cache(32)
def sentences(text: str) -> tuple[Sentence, ...]:
    """Return the sentences of a text."""
    spans = sentences_of(text)
    return tuple(Sentence((begin, end), text[begin:end], content(text[begin:end])) for begin, end in spans)


def clauses_of(sentence: str) -> list[str]:
    """Return the clauses of a sentence, as far as commas and conjunctions show them."""
    return [clause for clause in _CLAUSE.split(sentence) if clause.strip()]


def nearest_sentence(wanted: frozenset[str], there: Sequence[Sentence]) -> Sentence | None:
    """Return the sentence with most of a claim's words; a heading only if there is no other."""
    stated = [one for one in there if wanted & one.content and not one.is_heading]
    return max(stated or there, key=lambda one: len(wanted & one.content), default=None)


def longest_run(claim: tuple[str, ...], sentence: tuple[str, ...]) -> float:
    """Return the longest run of words that both have, as a share of the claim's."""
    matcher = SequenceMatcher(None, claim[:_MOST_WORDS], sentence[:_MOST_WORDS], autojunk=False)
    return matcher.find_longest_match().size / len(claim) if claim else 0.0
