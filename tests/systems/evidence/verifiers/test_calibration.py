"""A calibration is the maximum-likelihood fit, and a file of it is read without belief."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from nlp_retrieval.errors import ConfigurationError, ModelError
from nlp_retrieval.systems.evidence.verifiers.fitting import fit_calibration
from nlp_retrieval.systems.evidence.verifiers.lexical import Calibration

LABELS = ("support", "contradict", "neutral")


def drawn(n: int = 400) -> tuple[list[dict[str, float]], list[str]]:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(n, 2))
    logits = np.stack([2 * values[:, 0], values[:, 1] - values[:, 0], np.zeros(n)], axis=1)
    labels = [LABELS[row.argmax()] for row in logits + rng.gumbel(size=logits.shape)]
    return [{"one": float(a), "other": float(b)} for a, b in values], labels


def test_it_is_the_fit_of_an_independent_library() -> None:
    signals, labels = drawn()
    fitted = fit_calibration(signals, labels, ["one", "other"], ridge=1.0)
    values = np.array([[row["one"], row["other"]] for row in signals])
    scaled = (values - values.mean(0)) / values.std(0)
    # with three weight vectors the same penalty would act differently: a small one makes both fits the plain maximum
    oracle = LogisticRegression(C=1e6, tol=1e-10, max_iter=10_000).fit(scaled, labels)
    expected = oracle.predict_proba(scaled)[:, [list(oracle.classes_).index(label) for label in LABELS]]
    plain = fit_calibration(signals, labels, ["one", "other"], ridge=1e-6)
    assert np.abs(plain.probabilities(signals) - expected).max() < 1e-3
    assert np.abs(fitted.probabilities(signals) - expected).max() < 0.05


def test_a_label_that_is_only_partly_known_says_only_that() -> None:
    signals, labels = drawn()
    binary = ["support" if label == "support" else "not_support" for label in labels]
    found = fit_calibration(signals, binary, ["one", "other"]).probabilities(signals)
    known = fit_calibration(signals, labels, ["one", "other"]).probabilities(signals)
    assert np.abs(found[:, 0] - known[:, 0]).mean() < 0.05


def test_a_weight_of_two_is_the_pair_twice() -> None:
    signals, labels = drawn(60)
    twice = fit_calibration([*signals, *signals[:30]], [*labels, *labels[:30]], ["one", "other"], ridge=1e-6)
    weighted = fit_calibration(signals, labels, ["one", "other"], [2.0] * 30 + [1.0] * 30, ridge=1e-6)
    assert np.abs(twice.probabilities(signals) - weighted.probabilities(signals)).max() < 1e-3


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    for change in [
        {"weights": [[1.0]]},
        {"scale": [0.0, 1.0]},
        {"code": "import os"},
    ]:
        plain = fit_calibration(*drawn(50), ["one", "other"]).model_dump()
        file = tmp_path / "calibration.json"
        file.write_text(json.dumps(plain | change))
        with pytest.raises(ModelError, match=r"calibration\.json is not a calibration of a verifier"):
            Calibration.read(file)


def test_a_signal_that_is_not_given_is_named() -> None:
    with pytest.raises(ConfigurationError, match="needs the signal 'other'"):
        fit_calibration(*drawn(50), ["one", "other"]).probabilities([{"one": 1.0}])
