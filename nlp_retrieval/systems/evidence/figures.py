"""Numbers and dates of a claim: those that a source lacks, those that it gives for something else, and computed ones.

A number belongs to what is said beside it. Each number of a sentence gets a part of the sentence, up to the comma or the "and"
between it and the next; what a part leaves out ("Trams carried 40,000 passengers, buses 61,000") it takes over from the parts
before it, except for what it replaces: a name, a month, a year, or a statistic such as "mean".
"""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from nlp_retrieval.systems.evidence.computed import are_of_one_kind, as_another_form, computed_from, is_year, numbers_near
from nlp_retrieval.systems.evidence.names import names_of, numbered_things, sentence_words, stemmed
from nlp_retrieval.text import Date, Number, agreeing, compare_numbers, dates_of, month_of, numbers_of, sentences_of

# Parts of sentences, one for each number.

_ENDS = (
    re.compile(r"[;:|\t\n!?]|\b(?:while|whereas|but|although|versus|against|compared (?:with|to)|as opposed to)\b"),
    re.compile(r",(?!\d)"),
    re.compile(r"\b(?:and|or|to|than|after|before|from)\b"),
)
"""Where one part ends and the next begins, the clearest first."""
_RESPECTIVELY = re.compile(r"\brespectively\b", re.IGNORECASE)
_LISTED = re.compile(r"(?:\s[\w-]{1,20})?(?:,\s|,?\s(?:and|or)\s)(?:[$\u20ac\u00a3])?")
YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
"""A year from 1500 to 2099 in a text."""
_STATISTICS = {
    "mean": "mean", "averag": "mean", "average": "mean", "median": "median", "maximum": "maximum", "highest": "maximum",
    "minimum": "minimum", "lowest": "minimum", "longest": "maximum", "largest": "maximum", "peak": "maximum",
    "shortest": "minimum", "smallest": "minimum",
}  # fmt: skip
_PERIODS = {word: word for word in "spring summer autumn winter year".split()}
_PERIODS |= {"annual": "year", "annually": "year", "yearly": "year"}
_RATES = {
    "time": {
        "hour": "hour hourly", "day": "day daily", "night": "night nightly", "week": "week weekly", "month": "month monthly",
        "quarter": "quarter quarterly", "year": "year annum yearly annual annually",
    },
    "who": {
        "person": "person people capita head inhabitant resident individual citizen",
        "household": "household family home dwelling",
        "pupil": "pupil student child", "worker": "worker employee", "visitor": "visitor guest passenger", "patient": "patient",
        "couple": "couple",
    },
    "what": {
        "kilometre": "kilometre kilometer km", "mile": "mile", "metre": "metre meter", "hectare": "hectare", "acre": "acre",
        "litre": "litre liter", "kilogram": "kilogram kilo kg", "tonne": "tonne ton",
    },
}  # fmt: skip
_RATE_OF = {word: (kind, name) for kind, names in _RATES.items() for name, words in names.items() for word in words.split()}
_RATE_AFTER = re.compile(
    r"\b(?:(?:per|an?|each|every|(?:for|by|in) (?:each|every))\s(?P<unit>\w+)|(?P<adverb>\w+ly|annual))\b", re.IGNORECASE
)
_RATE_BEFORE = re.compile(r"\b(?:(?:per|each|every)\s(?P<unit>\w+)|(?P<adverb>\w+ly|annual))\b", re.IGNORECASE)
_LONGEST_CAPTION = 200
_TYPED, _CARRIED, _CARRIED_TYPED, _OF_SENTENCE_BEFORE = 2.0, 0.5, 0.8, 0.5


class _Part(NamedTuple):
    """A number, and the weights of the words that belong to it; the words of its own part by type ("" for ordinary ones)."""

    number: Number
    weights: dict[str, float]
    own: dict[str, str]


@lru_cache(64)
def _parts(text: str, *, years: bool) -> list[_Part]:
    """Return the numbers of a text, or its years, each with the words that belong to it."""
    heads = [number for number in numbers_of(text) if is_year(number) == years and (years or number.unit != "date")]
    heads = [number for number in heads if not _is_of_name(text, number)]
    parts: list[_Part] = []
    next_head = 0
    names_before: dict[str, str] = {}
    rows = list(_rows_of(text)) if "|" in text or "\t" in text else []
    if rows:
        in_rows = {number: own for number in heads for begin, end, own in rows if begin <= number.begin < end}
        parts += [_Part(number, dict.fromkeys(own, _TYPED), own) for number, own in in_rows.items() if own]
        heads = [number for number in heads if number not in in_rows]
    for begin, end in sentences_of(text):
        first = next_head
        while next_head < len(heads) and heads[next_head].begin < end:
            next_head += 1
        here = heads[first:next_head]
        if here:
            parts += _parts_of_sentence(text, begin, end, here, names_before, years=years)
        names_before = {
            word: kind for word, kind in _typed(text[begin:end], years=years).items() if kind == "name"
        } or names_before
    return parts


def _rows_of(text: str) -> Iterator[tuple[int, int, dict[str, str]]]:
    """Yield the cells of a text's tables: begin, end, and the words of the row's first cell, column's head and caption."""
    position, heads, caption = 0, list[str](), ""
    for line in text.splitlines(keepends=True):
        mark = "\t" if "\t" in line else "|"
        cells = line.rstrip("\n").split(mark)
        if len(cells) < 2:
            heads, caption = [], line if len(line) <= _LONGEST_CAPTION else ""
        elif not heads or len(heads) != len(cells):
            heads = cells
            yield position, position + len(line), {}
        else:
            label = next((cell for cell in cells if cell.strip()), "")
            row = dict.fromkeys([*stemmed(label), *map(" ".join, numbered_things(label)), *YEAR.findall(label)], "name")
            begin = position
            for head, cell in zip(heads, cells, strict=True):
                dated = YEAR.search(f"{label} {head}") is not None
                own = {word: "caption" for word, kind in _typed(caption, years=False).items() if not (dated and kind == "year")}
                own |= dict.fromkeys([*stemmed(head), *YEAR.findall(head)], "column") | row
                yield begin, begin + len(cell), own if cell != label else {}
                begin += len(cell) + 1
        position += len(line)


def _parts_of_sentence(
    text: str, begin: int, end: int, heads: Sequence[Number], names_before: dict[str, str], *, years: bool
) -> Iterator[_Part]:
    cuts = [_cut(text, one, other) for one, other in pairwise(heads)]
    spans = zip([begin, *(start for _, start in cuts)], [*(stop for stop, _ in cuts), end], strict=True)
    is_list = _RESPECTIVELY.search(text, begin, end) or (
        len(heads) > 1 and all(_LISTED.fullmatch(text, max(one.end, one.until), other.begin) for one, other in pairwise(heads))
    )
    listed = _listed_names(text[begin : heads[0].begin], heads) if is_list else []
    carried: dict[str, str] = {}
    for position, (number, (start, stop)) in enumerate(zip(heads, spans, strict=True)):
        after = text[max(number.end, number.until) : stop]
        own = _typed(f"{text[start : number.begin]} {after}", years=years)
        if years:  # "the 2011 film Immortals" is no other subject
            before = _typed(text[start : number.begin], years=True)
            own = {word: kind if kind != "name" else before.get(word, "") for word, kind in own.items()}
        if listed:
            own = {word: kind for word, kind in own.items() if kind != "name"} | dict.fromkeys(listed[position], "name")
        kinds = set(own.values()) - {""}
        weights = {word: _CARRIED_TYPED * _TYPED if kind else _CARRIED for word, kind in carried.items() if kind not in kinds}
        if "name" not in kinds | set(carried.values()):
            weights |= dict.fromkeys(names_before, _OF_SENTENCE_BEFORE * _TYPED)
        weights |= {word: _TYPED if kind else 1.0 for word, kind in own.items()}
        yield _Part(number, weights, own)
        carried = {word: kind for word, kind in carried.items() if kind not in kinds} | own


def _cut(text: str, one: Number, other: Number) -> tuple[int, int]:
    """Return where the part of a number ends, and where that of the next begins; what is between may belong to both."""
    start = max(one.end, one.until)
    between = text[start : other.begin]
    for ends in _ENDS:
        places = list(ends.finditer(between))
        if places:
            return start + places[-1].start(), start + places[-1].start()
    return other.begin, start


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
    words |= dict.fromkeys(map(" ".join, numbered_things(text)), "name")
    if not years:
        words |= dict.fromkeys(YEAR.findall(text), "year")
    return {_STATISTICS.get(word, _PERIODS.get(word, word)): kind for word, kind in words.items()}


def dated_figures(text: str) -> list[tuple[str, Number]]:
    """Return the numbers of a text that belong to one year each, with the year, in order."""
    dated = [(part, [word for word, kind in part.own.items() if kind == "year"]) for part in _parts(text, years=False)]
    return [(years[0], part.number) for part, years in dated if len(years) == 1]


# Numbers of a claim that a passage gives for something else.

_APART = 0.2
_ALIKE = 0.35
_CONTRASTED, _SWAPPED = 80, 120
_TO = re.compile(r"[^.;:,]{0,20}\sto\s(?:[$\u20ac\u00a3])?")
_SAME_MATTER, _AHEAD = 0.5, 0.2
"""Least share of a claim's words in a sentence with another number, and least excess over those with its own."""
_ALL_BUT = 0.75
_VERB = re.compile(
    r"ris|ros|rose|risen|rising|f[ae]ll|fallen|gr[eo]w\w*|increas|decreas|declin|dropp?|reduc|receiv|report|reach|amount|stand|stood|account|make"
    r"|made|ha[ds]|found|show|shown|compar|respectiv\w*|total|overall|rate|numb\w*|percent\w*|observ|measur|\w+(?:ed|ing)"
)
_NO_QUANTITY = frozenset({"both", "single", "once", "twice", "first", "third", "half", "double", "triple"})
_NOUN_AFTER = re.compile(r"\s[a-z]")
_BESIDE, _REACH = 2, 40
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
    found = [
        Miscounted(rivalry.part.number.written, rivalry.rival.number.written)
        for years in (False, True)
        for rivalry in _rivalries(claim, passage, years=years)
        if rivalry.ahead >= apart and rivalry.likeness >= _ALIKE and (rivalry.is_told_apart or rivalry.counts)
    ]
    for part in _parts(claim, years=False) if not found else ():
        if not any(kind in {"period", "statistic"} for kind in part.own.values()):
            continue
        agreed = [other for other in _parts(passage, years=False) if agreeing(part.number, other.number)]
        if agreed and (other := _of_other_period(part, agreed, passage)):
            found.append(Miscounted(part.number.written, other))
    for others in (_of_other_rate, _in_other_sentence, _swapped):
        found += [other for other in others(claim, passage) if other.number not in {one.number for one in found}]
    return found


def _of_other_rate(claim: str, passage: str) -> Iterator[Miscounted]:
    """Yield the numbers of a claim that a passage gives for another unit: a day for a year, a household for a person."""
    for number in numbers_of(claim):
        rate = {} if is_year(number) else _rate(claim, number)
        if not rate:
            continue
        agreed = [other for other in numbers_of(passage) if agreeing(number, other)]
        rates = [_rate(passage, other) for other in agreed]
        if agreed and all(any(kind in there and there[kind] != name for kind, name in rate.items()) for there in rates):
            other = agreed[0]
            end = _RATE_AFTER.search(passage, other.end, other.end + _REACH)
            yield Miscounted(number.written, passage[other.begin : end.end()] if end else other.measured or other.written)


def _swapped(claim: str, passage: str) -> Iterator[Miscounted]:
    """Yield two numbers of a claim that a sentence has too, each beside words that the claim has beside the other alone."""
    claimed = [part for part in _parts(claim, years=False) if _is_quantity(claim, part.number)]
    there = [part for part in _parts(passage, years=False) if _is_quantity(passage, part.number)] if len(claimed) > 1 else []
    for one, other in pairwise(claimed):
        firsts = [part for part in there if agreeing(one.number, part.number)]
        seconds = [part for part in there if agreeing(other.number, part.number)]
        pairs = [(first, second) for first in firsts for second in seconds if _are_near(first, second)]
        is_range = _TO.fullmatch(claim, one.number.end, other.number.begin) is not None
        if (
            pairs
            and not is_range
            and not agreeing(one.number, other.number)
            and all(_crosses(one, other, *pair) for pair in pairs)
        ):
            yield Miscounted(one.number.written, other.number.written)
            yield Miscounted(other.number.written, one.number.written)


def _are_near(part: _Part, other: _Part) -> bool:
    return abs(part.number.begin - other.number.begin) <= _SWAPPED


def _crosses(one: _Part, other: _Part, first: _Part, second: _Part) -> bool:
    """Return whether the words of two numbers of a claim are beside the other one in a passage, and none beside its own."""
    of_first, of_second = _nouns(first) - second.own.keys(), _nouns(second) - first.own.keys()
    of_one, of_other = _nouns(one) - other.own.keys(), _nouns(other) - one.own.keys()
    straight, crossed = of_first & of_one or of_second & of_other, of_first & of_other or of_second & of_one
    return bool(crossed and not straight and of_one and of_other)


def _in_other_sentence(claim: str, passage: str) -> Iterator[Miscounted]:
    """Yield the numbers of a claim that are in sentences about something else, if one about the claim has another number.

    Both are percentages, have one unit, or count the same. Years are left out: texts have them beside anything, as a date.
    """
    dates = dates_of(claim)
    claimed = [number for number in numbers_of(claim) if _is_quantity(claim, number)]
    claimed = [number for number in claimed if not is_year(number) and not _within(number, dates)]
    wanted = {word for word in stemmed(claim) if not word[0].isdigit()}
    there = numbers_of(passage) if claimed and wanted else []
    if not any(agreeing(number, other) for number in claimed for other in there):
        return
    sentences = sentence_words(passage)
    begins = [begin for begin, *_ in sentences]
    beside = {other: wanted & sentences[max(0, bisect(begins, other.begin) - 1)][2] for other in there}
    shares = {other: len(words) / len(wanted) for other, words in beside.items()}
    rivals = [other for other in shares if shares[other] >= _SAME_MATTER and _is_quantity(passage, other)]
    rivals = [other for other in rivals if not any(agreeing(number, other) for number in claimed)]
    for number in claimed:
        agreed = [other for other in shares if agreeing(number, other)]
        counted = set(_counted(claim, number, 1))
        alike = [other for other in rivals if are_of_one_kind(number, other)]
        if not (number.percent or number.unit):
            alike = [other for other in alike if counted.intersection(_counted(passage, other, _BESIDE))]
        rival = max(alike, key=lambda other: shares[other], default=None)
        if not agreed or rival is None:
            continue
        if all(shares[rival] >= shares[other] + _AHEAD and beside[other] <= beside[rival] for other in agreed):
            yield Miscounted(number.written, rival.written)


def _rate(text: str, number: Number) -> dict[str, str]:
    """Return what a number is per ("time": "year", "who": "person"), by the words of its clause; the nearest counts."""
    after = re.split(r"[.;:!?,](?:\s|\Z)|\b(?:and|but|while)\b", text[number.end : number.end + _REACH])[0]
    before = re.split(r"[.;:!?](?:\s|\Z)|\b(?:and|but|while)\b|\d", text[max(0, number.begin - 2 * _REACH) : number.begin])[-1]
    found: dict[str, str] = {}
    matches = [*_RATE_AFTER.finditer(after), *list(_RATE_BEFORE.finditer(before))[::-1]]
    for match in matches:
        word = (match["unit"] or match["adverb"]).lower()
        kind, name = _RATE_OF.get(word, _RATE_OF.get(word.removesuffix("s"), ("", "")))
        if kind:
            found.setdefault(kind, name)
    return found


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
    if years and claimed:
        dates = [date for date in dates_of(claim) if date.is_full]
        claimed = [part for part in claimed if not _within(part.number, dates)]
    claimed = [part for part in claimed if any(agreeing(part.number, other) for other in numbers_of(passage))]
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
        word = next(iter(_counted(claim, part.number, 1)), "")
        same = [other for other in rivals if word and _counts(passage, other, word)]
        if any(_counts(passage, other, word) for other in agreed):
            same = []
        rival = max(same or rivals, key=lambda other: _likeness(part, other))
        likeness = _likeness(part, rival)
        ahead = likeness - max(_likeness(part, other) for other in agreed)
        told_apart = _is_told_apart(part, rival, agreed)
        if not any(agreeing(other.number, rival.number) for other in claimed):
            told_apart = told_apart or _is_contrasted(part, rival, agreed)
        counts = bool(same) and not any(_is_told_apart(part, other, [rival]) for other in agreed)
        swapped = [other for other in claimed if agreeing(other.number, rival.number)]
        of_other_noun = not years and _is_of_other_noun(part, rival, agreed)
        if of_other_noun and all(_is_of_other_noun(other, agreed[0], [rival]) for other in swapped):
            told_apart, ahead = True, max(ahead, _APART)
        yield _Rivalry(part, rival, likeness, ahead, told_apart, counts)


def _counted(text: str, number: Number, most: int) -> list[str]:
    """Return the next words after a number in its clause, stemmed; for a year, those before it."""
    if is_year(number):
        before = re.split(r"[.;:!?,]\s", text[max(0, number.begin - _REACH) : number.begin])[-1]
        return stemmed(before)[::-1][:most]
    return stemmed(re.split(r"[.;:!?,](?:\s|\Z)", text[number.end : number.end + _REACH])[0])[:most]


def _counts(passage: str, part: _Part, word: str) -> bool:
    """Return whether a number of a passage counts something, by the next words or the head of its column."""
    return part.own.get(word) == "column" or word in _counted(passage, part.number, _BESIDE)


def _is_quantity(text: str, number: Number) -> bool:
    """Return whether a number is a quantity or a year: not "both", an ordinal, or part of a name ("Phase 2")."""
    if math.isnan(number.value) or number.others or number.parts:
        return False
    if not any(char.isdigit() for char in number.written):
        return number.value > 1 and number.written.lower() not in _NO_QUANTITY and not number.written.lower().endswith("th")
    if not number.written.isdigit() or number.unit or is_year(number):
        return True
    if _is_of_name(text, number):
        return False
    named = _NAME_BEFORE.search(text, max(0, number.begin - 24), number.begin)
    return named is None or _NOUN_AFTER.match(text, number.end) is not None


def _is_of_name(text: str, number: Number) -> bool:
    """Return whether a number tells a thing apart from others of its kind: "Line 2"."""
    return any(begin <= number.begin < end for begin, end in numbered_things(text).values())


def _comparable(part: _Part, other: _Part) -> bool:
    """Return whether two numbers may be compared: both percentages or not, both years or not, of units that agree."""
    one, two = part.number, other.number
    same_unit = not one.unit or not two.unit or one.unit == two.unit
    return one.percent == two.percent and is_year(one) == is_year(two) and same_unit


def _likeness(part: _Part, other: _Part) -> float:
    """Return the weighted share of the words of a claim's number that belong to a number of the passage."""
    total = sum(part.weights.values())
    shared = sum(min(weight, weight * min(1.0, other.weights.get(word, 0.0))) for word, weight in part.weights.items())
    return shared / total if total else 0.0


def _is_told_apart(part: _Part, rival: _Part, agreed: Sequence[_Part]) -> bool:
    """Return whether a word that tells numbers apart belongs to the rival alone, and the others have another in its place."""
    typed = {word: kind or rival.own.get(word, "") for word, kind in part.own.items() if word in rival.weights}
    typed = {word: kind for word, kind in typed.items() if kind}
    if not typed:
        return False
    return all(
        any(word not in other.weights and kind in other.own.values() for word, kind in typed.items()) for other in agreed
    )


def _is_contrasted(part: _Part, rival: _Part, agreed: Sequence[_Part]) -> bool:
    """Return whether one sentence sets two numbers against each other, and a claim has words of the rival's side alone."""
    said = set(part.weights)
    return all(
        abs(other.number.begin - rival.number.begin) <= _CONTRASTED
        and bool(said & _nouns(rival) - other.own.keys())
        and not said & other.own.keys() - rival.own.keys()
        and bool(_nouns(other) - rival.own.keys())
        for other in agreed
    )


def _is_of_other_noun(part: _Part, rival: _Part, agreed: Sequence[_Part]) -> bool:
    """Return whether a claim has a noun of the rival alone, where the others have one that the claim lacks: "girls" for "boys".

    All else that the claim says must belong to the rival too, if only because it is said once for both ("boys borrowed 41
    books, girls 56"), and the rival must be near.
    """
    said = {word for word, kind in part.own.items() if kind not in {"year", "period"} or word in rival.own}
    return bool(said) and all(
        abs(other.number.begin - rival.number.begin) <= _CONTRASTED
        and bool(said & _nouns(rival) - other.own.keys())
        and said & other.own.keys() <= rival.weights.keys()
        and bool(_nouns(other) - rival.own.keys() - said)
        and len(said & rival.weights.keys()) >= _ALL_BUT * len(said)
        for other in agreed
    )


def _nouns(part: _Part) -> set[str]:
    """Return the words of a number's own part that are no verbs of figures and not its unit."""
    unit = stemmed(part.number.measured)
    return {word for word in part.own if not _VERB.fullmatch(word) and word not in unit}


def _of_other_period(part: _Part, agreed: Sequence[_Part], passage: str) -> str:
    """Return the words of a passage that give a number for another period or statistic than a claim does; else ""."""
    typed = {word: kind for word, kind in part.own.items() if kind in {"period", "statistic"} and _is_exclusive(word)}
    for word, kind in typed.items():
        if all(
            word not in other.weights and any(kind == of and _is_exclusive(own) for own, of in other.own.items())
            for other in agreed
        ):
            number = agreed[0].number
            return passage[max(0, number.begin - _REACH) : number.end].partition(" ")[2].strip()
    return ""


def _is_exclusive(word: str) -> bool:
    return word == "year" or word in _STATISTICS.values() or month_of(word) is not None


# Numbers and dates of a claim that a passage lacks.


class MissingFigures(NamedTuple):
    """Numbers and dates of a claim that a passage lacks, as written, with units, in order; and the number of its dates.

    Args:
        numbers: of the claim that are not certainly in the passage, and are not computed from its numbers.
        dates: of the claim that no date of the passage agrees with.
        n_dates: number of dates in the claim.
        unclear: those of the numbers that the passage may have, each with its spelling there: "1.234" and "1,234" if it is
            unknown which is the decimal mark.
        computed: how each number was computed that the passage only has figures for: "39 million: 97 million - 58 million".
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
        and not _is_no_figure(claim, number, passage)
    ]
    absent = [number for number, other in lacking if other is None]
    there = numbers_near(claim, passage, numbers_of(passage)) if absent else []
    formed = {number for number in absent if as_another_form(claim, number, there)}
    how = {number: computed_from(claim, number, there) for number in absent if number not in formed}
    lacking = [(number, other) for number, other in lacking if number not in formed and not how.get(number)]
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
_REFERENCE = re.compile(r"[^\W\d_]{2,}[)\]\"\u201d\u2019']?[.,;:]\s?\Z")
_AUTHOR = re.compile(r"\([^()]{0,200}\Z")
_MARK_BEFORE = re.compile(r"\[(?:\d{1,3}[,\u2013-]\s?){0,8}\Z")
_MARK_AFTER = re.compile(r"(?:[,\u2013-]\s?\d{1,3}){0,8}\]")
_NAME_WITH_SLASH = re.compile(r"[A-Za-z]\d{1,2}/\Z")
_BEGAN_BEFORE = re.compile(r"\b(?:was|were|that|which|who|had|has)\s\Z", re.IGNORECASE)
_BEGAN = re.compile(r"\s(?!hundred)(?:[a-z]+ed|began|seen|found|made|built|held|shown|came|took|known|set|sold|won|sung)\b")
_TITLE_OF = re.compile(r"\s(?:film|TV series|series|album|song|video game|novel)\)")
_NAME_JUST_BEFORE = re.compile(r"\b([A-Z][\w'\u2019]{2,30})[\s-]\Z")


def _is_mark(claim: str, before: str, after: str) -> bool:
    """Return whether a number is a mark: of a reference ("[49]"), of a list with "(1)", or of a name ("OCT3/4")."""
    in_list = before.endswith("(") and after.startswith(")") and "(1)" in claim
    in_brackets = _MARK_BEFORE.search(before) is not None and _MARK_AFTER.match(after) is not None
    ends_sentence = _REFERENCE.search(before) is not None and re.match(r"\s(?=[A-Z])|\s?\Z|,\d", after) is not None
    in_name = _NAME_WITH_SLASH.search(before) is not None
    return in_list or in_brackets or in_name or (ends_sentence and (not before.endswith(" ") or before[-2:-1] == "."))


def _counts_other(claim: str, number: Number, passage: str) -> bool:
    """Return whether a passage gives another number of the same: "six main characters" beside "the seven main characters"."""
    counted = _counted(claim, number, 2)
    alike = [other for other in numbers_of(passage) if _is_quantity(passage, other) and _counted(passage, other, 2) == counted]
    return len(counted) > 1 and bool(alike) and not any(agreeing(number, other) for other in alike)


def _is_no_figure(claim: str, number: Number, passage: str) -> bool:
    """Return whether a number states nothing to look up.

    These are words ("one other city", "both", "that first appeared"), marks of references ("... immunity.6", "[49]", "(Wang
    et al., 2015)") and of lists ("(1)"), and parts of names ("Lipofectamine 2000", "OCT3/4"), unless the passage has the same
    name with another number.
    """
    word = number.written.lower()
    if word.isalpha() and not number.percent:
        pointed = number.value <= _LARGEST_SMALL and _POINTED_AT.search(claim, max(0, number.begin - 16), number.begin)
        small = bool(pointed) and not _counts_other(claim, number, passage)
        began = word == "first" and _BEGAN_BEFORE.search(claim, max(0, number.begin - 12), number.begin)
        return word in _ALWAYS_SMALL or small or (began is not None and _BEGAN.match(claim, number.end) is not None)
    before, after = claim[max(0, number.begin - 40) : number.begin], claim[number.end : number.end + 16]
    if not number.written.isdigit() or number.unit:
        return False
    if len(number.written) <= 3 and _is_mark(claim, before, after):
        return True
    opened = _AUTHOR.search(claim, 0, number.begin) if is_year(number) else None
    if opened and (re.match(r"[a-z]?[;)]", after) or _TITLE_OF.match(after)):
        return (
            "et al" in opened[0] or re.search(r"[A-Z][\w-]+,\s\Z", opened[0]) is not None or _TITLE_OF.match(after) is not None
        )
    named = _NAME_JUST_BEFORE.search(before)
    if (
        named is None
        or re.match(r"\s(?!is\b|was\b|has\b|had\b|stars\b|features\b)[a-z]", after)
        or month_of(named[1])
        or claim[: number.begin].rfind(named[1]) == 0
    ):
        return False
    return re.search(rf"\b{re.escape(named[1])}[\s-]\d", passage) is None and named[1] in passage
