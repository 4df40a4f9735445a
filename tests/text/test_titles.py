"""Titles are equal when only case, spacing, punctuation, encoding or HTML escaping differ, and not otherwise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.text.titles import normalize_title

TRICKY = "aé1.&;#() -'`/_!ampltgt\u0301\u0345\u200b\u00b2\u0130\u03a3\u03c2\u00dfx"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("David O'Leary", "DAVID O\u2019LEARY"),
        ("Martin_O'Neill", "Martin O'Neill"),
        ("  Heat\u00a0(1995   film) ", "Heat (1995 film)"),
        ("2009\u201310 Aston Villa F.C. season", "2009-10 Aston Villa FC season"),
        ("AT&amp;amp;T", "AT&T"),
        ("Beyonc\u00e9", "Beyonce\u0301"),
        ("Stra\u00dfe", "STRASSE"),
        ("AC/DC", "AC_DC"),
    ],
)
def test_one_title_written_in_two_ways_is_one_title(one: str, other: str) -> None:
    assert normalize_title(one) == normalize_title(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Heat (1995 film)", "Heat (1986 film)"),
        ("Heat (1995 film)", "Heat"),
        ("Hiding Place", "The Hiding Place"),
        ("U\u00b2", "U2"),
        ("C", "C#"),
        ("9/11", "911"),
        ("!!!", "???"),
    ],
)
def test_two_titles_that_look_alike_stay_two(one: str, other: str) -> None:
    assert normalize_title(one) != normalize_title(other)


@given(st.one_of(st.text(max_size=12), st.text(alphabet=TRICKY, max_size=16)))
def test_normalising_twice_changes_nothing(title: str) -> None:
    once = normalize_title(title)
    assert normalize_title(once) == once
    assert once == " ".join(once.split())
