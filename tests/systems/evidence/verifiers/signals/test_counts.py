"""A number that a passage says of something else is told from one that it says of the same, and from one that it lacks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.systems.evidence.figures import Miscounted, miscounted, missing_figures

PASSAGE = (
    "The outbreak lasted for 15 days, and 9 deaths were reported in the two districts. Vaccination reached 62% of all "
    "children, with 51% of the adults. The hospital was founded in 1911, and it was rebuilt in 1954."
)


@pytest.mark.parametrize(
    ("claim", "number", "other"),
    [
        ("During the outbreak 15 deaths were reported.", "15", "9"),
        ("The outbreak lasted for 9 days.", "9", "15"),
        ("Vaccination reached 51% of all children.", "51%", "62%"),
        ("The hospital was founded in 1954.", "1954", "1911"),
        ("It was rebuilt in 1911.", "1911", "1954"),
    ],
)
def test_a_number_that_the_passage_says_of_something_else_is_told_with_the_one_in_its_place(claim, number, other):
    assert miscounted(claim, PASSAGE) == [Miscounted(number, other)]


@pytest.mark.parametrize(
    "claim",
    [
        "During the outbreak 9 deaths were reported.",
        "The outbreak lasted for 15 days.",
        "Vaccination reached 62% of all children.",
        "The hospital was founded in 1911 and rebuilt in 1954.",
        "During the outbreak 12 deaths were reported.",  # it stands nowhere, which is told apart from this
        "Nine people died.",  # what is counted is not named in the passage
        "",
    ],
)
def test_what_the_passage_says_so_or_does_not_say_is_not(claim):
    assert miscounted(claim, PASSAGE) == []


def test_a_number_that_counts_the_same_in_one_place_is_right_whatever_stands_in_another():
    assert miscounted("In all 9 deaths were reported.", PASSAGE + " By May, 14 deaths were reported.") == []
    assert miscounted("By May, 14 deaths were reported.", PASSAGE + " By May, 14 deaths were reported.") == []


@pytest.mark.parametrize(
    ("claim", "passage", "missing"),
    [
        ("Moths are classified (1) by wing and (2) by antenna.", "Moths are classified by wing and by antenna.", ()),
        ("Moths need the dark [49], and warmth [3, 12].", "Moths need the dark, and warmth.", ()),
        ("OCT3/4 is needed.", "OCT is needed.", ()),
        ("A moth that first appeared in Ost was caught.", "A moth was caught that came from Ost.", ()),
        ("The club (12 members) met.", "The club (30 members) met.", ("12",)),
        ("The team (9) left.", "The team (11) left.", ("9",)),
        ("It came first.", "It came third.", ("first",)),
    ],
)
def test_marks_of_lists_and_references_are_no_figures(claim: str, passage: str, missing: tuple[str, ...]) -> None:
    assert missing_figures(claim, passage).numbers == missing


SLEEP = "On weekdays drivers slept 6.2 hours and nurses 5.4."
TRIPS = "Pedestrians made 900 trips over the bridge. Cyclists made 1,450 trips."
TAXES = "The tax on beer rose by 2% and that on wine by 4%."


@pytest.mark.parametrize(
    ("claim", "passage", "found"),
    [
        ("Nurses slept 6.2 hours on weekdays.", SLEEP, ["6.2"]),
        ("On weekdays nurses slept 6.2 hours, drivers 5.4.", SLEEP, ["6.2", "5.4"]),
        ("On weekdays nurses slept 5.4 hours, drivers 6.2.", SLEEP, []),
        ("Cyclists made 900 trips over the bridge.", TRIPS, ["900"]),
        ("The bridge saw 900 trips on foot.", TRIPS, []),
        ("Taxes on wine rose by 2%.", TAXES, ["2%"]),
        ("Taxes on wine rose by 4%.", TAXES, []),
    ],
)
def test_a_number_given_for_one_common_noun_is_not_that_of_another(claim: str, passage: str, found: list[str]) -> None:
    assert [one.number for one in miscounted(claim, passage)] == found


@pytest.mark.parametrize(
    ("claim", "passage", "other"),
    [
        ("Ferries carry 2,000 cars a week.", "Ferries carry 2,000 cars a month.", "2,000 cars a month"),
        ("Each week ferries carry 2,000 cars.", "Ferries carry 2,000 cars weekly.", None),
        ("Aid was $40 per family.", "Aid was $40 for each person.", "40 for each person"),
        ("Aid was $40 per head.", "Aid was $40 for each inhabitant.", None),
        ("Subsidies are 90 euros per acre.", "Subsidies are 90 euros per hectare.", "90 euros per hectare"),
        ("It opens six days a week, 5 hours a day.", "It opens five hours a day, six days a week.", None),
    ],
)
def test_a_number_per_one_unit_is_not_that_per_another(claim: str, passage: str, other: str | None) -> None:
    assert [one.other for one in miscounted(claim, passage)] == ([other] if other else [])


@given(st.text(max_size=200), st.text(max_size=400))
def test_of_any_texts_the_numbers_stand_in_both(claim: str, passage: str) -> None:
    for number, other in miscounted(claim, passage):
        assert number in claim
        assert other in passage
