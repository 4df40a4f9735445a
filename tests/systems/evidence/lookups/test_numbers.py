"""A number of a claim agrees with one of a source in value, unit, bound and sign."""

from __future__ import annotations

import pytest

from nlp_retrieval.systems.evidence.lookups.numbers import missing_figures


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
        ("The dose is 5 ml per m\u00b3.", "The dose is 5 mL/m3."),
    ],
)
def test_other_spellings_are_not_missing(claim: str, passage: str) -> None:
    assert missing_figures(claim, passage).numbers == ()
