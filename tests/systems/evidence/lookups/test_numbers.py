"""A number of a claim agrees with one of a source in value, unit, bound and sign."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.systems.evidence.lookups.numbers import Misplaced, misplaced, missing_figures


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("The limit is 5 mg/l of lead.", "The limit is 5 mg/kg of lead."),
        ("It was weak (p < .05).", "It was weak (p > .05)."),
        ("At most 40 people were hurt.", "At least 40 people were hurt."),
        ("40 people or more were hurt.", "40 or fewer people were hurt."),
        ("It lies at 45 degrees south.", "It lies at 45 degrees north."),
        ("It lies at 45\u00b0 S.", "It lies at 45\u00b0 N."),
        ("It will close by 2030.", "It will close in 2026."),
        ("It was built in 1990.", "It was built in the 1990s."),
        ("Aid was $40 per hectare.", "Aid was $40 per acre."),
        ("It came first.", "It came third."),
        ("No more than 40 people were hurt.", "No fewer than 40 people were hurt."),
        ("Es sind mind. 40 Personen.", "Es sind max. 40 Personen."),
        ("It opens at 7 a.m.", "It opens at 7 p.m."),
        ("It opens at 7 in the morning.", "It opens at 7 in the evening."),
        ("The coil has 5 Nm.", "The coil has 5 nm."),
        ("See section 3.1 of it.", "See section 3.10 of it."),
        ("Der Tarif gilt bis 2028.", "Der Tarif gilt ab 2028."),
        ("It opens no later than 2028.", "It opens no earlier than 2028."),
        ("More than 2000 people came.", "Fewer than 2000 people came."),
    ],
)
def test_what_qualifies_a_number_is_part_of_it(claim: str, passage: str) -> None:
    assert missing_figures(claim, passage).numbers != ()
    assert missing_figures(claim, claim).numbers == ()
    assert missing_figures(passage, passage).numbers == ()


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("It was built in the 1990s.", "It was built in 1994."),
        ("The limit is 5 mg/l.", "The limit is 5 mg per litre."),
        ("It was small (CI -0.4 to 0.8).", "It was small (CI \u22120.4 to 0.8)."),
        ("The dose is 5 ml per m\u00b3.", "The dose is 5 mL/m3."),
    ],
)
def test_other_spellings_are_not_missing(claim: str, passage: str) -> None:
    assert missing_figures(claim, passage).numbers == ()


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
