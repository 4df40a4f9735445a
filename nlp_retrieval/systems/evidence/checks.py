"""Checks of a claim against a source without a model: numbers, dates, names, negation, opposites, quotations.

Whatever needs to know whether a source has what a claim says asks this module: verifiers for their signals, the audit of
citations and the verdict on a claim for what overrules a verifier.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, pairwise
from typing import NamedTuple

from nlp_retrieval.systems.evidence.opposites import Opposites, negations
from nlp_retrieval.systems.evidence.verifiers.base import Span
from nlp_retrieval.text import (
    FUNCTION_WORDS,
    Date,
    FoldedText,
    Number,
    agreeing,
    compare_numbers,
    dates_of,
    fold,
    is_unspaced,
    month_of,
    months_named,
    numbers_of,
    places_of,
    sentences_of,
    words_of,
)

# Content words of a text, for comparison with another, without their endings.

_ENDINGS = ("ations", "ation", "ments", "ment", "ings", "ing", "ies", "ied", "ed", "es", "ly", "s")
_NAME_ENDINGS = ("ians", "ian", "ese", "ish", "ans", "an", "es", "s", "n")


def stemmed(text: str) -> list[str]:
    """Return the words of a text except function words, in order, without common endings if four letters are left."""
    return [_stem(word) for word in words_of(text) if word not in FUNCTION_WORDS]


@lru_cache(131_072)
def _stem(word: str, endings: Sequence[str] = _ENDINGS) -> str:
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


# Names in a claim, and finding them in a passage: capitalised words, abbreviations and their expansions.
#
# A name is a run of words within a sentence that do not begin with a lower-case letter; at the beginning of a sentence, common
# words do not count. A passage has a name if it has each of its words, or its initials. Of "HIV-positive" and "M2-phenotype"
# only the part with a capital or a digit is looked up. The first word of a claim is not looked up, since it may be capitalised
# only as such ("Reducing H3K4me3"). A date of the passage ("2019-03-12") counts as its month, and the month of a whole date
# ("12 March") is not looked up, because dates are compared separately.

_TOKEN = re.compile(r"[^\W_][\w'\u2019.&+-]*[\w+]|[^\W_]")
_PART = re.compile(r"[^\W_]+")
_JOINING = frozenset({"of", "the", "and", "de", "von", "van", "der", "la", "le", "du"})
_BREAK = re.compile(r"[,;:()\"\u201c\u201d.!?]")
_MOST = 100


def names_of(claim: str) -> list[tuple[int, int]]:
    """Return the spans of the names of a claim, in characters; at most 100."""
    spans: list[tuple[int, int]] = []
    begin = end = -1
    tokens = list(_TOKEN.finditer(claim))
    capitals = sum(_is_capital(token[0]) for token in tokens)
    shouting = capitals > max(3, 0.8 * len(tokens))
    for number, token in enumerate(tokens):
        word = token[0]
        if shouting and not word.isupper():
            continue
        apart = begin >= 0 and _BREAK.search(claim, end, token.start())
        plain = number == 0 and _is_common(word) and not _begins_name(claim, tokens)
        if _is_capital(word) and not plain and word.lower() not in FUNCTION_WORDS:
            if begin < 0 or apart:
                spans += [(begin, end)] if begin >= 0 else []
                begin = token.start()
            end = token.end()
        elif begin >= 0 and (word.lower() not in _JOINING or apart):
            spans.append((begin, end))
            begin = -1
        if len(spans) == _MOST:
            return spans
    return [*spans, (begin, end)] if begin >= 0 else spans


def unmatched_names(claim: str, passage: str) -> list[str]:
    """Return the names of a claim with a word that a passage lacks."""
    words = words_of(passage)
    stems, joined = {_stem(word, _NAME_ENDINGS) for word in words}, "".join(words)
    has_month = any(month_of(word) for word in words_of(claim))
    months = months_named(passage) if has_month else frozenset()
    dates = [date for date in dates_of(claim) if date.is_full] if has_month else []
    missing = []
    for begin, end in names_of(claim):
        lacking = [
            word
            for part in _names_to_find(claim, begin, end)
            for word in words_of(part)
            if len(word) > 1
            and _stem(word, _NAME_ENDINGS) not in stems
            and not (len(word) > 3 and word in joined)
            and not (
                month_of(word)
                and (month_of(word) in months or any(date_span.begin < end and begin < date_span.end for date_span in dates))
            )
        ]
        name = claim[begin:end]
        if lacking and not _as_initials(name, [word for word in words_of(name) if word not in _JOINING], passage):
            missing.append(name)
    return missing


def _names_to_find(claim: str, begin: int, end: int) -> list[str]:
    """Return the parts of a name to look up."""
    parts = [part[0] for part in _PART.finditer(claim, begin, end)]
    named = [part for part in parts if part.lower() not in _JOINING and (_is_capital(part) or part[0].isdigit())]
    begins_claim = _PART.search(claim, 0, begin) is None
    return named[1:] if begins_claim and len(named) > 1 and _is_common(named[0]) else named


def _is_capital(word: str) -> bool:
    return word[0].isupper() or any(letter.isupper() for letter in word[1:])


def _is_common(word: str) -> bool:
    """Return whether the first word of a sentence may be capitalised only as such."""
    return word[1:].islower() or len(word) == 1


def _begins_name(claim: str, tokens: list[re.Match[str]]) -> bool:
    """Return whether the first word begins a name: the next one, after only white space, is capitalised."""
    return len(tokens) > 1 and _is_capital(tokens[1][0]) and claim[tokens[0].end() : tokens[1].start()].isspace()


def _as_initials(name: str, words: list[str], passage: str) -> bool:
    """Return whether the name is an abbreviation of words in the passage, or the passage abbreviates it."""
    if len(words) > 1:
        initials = "".join(word[0] for word in words).upper()
        return len(initials) > 1 and re.search(rf"\b{re.escape(initials)}s?\b", passage) is not None
    letters = re.sub(r"[^A-Z]", "", name)
    if not 2 <= len(letters) <= 6:
        return False
    pattern = r"\b" + r"[\w-]*[\s-]+(?:(?:of|the|and|for|in)\s+)?".join(re.escape(letter) for letter in letters)
    return re.search(pattern, passage, re.IGNORECASE) is not None


# Numbers of a claim that a passage gives for something else: "15 deaths" if the source has 15 days and 9 deaths.

_APART = 0.15
_CLAIM_WORDS, _PASSAGE_WORDS, _BESIDE = 4, 5, 2
_REACH = 80
_CLAUSE_END = re.compile(r"[.;:!?,](?=\s)")
_FIRST_YEAR, _LAST_YEAR = 1500, 2100


class Miscounted(NamedTuple):
    """A number of a claim, as written, and the number that the passage has instead."""

    number: str
    other: str


class _Around(NamedTuple):
    """The content words before a number, and after it, the nearest first."""

    before: list[str]
    after: list[str]

    @classmethod
    def in_claim(cls, claim: str, number: Number) -> _Around:
        return cls._of(*_context_of(claim, number), _CLAIM_WORDS)

    @classmethod
    def in_passage(cls, passage: str, number: Number) -> _Around:
        """Return those in the number's clause only, since a passage makes several statements."""
        before, after = _context_of(passage, number)
        return cls._of(_CLAUSE_END.split(before)[-1], _CLAUSE_END.split(after)[0], _PASSAGE_WORDS)

    @classmethod
    def _of(cls, before: str, after: str, most: int) -> _Around:
        return cls(stemmed(before)[::-1][:most], stemmed(after)[:most])

    @property
    def words(self) -> frozenset[str]:
        return frozenset(self.before) | frozenset(self.after)

    def counted(self, *, by_year: bool) -> list[str]:
        """Return the words on the side of what the number counts."""
        return self.before if by_year else self.after


def miscounted(claim: str, passage: str) -> list[Miscounted]:
    """Return the numbers of a claim that are in a passage, but count something else there.

    A number counts the word after it; for a year, it is the word before it. In the passage that word is next to another number
    of this kind and to none that agrees, and the words around that other number are more like those of the claim. The margin
    was chosen on the training parts of SciFact, HealthVer, CovidFact, Citation-Integrity, FEVER and WiCE: this reports a
    number in 2% of supported claims with a number, as a mean over the sets, and in 27% of those in which a number was replaced
    by another of the passage.
    """
    of_claim = numbers_of(claim)
    there = [(number, _Around.in_passage(passage, number)) for number in numbers_of(passage)] if of_claim else []
    results = []
    for number in of_claim:
        around = _Around.in_claim(claim, number)
        agreed = [context for other, context in there if agreeing(number, other)]
        others = [(other, context) for other, context in there if not agreeing(number, other) and _kind(other) == _kind(number)]
        year = _is_year(number)
        counted = around.counted(by_year=year)[:1]
        if not agreed or not counted or any(counted[0] in context.counted(by_year=year)[:_BESIDE] for context in agreed):
            continue
        nearby = [(other, context) for other, context in others if counted[0] in context.counted(by_year=year)[:_BESIDE]]
        if not nearby:
            continue
        words = around.words
        nearest, best = max(((other, _likeness(words, context)) for other, context in nearby), key=lambda pair: pair[1])
        if best - max(_likeness(words, context) for context in agreed) >= _APART:
            results.append(Miscounted(number.written, nearest.written))
    return results


def _context_of(text: str, number: Number) -> tuple[str, str]:
    return text[max(0, number.begin - _REACH) : number.begin], text[number.end : number.end + _REACH]


def _likeness(words: frozenset[str], around: _Around) -> float:
    return len(words & around.words) / len(words)


def _is_year(number: Number) -> bool:
    return number.written.isdigit() and len(number.written) == 4 and _FIRST_YEAR <= number.value <= _LAST_YEAR


def _kind(number: Number) -> tuple[bool, bool]:
    return number.percent, _is_year(number)


# Numbers and dates of a claim that a passage lacks.


class MissingFigures(NamedTuple):
    """Numbers and dates of a claim that a passage lacks, as written, with units, in order; and the number of its dates.

    Args:
        numbers: of the claim that are not certainly in the passage.
        dates: of the claim that no date of the passage agrees with.
        n_dates: number of dates in the claim.
        unclear: those of the numbers that the passage may have, each with its spelling there: "1.234" and "1,234" if it is
            unknown which is the decimal mark.
    """

    numbers: tuple[str, ...]
    dates: tuple[str, ...]
    n_dates: int
    unclear: tuple[tuple[str, str], ...] = ()


def missing_figures(claim: str, passage: str) -> MissingFigures:
    """Return the numbers and dates of a claim that are nowhere in a passage.

    A date is missing if no date of the passage agrees with it, whatever numbers are there; its day and year are not reported
    again. A day is present if a date, or a range of days, of the passage has it.

    Args:
        claim: a statement.
        passage: that may support it.
    """
    wanted = [date for date in dates_of(claim) if date.is_full]
    dates = dates_of(passage) if wanted else []
    missing = [date for date in wanted if not any(date.agrees(other) for other in dates)]
    with_days = [other for other in dates if any(reading.days for reading in other.readings)]
    named = [date for date in wanted if any(date.agrees(other) for other in with_days)]
    lacking = [
        (number, other)
        for number, other in compare_numbers(claim, passage)
        if not _within(number, missing) and not (number.value <= 31 and _within(number, named))
    ]
    return MissingFigures(
        tuple(number.measured for number, _ in lacking),
        tuple(date.written for date in missing),
        len(wanted),
        tuple((number.measured, other.measured) for number, other in lacking if other is not None),
    )


def _within(number: Number, dates: list[Date]) -> bool:
    return any(date.begin <= number.begin and number.end <= date.end for date in dates)


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

_MOST_WORDS = 300
_SAME_MATTER = 0.7
_SAME_MATTER_DENIED = 0.5
_LEAD = 0.15
_AROUND_OPPOSITE = 0.6
_AROUND_NAME = 0.6
_NEIGHBOURS = 2


@dataclass(frozen=True)
class Checks:
    """Results of the checks.

    The thresholds of ``contradiction`` and ``is_of_another`` were chosen on the training parts of SciFact, HealthVer,
    CovidFact, Citation-Integrity, FEVER and WiCE. There the first holds for 2% of the supported claims, for half of those with
    an inserted "not", and 14% of those with an antonym; the second for 2% of the supported claims and 12% of those with another
    name, without FEVER, whose passages lack the title that its claims name.

    Args:
        signals: by name: the shares of the claim's words in the passage (``overlap``) and in its nearest sentence
            (``sentence_overlap``), and of its neighbouring words (``bigrams``); how much of the claim is there word for
            word in one piece (``longest_run``), and 1 if all of it is (``verbatim``); the shares of its numbers and
            names that the passage lacks; how much more of the claim's words is in a sentence that differs from it in negation
            than in one that does not (``negation``); how many of the words around it a word of the claim shares with its
            opposite (``opposite``); 1 if the claim is negated (``claim_negated``).
        sentence: span in the passage of the sentence that denies the claim, else of the nearest one.
        missing_numbers: of the claim, including dates, as written.
        missing_names: of the claim.
        unclear_numbers: those of the missing ones that the passage may have, each with its spelling there.
        contradiction: how a sentence with most of the claim's words differs, for people: "with a negation", "without the
            negation", "with 'decreased' in place of 'increased'"; empty if none does.
        around_names: the largest share of the claim's words, without its names, in two neighbouring sentences.
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
        """Return whether the passage has most of the claim's words, but lacks the name that they are about."""
        return bool(self.missing_names) and self.around_names >= _AROUND_NAME


@lru_cache(16)  # a verifier and an audit check the same pair
def check(claim: str, passage: str) -> Checks:
    """Check a claim against a passage."""
    wanted = _content(claim)
    sentences = [_Sentence.of(passage, span) for span in sentences_of(passage)]
    shares = [_share(wanted, candidate.content) for candidate in sentences]
    nearest = _nearest(wanted, sentences)
    missing = missing_figures(claim, passage)
    spans = names_of(claim)
    names = unmatched_names(claim, passage)
    pairs, pairs_there = _neighbours(claim), _neighbours(passage)
    run = _longest_run(words_of(claim), words_of(sentences[nearest].text)) if sentences else 0.0
    negated = negations(claim) > 0
    denial = _denial(negated, sentences, shares)
    opposite = _opposite(claim, wanted, sentences, shares)
    contradicting = next((candidate for candidate in (denial, opposite) if candidate.says), None)
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
        _best_overlap(rest, sentences),
        missing.unclear,
    )


class _Sentence(NamedTuple):
    """A sentence of a passage: its span, its text, its content words, and whether it negates."""

    span: Span
    text: str
    content: frozenset[str]
    is_negated: bool

    @classmethod
    def of(cls, passage: str, span: Span) -> _Sentence:
        text = passage[span[0] : span[1]]
        return cls(span, text, _content(text), negations(text) > 0)


def _nearest(wanted: frozenset[str], sentences: Sequence[_Sentence]) -> int:
    """Return the sentence with the largest share of the claim's words, rarer ones counting more; 0 if there is none."""
    weight = {word: 1 / (1 + math.log1p(sum(word in sentence.content for sentence in sentences))) for word in wanted}
    shares = [sum(weight[word] for word in wanted & sentence.content) for sentence in sentences]
    return max(range(len(sentences)), key=lambda number: (shares[number], -number), default=0)


class _Contradiction(NamedTuple):
    """Strength of a contradiction, its sentence, and, if that is enough, its description."""

    strength: float = 0.0
    sentence: int = 0
    says: str = ""


def _denial(negated: bool, sentences: Sequence[_Sentence], shares: Sequence[float]) -> _Contradiction:
    """Return by how much a sentence that differs from the claim in negation exceeds those that do not."""
    alike = [share for share, sentence in zip(shares, sentences, strict=True) if sentence.is_negated == negated]
    others = [number for number, sentence in enumerate(sentences) if sentence.is_negated != negated]
    if not others:
        return _Contradiction()
    nearest = max(others, key=shares.__getitem__)
    ahead = max(0.0, shares[nearest] - max(alike, default=0.0))
    enough = ahead >= _LEAD and shares[nearest] >= (_SAME_MATTER_DENIED if negated else _SAME_MATTER)
    return _Contradiction(ahead, nearest, ("without the negation" if negated else "with a negation") if enough else "")


def _opposite(claim: str, wanted: frozenset[str], sentences: Sequence[_Sentence], shares: Sequence[float]) -> _Contradiction:
    """Return how many of the claim's other words are in a sentence with the opposite of a word."""
    best, opposites = _Contradiction(), Opposites.of(claim)
    for number, sentence in enumerate(sentences):
        met = opposites.met(sentence.text) if shares[number] else []
        if not met:
            continue
        around = min(1.0, len(wanted & sentence.content) / max(1, len(wanted) - len({word for word, _ in met})))
        if around > best.strength:
            word, other = met[0]
            best = _Contradiction(around, number, f"with '{other}' in place of '{word}'" if around >= _AROUND_OPPOSITE else "")
    return best


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
    """

    checks: Checks
    miscounted: list[Miscounted]
    quotations: tuple[str, ...]

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
    if checks.missing_numbers:
        missing = missing_figures(claim, whole)
        checks = replace(checks, missing_numbers=missing.dates + missing.numbers, unclear_numbers=missing.unclear)
    if checks.missing_names:
        checks = replace(checks, missing_names=tuple(unmatched_names(claim, whole)))
    counted = miscounted(claim, whole) if miscounted(claim, read) else []
    return LookedUp(checks, counted, missing_quotations(claim, whole, all_quoted=quoted))


# Quotations of a report, and the check that its source contains them.
#
# All of Unicode's quotation marks count, in the pairs of any language (English, German, French, Danish, Swedish, Chinese and so
# on), also if another mark of the same family closes, if pairs are nested, and if a sentence holds only the beginning or the
# end of a quotation. An apostrophe opens none. The work is linear in the length of the sentence and of the source.

_DOUBLE = frozenset('"\uff02\u201c\u201d\u201e\u201f\u2033\u2036\u275d\u275e\u2760\u301d\u301e\u301f\u2e42\u05f4')
_SINGLE = frozenset("'\uff07\u2018\u2019\u201a\u201b\u2032\u2035\u275b\u275c\u275f`\u00b4\u02bc\u02bb\u05f3")
_PAIRED = {
    "\u00ab": "\u00bb", "\u00bb": "\u00ab\u00bb", "\u2039": "\u203a", "\u203a": "\u2039\u203a", "\u276e": "\u276f",
    "\u300c": "\u300d", "\u300e": "\u300f", "\u300a": "\u300b", "\u3008": "\u3009", "\uff62": "\uff63", "\ufe41": "\ufe42",
    "\ufe43": "\ufe44", "\u226a": "\u226b", "\u27ea": "\u27eb", "\u27e8": "\u27e9", "\u2e22": "\u2e23", "\u2e24": "\u2e25",
}  # fmt: skip
_ENDING = frozenset("".join(_PAIRED.values()))
_OPENS_ALWAYS = frozenset("\u201c\u201e\u201a\u275d\u275b\u301d\u2e42") | _PAIRED.keys()
_BEGINS = frozenset("\u201c\u201e\u201d\u301d\u00ab") | (_PAIRED.keys() - frozenset("\u00bb\u203a"))
_TITLES = frozenset("\u300a\u3008\u27ea\u27e8")
_WRITTEN_AS = (("<<", "\u00ab"), (">>", "\u00bb"), ("``", "\u201c"), ("''", "\u201d"), (",,", "\u201e"))
_MARK = re.compile(f"[{re.escape(''.join(sorted(_DOUBLE | _SINGLE | _PAIRED.keys() | _ENDING)))}]")
_SHORTENED = re.compile(r"\d\ds?\b|(?:tis|twas|twere|twill|em|n|cause|til|till|round|bout|cos|s|t)\b", re.IGNORECASE)
_LOWER_CASE = re.compile(r"\s[a-z]")
_LEFT_OUT = re.compile(
    r"[\[(\u3010]\s?(?:\.\s?\.\s?\.|\u2026|\u22ef|sic!?)\s?[\])\u3011]|\[[^\[\]]{0,200}\]|\u2026+|\u22ef+|\.\s?\.\s?\.(?:\s?\.)*|\u3002{3,6}|\x00"
)
_CHANGED_LETTER = re.compile(r"\[([^\W\d_])\](?=\w)")
_SENTENCE_MARKS = re.compile(r"[\uff0c\u3002\uff01\uff1f\uff1b,;!?]")
_ATTRIBUTION = re.compile(r"(?:^|\s)(?:[\u2014\u2015]|--)\s?")
_QUOTED_WORD = re.compile(r"[^\W\d_]+")
_MOST_QUOTATIONS, _MOST_PARTS, _MOST_PLACES = 50, 40, 20
_LONGEST = 2_000
_LONG_WORD = 4
_FEWEST_WORDS = 3
_FEWEST_IN_PART = 2
_NEAR = 1_000
"""Most characters of a source between two parts of a quotation; parts farther apart are not one quotation."""

_DEEPEST = 8


def missing_quotations(sentence: str, source: str, *, all_quoted: bool = False) -> tuple[str, ...]:
    """Return the quotations of a sentence that a source does not contain word for word, in order.

    A quotation may omit words ("...") or insert some in brackets. The parts around these must be in the source in this order
    and near each other, and parts of two words or more must have at least half of the words: single words prove nothing.
    Fewer than three words in quotation marks may be scare quotes, and words of which the first and half of the others are
    capitalised are the title of a work: these are not quotations. The case of the first letter does not matter.

    Args:
        sentence: of a report, as plain text.
        source: what it cites, with its title.
        all_quoted: whether it is in a block quote, so that all of it is a quotation if it has no quotation marks.
    """
    quotations = list(dict.fromkeys(islice(_quotations(sentence), _MOST_QUOTATIONS)))
    if all_quoted and not quotations:
        quotations = [_ATTRIBUTION.split(sentence)[0].strip()]
    wanted = [quotation for quotation in quotations if _is_quotation(quotation)]
    if not wanted:
        return ()
    folded = fold(source)
    return tuple(quotation for quotation in wanted if not _is_quoted(quotation, folded))


@dataclass
class _OpenQuotation:
    """A mark that opened a quotation, and the position of a mark that may be its end or an apostrophe; -1 for none."""

    mark: str
    place: int
    perhaps: int = -1

    def closes(self, mark: str) -> bool:
        if self.mark in _PAIRED:
            return mark in _PAIRED[self.mark]
        return mark in (_DOUBLE if self.mark in _DOUBLE else _SINGLE)


def _quotations(sentence: str) -> Iterator[str]:
    """Yield the words within quotation marks, in the order of their ends."""
    for opening, mark in _WRITTEN_AS:
        sentence = sentence.replace(opening, mark)
    opened: list[_OpenQuotation] = []

    def inside(begin: int, end: int) -> Iterator[str]:
        if 0 < end - begin <= _LONGEST and (words := sentence[begin:end].strip()):
            titled = sentence[begin - 1 : begin] in _TITLES and is_unspaced(words[0]) and not _SENTENCE_MARKS.search(words)
            yield from () if titled else (words,)

    for match in _MARK.finditer(sentence):
        mark, position = match[0], match.start()
        before, after = sentence[position - 1 : position], sentence[position + 1 : position + 2]
        can_open = _can_open(mark, before, after, sentence, position)
        number = next((n for n in range(len(opened) - 1, -1, -1) if opened[n].closes(mark)), None)
        if number is not None and _can_close(mark, before, after, can_open=can_open):
            quotation = opened[number]
            if mark in _SINGLE and before in "sS" and mark not in "\u2018" and _LOWER_CASE.match(sentence, position + 1):
                quotation.perhaps = position if quotation.perhaps < 0 else quotation.perhaps
                continue
            yield from inside(quotation.place + 1, position)
            del opened[number:]
        elif can_open:
            if number is not None and opened[number].perhaps >= 0:
                yield from inside(opened[number].place + 1, opened[number].perhaps)
                del opened[number:]
            opened = [*opened[-_DEEPEST:], _OpenQuotation(mark, position)]
        elif number is None and mark not in _SINGLE and not before.isdigit():
            yield from inside(0, position)  # it began in an earlier sentence
    for quotation in opened:
        if quotation.perhaps >= 0:
            yield from inside(quotation.place + 1, quotation.perhaps)
        elif quotation.mark not in _SINGLE and (quotation.mark in _BEGINS or quotation.mark in _DOUBLE):
            yield from inside(quotation.place + 1, len(sentence))  # it ends in a later sentence


def _is_letter(char: str) -> bool:
    return char.isalnum() and not is_unspaced(char) and not "\uac00" <= char <= "\ud7a3"


def _can_open(mark: str, before: str, after: str, sentence: str, position: int) -> bool:
    if mark in _OPENS_ALWAYS:
        return mark != "\u201c" or not (before and not before.isspace() and (not after or after.isspace()))
    if mark in _ENDING or _is_letter(before) or not after or (after.isspace() and mark not in "\u00bb\u203a"):
        return False
    if mark in _SINGLE:
        return not _SHORTENED.match(sentence, position + 1) and (before not in _SINGLE or not before)
    return True


def _can_close(mark: str, before: str, after: str, *, can_open: bool) -> bool:
    if mark in _ENDING or mark in "\u00ab\u2039":
        return True
    if _is_letter(after):
        return False
    if before.isspace():
        return mark in "\u201d" and not can_open
    return True


def _is_quotation(text: str) -> bool:
    first, *others = _QUOTED_WORD.findall(text) or [""]
    long = [word for word in others if len(word) >= _LONG_WORD and not is_unspaced(word[0])]
    titled = long and not first[:1].islower() and 2 * sum(word[0].isupper() for word in long) >= len(long)
    return _count(text) >= _FEWEST_WORDS and not titled


def _count(text: str) -> float:
    """Return the number of words of a text; in a script without spaces, two characters count as one word."""
    words = words_of(text)
    unspaced = sum(map(is_unspaced, words))
    return len(words) - unspaced / 2


def _is_quoted(quotation: str, source: FoldedText) -> bool:
    """Return whether a source contains the parts of a quotation in order, near each other."""
    pieces = _LEFT_OUT.split(_CHANGED_LETTER.sub("\x00\\1", quotation))
    parts = [part for part in (piece.strip(" ,;:.!?\u3001\u3002\uff0c") for piece in pieces) if words_of(part)]
    counts = [_count(part) for part in parts]
    if len(parts) > 1 and 2 * sum(count for count in counts if count >= _FEWEST_IN_PART) < sum(counts):
        return False
    if not parts or len(parts) > _MOST_PARTS:
        return not parts
    longest = max(range(len(parts)), key=lambda number: (len(parts[number]), -number))
    for begin, end in islice(_part_spans(parts[longest], source, 0, len(source.text)), _MOST_PLACES):
        if _follow(parts[longest + 1 :], source, end) and _precede(parts[:longest], source, begin):
            return True
    return False


def _follow(parts: list[str], source: FoldedText, position: int) -> bool:
    for part in parts:
        span = next(_part_spans(part, source, position, position + _NEAR + len(part)), None)
        if span is None:
            return False
        position = span[1]
    return True


def _precede(parts: list[str], source: FoldedText, position: int) -> bool:
    for part in reversed(parts):
        spans = list(_part_spans(part, source, max(0, position - _NEAR - len(part)), position))
        if not spans:
            return False
        position = spans[-1][0]
    return True


def _part_spans(part: str, source: FoldedText, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the positions of a part, whatever the case of its first letter, in order."""
    forms = dict.fromkeys((part, part[0].swapcase() + part[1:]))
    return iter(sorted({span for form in forms for span in islice(places_of(form, source, begin, end, 1), _MOST_PLACES)}))


def lacking_figures(claim: str, read: str, whole: str) -> tuple[str, ...]:
    """Return the numbers and dates of a claim that neither the passage that was read nor its whole source has."""
    if not any(missing_figures(claim, read)[:2]):
        return ()
    missing = missing_figures(claim, whole)
    return missing.dates + missing.numbers
