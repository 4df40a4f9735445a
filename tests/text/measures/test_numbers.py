"""Numbers of claims are found, and compared as a reader would."""

from __future__ import annotations

import pytest
from attacks.growth import UNENDING, measure

from nlp_retrieval.text.numbers import Number, compare_numbers, numbers_of


def unmatched_numbers(claim: str, passage: str) -> list[Number]:
    return [number for number, _ in compare_numbers(claim, passage)]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("two hundred patients", [200]),
        ("twenty-five trials", [25]),
        ("in 1998 and in the 19th century", [1998, 19]),
        ("95% CI 1.2-3.4", [95, 1.2, 3.4]),
        ("COVID-19, H2O and p53 are names", []),
        ("on 2019-03-12 and 12.03.2019", [2019, 12, 12, 2019]),
    ],
)
def test_numbers_are_read_as_they_are_meant(text: str, values: list[float]) -> None:
    assert [number.value for number in numbers_of(text)] == values


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("It has about 1.5 million inhabitants.", "The population was 1,502,113 in 2010."),
        ("A share of 30% died.", "The share was 0.3 of all."),
        ("It is 40 km long.", "It is 40,000 metres long."),
        ("It took 12 months.", "It took one year."),
        ("It cost \u00a35m.", "It cost 5 million pounds sterling."),
        ("In 2015 patients were asked.", "In 2015 households were asked."),
    ],
)
def test_equal_numbers_are_found_however_they_are_written(claim: str, passage: str) -> None:
    assert unmatched_numbers(claim, passage) == []


@pytest.mark.parametrize(
    ("claim", "passage", "missing"),
    [
        ("It was founded in 1989.", "It was founded in 1998.", ["1989"]),
        ("It rose by 30%.", "It rose by 30 points.", ["30%"]),
        ("It has 15 million inhabitants.", "It has 1.5 million inhabitants.", ["15 million"]),
        ("It is 40 km long.", "It is 40 miles long.", ["40"]),
        ("It cost $5 million.", "It cost \u20ac5 million.", ["5 million"]),
        ("40 people were hit.", "40 households were hit.", ["40"]),
    ],
)
def test_another_number_is_not_found(claim: str, passage: str, missing: list[str]) -> None:
    assert [number.written for number in unmatched_numbers(claim, passage)] == missing


def test_a_number_is_shown_with_its_unit() -> None:
    text = "$5 million"
    assert [number.measured for number in numbers_of(f"It was {text}, they say.")] == [text]


def test_a_text_of_digits_is_read_in_bounded_work() -> None:
    assert len(numbers_of("1 " * 100_000)) == 400
    assert len(numbers_of("9" * 5_000)) <= 1


def test_a_number_at_the_end_of_a_long_page_is_found() -> None:
    page = " ".join(f"In {year} it moved {year % 97} ships." for year in range(1200, 1900)) + " It was closed in 1988."
    assert unmatched_numbers("It was closed in 1988.", page) == []
    assert [one.written for one in unmatched_numbers("It was closed in 1989.", page)] == ["1989"]


def test_a_long_text_of_many_numbers_is_read_in_time_linear_in_it() -> None:
    code = "from nlp_retrieval.text.numbers import read_numbers\nfor text in (('12 km ' * N)[:N], ('a -5 ' * N)[:N]):\n"
    grown, ending = measure({"numbers": f"{code}    list(read_numbers(text))"}, 30_000, UNENDING)
    assert grown == {"numbers": []}, ending
