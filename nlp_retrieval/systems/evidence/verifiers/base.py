"""Base class of verifiers: from a claim and a passage to three probabilities and the deciding sentence."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from nlp_retrieval.core import Component, check_queries, read_json_file, write_atomically
from nlp_retrieval.errors import ConfigurationError, EngineError, ModelError, QueryError
from nlp_retrieval.text import sentences_of, words_of

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
        if len(judgements) != len(checked[0]):
            raise EngineError(f"{type(self).__name__} judged {len(judgements)} of {len(checked[0])} pairs; it must judge each")
        for judgement, passage in zip(judgements, checked[1], strict=True):
            _check(judgement, passage, type(self).__name__)
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


def _check(judgement: Judgement, passage: str, verifier: str) -> None:
    values = (judgement.support, judgement.contradict, judgement.neutral)
    if not all(math.isfinite(value) and -_ROUNDING <= value <= 1 + _ROUNDING for value in values):
        raise EngineError(f"{verifier} returned probabilities of {values}; each must be from 0 to 1")
    if abs(sum(values) - 1) > _ROUNDING:
        raise EngineError(f"{verifier} returned probabilities of {values}, which sum to {sum(values):.4g} and not to 1")
    begin, end = judgement.sentence
    if not 0 <= begin <= end <= len(passage):
        raise EngineError(f"{verifier} named the sentence {begin}..{end} in a passage of {len(passage)} characters")


# Calibration: from the signals of a verifier to probabilities, by a multinomial logistic regression.
#
# A verifier's own probabilities are rarely calibrated, and never on texts unlike those that it was trained on. A calibration is
# fitted on judged pairs and read from a JSON file: the names of the signals, a weight of each for support and for contradict
# (neutral is 0), and the least probability of support at which a citation passes.


class Calibration(BaseModel):
    """Weights of signals for support and contradict; from ``sure`` on, 7 of 10 pairs outside the fit are supported."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    signals: list[str] = Field(min_length=1, max_length=100)
    mean: list[float]
    scale: list[float]
    weights: list[list[float]]
    intercepts: list[float]
    threshold: float = Field(default=0.5, gt=0, lt=1)
    sure: float | None = Field(default=None, gt=0, lt=1)
    fitted_on: str = ""

    @model_validator(mode="after")
    def _fitting_lengths(self) -> Self:
        n = len(self.signals)
        lengths = [len(self.mean), len(self.scale), *map(len, self.weights)]
        if len(self.weights) != 2 or len(self.intercepts) != 2 or set(lengths) != {n} or min(self.scale) <= 0:
            raise ValueError(f"weights for {n} signals must be 2 lists of {n}, mean and scale {n} values, scales above 0")
        return self

    @classmethod
    def read(cls, path: str | Path) -> Calibration:
        """Read a calibration from a JSON file; a ``ModelError`` if it is none."""
        try:
            return cls.model_validate(read_json_file(Path(path)))
        except (OSError, ValueError, ValidationError) as error:
            reason = (str(error).splitlines() or [""])[0]
            raise ModelError(f"{path} is not a calibration of a verifier: {reason}") from None

    def save(self, path: str | Path) -> None:
        """Write the calibration to a JSON file."""
        write_atomically(Path(path), json.dumps(self.model_dump(), indent=1).encode())

    def probabilities(self, signals: Sequence[Mapping[str, float]]) -> NDArray[np.float64]:
        """Return ``[pairs, 3]``: support, contradict, neutral; a ``ConfigurationError`` if a signal is missing."""
        missing = next((name for row in signals for name in self.signals if name not in row), None)
        if missing is not None:
            raise ConfigurationError(f"this calibration needs the signal {missing!r}, which the verifier does not give")
        values = np.array([[row[name] for name in self.signals] for row in signals]).reshape(len(signals), len(self.signals))
        return softmax(self.logits(values))

    def logits(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``[pairs, 3]`` logits of ``[pairs, signals]``; neutral is 0."""
        scaled = np.clip((values - np.array(self.mean)) / np.array(self.scale), -10, 10)
        two = scaled @ np.array(self.weights).T + np.array(self.intercepts)
        return np.concatenate([two, np.zeros((len(values), 1))], axis=1)


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities of logits, by row."""
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities: NDArray[np.float64] = raised / raised.sum(axis=1, keepdims=True)
    return probabilities


class CalibratedVerifier(BaseVerifier):
    """A verifier with the parameter ``calibration``: a file of ``nlp-retrieval evidence calibrate``, or None."""

    calibration: str | None
    _weights: Calibration | None = None

    @property
    def weights(self) -> Calibration | None:
        """Return the calibration, read at first use; None if the verifier has none."""
        if self.calibration is not None and self._weights is None:
            self._weights = Calibration.read(self.calibration)
        return self._weights

    @property
    def threshold(self) -> float:
        return super().threshold if self.weights is None else self.weights.threshold

    @property
    def sure(self) -> float:
        return super().sure if self.weights is None or self.weights.sure is None else self.weights.sure


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


def nearest_windows(
    claim: str, passage: str, size: int, most: int, deciding: Sequence[Span] = (), room: float = math.inf
) -> list[Span]:
    """Return the windows of a passage with a deciding sentence, else with most words of a claim, in order; one at least."""
    wanted = set(words_of(claim))

    def distance(span: Span) -> tuple[bool, int]:
        decides = any(span[0] < end and begin < span[1] for begin, end in deciding)
        return not decides, -len(wanted & set(words_of(passage[slice(*span)])))

    chosen: list[Span] = []
    for start, end in sorted(window_spans(passage, size), key=distance)[:most]:
        if not chosen or end - start <= room:
            chosen.append((start, end))
            room -= end - start
    return sorted(chosen) or [(0, len(passage))]
