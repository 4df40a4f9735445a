"""Numbers and dates of a claim: those that a source lacks, those that it gives for something else, and computed ones.

A number belongs to what is said beside it. Each number of a sentence gets a part of the sentence, up to the comma or the "and"
between it and the next; what a part leaves out ("Trams carried 40,000 passengers, buses 61,000") it takes over from the parts
before it, except for what it replaces: a name, a month, a year, or a statistic such as "mean".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from nlp_retrieval.systems.evidence.names import names_of, stemmed
from nlp_retrieval.text import Date, Number, agreeing, compare_numbers, dates_of, month_of, numbers_of, sentences_of, words_of

# Parts of sentences, one for each number.

_FIRST_YEAR, _LAST_YEAR = 1500, 2100
_ENDS = (
    re.compile(r"[;:|\t\n!?]|\b(?:while|whereas|but|although|versus|against|compared (?:with|to)|as opposed to)\b"),
    re.compile(r",(?!\d)"),
    re.compile(r"\b(?:and|or|to|than|after|before|from)\b"),
)
"""Where one part ends and the next begins, the clearest first."""
_RESPECTIVELY = re.compile(r"\brespectively\b", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_STATISTICS = {
    "mean": "mean", "averag": "mean", "average": "mean", "median": "median", "maximum": "maximum", "highest": "maximum",
    "minimum": "minimum", "lowest": "minimum",
}  # fmt: skip
_PERIODS = frozenset("spring summer autumn winter quarter year annual yearly month monthly week weekly day daily".split())
_TYPED, _CARRIED, _CARRIED_TYPED, _OF_SENTENCE_BEFORE = 2.0, 0.5, 0.8, 0.5


class _Part(NamedTuple):
    """A number, and the weights of the words that belong to it; the words of its own part by type ("" for ordinary ones)."""

    number: Number
    weights: dict[str, float]
    own: dict[str, str]


@lru_cache(64)
def _parts(text: str, *, years: bool) -> list[_Part]:
    """Return the numbers of a text, or its years, each with the words that belong to it."""
    heads = [number for number in numbers_of(text) if _is_year(number) == years and (years or number.unit != "date")]
    parts: list[_Part] = []
    next_head = 0
    names_before: dict[str, str] = {}
    for begin, end in sentences_of(text):
        first = next_head
        while next_head < len(heads) and heads[next_head].begin < end:
            next_head += 1
        here = heads[first:next_head]
        if here:
            parts += _parts_of_sentence(text, begin, end, here, names_before, years=years)
        names_before = {word: kind for word, kind in _typed(text[begin:end], years=years).items() if kind == "name"} or names_before
    return parts


def _parts_of_sentence(
    text: str, begin: int, end: int, heads: Sequence[Number], names_before: dict[str, str], *, years: bool
) -> Iterator[_Part]:
    cuts = [begin, *(_cut(text, one, other) for one, other in pairwise(heads)), end]
    listed = _listed_names(text[begin : heads[0].begin], heads) if _RESPECTIVELY.search(text, begin, end) else []
    carried: dict[str, str] = {}
    for position, (number, (start, stop)) in enumerate(zip(heads, pairwise(cuts), strict=True)):
        own = _typed(f"{text[start : number.begin]} {text[number.end : stop]}", years=years)
        if listed:
            own = {word: kind for word, kind in own.items() if kind != "name"} | dict.fromkeys(listed[position], "name")
        kinds = set(own.values()) - {""}
        weights = {word: _CARRIED_TYPED * _TYPED if kind else _CARRIED for word, kind in carried.items() if kind not in kinds}
        if "name" not in kinds | set(carried.values()):
            weights |= dict.fromkeys(names_before, _OF_SENTENCE_BEFORE * _TYPED)
        weights |= {word: _TYPED if kind else 1.0 for word, kind in own.items()}
        yield _Part(number, weights, own)
        carried = {word: kind for word, kind in carried.items() if kind not in kinds} | own


def _cut(text: str, one: Number, other: Number) -> int:
    """Return where the part of a number ends and that of the next begins."""
    start = max(one.end, one.until)
    between = text[start : other.begin]
    for ends in _ENDS:
        places = list(ends.finditer(between))
        if places:
            return start + places[-1].start()
    return start


def _listed_names(before: str, heads: Sequence[Number]) -> list[list[str]]:
    """Return the words of each name before "55 and 41 points, respectively"; empty unless there are as many as numbers."""
    names = [name for begin, end in names_of(f"x {before}") for name in re.split(r"\s(?:and|or)\s", f"x {before}"[begin:end])]
    return [stemmed(name) for name in names] if len(names) == len(heads) else []


def _typed(text: str, *, years: bool) -> dict[str, str]:
    """Return the content words of a text, stemmed, each with what it is: "name", "period", "year", "statistic", or ""."""
    words = dict.fromkeys((word for word in stemmed(text) if not word[0].isdigit()), "")
    for word in words:
        if word in _STATISTICS:
            words[word] = "statistic"
        elif word in _PERIODS or month_of(word):
            words[word] = "period"
    padded = f"x {text}"
    for begin, end in names_of(padded):
        words |= {word: "name" for word in stemmed(padded[begin:end]) if words.get(word) == ""}
    if not years:
        words |= dict.fromkeys(_YEAR.findall(text), "year")
    return {_STATISTICS.get(word, word): kind for word, kind in words.items()}


def _is_year(number: Number) -> bool:
    return number.written.isdigit() and len(number.written) == 4 and _FIRST_YEAR <= number.value <= _LAST_YEAR


def _kind(number: Number) -> tuple[bool, bool]:
    return number.percent, _is_year(number)


def dated_figures(text: str) -> list[tuple[str, Number]]:
    """Return the numbers of a text that belong to one year each, with the year, in order."""
    dated = [(part, [word for word, kind in part.own.items() if kind == "year"]) for part in _parts(text, years=False)]
    return [(years[0], part.number) for part, years in dated if len(years) == 1]


# Numbers of a claim that a passage gives for something else.

_APART = 0.2
_ALIKE = 0.35
_NO_QUANTITY = frozenset({"both", "single", "once", "twice", "first", "third", "half", "double", "triple"})
_NAME_BEFORE = re.compile(r"(?:\A|[^.!?\s]\s)[A-Z][\w'\u2019]*\s\Z")


class Miscounted(NamedTuple):
    """A number of a claim, as written, and the number that the passage has instead."""

    number: str
    other: str


def miscounted(claim: str, passage: str, apart: float = _APART) -> list[Miscounted]:
    """Return the numbers of a claim that are in a passage, but belong to something else there.

    The words that belong to another number of the passage, of the same kind, are more like those of the claim, by ``apart`` of
    their weight, than the words of every number that agrees; and a name, a month, a year or a statistic, or what the number
    counts, is the other number's alone.
    """
    return [
        Miscounted(rivalry.part.number.written, rivalry.rival.number.written)
        for years in (False, True)
        for rivalry in _rivalries(claim, passage, years=years)
        if rivalry.ahead >= apart and rivalry.likeness >= _ALIKE and (rivalry.is_told_apart or rivalry.counts)
    ]


class _Rivalry(NamedTuple):
    """A number of a claim, and the number of the passage whose words are most like its own, though its value is another.

    Args:
        part: of the claim.
        rival: of the passage.
        likeness: share of the claim's words that belong to the rival.
        ahead: by how much that exceeds the share of the numbers that agree.
        is_told_apart: whether a name, a period, a year or a statistic tells them apart.
        counts: whether the rival counts what the number of the claim does, and no number that agrees does.
    """

    part: _Part
    rival: _Part
    likeness: float
    ahead: float
    is_told_apart: bool
    counts: bool = False


def _rivalries(claim: str, passage: str, *, years: bool) -> Iterator[_Rivalry]:
    claimed = [part for part in _parts(claim, years=years) if _is_quantity(claim, part.number)]
    there = _parts(passage, years=years) if claimed else []
    for part in claimed:
        agreed = [other for other in there if agreeing(part.number, other.number)]
        rivals = [
            other
            for other in there
            if not agreeing(part.number, other.number) and _comparable(part, other) and _is_quantity(passage, other.number)
        ]
        if not agreed or not rivals:
            continue
        rival = max(rivals, key=lambda other: _likeness(part, other))
        likeness = _likeness(part, rival)
        ahead = likeness - max(_likeness(part, other) for other in agreed)
        said = any(agreeing(other.number, rival.number) for other in claimed)
        word = _counted(claim, part.number)
        counts = bool(word) and _counted(passage, rival.number) == word and all(_counted(passage, other.number) != word for other in agreed)
        yield _Rivalry(part, rival, likeness, ahead, _is_told_apart(part, rival, agreed, by_type=said), counts)


def _counted(text: str, number: Number) -> str:
    """Return the word after a number, stemmed; empty if the clause ends there."""
    after = re.match(r"[^.;:!?,]{0,40}", text[number.end :])
    return next(iter(stemmed(after[0] if after else "")), "")


def _is_quantity(text: str, number: Number) -> bool:
    """Return whether a number is a quantity or a year: not "both", an ordinal, or part of a name ("Phase 2")."""
    if math.isnan(number.value) or number.others or number.parts:
        return False
    if not any(char.isdigit() for char in number.written):
        return number.value > 1 and number.written.lower() not in _NO_QUANTITY and not number.written.lower().endswith("th")
    return not (number.written.isdigit() and not number.unit and not _is_year(number) and _NAME_BEFORE.search(text, max(0, number.begin - 24), number.begin))


def _comparable(part: _Part, other: _Part) -> bool:
    one, two = part.number, other.number
    return _kind(one) == _kind(two) and (not one.unit or not two.unit or one.unit == two.unit)


def _likeness(part: _Part, other: _Part) -> float:
    """Return the weighted share of the words of a claim's number that belong to a number of the passage."""
    total = sum(part.weights.values())
    shared = sum(min(weight, weight * min(1.0, other.weights.get(word, 0.0))) for word, weight in part.weights.items())
    return shared / total if total else 0.0


def _is_told_apart(part: _Part, rival: _Part, agreed: Sequence[_Part], *, by_type: bool) -> bool:
    """Return whether a word that tells numbers apart belongs to the rival alone, and the others have another in its place.

    If the claim has the rival's number too (``by_type``), such a word is needed; else what is counted may tell them apart.
    """
    typed = {word: kind for word, kind in part.own.items() if kind and word in rival.weights}
    if not typed:
        return False
    return all(any(word not in other.weights and kind in other.own.values() for word, kind in typed.items()) for other in agreed)


# Numbers and dates of a claim that a passage lacks.


class MissingFigures(NamedTuple):
    """Numbers and dates of a claim that a passage lacks, as written, with units, in order; and the number of its dates.

    Args:
        numbers: of the claim that are not certainly in the passage, and are not computed from its numbers.
        dates: of the claim that no date of the passage agrees with.
        n_dates: number of dates in the claim.
        unclear: those of the numbers that the passage may have, each with its spelling there: "1.234" and "1,234" if it is
            unknown which is the decimal mark.
        computed: how each number was computed that the passage does not have but gives the numbers for: "39 million is 97
            million less 58 million".
    """

    numbers: tuple[str, ...]
    dates: tuple[str, ...]
    n_dates: int
    unclear: tuple[tuple[str, str], ...] = ()
    computed: tuple[str, ...] = ()


def missing_figures(claim: str, passage: str) -> MissingFigures:
    """Return the numbers and dates of a claim that are nowhere in a passage.

    A date is missing if no date of the passage agrees with it, whatever numbers are there; its day and year are not reported
    again. A day is present if a date, or a range of days, of the passage has it. Words that only look like numbers ("one of
    them", "the two towns") are not reported.

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
        if not _within(number, missing)
        and not (number.value <= 31 and _within(number, named))
        and not _is_small_word(claim, number)
    ]
    how = {number: computed_from(claim, number, passage) for number, other in lacking if other is None}
    lacking = [(number, other) for number, other in lacking if not how.get(number)]
    return MissingFigures(
        tuple(number.measured for number, _ in lacking),
        tuple(date.written for date in missing),
        len(wanted),
        tuple((number.measured, other.measured) for number, other in lacking if other is not None),
        tuple(filter(None, how.values())),
    )


def _within(number: Number, dates: list[Date]) -> bool:
    return any(date.begin <= number.begin and number.end <= date.end for date in dates)


_POINTED_AT = re.compile(r"\b(?:the|these|those|all|its|their|his|her|our|other|first|last|next|past|both)\s\Z", re.IGNORECASE)
_ALWAYS_SMALL = frozenset({"one", "once", "both", "single"})
_LARGEST_SMALL = 10


def _is_small_word(claim: str, number: Number) -> bool:
    """Return whether a number in words says no quantity: "one other city", "both", or "the two towns" that are named."""
    word = number.written.lower()
    if not word.isalpha() or number.percent:
        return False
    if word in _ALWAYS_SMALL:
        return True
    return number.value <= _LARGEST_SMALL and _POINTED_AT.search(claim, max(0, number.begin - 16), number.begin) is not None


# Numbers computed from those of a passage.

_TOGETHER = re.compile(
    r"\b(?:together|total\w*|combined|altogether|in all|sum|overall|jointly|both|one (?:in|out of))\b", re.IGNORECASE
)
_APART_BY = re.compile(
    r"\b(?:more|less|fewer|than|differ\w*|gap|exceed\w*|margin|above|below|longer|shorter|later|earlier|after|within|took|"
    r"taken|takes|lasted|for|over|ahead|behind|by|span\w*|old|aged?)\b",
    re.IGNORECASE,
)
_SHARE_OF = re.compile(r"\b(?:of|share|proportion|rate)\b", re.IGNORECASE)
_DURATION = re.compile(r"\s?(?:-\s?)?years?\b", re.IGNORECASE)
_MULTIPLE = re.compile(r"\s?(?:times|fold|-fold)\b|\Z", re.IGNORECASE)
_AS_MANY = frozenset({"twice", "thrice", "double", "triple"})
_MOST_OPERANDS = 24
_MOST_APART = 2


def computed_from(claim: str, number: Number, passage: str) -> str:
    """Return how a number of a claim is computed from two of a passage, for people; empty if it is not.

    The claim has to say that it is a sum, a difference, a time between two years, a share or a multiple; the two numbers are of
    one kind, at most two sentences apart, beside a word of the claim.

    Args:
        claim: a statement.
        number: of the claim.
        passage: that does not have the number.
    """
    if math.isnan(number.value) or number.others or number.unit == "date":
        return ""
    if _DURATION.match(claim, number.end) and (_APART_BY.search(claim) or True) and number.value >= 2:
        found = _pair(claim, passage, number, lambda first, second: abs(second - first), years=True)
        return f"{number.measured} from {found[0].written} to {found[1].written}" if found else ""
    ways = []
    if number.percent and _SHARE_OF.search(claim):
        ways.append((lambda first, second: 100 * min(first, second) / max(first, second), "of"))
    if number.percent and _APART_BY.search(claim):
        ways.append((lambda first, second: 100 * abs(second - first) / first, "changed to"))
    if not number.percent and _TOGETHER.search(claim):
        ways.append((lambda first, second: first + second, "and"))
    if not number.percent and _APART_BY.search(claim):
        ways.append((lambda first, second: abs(first - second), "and, as a difference,"))
    if not number.percent and (number.written.lower() in _AS_MANY or _MULTIPLE.match(claim, number.end)):
        ways.append((lambda first, second: max(first, second) / min(first, second), "and, as a ratio,"))
    for compute, joined in ways:
        if found := _pair(claim, passage, number, compute, years=False):
            return f"{number.measured}, computed from {found[0].measured} {joined} {found[1].measured}"
    return ""


def _pair(claim: str, passage: str, number: Number, compute, *, years: bool) -> tuple[Number, Number] | None:
    """Return two numbers of a passage, near each other and beside words of the claim, from which a number follows."""
    wanted = set(stemmed(claim))
    sentences = sentences_of(passage)
    operands: list[tuple[int, Number]] = []
    place = 0
    for other in numbers_of(passage):
        while place + 1 < len(sentences) and sentences[place][1] <= other.begin:
            place += 1
        if _is_year(other) == years and not other.others and other.value > 0:
            operands.append((place, other))
    relevant = [len(wanted.intersection(stemmed(passage[begin:end]))) for begin, end in sentences]
    operands = [(place, other) for place, other in operands if relevant[place]][:_MOST_OPERANDS]
    for at, (place, first) in enumerate(operands):
        for later, second in operands[at + 1 :]:
            if later - place > _MOST_APART or not _same_kind(first, second):
                continue
            if number.unit and first.unit and not number.percent and not years and number.unit != first.unit:
                continue
            scale = 1.0 if years or number.percent else 1.0
            if first.value == second.value:
                continue
            result = compute(first.value, second.value) * scale
            if abs(result - number.value) <= max(number.exact, 1e-9 * abs(number.value)) and result:
                return first, second
    return None


def _same_kind(first: Number, second: Number) -> bool:
    return _kind(first) == _kind(second) and (first.unit == second.unit or not first.unit or not second.unit)
