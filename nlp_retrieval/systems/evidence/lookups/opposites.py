"""Words of a claim of which a source has the opposite in their place, and things of which it has another of the kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import product
from typing import NamedTuple

from nlp_retrieval.systems.evidence.lookups.words import Sentence, content, known, lines_of, share, stemmed
from nlp_retrieval.text import FUNCTION_WORDS, as_latin, stems_of_language, words_of

_THAN = re.compile(r"\bthan\b", re.IGNORECASE)
_AGAINST = re.compile(
    r"\b(?:advis|warn|argu|vot|decid|rul|recommend|campaign|sp[eo]ak|spok|protest|appeal|c[ao]me out)"
    r"\w*\s+(?:\w+\s+){0,2}?against\b|\bagainst\s+(?:the\s+)?(?:advice|recommendations?|wish(?:es)?|will|requests?)\b",
    re.IGNORECASE,
)
"""Words that mean the opposite of a recommendation; the verb alone may mean one."""
_REACH, _AROUND = 4, 0.6


class Opposite(NamedTuple):
    """A word of a claim, its opposite in a sentence, and how much of the rest of the claim that sentence has."""

    word: str
    other: str
    sentence: Sentence
    around: float


@cache
def opposites() -> dict[str, frozenset[str]]:
    """Return the stems of the opposites of each word, by its stem."""
    stem = stems_of_language("english").stem
    found: dict[str, set[str]] = {}
    for line in lines_of("opposites.txt"):
        left, right = ([stem(word) for word in side.split()] for side in line.split("/"))
        for one, other in product(left, right):
            found.setdefault(one, set()).add(other)
            found.setdefault(other, set()).add(one)
    return {word: frozenset(others - {word}) for word, others in found.items()}


def opposite_words(claim: str, sentences: Sequence[Sentence]) -> Opposite | None:
    """Return the opposite of a word of a claim, which no sentence has, in the sentence with most of the rest of the claim.

    It is in the word's place: the next word before or after both is the same, and another near both, or most of the rest.
    """
    said = _by_stem(claim)
    looked_for, wanted = said.keys() & opposites().keys(), content(claim)
    best: Opposite | None = None
    for sentence in sentences if looked_for else ():
        if _THAN.search(claim) and _THAN.search(sentence.text):  # "more men than women" is "fewer women than men"
            continue
        stems = _by_stem(sentence.text) if wanted & sentence.content else {}
        pairs = ((word, one) for word in sorted(looked_for - stems.keys()) for one in sorted(opposites()[word]))
        for stem, other in pairs:
            if other not in stems or other in said:
                continue
            rest = wanted - content(said[stem])
            around = share(rest, sentence.content)
            ours, theirs = _sides(claim, said[stem]), _sides(sentence.text, stems[other])
            is_next = any(one[:1] == two[:1] != [] for one, two in zip(ours, theirs, strict=True))
            near = {*ours[0][:_REACH], *ours[1][:_REACH]} & {*theirs[0][: 2 * _REACH], *theirs[1][: 2 * _REACH]}
            in_place = around >= _AROUND or (is_next and len(near) > 1)
            if in_place and (best is None or around > best.around):
                best = Opposite(said[stem], stems[other], sentence, around)
    if best is None or any(
        _has_word(best.word, sentence) for sentence in sentences if share(wanted, sentence.content) >= best.around
    ):
        return None
    return best


def _has_word(word: str, sentence: Sentence) -> bool:
    return stems_of_language("english").stem(word) in _by_stem(sentence.text)


def _sides(text: str, word: str) -> tuple[list[str], list[str]]:
    """Return the stems of the content words before the first place of a word and after it, the nearest first."""
    said = re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE)
    return ([], []) if said is None else (stemmed(text[: said.start()])[::-1], stemmed(text[said.end() :]))


def _by_stem(text: str) -> dict[str, str]:
    stems = stems_of_language("english")
    return {stems.stem(word): word for word in reversed(stems.as_written(_AGAINST.sub("against", as_latin(text))))}


# Things of one kind, of which each excludes the others: "supplemental hydrogen" beside "supplemental oxygen".

_ROMAN = {"I": "1", "II": "2", "III": "3", "IV": "4"}
_ORDINALS = {word: str(number) for number, word in enumerate("first second third fourth fifth sixth seventh eighth".split(), 1)}
_OF_TEXTS = frozenset("table figure fig page section part article chapter".split())
"""Things that a text has numbers for, whatever it is about."""


def replaced_things(claim: str, passage: str) -> list[str]:
    """Return the things of a claim that a passage lacks, if it has another of the kind, and none that the claim has."""
    numbered, others_there = numbered_things(claim), numbered_things(passage)
    kinds = {kind for kind, _ in others_there} - {kind for kind, _ in numbered.keys() & others_there.keys()} - _OF_TEXTS
    found = [claim[begin:end] for (kind, _), (begin, end) in numbered.items() if kind in kinds]
    words = [word for word in words_of(claim) if word not in FUNCTION_WORDS]
    stems, there = stemmed(claim), content(passage)
    for word, stem in zip(words, stems, strict=True):
        thing, others = _things().get(stem, (frozenset[str](), frozenset[str]()))
        if others & there and others.isdisjoint(stems) and thing.isdisjoint(there):
            found.append(word)
    return list(dict.fromkeys(found))


@cache
def _things() -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Return the forms of a thing and those of the others of its kind, by each of its forms, stemmed."""
    found: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
    for line in lines_of("kinds.txt"):
        things = [content(thing.replace("/", " ")) for thing in line.split()]
        for thing in things:
            found |= dict.fromkeys(thing, (thing, frozenset[str]().union(*things) - thing))
    return found


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    kinds, ordered = ("|".join(known()[name].split()) for name in ("numbered", "ordered"))
    numbered = re.compile(
        rf"\b(?P<kind>{kinds})[\s-](?P<which>\d{{1,4}}|(?-i:[IV]{{1,4}}|[A-K]\d{{0,2}}))\b"
        r"(?![.,]?\d|\s?[-\u2013/%]|\s(?:and|or|to)\s(?:\d|(?-i:[A-K]|[IV]+)\b))",
        re.IGNORECASE,
    )
    which = rf"(?P<which>{'|'.join(_ORDINALS)}|\d{{1,3}}(?=st|nd|rd|th))(?:st|nd|rd|th)?"
    return numbered, re.compile(rf"\b{which}[\s-](?P<kind>{ordered})\b", re.IGNORECASE)


@lru_cache(64)
def numbered_things(text: str) -> dict[tuple[str, str], tuple[int, int]]:
    """Return the things that a number or a letter tells apart from others of their kind, as "type 2", with their spans."""
    matches = [match for pattern in _patterns() for match in pattern.finditer(text)]
    things = ((match["kind"].lower().split()[-1], match["which"], match.span()) for match in matches)
    return {
        (kind, _ROMAN.get(which.upper()) or _ORDINALS.get(which.lower()) or which.upper()): span for kind, which, span in things
    }
