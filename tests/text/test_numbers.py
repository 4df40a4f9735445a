"""One reader of numbers for what people write in reports, in many languages."""

from __future__ import annotations

import math
import unicodedata
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.text.numbers import Number, agreeing, compare_numbers, numbers_of, plain_digits
from nlp_retrieval.text.quantities import quantities_of

SPACES = " \u00a0\u2009\u202f\u2007\u200a\u2005\u3000"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        # signs
        ("a result of \u22125 million", [-5e6]),
        ("a net loss of $(5.2) million", [-5.2e6]),
        ("from \u22125 to \u22123 \u00b0C, or 5 degrees below zero", [-5, -3, -5]),
        ("\uff0d5 and +5", [-5, 5]),
        # leading points and other decimal marks
        ("a dose of 0\u00b75 mg, and \u22120.25", [0.5, -0.25]),
        # English and Indian groups
        ("1,502,113.75 of 12,345", [1_502_113.75, 12_345]),
        ("5 lakh, 2.5 crore, 1.2 lakh crore", [5e5, 2.5e7, 1.2e12]),
        ("1.2m people, 3m barrels, 100m hurdles", [1.2e6, 3e6, 100]),
        ("5k users, 3M users, $2.5m, \u00a37mn, US$1.2tn", [5e3, 3e6, 2.5e6, 7e6, 1.2e12]),
        ("two hundred and fifty thousand, twenty-five million, half a million", [250e3, 25e6, 0.5e6]),
        ("3.2e-5, 1E6, 1.5 \u00d7 10^6, 1.5 x 10\u2076, 2\u00b710\u207b\u00b3, 10^6, 10\u2079",
         [3.2e-5, 1e6, 1.5e6, 1.5e6, 2e-3, 1e6, 1e9]),
        ("1.5 \\times 10^{6} and 10**4", [1.5e6, 1e4]),
        # fractions, ratios, shares
        ("\u00bd of them, 3\u00bd years, 3 \u00bd years, 3 1/2 years, 1/2 of it", [0.5, 3.5, 3.5, 3.5, 0.5]),
        ("30%, 30 %, 30 percent, 30 per cent, 30 pct, 3\u2030", [30, 30, 30, 30, 30, 0.3]),
        ("3\u20135 million and between 3 and 5 million, 3 to 5%", [3e6, 5e6, 3e6, 5e6, 3, 5]),
        ("two thousand five hundred, two and a half, one and a half million, two dozen, the twenty-first, "
         "twenty-second and twenty second clip",
         [2500, 2.5, 1.5e6, 24, 21, 22, 20]),
        ("3x10^5, nine out of ten, 1 in 10, FY2019", [3e5, 0.9, 0.1, 2019]),
        ("$5-10 billion", [5e9, 10e9]),
        # scales and shares of other languages
        ("3,5 Millionen, 3 Milliarden, 2 Billionen, 5 Tsd.", [3.5e6, 3e9, 2e12, 5e3]),
        ("3 milliards d'euros, 2 mil millones, 12 mil, 4 miliardi, 4 miljard", [3e9, 2e9, 12e3, 4e9, 4e9]),
        ("5 \u043c\u043b\u0440\u0434 \u0440\u0443\u0431\u043b\u0435\u0439, 3\u5104\u5186", [5e9, 3e8]),
        ("20 Prozent, 20 pour cent, 20 por ciento", [20, 20, 20]),
        # German
        ("1,5 Mio. und 2,5 Mrd.", [1.5e6, 2.5e9]),
        ("১২৩ জন", [123]),
    ],
)  # fmt: skip
def test_numbers_are_read_as_the_language_writes_them(text: str, values: list[float]) -> None:
    assert [number.value for number in numbers_of(text)] == [pytest.approx(value) for value in values]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("3 mW", "3 MW", False),
        ("400 ppm", "400 ppb", False),
        ("5 kPa", "50 hPa", True),
        ("10 Gbit/s", "10 GB/s", False),
        ("3 GiB", "3 GB", False),
        ("100 kcal", "100 kJ", False),
        ("5 \u00b5g", "5 mcg", True),
        ("10 sq m", "10 sq ft", False),
        ("300 BC", "300 AD", False),
        ("1,2 Prozent", "1,2 Prozentpunkte", False),
        ("5 Mrd. Franken", "5 Mrd. Euro", False),
        ("12 francs suisses", "CHF 12", True),
        ("20 Prozent", "20%", True),
    ],
)
def test_units_of_one_letter_s_difference_are_told_apart(one: str, other: str, same: bool) -> None:
    (mine,), (theirs,) = numbers_of(one), numbers_of(other)
    assert agreeing(mine, theirs) == same


DIGITS = [chr(code) for code in range(0x10FFFF) if unicodedata.decimal(chr(code), None) == 7]


def test_digits_of_every_script_are_read() -> None:
    for seven in DIGITS:
        zero = chr(ord(seven) - 7)
        assert plain_digits(seven + zero) == "70"
        assert [number.value for number in numbers_of(f"There were {seven}{zero} of them.")] == [70]


FIVE_MILLION = ["5 million", "5,000,000", "5M", "5 000 000", "5\u00a0000\u00a0000", "five million", "5e6", "5 \u00d7 10\u2076", "5.0 million", "50 lakh",  # noqa: E501
                "0.5 crore", "5'000'000", "5000 thousand"]  # fmt: skip


def test_the_same_value_agrees_however_it_is_written() -> None:
    for claim, source in product(FIVE_MILLION, FIVE_MILLION):
        assert compare_numbers(f"It was {claim} in all.", f"It was {source} in all.") == [], (claim, source)


@pytest.mark.parametrize(
    ("claim", "source", "agree"),
    [
        ("It fell by 5%.", "The change was \u22125%.", True),
        ("It rose by 5%.", "The change was \u22125%.", False),
        ("The tax is 5%.", "The tax is .5%.", False),
        ("It cost 38.4 dollars.", "It cost $38.4B.", False),
        ("It cost \u20ac3.5 million.", "Es kostete 3,5 Mio. Euro.", True),
        ("The disk has 16GB of room.", "The disk has 16TB of room.", False),
        ("The disk has 16GB of room.", "The disk has 16 GB of room.", True),
        ("12 of 40 patients died.", "12/40 patients died.", True),
        ("Two thirds of them voted.", "67% of them voted.", True),
        ("A ratio of 1:5 was used.", "A ratio of 5:1 was used.", False),
        ("It fell to 12 °C at night.", "It fell to -12 °C at night.", False),
        ("Between 3 and 5 million people came.", "3\u20135 million people came.", True),
        ("It has 500 members.", "该协会有500名会员。", True),
        ("Sie hat 1.234 Mitglieder und ist alt.", "It has 1,234 members.", True),
        ("The build 3.2.1 is out.", "The build 3.2.2 is out.", False),
    ],
)
def test_sign_magnitude_and_unit_decide(claim: str, source: str, agree: bool) -> None:
    assert (compare_numbers(claim, source) == []) is agree


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Summe: 1.234 units", "It has 1,234 units."),
        ("It has 130 rooms.", "The rooms are 120 130 140 there."),
        ("It is 5 million.", "It is 5m of all."),
        ("It has 30 rules.", "The thirty-second rule holds."),
    ],
)
def test_what_may_be_the_same_is_named_as_unclear(claim: str, source: str) -> None:
    ((number, other),) = compare_numbers(claim, source)
    assert other is not None
    assert number.others or other.others


@pytest.mark.parametrize("text", ["1e9999", "1,234" * 4_000, "10^99999"])
def test_what_cannot_be_read_agrees_only_with_the_same(text: str) -> None:
    assert all(math.isnan(number.value) or abs(number.value) < 1e300 for number in numbers_of(text))
    assert compare_numbers(text, text) == []
    assert compare_numbers("It is 9.", text)


@given(
    st.lists(
        st.sampled_from(
            [*"0123456789.,'-\u2212()%$/:^e \u00a0\u202f½万億억三百kMm\u00d7", "10", "million", " to ", "und ", "the "]
        ),
        max_size=40,
    )
)
def test_any_notation_agrees_with_itself(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert compare_numbers(text, text) == []
    assert all(0 <= number.begin < number.end <= len(text) for number in numbers_of(text))
    assert all(quantity.value <= quantity.upper for quantity in quantities_of(text))


@given(st.integers(0, 10**12), st.sampled_from(["{:,}", "{:_}"]), st.sampled_from([",", *SPACES, "'", "."]), st.booleans())
def test_grouped_integers_are_read_back(value: int, pattern: str, mark: str, negative: bool) -> None:
    written = pattern.format(value).replace(",", mark).replace("_", mark)
    before = "Das war der Wert und die" if mark == "." else "This was the value and the"
    (number,) = numbers_of(f"{before} \u2212{written} x" if negative else f"{before} {written} x")
    assert number.value == (-value if negative else value)


def unmatched_numbers(claim: str, passage: str) -> list[Number]:
    return [number for number, _ in compare_numbers(claim, passage)]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("two hundred patients", [200]),
        ("twenty-five trials", [25]),
        ("forty third-party vendors, twenty first-time mothers, two million five-year-olds", [40, 3, 20, 1, 2e6, 5]),
        ("one hundred twenty-five, the twenty-first, a forty-three-year-old, five million-dollar homes", [125, 21, 43, 5e6]),
        ("5千米, 500兆瓦, 5千人", [5, 500, 5000]),
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
        ("It saw 10 patients.", "It helped 4 out of 10 patients."),
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
