"""Fitting the calibration of a verifier on judged pairs, and its figures on families outside the fit."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core import tracked
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.systems.evidence.checks import looked_up
from nlp_retrieval.systems.evidence.verifiers.base import UNREAD, BaseVerifier
from nlp_retrieval.systems.evidence.verifiers.calibration import Calibration, fit_calibration
from nlp_retrieval.systems.evidence.verifiers.pairs import JudgedPair
from nlp_retrieval.systems.evidence.verifiers.perturbations import with_perturbations

__all__ = ["FittedVerifier", "auc", "best_threshold", "fit_verifier", "macro_f1", "open_support"]

_FOLDS = 5
_AT_ONCE = 64
_STEP, _AS_WELL = 0.05, 0.005


@dataclass(frozen=True)
class CollectionFigures:
    """Figures of calibrated probabilities on one collection, each family judged by a fit without it.

    Args:
        collection: its name.
        pairs: their number, including generated ones.
        macro_f1: mean F1 over its labels; a pair labelled "not_support" is right if support is not the likeliest.
        auc: the chance that a supported pair has a higher probability of support than another pair.
        loss: mean negative log-likelihood.
    """

    collection: str
    pairs: int
    macro_f1: float
    auc: float
    loss: float


@dataclass(frozen=True)
class FittedVerifier:
    """A calibration that was fitted on all pairs, and its figures by collection, from fits on other families."""

    calibration: Calibration
    figures: list[CollectionFigures]

    def lines(self) -> list[str]:
        """Return the figures as lines of text."""
        width = max(len(figure.collection) for figure in self.figures)
        return [
            f"{figure.collection:<{width}}  {figure.pairs:>6,} pairs   macro-F1 {figure.macro_f1:.3f}   AUC {figure.auc:.3f}   "
            f"loss {figure.loss:.3f}"
            for figure in self.figures
        ]


def fit_verifier(
    verifier: BaseVerifier, pairs: Sequence[JudgedPair], perturbations: float = 0.25, limit: int | None = None, seed: int = 0
) -> FittedVerifier:
    """Fit the calibration of a verifier; each label of each collection counts the same, however many pairs have it.

    Args:
        verifier: its signals are used, not its probabilities.
        pairs: judged ones, of several families.
        perturbations: the share of supported pairs from which each kind of generated claim is made.
        limit: at most this many pairs of each collection, sampled.
        seed: of the sampling.

    Raises:
        ConfigurationError: there are fewer than two families.
    """
    rng = random.Random(seed)  # noqa: S311  # nothing secret is drawn
    used = with_perturbations(_sampled(pairs, limit, rng), perturbations, rng)
    n_families = len({pair.family for pair in used})
    if n_families < 2:
        raise ConfigurationError(f"{n_families} families of pairs; a calibration is fitted on at least two")
    used, signals = _read(verifier, used)
    families = sorted({pair.family for pair in used})
    names = list(signals[0])
    labels = [pair.label for pair in used]
    counts = Counter((pair.collection, pair.label) for pair in used)
    weights = np.array([1 / counts[pair.collection, pair.label] for pair in used])
    rng.shuffle(families)
    fold_of = {family: number % min(_FOLDS, len(families)) for number, family in enumerate(families)}
    folds = np.array([fold_of[pair.family] for pair in used])
    probabilities = np.zeros((len(used), 3))
    for fold in range(folds.max() + 1):
        inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        fitted = fit_calibration([signals[n] for n in inside], [labels[n] for n in inside], names, weights[inside].tolist())
        probabilities[outside] = fitted.probabilities([signals[n] for n in outside])
    collections = sorted({pair.collection for pair in used})
    description = f"{len(used):,} pairs of {', '.join(collections)}, made-up claims among them"
    whole = fit_calibration(signals, labels, names, weights.tolist(), fitted_on=description)
    supported = np.array([label == "support" for label in labels])
    support = open_support(used, probabilities[:, 0])
    threshold = best_threshold(support, supported, weights)
    sure = _sure(support, supported, threshold)
    return FittedVerifier(whole.model_copy(update={"threshold": threshold, "sure": sure}), _figures(used, probabilities))


def _read(verifier: BaseVerifier, pairs: Sequence[JudgedPair]) -> tuple[list[JudgedPair], list[dict[str, float]]]:
    """Return the pairs that the verifier read, and its signals of each."""
    read: list[JudgedPair] = []
    signals: list[dict[str, float]] = []
    batches = [list(pairs[first : first + _AT_ONCE]) for first in range(0, len(pairs), _AT_ONCE)]
    for batch in tracked("judging", batches, len(pairs)):
        judgements = verifier.judge([pair.claim for pair in batch], [pair.passage for pair in batch])
        for pair, judgement in zip(batch, judgements, strict=True):
            if not judgement.signals.get(UNREAD):
                read.append(pair)
                signals.append(judgement.signals)
    if len({pair.family for pair in read}) < 2:
        raise ConfigurationError(f"the verifier read {len(read)} of {len(pairs)} pairs, of fewer than two families")
    return read, signals


def open_support(pairs: Sequence[JudgedPair], support: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities of support, with 0 for the pairs that a lookup decides against: the verifier does not count there.

    A threshold that is chosen on them is that of the audit and of verdicts, which look claims up first.

    Args:
        pairs: judged ones.
        support: probability of each.
    """
    against = [looked_up(pair.claim, pair.passage, pair.passage).contradicts_source for pair in pairs]
    return np.where(against, 0.0, support)


def best_threshold(
    support: NDArray[np.float64], supported: NDArray[np.bool_], weights: NDArray[np.float64] | None = None
) -> float:
    """Return the lowest probability of support that separates supported pairs from others as well as any.

    Both weigh the same. As well is up to 0.005 of balanced accuracy worse: of thresholds that differ by chance alone, the
    lowest flags fewest right claims.

    Args:
        support: probability of each pair.
        supported: whether each is.
        weights: of each pair among those that are, or are not; by default 1.

    Raises:
        ConfigurationError: all pairs are supported, or none is.
    """
    if supported.all() or not supported.any():
        raise ConfigurationError("the pairs are all supported, or none is; a threshold needs both")
    weights = np.ones(len(support)) if weights is None else weights
    yes, no = (np.where(kind, weights, 0.0) / weights[kind].sum() for kind in (supported, ~supported))
    cuts = np.unique(np.clip(support, 1e-6, 1 - 1e-6))
    balanced = np.array([yes[support >= cut].sum() + no[support < cut].sum() for cut in cuts]) / 2
    return float(cuts[int(np.argmax(balanced >= balanced.max() - _AS_WELL))])


def _sure(support: NDArray[np.float64], supported: NDArray[np.bool_], threshold: float) -> float:
    """Return the lowest probability from the threshold up, in steps of 0.05, from which half of the pairs are supported."""
    begin = threshold
    while begin < 1 - _STEP:
        band = supported[(support >= begin) & (support < begin + _STEP)]
        if len(band) and band.mean() >= 0.5:
            break
        begin += _STEP
    return begin


def _sampled(pairs: Sequence[JudgedPair], limit: int | None, rng: random.Random) -> list[JudgedPair]:
    if limit is None:
        return list(pairs)
    by_collection: defaultdict[str, list[JudgedPair]] = defaultdict(list)
    for pair in pairs:
        by_collection[pair.collection].append(pair)
    return [pair for _, members in sorted(by_collection.items()) for pair in rng.sample(members, min(limit, len(members)))]


def _figures(pairs: Sequence[JudgedPair], probabilities: NDArray[np.float64]) -> list[CollectionFigures]:
    by_collection: defaultdict[str, list[int]] = defaultdict(list)
    for number, pair in enumerate(pairs):
        by_collection[pair.collection].append(number)
    figures = []
    for collection, rows in sorted(by_collection.items()):
        labels, chosen = [pairs[row].label for row in rows], probabilities[rows]
        likely = [
            masses[0] if label == "support" else _mass(masses, label) for label, masses in zip(labels, chosen, strict=True)
        ]
        supported = np.array([label == "support" for label in labels])
        loss = float(-np.log(np.maximum(likely, 1e-12)).mean())
        figures.append(CollectionFigures(collection, len(rows), macro_f1(labels, chosen), auc(chosen[:, 0], supported), loss))
    return figures


def _mass(probabilities: NDArray[np.float64], label: str) -> float:
    if label == "not_support":
        return float(1 - probabilities[0])
    return float(probabilities[("support", "contradict", "neutral").index(label)])


def macro_f1(labels: Sequence[str], probabilities: NDArray[np.float64]) -> float:
    """Return the mean F1 over the labels that occur, with the likeliest label as the prediction.

    Args:
        labels: of each pair; if "not_support" is among them, any prediction but support counts as it, except on pairs
            labelled "contradict" or "neutral".
        probabilities: ``[pairs, 3]``: support, contradict, neutral.
    """
    called = [("support", "contradict", "neutral")[number] for number in probabilities.argmax(axis=1)]
    if "not_support" in labels:
        called = [call if call in {"support", label} else "not_support" for call, label in zip(called, labels, strict=True)]
    scores = []
    for label in sorted(set(labels)):
        right = sum(call == label == true for call, true in zip(called, labels, strict=True))
        total = called.count(label) + list(labels).count(label)
        scores.append(2 * right / total if total else 0.0)
    return float(np.mean(scores))


def auc(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """Return the chance that a positive scores higher than a negative, ties counting half; NaN if one kind is missing."""
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    if not n_positive or not n_negative:
        return float("nan")
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.bincount(inverse, weights=ranks) / counts)[inverse]
    return float((ranks[positive].sum() - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))
