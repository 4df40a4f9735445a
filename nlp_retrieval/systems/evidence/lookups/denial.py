"""A negation that a claim has and its source does not, or the other way round, and a change that the source denies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from nlp_retrieval.systems.evidence.lookups.words import Sentence, clauses_of, content, is_form, pattern, share, stemmed
from nlp_retrieval.text import as_latin

_NOT_ONLY = re.compile(r"(?:\bnot|n['\u2019]t)\s(?:only|just|merely|simply)\b", re.IGNORECASE)
_WITH = re.compile(r"\bwith\b", re.IGNORECASE)
_IN_PART = re.compile(r"\bbut not\b|,\s?not\b|\brather than\b", re.IGNORECASE)
_POINTS_BACK = re.compile(
    r"\W*(?:the|this|these|that|no)\s(?:\w+\s){0,2}?(?:differen|change|effect|increase|decrease|reduction)", re.IGNORECASE
)
_COMPARED = frozenset("statistical statistic measur no frequent common likel often".split())
_NEXT = 40
_WITHOUT, _WITH_NEGATION, _TURNED = "this without the negation", "this with a negation", "this the other way round"
_SAME_MATTER, _SAME_MATTER_DENIED, _MOST_DENIED, _LEAD = 0.7, 0.5, 0.55, 0.15


class Denial(NamedTuple):
    """A sentence that differs from a claim in what it denies, by how much, and how; ``same`` if one must be wrong."""

    ahead: float = 0.0
    sentence: Sentence | None = None
    says: str = ""
    same: bool = False


def denial(claim: str, sentences: Sequence[Sentence]) -> Denial:
    """Return the sentence nearest to a claim that denies it, or what it denies; it says most of what the claim says."""
    wanted = frozenset(word for word in content(claim) if not word.isdigit())  # a date may be elsewhere
    mine = negated(claim)
    best, alike = Denial(), 0.0
    before = frozenset[str]()
    for sentence in sentences:
        refers = sentence.content | before if _POINTS_BACK.match(sentence.text) else sentence.content
        says, common = ("", 0.0) if sentence.is_heading else _compared(claim, mine, wanted, sentence, refers)
        before = sentence.content
        if not says:
            alike = max(alike, common)
        elif best.sentence is None or common > best.ahead:
            best = Denial(common, sentence, says)
    if best.sentence is None:
        return best
    ahead, least, says = max(0.0, best.ahead - alike), _SAME_MATTER, best.says
    if says == _WITHOUT and ("" in mine or any(_has(sentence.content, mine) for sentence in sentences)):
        least = _SAME_MATTER_DENIED
    elif says == _WITHOUT:  # a source that has nowhere what the claim denies may say so in other words
        least, says = _MOST_DENIED, f"most of {_WITHOUT}"
    return Denial(ahead, best.sentence, says if best.ahead >= least and ahead >= _LEAD else "", best.ahead >= _SAME_MATTER)


def _compared(
    claim: str, mine: set[str], wanted: frozenset[str], sentence: Sentence, refers: frozenset[str]
) -> tuple[str, float]:
    """Return how a sentence differs from a claim in what it denies, if it does, and its share of the claim's words."""
    common, theirs = share(wanted, sentence.content), negated(sentence.text)
    if denies_change(sentence.text):
        rest, clause = _unchanging(wanted), _denying_clause(sentence.text)
        of_clause = _unchanging(content(clause))
        about = share(rest, refers) if not of_clause or of_clause & wanted else 0.0
        if of_clause <= wanted and stemmed(clause)[:1] == stemmed(claim)[:1]:  # "Prices did not change."
            about = 1.0
        if denies_change(claim):
            return "", about
        if not mine and len(rest) < len(wanted) and pattern("changing").search(claim):
            return f"that this is not so: \u201c{clause}\u201d", about
    if "" in mine & theirs:
        mine, theirs = mine - {""}, theirs - {""}
    turned = theirs - {""}
    if mine and turned and mine.isdisjoint(theirs) and mine <= sentence.content and turned <= wanted:
        return (_TURNED if _IN_PART.search(claim) else ""), common  # "farmers, not cities" and "cities, not farmers"
    left, negates = mine - theirs, bool(theirs - mine) and _negates(wanted, sentence)
    if left and not negates and (left == mine or _has(sentence.content, left)):
        return _WITHOUT, common
    if negates and not mine and ("" in theirs or _has(wanted, theirs)):
        return _WITH_NEGATION, common
    return "", common


def _has(words: frozenset[str], denied: set[str]) -> bool:
    """Return whether one of the words that are denied is among others, in any form."""
    return any(is_form(word, other) for word in denied if word for other in words)


def denies_change(text: str) -> bool:
    """Return whether a text denies a change, a difference or an effect: "the difference was not significant"."""
    return _denied_change().search(text) is not None


@cache
def _denied_change() -> re.Pattern[str]:
    negation, changing = pattern("not", "{}").pattern, pattern("changing", "{}").pattern
    return re.compile(
        rf"(?:\b(?:{negation})|n['\u2019]t)\s(?:[\w-]+\s){{0,4}}?(?:{changing})\b"
        r"|\bunchanged\b|\b(?:stay|remain)(?:s|ed)? (?:at|the same|flat|stable|steady|constant)\b|\bno (?:more|less)\b",
        re.IGNORECASE,
    )


def _denying_clause(sentence: str) -> str:
    return next((clause for clause in clauses_of(sentence) if denies_change(clause)), sentence).strip(" .")


def _unchanging(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if not _is_changing(word))


@cache
def _is_changing(stem: str) -> bool:
    return pattern("changing", "(?:{})").match(stem) is not None or stem in _COMPARED


def _negates(wanted: frozenset[str], sentence: Sentence) -> bool:
    """Return whether the clause with most of some words has a negation: "it carries 400 people, but not dogs" has none."""
    clauses = [(len(wanted & content(clause)), bool(negated(clause))) for clause in clauses_of(sentence.text)]
    return max(clauses)[1] if clauses else False


def negated(text: str) -> set[str]:
    """Return what a text denies: the content word after each "not" or "failed to", stemmed; empty for "it is false that"."""
    latin = _NOT_ONLY.sub(" only", as_latin(text))
    compares = _WITH.search(latin) is not None
    found = set()
    for match in pattern("not").finditer(latin.replace("\u2019", "'")):
        if not (compares and match[0].lower() == "without"):
            found.add(next(iter(stemmed(latin[match.end() : match.end() + _NEXT])), ""))
    return found | ({""} if pattern("denying").search(latin) else set())
