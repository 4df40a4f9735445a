"""Base class of verifiers: from a claim and a passage to three probabilities and the deciding sentence."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from nlp_retrieval.core import Component, check_queries
from nlp_retrieval.errors import EngineError, QueryError
from nlp_retrieval.systems.evidence.index.passages import by_shared_words
from nlp_retrieval.text import sentences_of

SURE = 0.7
"""The probability from which a verifier without a calibration is sure of what it says."""

_ROUNDING = 1e-4


@dataclass(frozen=True)
class Judgement:
    """Judgement of one claim by one passage.

    Args:
        support: the probability that the passage supports the claim.
        contradict: the probability that it contradicts the claim.
        neutral: the probability that it does neither; the three sum to 1.
        sentence: span of the deciding sentence in the passage, in characters; (0, 0) in an empty passage.
        signals: that the probabilities come from, by name.
        was_judged: whether the claim was read and there was a usable answer; else the probabilities have no meaning.

    Examples:
        >>> judgement = Judgement(support=0.9, contradict=0.02, neutral=0.08, sentence=(0, 31))
        >>> judgement.was_judged
        True
    """

    support: float
    contradict: float
    neutral: float
    sentence: tuple[int, int]
    signals: dict[str, float] = field(default_factory=dict)
    was_judged: bool = True


class BaseVerifier(Component, ABC):
    """Judges whether passages support claims."""

    kind: ClassVar[str] = "verifiers"

    cannot_see: ClassVar[str] = ""
    """The kinds of error that the verifier cannot see, as a sentence for people; empty if none is known."""

    sees_contradictions: ClassVar[bool] = True
    """Whether a high probability of "contradict" means a contradiction even if none can be looked up."""

    def judge(self, claims: Sequence[str], passages: Sequence[str]) -> list[Judgement]:
        """Judge each claim by its passage.

        Args:
            claims: one statement each.
            passages: one per claim; the text that may support or contradict it.

        Raises:
            QueryError: a claim or a passage is not a string, or their numbers differ.
            EngineError: the verifier returned something that is not a judgement.
        """
        checked = check_queries(claims, "claim", "claims"), check_queries(passages, "passage", "passages")
        if len(checked[0]) != len(checked[1]):
            raise QueryError(f"{len(checked[0])} claims and {len(checked[1])} passages; give one passage for each claim")
        judgements = self.judge_pairs(*checked) if checked[0] else []
        verifier = type(self).__name__
        if not isinstance(judgements, list | tuple) or len(judgements) != len(checked[0]):
            raise EngineError(f"{verifier} did not return a list of {len(checked[0])} judgements, one for each pair")
        for judgement, passage in zip(judgements, checked[1], strict=True):
            values, (begin, end) = (judgement.support, judgement.contradict, judgement.neutral), judgement.sentence
            if not all(math.isfinite(value) and -_ROUNDING <= value <= 1 + _ROUNDING for value in values):
                raise EngineError(f"{verifier} returned probabilities of {values}; each must be from 0 to 1")
            if abs(sum(values) - 1) > _ROUNDING:
                raise EngineError(f"{verifier} returned probabilities of {values}, which sum to {sum(values):.4g} and not to 1")
            if not 0 <= begin <= end <= len(passage):
                raise EngineError(f"{verifier} named the sentence {begin}..{end} in a passage of {len(passage)} characters")
        return judgements

    @property
    def threshold(self) -> float:
        """Return the least probability of support at which a source that says nothing against a claim weakly supports it."""
        return 0.5

    @property
    def sure(self) -> float:
        """Return the probability of support below which support counts as weak."""
        return SURE

    @abstractmethod
    def judge_pairs(self, claims: list[str], passages: list[str]) -> list[Judgement]:
        """Return a judgement for each claim and its passage; both lists have the same length and are not empty."""


# What of a passage a model reads.

Span = tuple[int, int]


def window_spans(text: str, size: int) -> list[Span]:
    """Return windows of neighbouring sentences that cover a text, each of at most ``size`` characters or one sentence."""
    windows: list[Span] = []
    for begin, end in sentences_of(text):
        if windows and end - windows[-1][0] <= size:
            windows[-1] = (windows[-1][0], end)
        else:
            windows.append((begin, end))
    return windows


def nearest_windows(claim: str, passage: str, size: int, most: int, room: float = math.inf) -> list[Span]:
    """Return the windows of a passage with most words of a claim, in order; one at least."""
    windows = window_spans(passage, size)
    chosen: list[Span] = []
    for number in by_shared_words(claim, [passage[slice(*span)] for span in windows])[:most]:
        start, end = windows[number]
        if not chosen or end - start <= room:
            chosen.append((start, end))
            room -= end - start
    return sorted(chosen) or [(0, len(passage))]
