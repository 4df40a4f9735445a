"""A number that a passage says of something else is told from one that it says of the same, and from one that it lacks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.systems.evidence.lookups.binding import Misplaced, misplaced

PASSAGE = (
    "The outbreak lasted for 15 days, and 9 deaths were reported in the two districts. Vaccination reached 62% of all "
    "children, with 51% of the adults. The hospital was founded in 1911, and it was rebuilt in 1954."
)


@pytest.mark.parametrize(
    ("claim", "number", "other"),
    [
        ("During the outbreak 15 deaths were reported.", "15", "9"),
        ("Vaccination reached 51% of all children.", "51%", "62%"),
    ],
)
def test_a_number_that_the_passage_says_of_something_else_is_told_with_the_one_in_its_place(claim, number, other):
    assert misplaced(claim, PASSAGE) == [Misplaced(number, other)]


@pytest.mark.parametrize(
    "claim",
    [
        "During the outbreak 9 deaths were reported.",
        "The hospital was founded in 1911 and rebuilt in 1954.",
        "During the outbreak 12 deaths were reported.",  # it stands nowhere, which is told apart from this
        "Nine people died.",  # what is counted is not named in the passage
        "",
    ],
)
def test_what_the_passage_says_so_or_does_not_say_is_not(claim):
    assert misplaced(claim, PASSAGE) == []


@given(st.text(max_size=200), st.text(max_size=400))
def test_of_any_texts_the_numbers_stand_in_both(claim: str, passage: str) -> None:
    for number, other in misplaced(claim, passage):
        assert number in claim
        assert other in passage
