"""Risk against coverage, against the same by plain loops; a control with random confidences gains nothing."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.evaluation import risk_coverage

PAIRS = st.lists(st.tuples(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 2.0]), st.sampled_from([0.0, 0.3, 1.0])), min_size=1)


@given(pairs=PAIRS, risk=st.sampled_from([0.05, 0.3, 0.7]))
def test_the_curve_is_that_of_plain_loops(pairs: list[tuple[float, float]], risk: float) -> None:
    made = risk_coverage([sure for sure, _ in pairs], [right for _, right in pairs], risk=risk)
    area, fine = 0.0, None
    for number, threshold in enumerate(sorted({sure for sure, _ in pairs}, reverse=True)):
        losses = [1 - right for sure, right in pairs if sure >= threshold]
        mean = sum(losses) / len(losses)
        assert made.thresholds[number] == threshold
        assert made.coverage[number] == pytest.approx(len(losses) / len(pairs))
        assert made.risk[number] == pytest.approx(mean)
        area += mean * sum(sure == threshold for sure, _ in pairs) / len(pairs)
        fine = threshold if mean <= risk + 1e-12 else fine
    assert made.area == pytest.approx(area)
    assert made.threshold == fine
    assert made.at(1.0) == pytest.approx(made.risk[-1])


def test_a_confidence_that_knows_something_keeps_the_named_risk_on_other_families_and_a_random_one_does_not() -> None:
    chance = random.Random(1)
    right = [float(chance.random() < 0.7) for _ in range(2000)]
    families = [f"f{number // 4}" for number in range(2000)]
    knows = [value + chance.gauss(0, 0.4) for value in right]
    guesses = [chance.random() for _ in right]
    good, bad = (risk_coverage(each, right, families, risk=0.1) for each in (knows, guesses))
    assert good.area < 0.1 < 0.25 < bad.area
    assert good.held_out is not None
    assert bad.held_out is not None
    assert good.held_out[0] > 0.6
    assert good.held_out[1] < 0.12
    assert bad.held_out[0] < 0.05 or bad.held_out[1] > 0.2


def test_a_family_is_in_one_fold() -> None:
    """The only right answers are of one family: without it no threshold is good enough, so it is not answered."""
    made = risk_coverage([0.9, 0.9, 0.1, 0.1, 0.1], [1, 1, 0, 0, 0], ["a", "a", "b", "c", "d"], risk=0.2)
    assert made.threshold == 0.9
    assert made.held_out is not None
    assert made.held_out[0] == 0
    assert math.isnan(made.held_out[1])
