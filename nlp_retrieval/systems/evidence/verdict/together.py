"""Judging a sentence by all the sources that it cites: "opened in 1962 and carries 400 people [1-3]".

Together the sources must support every part of the sentence, and each of them must add a part: one that adds nothing is a
wrong citation beside right ones. A mark within a sentence is for the part before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from nlp_retrieval.systems.evidence.lookups.names import missing_names, names_of
from nlp_retrieval.systems.evidence.lookups.numbers import missing_figures
from nlp_retrieval.systems.evidence.lookups.words import stemmed
from nlp_retrieval.systems.evidence.verdict.deciding import Decider, Decision, Question
from nlp_retrieval.text import numbers_of

MOST_TOGETHER = 12
"""Most sources of a sentence that are judged together; a sentence with more is judged by each alone."""

_MOST_PARTS = 8
_FEWEST_WORDS = 2
_NEXT_PART = re.compile(r"[,;:]\s|\s(?:and|but|while|whereas)\s|\s[\u2013\u2014]\s")
_BEGINS_PART = re.compile(r"\A[\s,;:\u2013\u2014]*(?:(?:and|or|but|while|whereas)\s)?")


@dataclass(frozen=True)
class CitedText:
    """A source of a sentence: the part of it that is judged, all of it, and the characters of the sentence before its mark."""

    read: str
    whole: str
    place: int


@dataclass(frozen=True)
class Together:
    """What several sources do to a sentence: the parts that each supports, and the span that decides in each."""

    joined: Decision
    supports: bool
    parts: list[tuple[str, ...]]
    spans: list[tuple[int, int]]
    open_parts: tuple[str, ...]


def judged_together(decider: Decider, sentence: str, sources: Sequence[CitedText], *, quoted: bool = False) -> Together:
    """Judge a sentence by two or more sources, in the order of their marks, of which none needs to support all of it."""
    places = sorted({source.place for source in sources})
    parts = parts_of(sentence, places)
    read, whole = ("\n\n".join(texts) for texts in ([source.read for source in sources], [source.whole for source in sources]))
    questions = [Question(text, source.read, source.whole) for _, text in parts for source in sources]
    joined, *by_part = decider.decide([Question(sentence, read, whole, quoted), *questions])
    rows = [by_part[number * len(sources) : (number + 1) * len(sources)] for number in range(len(parts))]
    holds = [[decision.holds for decision in row] for row in rows]
    if joined.holds:
        holds = [row if any(row) else _adds(text, sources) for row, (_, text) in zip(holds, parts, strict=True)]
    supports = joined.holds or (not joined.there.findings and all(map(any, holds)))
    own = [_own_parts(parts, places, source.place) for source in sources]
    supported = [[part for part in own[number] if holds[part][number]] for number in range(len(sources))]
    first = [next(iter(held), own[number][0]) for number, held in enumerate(supported)]
    return Together(
        joined,
        supports,
        [tuple(parts[part][1] for part in held) for held in supported],
        [rows[part][number].judgement.sentence for number, part in enumerate(first)],
        () if supports else tuple(text for row, (_, text) in zip(holds, parts, strict=True) if not any(row)),
    )


def parts_of(sentence: str, places: Sequence[int] = ()) -> list[tuple[int, str]]:
    """Return the parts of a sentence, at most eight, each with the position of its end: at marks, commas and conjunctions."""
    cuts = {place for place in places if 0 < place < len(sentence)}
    cuts |= {match.start() for match in _NEXT_PART.finditer(sentence)}
    spans: list[tuple[int, int]] = []
    begin = 0
    for end in [*sorted(cuts), len(sentence)]:
        text = sentence[begin:end]
        if len(spans) < _MOST_PARTS and (len(stemmed(text)) >= _FEWEST_WORDS or numbers_of(text)):
            spans.append((begin, end))
        elif spans:
            spans[-1] = (spans[-1][0], end)
        elif end < len(sentence):
            continue  # "Smith [1] showed that": goes with what follows
        else:
            spans.append((begin, end))
        begin = end
    return [(end, _BEGINS_PART.sub("", sentence[begin:end]).strip()) for begin, end in spans]


def _own_parts(parts: Sequence[tuple[int, str]], places: Sequence[int], place: int) -> list[int]:
    """Return the numbers of the parts that a mark is for: those since the mark before it, or all if there is none.

    What follows the last mark belongs to it.
    """
    before = max((other for other in places if other < place), default=0)
    own = [number for number, (end, _) in enumerate(parts) if before < end and (end <= place or place == places[-1])]
    return own or list(range(len(parts)))


def _adds(text: str, sources: Sequence[CitedText]) -> list[bool]:
    """Return for each source whether it has a number or a name of a part that some other source of the sentence lacks."""
    missing = [_missing(text, source.whole) for source in sources]
    total = len(numbers_of(text)) + len(names_of(text))
    return [len(mine) < total and any(other - mine for other in missing) for mine in missing]


def _missing(text: str, whole: str) -> frozenset[str]:
    figures = missing_figures(text, whole)
    return frozenset((*figures.numbers, *figures.dates, *missing_names(text, whole)))
