"""Judged pairs of claim and passage, a calibration fitted on them, and its figures on families outside the fit."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.errors import ConfigurationError, DependencyError, SourceError
from nlp_retrieval.loaders import read_json_lines
from nlp_retrieval.systems.evidence.lookups.checks import looked_up
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier
from nlp_retrieval.systems.evidence.verifiers.lexical import Calibration, softmax

Label = Literal["support", "contradict", "neutral", "not_support"]


@dataclass(frozen=True)
class JudgedPair:
    """A claim and a passage, judged by a person; pairs of one family are on one side of a split."""

    claim: str
    passage: str
    label: Label
    family: str = ""
    collection: str = ""


def read_pairs(path: str | Path) -> list[JudgedPair]:
    """Read judged pairs from a file of JSON lines (``.gz`` too), or from the ``train.jsonl`` in each folder of a folder."""
    source = Path(path)
    if source.is_dir():
        files = sorted([*source.glob("train.jsonl*"), *source.glob("*/train.jsonl*")])
        if not files:
            raise SourceError(f"{source} has no train.jsonl or train.jsonl.gz, nor has a folder in it; name a file")
    else:
        files = [source]
    return [_pair(row, where, file.parent.name) for file in files for where, row in read_json_lines(file)]


def _pair(row: dict[str, Any], where: str, collection: str) -> JudgedPair:
    for key in ("claim", "passage", "label"):
        if not isinstance(row.get(key), str):
            raise SourceError(f'{where}: no text "{key}" (found: {", ".join(map(repr, row))[:200]})')
    if row["label"] not in get_args(Label):
        raise SourceError(f"{where}: label {row['label']!r}; it must be one of {', '.join(get_args(Label))}")
    return JudgedPair(
        row["claim"], row["passage"], row["label"], f"{collection}/{row.get('family') or row['passage']}", collection
    )


# Fitting.

_FOLDS = 5
_STEP, _AS_WELL = 0.01, 0.005
_RIGHT, _SUREST = 0.7, 0.99
_POSSIBLE = {"support": (1, 0, 0), "contradict": (0, 1, 0), "neutral": (0, 0, 1), "not_support": (0, 1, 1)}


def fit_verifier(verifier: BaseVerifier, pairs: Sequence[JudgedPair]) -> tuple[Calibration, dict[str, float]]:
    """Fit a calibration to a verifier's signals of judged pairs; with the AUC of each collection outside the fit."""
    try:
        import scipy  # noqa: F401  # before any pair is judged, which may cost money
    except ImportError:
        raise DependencyError("fitting a calibration needs SciPy: pip install scipy") from None
    judgements = verifier.judge([pair.claim for pair in pairs], [pair.passage for pair in pairs])
    read = [(pair, judgement.signals) for pair, judgement in zip(pairs, judgements, strict=True) if judgement.was_judged]
    used, signals = [pair for pair, _ in read], [own for _, own in read]
    families = sorted({pair.family for pair in used})
    if len(families) < 2:
        raise ConfigurationError(f"{len(families)} families of pairs that were read; a calibration is fitted on at least two")
    names, labels = list(signals[0]), [pair.label for pair in used]
    counts = Counter((pair.collection, pair.label) for pair in used)
    weights = np.array([1 / counts[pair.collection, pair.label] for pair in used])
    random.Random(0).shuffle(families)  # noqa: S311  # nothing secret is drawn
    fold_of = {family: number % min(_FOLDS, len(families)) for number, family in enumerate(families)}
    folds = np.array([fold_of[pair.family] for pair in used])
    outside = np.zeros(len(used))
    for fold in range(folds.max() + 1):
        rows, others = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        fitted = fit_calibration([signals[n] for n in rows], [labels[n] for n in rows], names, weights[rows].tolist())
        outside[others] = fitted.probabilities([signals[n] for n in others])[:, 0]
    of = np.array([pair.collection for pair in used])
    collections = sorted(set(of.tolist()))
    whole = fit_calibration(signals, labels, names, weights.tolist())
    supported = np.array([label == "support" for label in labels])
    support = open_support(used, outside)
    threshold = best_threshold(support, supported, weights)
    sure, fitted_on = sure_from(support, supported, threshold), f"{len(used):,} pairs of {', '.join(collections)}"
    calibration = whole.model_copy(update={"threshold": threshold, "sure": sure, "fitted_on": fitted_on})
    return calibration, {name: auc(outside[of == name], supported[of == name]) for name in collections}


def fit_calibration(
    signals: Sequence[Mapping[str, float]],
    labels: Sequence[str],
    names: Sequence[str],
    weight: Sequence[float] | None = None,
    ridge: float = 1.0,
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
    fitted_weights: NDArray[np.float64] = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x
    return fitted_weights.reshape(2, -1)


def open_support(pairs: Sequence[JudgedPair], support: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities of support, with 0 for the pairs that a lookup decides against, as in an audit."""
    against = [bool(looked_up(pair.claim, pair.passage, pair.passage).findings) for pair in pairs]
    return np.where(against, 0.0, support)


def best_threshold(
    support: NDArray[np.float64], supported: NDArray[np.bool_], weights: NDArray[np.float64] | None = None
) -> float:
    """Return the lowest probability of support that separates supported pairs from others as well as any, but for chance."""
    if supported.all() or not supported.any():
        raise ConfigurationError("the pairs are all supported, or none is; a threshold needs both")
    weights = np.ones(len(support)) if weights is None else weights
    yes, no = (np.where(kind, weights, 0.0) / weights[kind].sum() for kind in (supported, ~supported))
    cuts = np.unique(np.clip(support, 1e-6, 1 - 1e-6))
    balanced = np.array([yes[support >= cut].sum() + no[support < cut].sum() for cut in cuts]) / 2
    return float(cuts[int(np.argmax(balanced >= balanced.max() - _AS_WELL))])


def sure_from(support: NDArray[np.float64], supported: NDArray[np.bool_], threshold: float) -> float:
    """Return the lowest probability, from the threshold up, from which 7 of 10 pairs are supported; 1 less a bit if none is."""
    for begin in np.arange(threshold, _SUREST, _STEP).tolist():
        above = supported[support >= begin]
        if len(above) and above.mean() >= _RIGHT:
            return float(begin)
    return _SUREST


def auc(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """Return the chance that a positive scores higher than a negative, ties counting half; NaN if one kind is missing."""
    from scipy.stats import mannwhitneyu

    if positive.all() or not positive.any():
        return float("nan")
    wins = mannwhitneyu(scores[positive], scores[~positive], method="asymptotic").statistic
    return float(wins / (positive.sum() * (~positive).sum()))
