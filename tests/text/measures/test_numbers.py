"""Numbers of claims are found, and compared as a reader would."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.text.measures.numbers import numbers_of, unmatched_numbers


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("It has 1,502,113 inhabitants.", [1_502_113]),
        ("About 1.5 million people", [1_500_000]),
        ("two hundred patients", [200]),
        ("twenty-five trials", [25]),
        ("in 1998 and in the 19th century", [1998, 19]),
        ("rose by 30%", [30]),
        ("30 percent of them", [30]),
        ("a 2.5-fold increase", [2.5]),
        ("95% CI 1.2-3.4", [95, 1.2, 3.4]),
        ("COVID-19, H2O and p53 are names", []),
        ("the second of them", []),
        ("Nothing is counted here.", []),
    ],
)
def test_numbers_are_read_as_they_are_meant(text: str, values: list[float]) -> None:
    assert [number.value for number in numbers_of(text)] == values


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("It has about 1.5 million inhabitants.", "The population was 1,502,113 in 2010."),
        ("Two trials were run.", "We ran 2 trials."),
        ("Half of them died.", "0.5 of all died."),
        ("A share of 30% died.", "The share was 0.3 of all."),
        ("It was founded in 1998.", "Founded on 3 May 1998, it grew."),
    ],
)
def test_equal_numbers_are_found_however_they_are_written(claim: str, passage: str) -> None:
    assert unmatched_numbers(claim, passage) == []


@pytest.mark.parametrize(
    ("claim", "passage", "missing"),
    [
        ("It was founded in 1989.", "It was founded in 1998.", ["1989"]),
        ("It rose by 30%.", "It rose by 30 points.", ["30%"]),
        ("Three of 12 survived.", "Four of 12 survived.", ["Three"]),
        ("It has 15 million inhabitants.", "It has 1.5 million inhabitants.", ["15 million"]),
    ],
)
def test_another_number_is_not_found(claim: str, passage: str, missing: list[str]) -> None:
    assert [number.written for number in unmatched_numbers(claim, passage)] == missing


@given(st.text(max_size=300))
def test_any_text_agrees_with_itself(text: str) -> None:
    assert unmatched_numbers(text, text) == []
    assert all(0 <= number.begin < number.end <= len(text) for number in numbers_of(text))


def test_a_text_of_digits_is_read_in_bounded_work() -> None:
    assert len(numbers_of("1 " * 100_000)) == 400
    assert len(numbers_of("9" * 5_000)) <= 1


def test_a_number_at_the_end_of_a_long_page_is_found() -> None:
    page = " ".join(f"In {year} it moved {year % 97} ships." for year in range(1200, 1900)) + " It was closed in 1988."
    assert unmatched_numbers("It was closed in 1988.", page) == []
    assert [one.written for one in unmatched_numbers("It was closed in 1989.", page)] == ["1989"]
