"""Agreement against scikit-learn, and against the published example of Krippendorff (2011)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from nlp_retrieval.judging import measure_agreement

FOUR_OBSERVERS = (
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
)
"""Example C of Computing Krippendorff's Alpha-Reliability, which gives the figures below."""


def by_pair(grades: Iterable[object]) -> dict[tuple[str, str], int]:
    """Grades of pairs in order, each of a question of its own; a dot is none."""
    return {(f"q{n}", "p"): int(str(grade)) for n, grade in enumerate(grades) if grade != "."}


@pytest.mark.parametrize("seed", range(5))
def test_kappa_is_that_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    ann = rng.integers(0, 4, 80)
    ben = np.where(rng.random(80) < 0.6, ann, rng.integers(0, 4, 80))
    (both,) = measure_agreement({"Ann": by_pair(ann), "Ben": by_pair(ben)}).pairs
    assert both.kappa == pytest.approx(cohen_kappa_score(ann, ben))
    assert both.weighted == pytest.approx(cohen_kappa_score(ann, ben, weights="quadratic"))


def test_alpha_is_the_published_one_with_missing_grades():
    judges = {str(number): by_pair(row.split()) for number, row in enumerate(FOUR_OBSERVERS)}
    assert measure_agreement(judges).alpha == pytest.approx(0.815, abs=5e-4)
