"""Calibration of verifiers, and the verifier without a model: words, numbers, names, negation and opposites."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from nlp_retrieval.core import READS_FILE, may_set, read_json_file, write_atomically
from nlp_retrieval.errors import ConfigurationError, ModelError
from nlp_retrieval.systems.evidence.lookups.checks import check
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier, Judgement

# Calibration: from the signals of a verifier to probabilities, by a multinomial logistic regression.
#
# A verifier's own probabilities are rarely calibrated, and never on texts unlike those that it was trained on. A calibration is
# fitted on judged pairs and read from a JSON file: the names of the signals, a weight of each for support and for contradict
# (neutral is 0), and the least probability of support at which a citation passes.


_DEFAULT = Path(__file__).with_name("lexical.json")


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
        scaled = np.clip((values - np.array(self.mean)) / np.array(self.scale), -10, 10)
        two = scaled @ np.array(self.weights).T + np.array(self.intercepts)
        return softmax(np.concatenate([two, np.zeros((len(values), 1))], axis=1))


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


class LexicalVerifier(CalibratedVerifier):
    """Judges without a model, by the words, numbers, names and negation of the claim and the passage.

    It cannot tell a contradiction in other words from support (``bench/EVIDENCE_LEXICAL.md`` has its accuracy). Its
    probabilities come from a logistic regression over signals (:mod:`nlp_retrieval.systems.evidence.lookups.checks`).

    Args:
        calibration: a file of ``nlp-retrieval evidence calibrate`` with other weights.

    Examples:
        >>> passage = "The blue whale eats four tons of krill a day."
        >>> claims = ["The blue whale eats krill.", "The blue whale does not eat krill."]
        >>> first, second = LexicalVerifier().judge(claims, [passage, passage])
        >>> first.support > 0.5, second.contradict > 0.5
        (True, True)
    """

    name = "lexical"
    cannot_see = (
        "lexical compares words: it cannot see an error in other words, such as a swapped cause and effect, a condition, or an "
        "opposite that is in no list."
    )
    sees_contradictions = False
    manifest_may_set = may_set(calibration=READS_FILE)

    def __init__(self, calibration: str | None = None) -> None:
        self.calibration = calibration

    @property
    def weights(self) -> Calibration:
        """Return the calibration, read at first use: by default the package's own."""
        self._weights = self._weights or Calibration.read(self.calibration or _DEFAULT)
        return self._weights

    def judge_pairs(self, claims: list[str], passages: list[str]) -> list[Judgement]:
        checks = [check(claim, passage) for claim, passage in zip(claims, passages, strict=True)]
        probabilities = self.weights.probabilities([checked.signals for checked in checks])
        return [
            Judgement(float(support), float(contradict), float(neutral), checked.sentence, checked.signals)
            for (support, contradict, neutral), checked in zip(probabilities, checks, strict=True)
        ]
