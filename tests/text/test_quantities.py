"""Quantities are read with their units, years and baselines, and compared as a reader would."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.text.quantities import changed_quantities, quantities_of, same_value, years_of


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1.2 Gt CO₂e, or 1,200 million tonnes of CO2 equivalent", [(1.2e9, "t CO2e"), (1.2e9, "t CO2e")]),
        ("30 GW of solar, 120MW of wind, two megawatts of hydro", [(30e9, "W"), (120e6, "W"), (2e6, "W")]),
        ("5.3 TWh, and 3.6 PJ of heat", [(5.3e12, "Wh"), (1e12, "Wh")]),
        ("5,000 ha, which is 50 km²", [(5e3, "ha"), (5e3, "ha")]),
        ("US$ 1.5 billion, €20m and 3 bn dollars", [(1.5e9, "USD"), (20e6, "EUR"), (3e9, "USD")]),
        ("45 per cent, 46% and 3 percentage points", [(45, "%"), (46, "%"), (3, "points")]),
        ("COVID-19 and H2O in 2030, with 12 of them", []),
        ("a mission to 3 Mtoes, 4 halls and 5 kgs", []),
        ("12 tags, 12 metro lines; 12 Tage, 5 metros", [(12, "day"), (5, "m")]),
    ],
)
def test_numbers_are_scaled_to_the_base_of_their_unit(text: str, found: list[tuple[float, str]]) -> None:
    assert [(pytest.approx(one.value), one.unit) for one in quantities_of(text)] == found


@pytest.mark.parametrize(
    ("text", "year", "baseline"),
    [
        ("cut emissions by 45% below 2010 levels by 2030", 2030, "2010"),
        ("By 2030, emissions fall 45% relative to 2005.", 2030, "2005"),
        ("45% compared to the baseline scenario", None, "BAU"),
        ("35% under the figure for 2015", None, "2015"),
        ("a share of 45% in 2020-2030", 2030, ""),
        ("45% of all. By 2030 another plan follows.", None, ""),
    ],
)
def test_a_quantity_knows_for_when_and_against_what_it_is_meant(text: str, year: int | None, baseline: str) -> None:
    (one,) = quantities_of(text)
    assert (one.year, one.baseline) == (year, baseline)


def test_hedges_bounds_and_ranges_are_told() -> None:
    about, least, most, span = quantities_of("nearly 40%, at least 30 GW, up to $5m, 45-50 %")
    assert (about.approximate, least.bound, most.bound, span.value, span.upper) == (True, "least", "most", 45, 50)
    assert not least.approximate
    assert about.bound == span.bound == ""


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("no more than 20%", "most"), ("not more than 20%", "most"), ("no fewer than 20 people", "least"),
        ("not less than 20%", "least"), ("fewer than 20 people", "most"), ("mindestens 20 %", "least"),
        ("au plus 20 %", "most"), ("not exceeding 20%", "most"), ("up to USD 20", "most"), ("over the 20 MW", "")
    ],
)  # fmt: skip
def test_a_denied_bound_is_the_other_one(text: str, bound: str) -> None:
    (one,) = quantities_of(text)
    assert one.bound == bound


def test_years_have_roles_and_ranges() -> None:
    found = years_of("Against 1990, by 2030, in 2021-25, 2031/2035 and a fee of $2000.")
    assert [(one.first, one.last, one.role) for one in found] == [
        (1990, 1990, "baseline"), (2030, 2030, "target"), (2021, 2025, ""), (2031, 2035, ""),
    ]  # fmt: skip
    assert [(one.first, one.last, one.role) for one in years_of("no later than 2030, and in FY2019/20")] == [
        (2030, 2030, "target"), (2019, 2020, ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1.5 Mt", "1,502,113 t", True),
        ("1.5 Mt", "1.6 Mt", False),
        ("about 40%", "42%", True),
        ("40%", "42%", False),
        ("45-50%", "47%", True),
        ("45-50%", "51%", False),
    ],
)
def test_values_agree_as_far_as_they_are_written(one: str, other: str, same: bool) -> None:
    (first,), (second,) = quantities_of(one), quantities_of(other)
    assert same_value(first, second) is same_value(second, first) is same


def test_what_changed_between_two_wordings_is_paired_within_its_measure() -> None:
    earlier = "30% by 2030 and 12 GW of wind; costs are $3m. A loan of €5m."
    later = "Costs are $3m. By 2030 it is 40%; 12 GW of wind; 7 GW of hydro."
    assert [(one.written, other.written) for one, other in changed_quantities(earlier, later)] == [("30%", "40%")]


@given(st.text(max_size=200))
def test_any_text_agrees_with_itself(text: str) -> None:
    assert changed_quantities(text, text) == []
    assert all(0 <= one.begin < one.end <= len(text) and one.value <= one.upper for one in quantities_of(text))
