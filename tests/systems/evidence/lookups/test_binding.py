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
        ("The hospital was founded in 1954.", "1954", "1911"),
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


def test_a_number_that_counts_the_same_in_one_place_is_right_whatever_stands_in_another():
    assert misplaced("In all 9 deaths were reported.", PASSAGE + " By May, 14 deaths were reported.") == []
    assert misplaced("By May, 14 deaths were reported.", PASSAGE + " By May, 14 deaths were reported.") == []


SLEEP = "On weekdays drivers slept 6.2 hours and nurses 5.4."
TRIPS = "Pedestrians made 900 trips over the bridge. Cyclists made 1,450 trips."


@pytest.mark.parametrize(
    ("claim", "passage", "found"),
    [
        ("Nurses slept 6.2 hours on weekdays.", SLEEP, ["6.2"]),
        ("On weekdays nurses slept 6.2 hours, drivers 5.4.", SLEEP, ["6.2", "5.4"]),
        ("On weekdays nurses slept 5.4 hours, drivers 6.2.", SLEEP, []),
        ("Cyclists made 900 trips over the bridge.", TRIPS, ["900"]),
        ("The bridge saw 900 trips on foot.", TRIPS, []),
    ],
)
def test_a_number_given_for_one_common_noun_is_not_that_of_another(claim: str, passage: str, found: list[str]) -> None:
    assert [one.number for one in misplaced(claim, passage)] == found


@given(st.text(max_size=200), st.text(max_size=400))
def test_of_any_texts_the_numbers_stand_in_both(claim: str, passage: str) -> None:
    for number, other in misplaced(claim, passage):
        assert number in claim
        assert other in passage
