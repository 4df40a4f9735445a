"""Risk against coverage: what is gained by not answering where the confidence is low (El-Yaniv and Wiener, JMLR 2010)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.errors import ConfigurationError, GoldError
from nlp_retrieval.evaluation.resampling import family_numbers

_FOLDS = 5


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """Risk at each coverage, for thresholds from the highest confidence down.

    ``risk`` is the mean loss, 0 to 1, of the share ``coverage`` that is answered, and ``area`` its mean over all coverages
    (AURC). ``threshold`` is the lowest that keeps the named risk, and ``held_out`` coverage and risk where the threshold for
    each fold of families was chosen on the others; both None without a risk, and the risk NaN where nothing was answered.
    """

    thresholds: Scores
    coverage: Scores
    risk: Scores
    area: float
    threshold: float | None = None
    held_out: tuple[float, float] | None = None

    def at(self, coverage: float) -> float:
        """Return the risk at the smallest coverage that is at least this."""
        return float(self.risk[min(int(np.searchsorted(self.coverage, coverage - 1e-9)), len(self.risk) - 1)])


def risk_coverage(
    confidence: Sequence[float] | Scores,
    quality: Sequence[float] | Scores,
    families: Sequence[str | None] | None = None,
    risk: float | None = None,
    seed: int = 0,
) -> RiskCoverage:
    """Return risk against coverage.

    Args:
        confidence: of each question or citation: a verifier's probability, ``addressed_score``, the score of the first hit.
        quality: of each, 0 to 1: whether the answer is right, or a measure such as nDCG@10; the loss is 1 less this.
        families: of each; questions of a family are in one fold. None for a question by itself.
        risk: the most risk that is accepted, above 0 and below 1.
        seed: draws the five folds of families.

    Raises:
        GoldError: there are no questions, or not as many of each.
        ConfigurationError: a value is not a number or out of range.

    Examples:
        >>> curve = risk_coverage([0.9, 0.8, 0.3, 0.2], [1, 1, 0, 1], risk=0.1)
        >>> curve.coverage.tolist(), curve.risk.round(2).tolist(), curve.threshold
        ([0.25, 0.5, 0.75, 1.0], [0.0, 0.0, 0.33, 0.25], 0.8)
    """
    sure: Scores = np.asarray(confidence, np.float64)
    loss: Scores = 1 - np.asarray(quality, np.float64)
    names = list(families) if families is not None else [None] * len(sure)
    if not 0 < len(sure) == len(loss) == len(names):
        raise GoldError(f"{len(sure)} confidences, {len(loss)} qualities and {len(names)} families; give one of each for each")
    if np.isnan(sure).any() or not ((loss >= 0) & (loss <= 1)).all():
        raise ConfigurationError("confidences must be numbers, and qualities from 0 to 1; leave out what was not judged")
    if risk is not None and not 0 < risk < 1:
        raise ConfigurationError(f"risk={risk}; it must be above 0 and below 1")
    thresholds, coverage, risks = _curve(sure, loss)
    area = float(np.diff(coverage, prepend=0.0) @ risks)
    if risk is None:
        return RiskCoverage(thresholds, coverage, risks, area)
    numbers = family_numbers(names)
    fold = np.random.default_rng(seed).permutation(numbers.max() + 1)[numbers] % _FOLDS
    answered = np.zeros(len(sure), bool)
    for number in range(_FOLDS):
        own = fold == number
        if own.any() and not own.all():
            others, _, others_risk = _curve(sure[~own], loss[~own])
            chosen = _lowest(others, others_risk, risk)
            answered[own] = False if chosen is None else sure[own] >= chosen
    held_out = float(answered.mean()), float(loss[answered].mean()) if answered.any() else float("nan")
    return RiskCoverage(thresholds, coverage, risks, area, _lowest(thresholds, risks, risk), held_out)


def _curve(sure: Scores, loss: Scores) -> tuple[Scores, Scores, Scores]:
    order = np.argsort(-sure, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(sure[order]) != 0, True))  # equal confidences are answered together
    answered = ends + 1.0
    coverage: Scores = answered / len(sure)
    return sure[order][ends], coverage, np.cumsum(loss[order])[ends] / answered


def _lowest(thresholds: Scores, risks: Scores, risk: float) -> float | None:
    fine = np.flatnonzero(risks <= risk + 1e-12)
    return float(thresholds[fine[-1]]) if len(fine) else None
