"""A measure prints as what it was parsed from, whatever that is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.evaluation.answers import ANSWER_MEASURES, FACT_MEASURES
from nlp_retrieval.evaluation.evaluator import LABELS, MEASURES, Measure


@pytest.mark.parametrize(
    ("text", "family", "cutoff", "label"),
    [
        ("recall@5", "recall", 5, "Recall @5"),
        ("perfect_recall@21", "perfect_recall", 21, "Perfect recall @21"),
        ("map", "map", None, "MAP"),
        ("their@measure@10", "their@measure", 10, "their@measure @10"),
        ("P@05", "P@05", None, "P@05"),
        ("P@\u0665", "P@\u0665", None, "P@\u0665"),
        ("@5", "@5", None, "@5"),
    ],
)
def test_a_measure_has_a_family_and_a_cutoff(text: str, family: str, cutoff: int | None, label: str) -> None:
    measure = Measure.parse(text)
    assert (measure.family, measure.cutoff, measure.label) == (family, cutoff, label)


@given(st.text(st.characters(codec="utf-8") | st.sampled_from("@0123"), max_size=12))
def test_a_measure_prints_as_what_it_was_parsed_from(text: str) -> None:
    assert str(Measure.parse(text)) == text


@given(st.sampled_from(MEASURES), st.integers(1, 10**6))
def test_a_measure_that_was_printed_is_parsed_again(family: str, cutoff: int) -> None:
    assert Measure.parse(str(Measure(family, cutoff))) == Measure(family, cutoff)


def test_measures_stand_in_the_order_of_their_families_and_then_of_their_cutoffs() -> None:
    shown = sorted(
        ["theirs@3", "mrr@5", "recall@10", "recall@9", "perfect_recall@5"], key=lambda text: Measure.parse(text).order
    )
    assert shown == ["perfect_recall@5", "recall@9", "recall@10", "mrr@5", "theirs@3"]
    assert {*MEASURES, *ANSWER_MEASURES, *FACT_MEASURES} == set(LABELS)
