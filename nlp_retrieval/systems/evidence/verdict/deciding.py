"""Deciding what a source does to a claim: by what can be looked up, and by a verifier for what that leaves open.

The audit of citations and the verdict on a claim decide here, with the same words. What is looked up overrules the verifier: a
claim with a number, date or quotation that the source lacks is not supported, whatever a model says, so the model is not asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.systems.evidence.lookups.checks import LookedUp, Reason, listed, looked_up
from nlp_retrieval.systems.evidence.lookups.names import missing_names, names_of
from nlp_retrieval.systems.evidence.lookups.numbers import is_year, missing_figures
from nlp_retrieval.systems.evidence.lookups.words import stemmed
from nlp_retrieval.systems.evidence.verifiers.base import SURE, BaseVerifier, Judgement
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier
from nlp_retrieval.text import numbers_of

Verdict = Literal["supported", "weak", "contradicted", "not found"]

_LARGE = 100
_WITH_FIGURE = 0.5
"""Share of the threshold that is enough for ``lexical`` if the source has a figure of the claim: of pairs of training parts
between both, 10 of 13 were supported, and 34% of those without a figure."""


@dataclass(frozen=True)
class Question:
    """A claim, the part of a source that is judged, and all of it with its title, which may have what that part lacks."""

    claim: str
    read: str
    whole: str
    quoted: bool = False


@dataclass(frozen=True)
class Decision:
    """What a source does to a claim, why, and one sentence for people; the judgement is of who was asked."""

    verdict: Verdict
    reason: Reason
    detail: str
    judgement: Judgement
    there: LookedUp

    @property
    def holds(self) -> bool:
        """Return whether the source supports the claim, if weakly."""
        return self.verdict in ("supported", "weak")


class Decider:
    """Decides what sources do to claims: lookups first, the verifier for what they leave open."""

    def __init__(self, verifier: BaseVerifier, threshold: float | None = None) -> None:
        if threshold is not None and not 0 < threshold < 1:
            raise ConfigurationError(f"threshold={threshold}; it must be between 0 and 1")
        self.verifier, self.threshold = verifier, verifier.threshold if threshold is None else threshold
        self.sure = max(verifier.sure, self.threshold)
        """The least probability of support of a claim that is supported, not word for word."""

        self.by_words = isinstance(verifier, LexicalVerifier)
        self._lexical = verifier if isinstance(verifier, LexicalVerifier) else LexicalVerifier()

    def decide(self, questions: Sequence[Question]) -> list[Decision]:
        """Return a decision for each question; a model is asked once, and only about those that lookups leave open."""
        looked: list[tuple[LookedUp, Judgement | None]] = []
        for question in questions:
            there = looked_up(question.claim, question.read, question.whole, quoted=question.quoted)
            by_words = there.findings or self.by_words
            looked.append((there, self._lexical.judge_pairs([question.claim], [question.read])[0] if by_words else None))
        left = [question for question, (_, judgement) in zip(questions, looked, strict=True) if judgement is None]
        asked = iter(self.verifier.judge([one.claim for one in left], [one.read for one in left]) if left else ())
        return [
            self._decision(question.claim, there, next(asked) if judgement is None else judgement)
            for question, (there, judgement) in zip(questions, looked, strict=True)
        ]

    def _decision(self, claim: str, there: LookedUp, judgement: Judgement) -> Decision:
        if there.findings:
            verdict: Verdict = "contradicted" if there.is_against else "not found"
            first = there.findings[0]
            return Decision(verdict, first.reason, first.detail, judgement, there)
        names = there.missing_names
        figures = [one for one in numbers_of(claim) if one.percent or one.unit or one.value >= _LARGE or one.is_share]
        has_figure = self.by_words and (bool(there.computed) or not all(map(is_year, figures)))  # no year
        if judgement.support >= self.threshold * (_WITH_FIGURE if has_figure else 1):
            is_sure = judgement.signals.get("verbatim") == 1 or judgement.support >= self.sure
            verdict = "supported" if is_sure and not names else "weak"
            detail = f"the source does not name {listed(names)}" if names else "; ".join(there.computed)
            return Decision(verdict, "", detail, judgement, there)
        named = names_of(claim)
        same_subject = not named or len(names) < len(named)  # else the source may be about something else
        if self.verifier.sees_contradictions and judgement.contradict >= SURE and same_subject:
            return Decision("contradicted", "contradicted", "the source says otherwise", judgement, there)
        if names:
            return Decision("not found", "other entity", f"the source does not name {listed(names)}", judgement, there)
        if judgement.was_judged:
            return Decision("not found", "not found", "no passage of the source supports this", judgement, there)
        detail = f"{self.verifier.name} did not judge this: it is too long, or there was no usable answer"
        return Decision("not found", "not judged", detail, judgement, there)


# Judging a sentence by all the sources that it cites: "opened in 1962 and carries 400 people [1-3]".
#
# Together the sources must support every part of the sentence, and each of them must add a part: one that adds nothing is a
# wrong citation beside right ones. A mark within a sentence is for the part before it.

MOST_TOGETHER = 12
"""Most sources of a sentence that are judged together; a sentence with more is judged by each alone."""

_MOST_PARTS = 8
_FEWEST_WORDS = 2
_NEXT_PART = re.compile(r"[,;:]\s|\s(?:and|but|while|whereas)\s|\s[\u2013\u2014]\s")
_BEGINS_PART = re.compile(r"\A[\s,;:\u2013\u2014]*(?:(?:and|or|but|while|whereas)\s)?")


@dataclass(frozen=True)
class Together:
    """What several sources do to a sentence: the parts that each supports, and the span that decides in each."""

    joined: Decision
    supports: bool
    parts: list[tuple[str, ...]]
    spans: list[tuple[int, int]]
    open_parts: tuple[str, ...]


def judged_together(decider: Decider, sources: Sequence[Question], marks: Sequence[int]) -> Together:
    """Judge a sentence beside each of several sources, with the characters of the sentence before each mark."""
    sentence, places = sources[0].claim, sorted(set(marks))
    parts = parts_of(sentence, places)
    read, whole = "\n\n".join(source.read for source in sources), "\n\n".join(source.whole for source in sources)
    questions = [Question(text, source.read, source.whole) for _, text in parts for source in sources]
    joined, *by_part = decider.decide([Question(sentence, read, whole, sources[0].quoted), *questions])
    rows = [by_part[number * len(sources) : (number + 1) * len(sources)] for number in range(len(parts))]
    holds = [[decision.holds for decision in row] for row in rows]
    if joined.holds:
        holds = [row if any(row) else _adds(text, sources) for row, (_, text) in zip(holds, parts, strict=True)]
    supports = joined.holds or (not joined.there.findings and all(map(any, holds)))
    own = [_own_parts(parts, places, mark) for mark in marks]
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
    """Return the numbers of the parts that a mark is for: those since the mark before it, or all if there is none."""
    before = max((other for other in places if other < place), default=0)
    own = [number for number, (end, _) in enumerate(parts) if before < end and (end <= place or place == places[-1])]
    return own or list(range(len(parts)))


def _adds(text: str, sources: Sequence[Question]) -> list[bool]:
    """Return for each source whether it has a number or a name of a part that some other source of the sentence lacks."""
    figures = [missing_figures(text, source.whole) for source in sources]
    names = [missing_names(text, source.whole) for source in sources]
    missing = [{*each.numbers, *each.dates, *own} for each, own in zip(figures, names, strict=True)]
    total = len(numbers_of(text)) + len(names_of(text))
    return [len(mine) < total and any(other - mine for other in missing) for mine in missing]
