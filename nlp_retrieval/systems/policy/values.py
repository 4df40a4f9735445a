"""The value that a sentence holds: an emission target, the base of one, or an amount of money."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from pydantic import BaseModel, ConfigDict

from nlp_retrieval.text import Quantity, quantities_of, sentences_of, years_of

ValueKind = Literal["target", "baseline", "finance"]

_EMISSIONS = re.compile(
    r"emi\w{0,3}s{1,2}ions?\b|\bGHGs?\b|greenhouse|\bcarbon\b|\bCO(?:2|₂)|\bmitigat|net[\s-]zero", re.IGNORECASE
)
_LIMITED = re.compile(
    r"\breduc|\bcuts?\b|\bcutting\b|\blower|\bdecreas|\bdeclin|\blimit|\bavoid|\babat|\bbelow\b|\bexceed|\bpeak|\btargets?\b|"
    r"\bless than\b|\bfalls?\b|\bcap(?:ped)?\b|\bpledg|\b(?:must|to|will) drop\b",
    re.IGNORECASE,
)
_NEUTRAL = re.compile(
    r"\b(?:net[\s-]zero|(?:carbon|climate|GHG|greenhouse gas|emissions?)[\s-]neutral(?:ity)?|zero (?:net )?emissions)\b",
    re.IGNORECASE,
)
_NONE = re.compile(r"\b(?:no|not|nor|never|without|neither|lacks?)\b", re.IGNORECASE)
_OTHER = re.compile(
    r"\b(?:since|accounts?|accounted|contribut(?:e[sd]?|ing)|represents?|share|(?:projected|expected|forecast) to|"
    r"annual (?:average|growth)|renewables?(?!.*\b(?:reduc|cut|lower|emission|GHG))|"
    r"(?<!target )(?:rose|ris(?:es?|en)|grew|grow[sn]?|increase[sd]?|(?!\A)(?<!and )(?:ris|grow|increas)ing)\b"
    r"(?!.*\b(?:reduc|cut|lower|fall|decreas|declin|target))|"
    r"(?:exceeded|met|achieved|reached) (?:its|the|their)\b(?!.*\bwill))\b",
    re.IGNORECASE | re.DOTALL,
)
"""Before a number that is none of a target, or of one that was reached."""

_DONE = re.compile(
    r"(?<!\bwill\shave\s)(?<!\bwill\shave\sbeen\s)\b(?:fell|fallen|emitted|decreased|declined|dropped|shrank|(?:"
    r"was|were|(?<!\bwill\s)(?:has|have|had)(?: been)?)\s(?:\w+\s)?cut|(?<!\bbe\s)(?<!\bis\s)(?<!\bare\s)(?:reduced|lowered))"
    r"\b(?!(?!\s(?:\w+\s)?below\b).*\b(?:will|must|caps?|targets?|limit(?:s|ed)?)\b)|\b(?:was|were|stood|lay)\s(?:[a-z]+\s)?\Z",
    re.IGNORECASE | re.DOTALL,
)
"""What was done: a target only where its year is told as one ("by 2030")."""
_RECORDED = re.compile(r"\b(?:was|were|has been|have been)\s(?:observed|recorded|registered)\b", re.IGNORECASE)
_NO_AIM = re.compile(
    r"\b(?:was|were|has been|have been)\s(?:not\s)?(?:achieved|reached|exceeded|missed|met)\b|"
    r"\b(?:no|not|never)\s(?:\w+\s)?(?:targets? for|set|adopt(?:ed)?|require[sd]?|commit(?:ted)?)\b",
    re.IGNORECASE,
)
_FROM = re.compile(r"(?<!range )(?<!ranging )\bfrom (?:an? )?\Z", re.IGNORECASE)
_OF_EMISSIONS = re.compile(r"\sof\s(?:[\w-]+\s){0,4}emissions\b", re.IGNORECASE)
_CLAUSE = re.compile(r"[;,]\s|\s(?:but|while|whereas)\s")
_RATIO = re.compile(r"\bper (?:capita|person|head|inhabitant|unit of GDP)\b|\bintensity\b", re.IGNORECASE)
_CONDITION = re.compile(r"\b(?:un)?conditional(?=ly\b|\b)", re.IGNORECASE)
_FISCAL = re.compile(
    r"\b(?:(?:FY|fiscal years?)\s?((?:19|20)\d\d)(?:\s?[/\u2013-]\s?\d{2,4})?|((?:19|20)\d\d)/\d\d(?![\d/]))\b", re.IGNORECASE
)
"""A fiscal year counts as the year that it begins in."""

_BASE_NAMED = re.compile(r"\b(?:base(?:line)?|reference)(?:\W(?:year|level|emission|period|point|indicator)|:)", re.IGNORECASE)
_SCENARIO = re.compile(
    r"\bbusiness[\s-]as[\s-]usual\b|\bBAU\b|\b(?:baseline|reference)\s(?:scenario|projections?|case)\b|\binertial scenario\b",
    re.IGNORECASE,
)
_CURRENCY = re.compile(r"[$€£¥₹]|\b[A-Z]{3}\b|\b(?:dollar|euro|pound|rupee|yen|yuan|peso|real|rand|shilling)s?\b")
_CODE = re.compile("[A-Z]{3}")
_BEFORE = 60
_MOST = 3


class AnswerValue(BaseModel):
    """A value that an answer holds."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: ValueKind
    text: str
    value: float | None
    unit: str
    year: int | None
    baseline: str


def values_of(text: str, kind: ValueKind) -> list[AnswerValue]:
    """Return the values of one kind in a text, each once, at most three; of a range its lower end is the value."""
    read = {"target": _targets, "baseline": _bases, "finance": _amounts}[kind]
    distinct = {value.text: value for value in read(_FISCAL.sub(r"\1\2", text))}
    return list(distinct.values())[:_MOST]


def _targets(text: str) -> Iterator[AnswerValue]:
    quantities = [quantity for quantity in quantities_of(text) if quantity.unit in {"%", "t CO2e", "t CO2"}]
    for begin, end in sentences_of(text):
        sentence = text[begin:end]
        neutral = _NEUTRAL.search(sentence)
        if neutral is not None and not _NONE.search(sentence, 0, neutral.start()):
            written = _year_written(sentence)
            years = [year for year in years_of(sentence) if year.first > written]
            if years:
                year = min(years, key=lambda one: (one.role != "target", abs(one.begin - neutral.end())))
                yield AnswerValue(
                    kind="target", text=f"net zero by {year.last}", value=None, unit="net zero", year=year.last, baseline=""
                )
        if not (_EMISSIONS.search(sentence) and _LIMITED.search(sentence)):
            continue
        own = [quantity for quantity in quantities if begin <= quantity.begin < end]
        borders = [begin, *(quantity.end for quantity in own)], [*(quantity.begin for quantity in own[1:]), end]
        for quantity, start, stop in zip(own, *borders, strict=False):
            if _is_target(text, begin, end, quantity):
                second = quantity.written.rpartition(" to ")[2] if _FROM.search(text, begin, quantity.begin) else ""
                aims = [replace(aim, year=quantity.year, baseline=quantity.baseline) for aim in quantities_of(second)]
                yield _shown("target", [*aims, quantity][0], _terms(text, start, stop, quantity))


def _year_written(sentence: str) -> int:
    """Return the last year of a sentence that stands like that of a publication (", 2021"); later years are aims."""
    published = (year.last for year in years_of(sentence) if sentence[: year.begin].endswith(", "))
    return max(published, default=0)


def _is_target(text: str, begin: int, end: int, quantity: Quantity) -> bool:
    """Whether a share or an amount of emissions is aimed at: it has a year to come, or a base, and is no record of the past."""
    if quantity.year is None and not (quantity.baseline and quantity.unit == "%"):
        return False
    start = max([begin, *(one.end() for one in _CLAUSE.finditer(text, begin, quantity.begin))])
    following = _CLAUSE.search(text, quantity.end, end)
    stop = following.start() if following else end
    before, clause = text[start : quantity.begin], text[start:stop]
    if quantity.unit != "%" and _SCENARIO.search(before[-_BEFORE // 2 :]):
        return False  # what a target is measured against
    if _FROM.search(before) and " to " not in quantity.written:
        return False  # what a fall begins from
    if _OF_EMISSIONS.match(text, quantity.end) and not _LIMITED.search(text, begin, stop):
        return False  # the share of a sector
    done = _DONE.search(text, max(begin, quantity.begin - _BEFORE), quantity.begin)
    aimed_at = sorted(year.last for year in years_of(text[begin:end]) if year.role == "target")
    if not (done and done[0].lower() in ("reduced", "lowered")):  # which may be said of each of several steps to come
        aimed_at = aimed_at[-1:]
    aims = quantity.year in aimed_at and any(year.role == "target" and year.last in aimed_at for year in years_of(clause))
    is_done = done or _RECORDED.search(clause)
    return not ((is_done and not aims) or _NO_AIM.search(clause) or _OTHER.search(before[-_BEFORE:]))


def _terms(text: str, start: int, stop: int, quantity: Quantity) -> str:
    """Return what a target depends on, and what it is a rate of, from the words next to it."""
    conditions = [
        (max(quantity.begin - one.end(), 2.5 * (one.start() - quantity.end)), one[0])
        for one in _CONDITION.finditer(text, start, stop)
    ]
    ratio = _RATIO.search(text, start, stop)
    return ", ".join(word.lower() for word in (ratio and ratio[0], min(conditions, default=(0.0, ""))[1]) if word)


def _bases(text: str) -> Iterator[AnswerValue]:
    for begin, end in sentences_of(text):
        sentence = text[begin:end]
        years = [year for year in years_of(sentence) if year.first == year.last]
        named = [year.first for year in years if year.role == "baseline"]
        if not named and (match := _BASE_NAMED.search(sentence)) is not None and years:
            start, stop = match.span()
            named = [min(years, key=lambda year: max(year.begin - stop, start - year.end)).first]
        yield from map(_base, map(str, named))
        if _SCENARIO.search(sentence):
            yield _base("BAU")
        if not named and _EMISSIONS.search(sentence) and not _LIMITED.search(sentence):
            for quantity in quantities_of(sentence):
                if quantity.unit in {"t CO2e", "t CO2"} and quantity.year is not None and not _SCENARIO.search(sentence):
                    yield _base(str(quantity.year))


def _base(base: str) -> AnswerValue:
    text = "business as usual" if base == "BAU" else base
    return AnswerValue(kind="baseline", text=text, value=None, unit="", year=None, baseline=base)


def _amounts(text: str) -> Iterator[AnswerValue]:
    money = [quantity for quantity in quantities_of(text) if _CODE.fullmatch(quantity.unit)]
    for quantity in sorted(money, key=lambda one: -one.value):
        yield _shown("finance", quantity)


def _shown(kind: ValueKind, quantity: Quantity, terms: str = "") -> AnswerValue:
    text = " ".join(quantity.written.split())
    if kind == "finance" and not _CURRENCY.search(text):
        text = f"{quantity.unit} {text}"
    text += f" ({terms})" if terms else ""
    bound = {"least": "at least ", "most": "at most ", "": ""}[quantity.bound]
    year = f" by {quantity.year}" if quantity.year is not None and kind == "target" else ""
    against = {"": "", "BAU": ", against business as usual"}.get(quantity.baseline, f", against {quantity.baseline}")
    return AnswerValue(
        kind=kind, text=f"{bound}{text}{year}{against}", value=quantity.value, unit=quantity.unit, year=quantity.year,
        baseline=quantity.baseline,
    )  # fmt: skip
