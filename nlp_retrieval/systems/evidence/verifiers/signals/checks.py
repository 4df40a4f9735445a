"""What can be checked of a claim against a passage without a model, each as a signal of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from nlp_retrieval.systems.evidence.verifiers.signals.figures import missing_figures
from nlp_retrieval.systems.evidence.verifiers.signals.names import names_of, unmatched_names
from nlp_retrieval.systems.evidence.verifiers.signals.negation import Opposites, negations
from nlp_retrieval.systems.evidence.verifiers.signals.stems import stemmed
from nlp_retrieval.systems.evidence.verifiers.windows import Span
from nlp_retrieval.text import numbers_of, sentences_of, words_of

__all__ = ["SIGNALS", "Checks", "check"]

SIGNALS = (
    "overlap",
    "sentence_overlap",
    "bigrams",
    "longest_run",
    "verbatim",
    "numbers_missing",
    "dates_missing",
    "names_missing",
    "negation",
    "opposite",
    "claim_negated",
)
"""Names of the signals, in order."""

_MOST_WORDS = 300
_SAME_MATTER = 0.7
_SAME_MATTER_DENIED = 0.5
_APART = 0.15
_AROUND_OPPOSITE = 0.6
_AROUND_NAME = 0.6
_NEIGHBOURS = 2


@dataclass(frozen=True)
class Checks:
    """What was found.

    The cuts of ``contradiction`` and ``is_of_another`` were chosen on the training parts of SciFact, HealthVer, CovidFact,
    Citation-Integrity, FEVER and WiCE. There the first holds for 2% of the supported claims, for half of those with a "not" put
    in, and 14% of those with an antonym; the second for 2% of the supported claims and 12% of those with another name, FEVER
    left out, whose passages lack the title that its claims name.

    Args:
        signals: by name: the shares of the claim's words in the passage (``overlap``) and in its nearest sentence
            (``sentence_overlap``), and of its neighbouring words (``bigrams``); how much of the claim stands there word for
            word in one piece (``longest_run``), and 1 where all of it does (``verbatim``); the shares of its numbers and
            names that the passage lacks; how much more of the claim's words stands in a sentence that is negated, where the
            claim is not, or the other way round, than in one that is as the claim (``negation``); how many of the words around
            it a word of the claim shares with its opposite (``opposite``); 1 where the claim is negated (``claim_negated``).
        sentence: where in the passage the sentence is that denies the claim, or else the nearest.
        missing_numbers: of the claim, dates among them, as written.
        missing_names: of the claim.
        unclear_numbers: of the missing ones, those that the passage may have, each beside how it is written there.
        contradiction: how a sentence says most of the claim's words otherwise, for people: "with a negation", "without the
            negation", "with 'decreased' in place of 'increased'"; empty where none does.
        around_names: the largest share that two neighbouring sentences have of the claim's words without its names.
    """

    signals: dict[str, float]
    sentence: Span
    missing_numbers: tuple[str, ...]
    missing_names: tuple[str, ...]
    contradiction: str = ""
    around_names: float = 0.0
    unclear_numbers: tuple[tuple[str, str], ...] = ()

    @property
    def is_of_another(self) -> bool:
        """Whether the passage has most of what the claim says, and lacks the name of which it says so."""
        return bool(self.missing_names) and self.around_names >= _AROUND_NAME


@lru_cache(16)  # a verifier and an audit check the same pair
def check(claim: str, passage: str) -> Checks:
    """Check a claim against a passage.

    Args:
        claim: a statement.
        passage: what is to support it.
    """
    wanted = _content(claim)
    sentences = [_Sentence.of(passage, span) for span in sentences_of(passage)]
    shares = [_share(wanted, one.content) for one in sentences]
    nearest = _nearest(wanted, sentences)
    missing = missing_figures(claim, passage)
    spans = names_of(claim)
    names = unmatched_names(claim, passage)
    pairs, pairs_there = _neighbours(claim), _neighbours(passage)
    run = _longest_run(words_of(claim), words_of(sentences[nearest].text)) if sentences else 0.0
    negated = negations(claim) > 0
    denial = _denial(negated, sentences, shares)
    opposite = _opposite(claim, wanted, sentences, shares)
    contradicting = next((one for one in (denial, opposite) if one.says), None)
    deciding = nearest if contradicting is None else contradicting.sentence
    signals = {
        "overlap": _share(wanted, _content(passage)),
        "sentence_overlap": shares[nearest] if sentences else 0.0,
        "bigrams": len(pairs & pairs_there) / len(pairs) if pairs else 0.0,
        "longest_run": run,
        "verbatim": float(run == 1.0),
        "numbers_missing": len(missing.numbers) / max(1, len(numbers_of(claim))),
        "dates_missing": len(missing.dates) / max(1, missing.n_dates),
        "names_missing": len(names) / max(1, len(spans)),
        "negation": denial.strength,
        "opposite": opposite.strength,
        "claim_negated": float(negated),
    }
    rest = wanted.difference(*(_content(claim[begin:end]) for begin, end in spans))
    return Checks(
        signals,
        sentences[deciding].span if sentences else (0, 0),
        missing.dates + missing.numbers,
        tuple(names),
        "" if contradicting is None else contradicting.says,
        _together(rest, sentences),
        missing.unclear,
    )


class _Sentence(NamedTuple):
    """A sentence of a passage: where it is, what it says, the words that count, and whether it negates."""

    span: Span
    text: str
    content: frozenset[str]
    is_negated: bool

    @classmethod
    def of(cls, passage: str, span: Span) -> _Sentence:
        text = passage[span[0] : span[1]]
        return cls(span, text, _content(text), negations(text) > 0)


def _nearest(wanted: frozenset[str], sentences: Sequence[_Sentence]) -> int:
    """The sentence with the largest share of the claim's words, rarer ones counting more; 0 where there is none."""
    weight = {word: 1 / (1 + math.log1p(sum(word in one.content for one in sentences))) for word in wanted}
    shares = [sum(weight[word] for word in wanted & one.content) for one in sentences]
    return max(range(len(sentences)), key=lambda number: (shares[number], -number), default=0)


class _Contradiction(NamedTuple):
    """How strongly a sentence says otherwise, which, and, where that is enough, in which way."""

    strength: float = 0.0
    sentence: int = 0
    says: str = ""


def _denial(negated: bool, sentences: Sequence[_Sentence], shares: Sequence[float]) -> _Contradiction:
    """By how much a sentence with a negation that the claim lacks, or without one that it has, exceeds those that are as it."""
    alike = [share for share, one in zip(shares, sentences, strict=True) if one.is_negated == negated]
    others = [number for number, one in enumerate(sentences) if one.is_negated != negated]
    if not others:
        return _Contradiction()
    nearest = max(others, key=shares.__getitem__)
    ahead = max(0.0, shares[nearest] - max(alike, default=0.0))
    enough = ahead >= _APART and shares[nearest] >= (_SAME_MATTER_DENIED if negated else _SAME_MATTER)
    return _Contradiction(ahead, nearest, ("without the negation" if negated else "with a negation") if enough else "")


def _opposite(claim: str, wanted: frozenset[str], sentences: Sequence[_Sentence], shares: Sequence[float]) -> _Contradiction:
    """How many of the claim's other words a sentence has that holds the opposite of a word."""
    best, opposites = _Contradiction(), Opposites.of(claim)
    for number, one in enumerate(sentences):
        met = opposites.met(one.text) if shares[number] else []
        if not met:
            continue
        around = min(1.0, len(wanted & one.content) / max(1, len(wanted) - len({word for word, _ in met})))
        if around > best.strength:
            word, other = met[0]
            best = _Contradiction(around, number, f"with '{other}' in place of '{word}'" if around >= _AROUND_OPPOSITE else "")
    return best


def _together(wanted: frozenset[str], sentences: Sequence[_Sentence]) -> float:
    """The largest share of some words that neighbouring sentences have."""
    groups = [sentences[first : first + _NEIGHBOURS] for first in range(max(1, len(sentences) - _NEIGHBOURS + 1))]
    return max(_share(wanted, frozenset[str]().union(*(one.content for one in group))) for group in groups)


def _longest_run(claim: tuple[str, ...], sentence: tuple[str, ...]) -> float:
    """The longest run of words that both have, as a share of the claim's."""
    if not claim:
        return 0.0
    places: dict[str, list[int]] = {}
    for place, word in enumerate(sentence[:_MOST_WORDS]):
        places.setdefault(word, []).append(place)
    best, before = 0, dict[int, int]()
    for word in claim[:_MOST_WORDS]:
        runs = {place: before.get(place - 1, 0) + 1 for place in places.get(word, ())}
        best, before = max([best, *runs.values()]), runs
    return best / len(claim)


def _share(wanted: frozenset[str], there: frozenset[str]) -> float:
    return len(wanted & there) / len(wanted) if wanted else 0.0


def _content(text: str) -> frozenset[str]:
    return frozenset(stemmed(text))


def _neighbours(text: str) -> set[tuple[str, str]]:
    return set(pairwise(stemmed(text)))
