"""How many independent origins sources have, however many URLs they are.

Sources are of one origin if they share a registrable domain, if their texts are near duplicates, if the passages that count
share two dozen words in a row, or if they carry the mark of the same news agency: one wire story in forty outlets is one
origin, whatever each puts around it. Origins are joined in chains, but for one thing: a text that stands at several domains is
of one origin with what one of them published, and makes no two of these publishers one. Characters that nobody sees, and
Cyrillic or Greek letters that look like Latin ones, make no text another.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence, Set
from dataclasses import dataclass

from nlp_retrieval.systems.evidence.reading.cleaning import clean_text
from nlp_retrieval.text import as_latin, words_of

__all__ = ["Origin", "origins_of"]

_SHINGLE = 5
_NEAR = 0.5
_MOST_WORDS = 20_000
_COPIED = 20
"""Runs of five words that two passages share where one was copied: a sentence or two may stand in many texts."""


def _dateline(mark: str) -> str:
    """An agency where a dateline ends: before a dash, after a place and a date, or at the very beginning of a text."""
    dash = r"\.?(?:\s+[-\u2013\u2014_]|--|-(?=\s)|[\u2013\u2014])"
    return rf"\({mark}\){dash}|^[A-Z][A-Z .'-]+,[^()\n]{{3,30}}\d\s*\({mark}\)|\A\s*\({mark}\)"


def _credit(name: str) -> str:
    """An agency where somebody is credited; who only names it, or quotes it, may have written the rest."""
    named = rf"(?:[Tt]he )?(?:{name})"
    before = (
        rf"(?:\b[Bb]y|\b[Vv]ia) {named}|^[ \t]*By [^\n]{{3,60}}[\n,|/]\s{{0,4}}{named}|"
        rf"(?:\u00a9|\([Cc]\)|Copyright|Sources?:|[Aa]ccording to)[^\n.]{{0,30}}\b{named}"
    )
    return rf"{before}|(?:{name}) (?:contributed|reported|[Ww]riter|[Jj]ournalist)"


_AGENCIES = {
    "Reuters": rf"{_dateline('Reuters')}|Reuters\s+[-\u2013\u2014]|Reporting by .{{3,80}}; [Ee]diting by",
    "Associated Press": rf"{_dateline('AP')}|{_credit('Associated Press')}",
    "AFP": rf"{_dateline('AFP')}|AFP\s+[-\u2013\u2014]|{_credit('Agence France-Presse')}",
    "dpa": rf"{_dateline('dpa')}|{_credit('Deutsche Presse-Agentur')}",
    "PA Media": rf"{_dateline('PA')}|{_credit('PA Media|Press Association')}",
    "UPI": rf"{_dateline('UPI')}|{_credit('United Press International')}",
    "Xinhua": rf"{_dateline('Xinhua')}|{_credit('Xinhua News Agency')}",
    "TASS": rf"{_dateline('TASS')}|/TASS/",
    "Bloomberg": _dateline("Bloomberg"),
    "EFE": _dateline("EFE"),
    "ANSA": _dateline("ANSA"),
    "PR Newswire": r"/PRNewswire",
    "Business Wire": _dateline("BUSINESS WIRE"),
    "GlobeNewswire": rf"{_dateline('GLOBE NEWSWIRE')}|{_credit('GlobeNewswire')}",
}
_WIRE = {agency: re.compile(pattern, re.MULTILINE) for agency, pattern in _AGENCIES.items()}
_HEAD, _TAIL = 1500, 600


@dataclass(frozen=True)
class Origin:
    """Sources that count as one.

    Args:
        members: numbers of the sources, ascending.
        reasons: why they are one, for people; empty for a single source.
    """

    members: tuple[int, ...]
    reasons: tuple[str, ...]


def origins_of(domains: Sequence[Set[str]], texts: Sequence[str], passages: Sequence[str] = ()) -> list[Origin]:
    """Return the independent origins of some sources, in order of their first member.

    Args:
        domains: the registrable domains of each source, by all URLs of its text; a file has none, or an empty one.
        texts: the whole text of each.
        passages: of each, the one that counts; by default only the texts are compared.
    """
    published = [frozenset(filter(None, one)) for one in domains]
    parent = list(range(len(published)))
    reasons: dict[int, list[str]] = {}

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    def join(one: int, other: int, reason: str) -> None:
        first, second = sorted((root(one), root(other)))
        if first != second:
            parent[second] = first
            reasons[first] = [*reasons.get(first, []), *reasons.pop(second, []), reason]

    shingles = [_shingles(text) for text in texts]
    agencies = [_agency(text) for text in texts]
    counting = [_shingles(passage) for passage in passages] or [frozenset[int]()] * len(texts)
    for later in range(len(published)):
        for earlier in range(later):
            if len(published[later]) == 1 and published[later] == published[earlier]:
                join(earlier, later, _one_domain(published[later]))
            elif agencies[later] and agencies[later] == agencies[earlier]:
                join(earlier, later, f"one news agency: {agencies[later]}")
            elif _alike(shingles[earlier], shingles[later]):
                join(earlier, later, "nearly the same text")
            elif len(counting[earlier] & counting[later]) >= _COPIED:
                join(earlier, later, "one passage copied")
    fewest_first = sorted(range(len(published)), key=lambda number: len(published[number]))
    for several in (number for number in range(len(published)) if len(published[number]) > 1):
        sharing = [other for other in fewest_first if other != several and published[other] & published[several]]
        publishers = [other for other in sharing if len(published[other]) == 1]
        if sharing and root(several) not in map(root, publishers):
            join(sharing[0], several, _one_domain(published[sharing[0]] & published[several]))
    members: dict[int, list[int]] = {}
    for number in range(len(published)):
        members.setdefault(root(number), []).append(number)
    return [Origin(tuple(numbers), tuple(dict.fromkeys(reasons.get(first, [])))) for first, numbers in sorted(members.items())]


def _one_domain(shared: Set[str]) -> str:
    return f"one domain: {min(shared)}"


def _agency(text: str) -> str:
    """The news agency that a text names where agencies are named: near its beginning, or at its end; empty if there is none."""
    places = text[:_HEAD] + "\n" + text[-_TAIL:]
    return next((agency for agency, pattern in _WIRE.items() if pattern.search(places)), "")


def _shingles(text: str) -> frozenset[int]:
    seen = as_latin(clean_text(text[: _MOST_WORDS * 10])[0]).casefold()
    words = words_of(seen)[:_MOST_WORDS]
    runs = (" ".join(words[first : first + _SHINGLE]) for first in range(max(1, len(words) - _SHINGLE + 1)))
    return frozenset(zlib.crc32(run.encode()) for run in runs if run)


def _alike(one: frozenset[int], other: frozenset[int]) -> bool:
    """Whether two texts share half of what the shorter of them says."""
    least = min(len(one), len(other))
    return least > 0 and len(one & other) >= _NEAR * least
