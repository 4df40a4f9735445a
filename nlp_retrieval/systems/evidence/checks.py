"""Checks of a claim against a source without a model: numbers, dates, names, negation, opposites, quotations.

Whatever needs to know whether a source has what a claim says asks this module: verifiers for their signals, the audit of
citations and the verdict on a claim for what overrules a verifier.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from nlp_retrieval.systems.evidence.computed import are_of_one_kind, is_year
from nlp_retrieval.systems.evidence.figures import Miscounted, miscounted, missing_figures
from nlp_retrieval.systems.evidence.names import names_of, sentence_words, stemmed, unmatched_names
from nlp_retrieval.systems.evidence.opposites import Opposites, clauses_of, negations, replaced_things, unshared_negations
from nlp_retrieval.systems.evidence.quotations import missing_quotations
from nlp_retrieval.systems.evidence.relations import compared, first_other_way
from nlp_retrieval.systems.evidence.verifiers.base import Span
from nlp_retrieval.text import Number, agreeing, numbers_of, sentences_of, words_of

# All checks of a claim against a passage, as signals.

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

_IN_PART = re.compile(r"\bbut not\b|,\s?not\b|\bnot only\b|\brather than\b", re.IGNORECASE)
"""A claim that denies one thing and says another is denied by no single negation."""

_MOST_WORDS = 300
_WITH_NEGATION, _WITHOUT_NEGATION = "with a negation", "without the negation"
_SAME_MATTER = 0.7
_SAME_MATTER_DENIED = 0.3
_FEWEST_DENIED = 3
_SAME_RELATION_DENIED = 0.7
_SAME_MATTER_REPLACED = 0.6
_LEAD = 0.15
_AROUND_OPPOSITE = 0.6
_BESIDE_OPPOSITE = 3
_HALF_BESIDE = 0.5
_REACH = 4
_AROUND_NAME = 0.6
_NEIGHBOURS = 2


@dataclass(frozen=True)
class Checks:
    """Results of the checks.

    The thresholds of ``contradiction`` and ``is_of_another`` were chosen on the training parts of SciFact, HealthVer,
    CovidFact, Citation-Integrity, FEVER and WiCE. There, in families that nothing was chosen on, the first holds for 4% of
    the supported claims (2% without HealthVer), 66% of those with an inserted "not" and 18% of those with a word of the
    opposite meaning; the second for 3% of the supported claims and 32% of those with another name.

    Args:
        signals: by name: the shares of the claim's words in the passage (``overlap``) and in its nearest sentence
            (``sentence_overlap``), and of its neighbouring words (``bigrams``); how much of the claim is there word for
            word in one piece (``longest_run``), and 1 if all of it is (``verbatim``); the shares of its numbers and
            names that the passage lacks; how much more of the claim's words is in a sentence that differs from it in negation
            than in one that does not (``negation``); how many of the words around it a word of the claim shares with its
            opposite (``opposite``); 1 if the claim is negated (``claim_negated``).
        sentence: span in the passage of the sentence that denies the claim, else of the nearest one.
        missing_numbers: of the claim, including dates, as written.
        missing_names: of the claim, and things of which the passage has another of the kind ("helium" for "nitrogen").
        unclear_numbers: those of the missing ones that the passage may have, each with its spelling there.
        contradiction: how a sentence with most of the claim's words differs, for people: "with a negation", "without the
            negation", "with 'decreased' in place of 'increased'"; empty if none does.
        around_names: the largest share of the claim's words, without those missing names, in two neighbouring sentences; 1 if
            another thing of the kind has the same word beside it.
        share: of the claim's words in ``sentence``.
        computed: how each number was computed that the passage only has figures for ("39 million: 97 million - 58 million").
        same_relation: whether a contradiction is about the same, by most words of the claim or those beside the opposite; if
            not, the claim is not supported by the sentence, but not refuted either.
    """

    signals: dict[str, float]
    sentence: Span
    missing_numbers: tuple[str, ...]
    missing_names: tuple[str, ...]
    contradiction: str = ""
    around_names: float = 0.0
    unclear_numbers: tuple[tuple[str, str], ...] = ()
    share: float = 0.0
    computed: tuple[str, ...] = ()
    same_relation: bool = True

    @property
    def is_of_another(self) -> bool:
        """Return whether the passage has most of the claim's words, but lacks the name that they are about."""
        return bool(self.missing_names) and self.around_names >= _AROUND_NAME


@lru_cache(16)  # a verifier and an audit check the same pair
def check(claim: str, passage: str) -> Checks:
    """Check a claim against a passage."""
    wanted = _content(claim)
    sentences = [_Sentence.of(passage, (begin, end), words) for begin, end, words in sentence_words(passage)]
    shares = [_share(wanted, candidate.content) for candidate in sentences]
    nearest = _nearest(wanted, sentences)
    missing = missing_figures(claim, passage)
    spans = names_of(claim)
    names = unmatched_names(claim, passage)
    pairs, pairs_there = _neighbours(claim), _neighbours(passage)
    run = _longest_run(words_of(claim), words_of(sentences[nearest].text)) if sentences else 0.0
    negated = negations(claim) > 0
    denial = _Contradiction() if negated and _IN_PART.search(claim) else _denial(claim, wanted, sentences, shares)
    opposite = _opposite(claim, wanted, sentences, shares)
    other_way = _Contradiction(1.0, *first_other_way(claim, [sentence.text for sentence in sentences]))
    contradicting = next((candidate for candidate in (denial, opposite, other_way) if candidate.says), None)
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
    replaced = replaced_things(claim, passage)
    missing_names = (*names, *(one.word for one in replaced))
    rest = wanted.difference(*map(_content, missing_names))
    around = 1.0 if any(one.in_place for one in replaced) else _best_overlap(rest, sentences)
    return Checks(
        signals,
        sentences[deciding].span if sentences else (0, 0),
        missing.dates + missing.numbers,
        missing_names,
        "" if contradicting is None else contradicting.says,
        around,
        missing.unclear,
        shares[deciding] if sentences else 0.0,
        missing.computed,
        contradicting is None or contradicting.same_relation,
    )


class _Sentence(NamedTuple):
    """A sentence of a passage: its span, its text, its content words, and whether it has a negation."""

    span: Span
    text: str
    content: frozenset[str]
    has_negation: bool

    @classmethod
    def of(cls, passage: str, span: Span, content: frozenset[str]) -> _Sentence:
        text = passage[span[0] : span[1]]
        return cls(span, text, content, negations(text) > 0)

    def negates(self, wanted: frozenset[str]) -> bool:
        """Return whether the clause with most of some words has a negation: "it carries 400 people, but not dogs" has none."""
        if not self.has_negation:
            return False
        clauses = [(len(wanted & _content(clause)), negations(clause) > 0) for clause in clauses_of(self.text)]
        return max(clauses)[1] if clauses else True


def _nearest(wanted: frozenset[str], sentences: Sequence[_Sentence]) -> int:
    """Return the sentence with the largest share of the claim's words, rarer ones counting more; 0 if there is none."""
    weight = {word: 1 / (1 + math.log1p(sum(word in sentence.content for sentence in sentences))) for word in wanted}
    shares = [math.fsum(weight[word] for word in wanted & sentence.content) for sentence in sentences]
    return max(range(len(sentences)), key=lambda number: (shares[number], -number), default=0)


class _Contradiction(NamedTuple):
    """Strength of a contradiction, its sentence, if that is enough its description, and whether it is of the same relation."""

    strength: float = 0.0
    sentence: int = 0
    says: str = ""
    same_relation: bool = True


def _denial(claim: str, wanted: frozenset[str], sentences: Sequence[_Sentence], shares: Sequence[float]) -> _Contradiction:
    """Return by how much a sentence that differs from the claim in negation exceeds those that do not."""
    denying = _content(" ".join(claim[begin:end] for begin, end in sentences_of(claim) if negations(claim[begin:end])))
    if len(denying) >= _FEWEST_DENIED and denying != wanted:  # one of several sentences of the claim denies something
        wanted, shares = denying, [_share(denying, sentence.content) for sentence in sentences]
    denied = [_denies(claim, wanted, sentence) for sentence in sentences]
    alike = [share for share, says in zip(shares, denied, strict=True) if not says]
    others = [number for number, says in enumerate(denied) if says]
    if not others:
        return _Contradiction()
    nearest = max(others, key=shares.__getitem__)
    ahead = max(0.0, shares[nearest] - max(alike, default=0.0))
    least = _SAME_MATTER_DENIED if denied[nearest] == _WITHOUT_NEGATION else _SAME_MATTER
    says = denied[nearest] if ahead >= _LEAD and shares[nearest] >= least else ""
    return _Contradiction(ahead, nearest, says, says != _WITHOUT_NEGATION or shares[nearest] >= _SAME_RELATION_DENIED)


def _denies(claim: str, wanted: frozenset[str], sentence: _Sentence) -> str:
    """Return how a sentence differs from a claim in negation, without the negations that both have; empty if it does not."""
    ours, theirs = unshared_negations(claim, sentence.text) if sentence.has_negation else (negations(claim), 0)
    negates = theirs > 0 and sentence.negates(wanted)
    if ours and not negates:
        return _WITHOUT_NEGATION
    return _WITH_NEGATION if negates and not ours else ""


def _opposite(claim: str, wanted: frozenset[str], sentences: Sequence[_Sentence], shares: Sequence[float]) -> _Contradiction:
    """Return how many of the claim's other words are in a sentence with the opposite of a word."""
    opposites = Opposites.of(claim)
    met_in = [opposites.met(sentence.text) if share else [] for sentence, share in zip(sentences, shares, strict=True)]
    best = _Contradiction()
    if not any(met_in):
        return best
    figures, nowhere = numbers_of(claim), opposites.nowhere_in([sentence.text for sentence in sentences])
    for number, (sentence, pairs) in enumerate(zip(sentences, met_in, strict=True)):
        in_place = {pair for pair in pairs if pair[0] in nowhere and _is_in_place(claim, pair[0], sentence.text, pair[1])}
        met = [
            pair
            for pair in pairs
            if pair in in_place
            or (
                _of_one_subject(claim, pair[0], sentence.text, pair[1])
                and _in_one_relation(claim, pair[0], sentence.text, pair[1])
            )
        ]
        met = [pair for pair in met if not _in_other_order(figures, sentence.text, pair)] if figures and met else met
        if not met or compared(claim, sentence.text) > 0:
            continue
        around = min(1.0, len(wanted & sentence.content) / max(1, len(wanted) - len({word for word, _ in met})))
        same = around >= _AROUND_OPPOSITE or any(_is_beside(claim, word, sentence.text, other) for word, other in met)
        says = same or not in_place.isdisjoint(met)
        if (says, around) > (bool(best.says), best.strength):
            word, other = met[0]
            best = _Contradiction(around, number, f"with '{other}' in place of '{word}'" if says else "", same)
    return best


_COMPARING = frozenset(
    "with without before after afterwards more less fewer higher lower earlier later first last greater smaller".split()
)


def _in_other_order(figures: Sequence[Number], sentence: str, met: tuple[str, str]) -> bool:
    """Return whether a sentence has the figures of a claim in another order, or figures of another event."""
    there = numbers_of(sentence)
    agreed = [any(agreeing(figure, other) for other in there) for figure in figures]
    if len(figures) > 1 and all(agreed):
        return bool(_COMPARING.intersection(word.lower() for word in met))
    return not any(agreed) and any(are_of_one_kind(figure, other) for figure in figures for other in there)


def _of_one_subject(claim: str, word: str, sentence: str, other: str) -> bool:
    """Return whether a claim says a word, and a sentence its opposite, of one subject: the nearest words before them agree."""
    subject, there = _before(claim, word), _before(sentence, other)
    if not subject or not there or there in stemmed(claim):
        return True
    words = stemmed(sentence)
    return subject in words and (subject, there) not in pairwise(words)  # not "the tram museum" for "the tram"


def _in_one_relation(claim: str, word: str, sentence: str, other: str) -> bool:
    """Return whether a word of a claim and its opposite in a sentence are said of the same: what follows or precedes them."""
    before, after = _sides(claim, word)
    before_there, after_there = _sides(sentence, other)
    # "the advice of the finance committee" beside "the finance committee advised against"
    of_one = len(after) > 1 and {*after[:2]}.issubset(before_there[:4])
    alike = {*after[:3]}.intersection(after_there[:5]) or {*before[:2]}.intersection(before_there[:4])
    return not after or of_one or bool(alike)


def _is_in_place(claim: str, word: str, sentence: str, other: str) -> bool:
    """Return whether the next content word to a word of a claim, and one more near it, are at its opposite in a sentence."""
    next_one = any(
        ours[:1] == theirs[:1] != [] for ours, theirs in zip(_sides(claim, word), _sides(sentence, other), strict=True)
    )
    return next_one and len(_near(claim, word, _REACH) & _near(sentence, other, 2 * _REACH)) > 1


def _is_beside(claim: str, word: str, sentence: str, other: str) -> bool:
    """Return whether most words near a word in its clause, and three at least, are near its opposite in a sentence."""
    clause = next((clause for clause in clauses_of(claim) if word in clause), claim)
    ours, theirs = _near(clause, word, _REACH), _near(sentence, other, 2 * _REACH)
    shared = len(ours & theirs)
    return shared >= _BESIDE_OPPOSITE and shared >= _HALF_BESIDE * len(ours)


def _near(text: str, word: str, reach: int) -> set[str]:
    before, after = _sides(text, word)
    return {*before[:reach], *after[:reach]}


def _sides(text: str, word: str) -> tuple[list[str], list[str]]:
    """Return the stems of the content words before the first place of a word and after it, the nearest first."""
    said = re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE)
    return ([], []) if said is None else (stemmed(text[: said.start()])[::-1], stemmed(text[said.end() :]))


def _before(text: str, word: str) -> str:
    """Return the nearest content word before a word in its clause, stemmed; empty if there is none."""
    said = re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE)
    clauses = clauses_of(text[: said.start()]) if said is not None else []
    words = words_of(clauses[-1]) if clauses else ()
    return next(iter(stemmed(" ".join(other for other in words if not other.endswith("ly") and other != "despite"))[::-1]), "")


def _best_overlap(wanted: frozenset[str], sentences: Sequence[_Sentence]) -> float:
    """Return the largest share of some words in neighbouring sentences."""
    groups = [sentences[first : first + _NEIGHBOURS] for first in range(max(1, len(sentences) - _NEIGHBOURS + 1))]
    return max(_share(wanted, frozenset[str]().union(*(sentence.content for sentence in group))) for group in groups)


def _longest_run(claim: tuple[str, ...], sentence: tuple[str, ...]) -> float:
    """Return the longest run of words that both have, as a share of the claim's."""
    if not claim:
        return 0.0
    positions: dict[str, list[int]] = {}
    for position, word in enumerate(sentence[:_MOST_WORDS]):
        positions.setdefault(word, []).append(position)
    best, before = 0, dict[int, int]()
    for word in claim[:_MOST_WORDS]:
        runs = {position: before.get(position - 1, 0) + 1 for position in positions.get(word, ())}
        best, before = max([best, *runs.values()]), runs
    return best / len(claim)


def _share(wanted: frozenset[str], available: frozenset[str]) -> float:
    return len(wanted & available) / len(wanted) if wanted else 0.0


def _content(text: str) -> frozenset[str]:
    return frozenset(stemmed(text))


def _neighbours(text: str) -> set[tuple[str, str]]:
    return set(pairwise(stemmed(text)))


# Looking up a cited sentence in its source, independently of the verifier.


@dataclass(frozen=True)
class LookedUp:
    """Result of looking up a sentence in a source.

    Args:
        checks: of the sentences that were read, with the numbers, dates and names that are nowhere in the source.
        miscounted: numbers that the source says of something else.
        quotations: that it does not contain word for word.
        replaced: numbers that the source lacks, each with one of the same kind in the deciding sentence, if that is about the
            same matter.
    """

    checks: Checks
    miscounted: list[Miscounted]
    quotations: tuple[str, ...]
    replaced: tuple[Miscounted, ...] = ()

    @property
    def is_against(self) -> bool:
        """Return whether a sentence of the source contradicts the claim: about the same subject, in the same relation."""
        checks = self.checks
        if checks.missing_names:
            return False
        return bool((checks.contradiction and checks.same_relation) or self.miscounted or self.replaced)

    @property
    def computed(self) -> tuple[str, ...]:
        """Return how each number was computed that the source only has figures for: "39 million: 97 million - 58 million"."""
        return self.checks.computed

    @property
    def contradicts_source(self) -> bool:
        """Return whether something shows that the source does not say this."""
        checks = self.checks
        return bool(
            checks.missing_numbers or self.miscounted or self.quotations or checks.contradiction or checks.is_of_another
        )


def looked_up(claim: str, read: str, whole: str, *, quoted: bool = False) -> LookedUp:
    """Look up a claim in a source.

    Args:
        claim: a sentence of a report.
        read: the part of the source that was read.
        whole: all of it, with its title; it may contain what is missing in the part that was read.
        quoted: whether the claim is in a block quote, so that the source must contain it word for word.
    """
    checks = check(claim, read)
    says_more = whole.strip() != read.strip()
    if checks.missing_numbers and says_more:
        missing = missing_figures(claim, whole)
        checks = replace(checks, missing_numbers=missing.dates + missing.numbers, unclear_numbers=missing.unclear)
        checks = replace(checks, computed=checks.computed or missing.computed)
    if checks.missing_names and says_more:
        replaced_in_whole = tuple(one.word for one in replaced_things(claim, whole))
        checks = replace(checks, missing_names=(*unmatched_names(claim, whole), *replaced_in_whole))
    counted = miscounted(claim, whole) if miscounted(claim, read) else []
    replaced = _replaced(claim, checks, read[slice(*checks.sentence)]) if checks.missing_numbers else ()
    return LookedUp(checks, counted, missing_quotations(claim, whole, all_quoted=quoted), replaced)


def _replaced(claim: str, checks: Checks, sentence: str) -> tuple[Miscounted, ...]:
    if checks.share < _SAME_MATTER_REPLACED or checks.unclear_numbers:
        return ()
    said, there = numbers_of(claim), numbers_of(sentence)
    others = [other for other in there if not any(agreeing(number, other) for number in said)]
    years, years_there = ({number.value for number in numbers if is_year(number)} for numbers in (said, there))
    if years and years_there and years.isdisjoint(years_there) and len(years) < len(said):
        return ()  # figures of other years
    pairs = (
        (number.written, next((other.written for other in others if are_of_one_kind(number, other)), ""))
        for number in said
        if any(number.written in missing for missing in checks.missing_numbers)
    )
    return tuple(Miscounted(number, other) for number, other in pairs if other)
