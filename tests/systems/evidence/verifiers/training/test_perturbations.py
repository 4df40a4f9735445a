"""Claims that are made wrong are wrong, and in one way."""

from __future__ import annotations

import random

import pytest

from nlp_retrieval.systems.evidence.names import unmatched_names
from nlp_retrieval.systems.evidence.verifiers.pairs import JudgedPair
from nlp_retrieval.systems.evidence.verifiers.perturbations import changed_number, elsewhere, negated, swapped_name
from nlp_retrieval.text.numbers import numbers_of

PASSAGE = "The survey of 1998 counted 1,240 birds in Kenya. Numbers have increased since."
SUPPORTED = JudgedPair("In 1998 there were 1,240 birds in Kenya.", PASSAGE, "support", family="birds")
SEEDS = range(40)


def test_a_changed_number_is_another_one_and_the_rest_stays() -> None:
    made = [pair for seed in SEEDS if (pair := changed_number(SUPPORTED, random.Random(seed)))]
    assert len(made) > 20
    for pair in made:
        assert pair.label == "contradict"
        before, after = numbers_of(SUPPORTED.claim), numbers_of(pair.claim)
        assert len(before) == len(after)
        assert sum(one.value != other.value for one, other in zip(before, after, strict=True)) == 1
        assert pair.passage == PASSAGE


def test_without_a_number_in_the_passage_none_is_changed() -> None:
    assert changed_number(JudgedPair("It is 7.", "It is seven hundred.", "support"), random.Random(0)) is None


def test_a_swapped_name_does_not_stand_in_the_passage() -> None:
    made = [pair for seed in SEEDS if (pair := swapped_name(SUPPORTED, ["Uganda", "Kenya", "New Guinea"], random.Random(seed)))]
    assert {pair.claim for pair in made} == {"In 1998 there were 1,240 birds in Uganda."}
    assert unmatched_names(made[0].claim, PASSAGE) == ["Uganda"]


@pytest.mark.parametrize(
    ("claim", "label", "expected", "expected_label"),
    [
        ("Numbers have grown.", "support", "Numbers have not grown.", "contradict"),
        ("Numbers increased.", "support", "Numbers decreased.", "contradict"),
        ("It was built in Rome.", "contradict", "It was not built in Rome.", "support"),
    ],
)
def test_a_negated_claim_has_the_opposite_label(claim: str, label: str, expected: str, expected_label: str) -> None:
    pair = negated(JudgedPair(claim, PASSAGE, label), random.Random(1))  # type: ignore[arg-type]
    assert pair is not None
    assert (pair.claim, pair.label) == (expected, expected_label)


@pytest.mark.parametrize(("claim", "label"), [("It is not so.", "support"), ("It is so.", "neutral"), ("Go on!", "support")])
def test_what_cannot_be_negated_is_left(claim: str, label: str) -> None:
    assert negated(JudgedPair(claim, PASSAGE, label), random.Random(0)) is None  # type: ignore[arg-type]


def test_a_claim_beside_another_text_is_neutral_unless_both_are_of_one_family() -> None:
    other = JudgedPair("x", "Another text.", "support", family="else", rationale=((0, 3),))
    made = elsewhere(SUPPORTED, other)
    assert made is not None
    assert (made.claim, made.passage, made.label, made.rationale) == (SUPPORTED.claim, "Another text.", "neutral", ())
    assert elsewhere(SUPPORTED, JudgedPair("x", "y", "support", family="birds")) is None
