"""What a calibration is worth is told by families that it was not fitted on, in the measures of an independent library."""

from __future__ import annotations

import random

import numpy as np
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.systems.evidence.verifiers.fitting import auc, best_threshold, fit_verifier, macro_f1, open_support
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier
from nlp_retrieval.systems.evidence.verifiers.pairs import JudgedPair

WORDS = "bridge harbour tower mill lamp road river stone garden winter summer market window letter".split()
LABELS = ("support", "contradict", "neutral")


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


def test_what_can_be_told_apart_is_and_what_cannot_is_not() -> None:
    (right,) = fit_verifier(LexicalVerifier(), pairs(), perturbations=0.0).figures
    (control,) = fit_verifier(LexicalVerifier(), pairs(shuffled=True), perturbations=0.0).figures
    assert right.auc > 0.95
    assert right.macro_f1 > 0.9
    assert control.auc < 0.7


def test_the_calibration_serves_the_verifier(tmp_path: object) -> None:
    from pathlib import Path

    file = Path(str(tmp_path)) / "calibration.json"
    fit_verifier(LexicalVerifier(), pairs(), perturbations=0.0).calibration.save(file)
    first, second = pairs()[:2]
    supported, neutral = LexicalVerifier(str(file)).judge([first.claim, second.claim], [first.passage, second.passage])
    assert supported.support > 0.5 > neutral.support


def test_at_most_so_many_pairs_of_a_collection_are_used() -> None:
    (figures,) = fit_verifier(LexicalVerifier(), pairs(), perturbations=0.0, limit=60).figures
    assert figures.pairs == 60


def test_one_family_is_too_few() -> None:
    with pytest.raises(ConfigurationError, match="1 families of pairs"):
        fit_verifier(LexicalVerifier(), pairs(4), perturbations=0.0)


@pytest.mark.parametrize("seed", range(5))
def test_measures_are_those_of_an_independent_library(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = [LABELS[number] for number in rng.integers(0, 3, 80)]
    probabilities = rng.dirichlet([1, 1, 1], 80).round(1)  # with ties
    calls = [LABELS[number] for number in probabilities.argmax(axis=1)]
    assert macro_f1(labels, probabilities) == pytest.approx(f1_score(labels, calls, average="macro"))
    supported = np.array([label == "support" for label in labels])
    assert auc(probabilities[:, 0], supported) == pytest.approx(roc_auc_score(supported, probabilities[:, 0]))


def test_a_call_of_either_kind_stands_for_not_supported() -> None:
    probabilities = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.9, 0.05, 0.05]])
    assert macro_f1(["support", "not_support", "not_support", "support"], probabilities) == 1.0
    assert np.isnan(auc(probabilities[:, 0], np.array([True] * 4)))


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
