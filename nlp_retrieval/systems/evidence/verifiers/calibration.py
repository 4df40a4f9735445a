"""Calibration: from the signals of a verifier to probabilities, by a multinomial logistic regression.

A verifier's own probabilities are rarely calibrated, and never on texts unlike those that it was trained on. A calibration is
fitted on judged pairs and read from a JSON file: the names of the signals, a weight of each for support and for contradict
(neutral is 0), and the least probability of support at which a citation passes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from nlp_retrieval.core import read_json_file, write_atomically
from nlp_retrieval.errors import ConfigurationError, ModelError
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier

_POSSIBLE = {"support": (1, 0, 0), "contradict": (0, 1, 0), "neutral": (0, 0, 1), "not_support": (0, 1, 1)}


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


def fit_calibration(
    signals: Sequence[Mapping[str, float]],
    labels: Sequence[str],
    names: Sequence[str],
    weight: Sequence[float] | None = None,
    ridge: float = 1.0,
    fitted_on: str = "",
) -> Calibration:
    """Fit a calibration by maximum likelihood with a penalty on squared weights."""
    values = np.array([[row[name] for name in names] for row in signals], np.float64)
    mean, scale = values.mean(0), values.std(0)
    scale = np.where(scale > 1e-9, scale, 1.0)
    scaled = np.clip((values - mean) / scale, -10, 10)
    design = np.concatenate([scaled, np.ones((len(values), 1))], axis=1)
    possible = np.array([_POSSIBLE[label] for label in labels], np.float64)
    weights = np.ones(len(values)) if weight is None else np.asarray(weight, np.float64)
    fitted = _fitted_weights(design, possible, weights * (len(values) / weights.sum()), ridge)
    return Calibration(
        signals=list(names),
        mean=mean.tolist(),
        scale=scale.tolist(),
        weights=fitted[:, :-1].tolist(),
        intercepts=fitted[:, -1].tolist(),
        fitted_on=fitted_on,
    )


def _fitted_weights(
    design: NDArray[np.float64], possible: NDArray[np.float64], weights: NDArray[np.float64], ridge: float
) -> NDArray[np.float64]:
    """Return ``[2, signals + 1]`` weights; ``possible`` has a 1 for each label that a pair may have."""
    from scipy.optimize import minimize

    penalty = np.full(design.shape[1], ridge)
    penalty[-1] = 1e-6  # the intercept

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        fitted = flat.reshape(2, -1)
        probabilities = softmax(np.concatenate([design @ fitted.T, np.zeros((len(design), 1))], axis=1))
        mass = np.maximum((probabilities * possible).sum(1), 1e-300)
        wanted = probabilities * possible / mass[:, None] - probabilities
        gradient = penalty * fitted - (weights[:, None] * wanted[:, :2]).T @ design
        return float((penalty * fitted**2).sum() / 2 - (weights * np.log(mass)).sum()), gradient.ravel()

    start = np.zeros(2 * design.shape[1])
    options = {"maxiter": 2000, "ftol": 1e-12}
    found: NDArray[np.float64] = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x
    return found.reshape(2, -1)


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
