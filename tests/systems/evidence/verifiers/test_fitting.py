"""What a calibration is worth is told by families that it was not fitted on, in the measures of an independent library."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from nlp_retrieval.errors import ConfigurationError, DependencyError
from nlp_retrieval.systems.evidence.verifiers.fitting import JudgedPair, auc, best_threshold, fit_verifier, open_support
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier

WORDS = "bridge harbour tower mill lamp road river stone garden winter summer market window letter".split()


def pairs(n: int = 120, *, shuffled: bool = False) -> list[JudgedPair]:
    """Supported claims stand in their passage, others do not; or labels that have nothing to do with it."""
    rng = random.Random(0)
    made = []
    for number in range(n):
        words = rng.sample(WORDS, 6)
        passage = f"the {' '.join(words)} stood there in {1900 + number}."
        supported = number % 2 == 0
        claim = f"the {' '.join(words[:4])} stood there" if supported else f"the {' '.join(rng.sample(WORDS, 2))} fell"
        label = rng.choice(["support", "neutral"]) if shuffled else "support" if supported else "neutral"
        made.append(JudgedPair(claim, passage, label, family=str(number // 4), collection="toy"))  # type: ignore[arg-type]
    return made


def test_what_can_be_told_apart_is_and_what_cannot_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calibration, figures = fit_verifier(LexicalVerifier(), pairs())
    assert figures["toy"] > 0.95
    assert fit_verifier(LexicalVerifier(), pairs(shuffled=True))[1]["toy"] < 0.7
    calibration.save(tmp_path / "calibration.json")
    first, second = pairs()[:2]
    verifier = LexicalVerifier(str(tmp_path / "calibration.json"))
    supported, neutral = verifier.judge([first.claim, second.claim], [first.passage, second.passage])
    assert supported.support > 0.5 > neutral.support
    with pytest.raises(ConfigurationError, match="1 families of pairs"):
        fit_verifier(LexicalVerifier(), pairs(4))
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(DependencyError, match="fitting a calibration needs SciPy: pip install scipy"):
        fit_verifier(LexicalVerifier(), pairs(4))  # before they are judged, and found to be too few


def test_the_chance_to_be_told_apart_is_that_of_an_independent_library() -> None:
    rng = np.random.default_rng(0)
    supported, probabilities = rng.random(80) < 0.4, rng.random(80).round(1)  # with ties
    assert auc(probabilities, supported) == pytest.approx(roc_auc_score(supported, probabilities))
    assert np.isnan(auc(probabilities, np.array([True] * 80)))


def test_of_thresholds_that_separate_alike_the_lowest_is_taken_and_a_weight_counts_as_that_many_pairs() -> None:
    support = np.array([0.1, 0.2, 0.3, 0.6, 0.7, 0.9])
    supported = np.array([False, False, False, True, False, True])
    assert best_threshold(support, supported) == 0.6
    weights = np.array([1.0, 1.0, 1.0, 1.0, 6.0, 2.0])
    repeated = np.repeat(np.arange(6), weights.astype(int))
    assert best_threshold(support, supported, weights) == best_threshold(support[repeated], supported[repeated]) == 0.9
    assert best_threshold(np.array([0.1, 0.5, 0.8]), np.array([False, True, True])) == 0.5


def test_a_pair_that_a_lookup_decides_against_is_not_left_to_the_verifier() -> None:
    passage = "The Long Bridge was opened in 1932."
    made = [JudgedPair(f"The Long Bridge was opened in {year}.", passage, "support", "one") for year in (1932, 1935)]
    assert open_support(made, np.array([0.8, 0.8])).tolist() == [0.8, 0.0]
