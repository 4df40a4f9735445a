"""Checks of a claim against a passage without a model: numbers, names, negation, words."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from nlp_retrieval.systems.evidence.verifiers.windows import Span
from nlp_retrieval.text import (
    FUNCTION_WORDS,
    Date,
    Number,
    agreeing,
    as_latin,
    compare_numbers,
    dates_of,
    month_of,
    months_named,
    numbers_of,
    sentences_of,
    stems_of_language,
    words_of,
)

# Content words of a text, for comparison with another, without their endings.

_ENDINGS = ("ations", "ation", "ments", "ment", "ings", "ing", "ies", "ied", "ed", "es", "ly", "s")
_NAME_ENDINGS = ("ians", "ian", "ese", "ish", "ans", "an", "es", "s", "n")


def stemmed(text: str) -> list[str]:
    """Return the words of a text except function words, in order, without common endings if four letters are left.

    Args:
        text: any text.
    """
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
    """Return the spans of the names of a claim, in characters; at most 100.

    Args:
        claim: a statement.
    """
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
        plain = number == 0 and _is_common(word) and not _goes_on(claim, tokens)
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
    """Return the names of a claim with a word that a passage lacks.

    Args:
        claim: a statement.
        passage: that may support it, with its title.
    """
    words = words_of(passage)
    there, joined = {_stem(word, _NAME_ENDINGS) for word in words}, "".join(words)
    has_month = any(month_of(word) for word in words_of(claim))
    months = months_named(passage) if has_month else frozenset()
    dates = [date for date in dates_of(claim) if date.is_full] if has_month else []
    missing = []
    for begin, end in names_of(claim):
        lacking = [
            word
            for part in _looked_for(claim, begin, end)
            for word in words_of(part)
            if len(word) > 1
            and _stem(word, _NAME_ENDINGS) not in there
            and not (len(word) > 3 and word in joined)
            and not (month_of(word) and (month_of(word) in months or any(one.begin < end and begin < one.end for one in dates)))
        ]
        name = claim[begin:end]
        if lacking and not _as_initials(name, [word for word in words_of(name) if word not in _JOINING], passage):
            missing.append(name)
    return missing


def _looked_for(claim: str, begin: int, end: int) -> list[str]:
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


def _goes_on(claim: str, tokens: list[re.Match[str]]) -> bool:
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
        return cls._of(*_beside(claim, number), _CLAIM_WORDS)

    @classmethod
    def in_passage(cls, passage: str, number: Number) -> _Around:
        """Return those in the number's clause only, since a passage makes several statements."""
        before, after = _beside(passage, number)
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

    Args:
        claim: a statement.
        passage: that may support it; its first 400 numbers are compared.
    """
    of_claim = numbers_of(claim)
    there = [(number, _Around.in_passage(passage, number)) for number in numbers_of(passage)] if of_claim else []
    found = []
    for number in of_claim:
        around = _Around.in_claim(claim, number)
        agreed = [one for other, one in there if agreeing(number, other)]
        others = [(other, one) for other, one in there if not agreeing(number, other) and _kind(other) == _kind(number)]
        year = _is_year(number)
        counted = around.counted(by_year=year)[:1]
        if not agreed or not counted or any(counted[0] in one.counted(by_year=year)[:_BESIDE] for one in agreed):
            continue
        beside = [(other, one) for other, one in others if counted[0] in one.counted(by_year=year)[:_BESIDE]]
        if not beside:
            continue
        words = around.words
        nearest, best = max(((other, _likeness(words, one)) for other, one in beside), key=lambda pair: pair[1])
        if best - max(_likeness(words, one) for one in agreed) >= _APART:
            found.append(Miscounted(number.written, nearest.written))
    return found


def _beside(text: str, number: Number) -> tuple[str, str]:
    return text[max(0, number.begin - _REACH) : number.begin], text[number.end : number.end + _REACH]


def _likeness(words: frozenset[str], around: _Around) -> float:
    return len(words & around.words) / len(words)


def _is_year(number: Number) -> bool:
    return number.written.isdigit() and len(number.written) == 4 and _FIRST_YEAR <= number.value <= _LAST_YEAR


def _kind(number: Number) -> tuple[bool, bool]:
    return number.percent, _is_year(number)


# Opposition of a claim and a passage: negation in only one of them, or words of opposite meaning.

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


def _antonyms() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for pair in _PAIRS:
        one, other = pair.split()
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return {word: frozenset(others) for word, others in found.items()}


ANTONYMS = _antonyms()
"""Words of the opposite meaning, by word."""


@cache
def _opposite_stems() -> dict[str, frozenset[str]]:
    """Return the stems of antonyms by the stems of words, so that every form of a word matches every form of its antonyms."""
    stem = stems_of_language("english").stem
    found: dict[str, set[str]] = {}
    for word, others in ANTONYMS.items():
        found.setdefault(stem(word), set()).update(map(stem, others))
    return {word: frozenset(others - {word}) for word, others in found.items()}


def negations(text: str) -> int:
    """Return the number of negating words in a text.

    Args:
        text: a claim, or a sentence of a passage.
    """
    return sum(1 for _ in _NEGATION.finditer(as_latin(text)))


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
        said = _by_stem(claim)
        return cls(said, sorted(said.keys() & _opposite_stems().keys()))

    def met(self, sentence: str) -> list[tuple[str, str]]:
        """Return pairs of a word of the claim and its opposite in a sentence, if the sentence lacks the word.

        Args:
            sentence: of a passage.
        """
        if not self.looked_for:
            return []
        there, opposites = _by_stem(sentence), _opposite_stems()
        return [
            (self.said[word], there[other])
            for word in self.looked_for
            if word not in there
            for other in sorted(opposites[word] & there.keys() - self.said.keys())
        ]


def _by_stem(text: str) -> dict[str, str]:
    stems = stems_of_language("english")
    return {stems.stem(word): word for word in reversed(stems.as_written(text))}


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
    there = dates_of(passage) if wanted else []
    missing = [date for date in wanted if not any(date.agrees(other) for other in there)]
    with_days = [other for other in there if any(reading.days for reading in other.readings)]
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
    """Check a claim against a passage.

    Args:
        claim: a statement.
        passage: that may support it.
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
    weight = {word: 1 / (1 + math.log1p(sum(word in one.content for one in sentences))) for word in wanted}
    shares = [sum(weight[word] for word in wanted & one.content) for one in sentences]
    return max(range(len(sentences)), key=lambda number: (shares[number], -number), default=0)


class _Contradiction(NamedTuple):
    """Strength of a contradiction, its sentence, and, if that is enough, its description."""

    strength: float = 0.0
    sentence: int = 0
    says: str = ""


def _denial(negated: bool, sentences: Sequence[_Sentence], shares: Sequence[float]) -> _Contradiction:
    """Return by how much a sentence that differs from the claim in negation exceeds those that do not."""
    alike = [share for share, one in zip(shares, sentences, strict=True) if one.is_negated == negated]
    others = [number for number, one in enumerate(sentences) if one.is_negated != negated]
    if not others:
        return _Contradiction()
    nearest = max(others, key=shares.__getitem__)
    ahead = max(0.0, shares[nearest] - max(alike, default=0.0))
    enough = ahead >= _LEAD and shares[nearest] >= (_SAME_MATTER_DENIED if negated else _SAME_MATTER)
    return _Contradiction(ahead, nearest, ("without the negation" if negated else "with a negation") if enough else "")


def _opposite(claim: str, wanted: frozenset[str], sentences: Sequence[_Sentence], shares: Sequence[float]) -> _Contradiction:
    """Return how many of the claim's other words are in a sentence with the opposite of a word."""
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
    """Return the largest share of some words in neighbouring sentences."""
    groups = [sentences[first : first + _NEIGHBOURS] for first in range(max(1, len(sentences) - _NEIGHBOURS + 1))]
    return max(_share(wanted, frozenset[str]().union(*(one.content for one in group))) for group in groups)


def _longest_run(claim: tuple[str, ...], sentence: tuple[str, ...]) -> float:
    """Return the longest run of words that both have, as a share of the claim's."""
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
