"""Dates are read however they are written, and compared by what both say."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.text.dates import dates_of


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("opened on 12 March 2019.", [(2019, 3, {12})]),
        ("opened on March 12th, 2019, at noon", [(2019, 3, {12})]),
        ("on the 12th of March", [(None, 3, {12})]),
        ("since May", [(None, 5, set())]),
        ("from 11\u201314 March 2019", [(2019, 3, {11, 12, 13, 14})]),
        ("12 and 14 March", [(None, 3, {12, 14})]),
        ("2019-03-12T10:00:00Z", [(2019, 3, {12})]),
        ("am 12. März 2019, le 1er mai, el 3 de junio de 2020 y mars 2021",
         [(2019, 3, {12}), (None, 5, {1}), (2020, 6, {3}), (2021, 3, set())]),
        ("It has 12. May was hot; on mars, in marzo.", [(None, 5, set())]),
        ("5 Mars orbiters, 3 Mayo Clinic sites, on Mars 2020", []),
        ("It rose to 12. August 2019 was hot.", [(2019, 8, set())]),
        ("am 3. Mai 2020, den 12 april, il 3 Aprile 2021", [(2020, 5, {3}), (None, 4, {12}), (2021, 4, {3})]),
        ("en janv. 2015, le 1er févr. 2009, im Okt. 2022", [(2015, 1, set()), (2009, 2, {1}), (2022, 10, set())]),
        ("3/4/2019", [(2019, 4, {3}), (2019, 3, {4})]),
        ("It may 5 times rise; they march 12 miles.", []),
        ("2019-13-45 and 1.2.3 and https://example.org/2019/03/12/page", []),
    ],
)  # fmt: skip
def test_dates_are_read_as_they_are_meant(text: str, readings: list[tuple[int | None, int, set[int]]]) -> None:
    found = [(one.year, one.month, set(one.days)) for found in dates_of(text) for one in found.readings]
    assert found == readings


@given(
    st.dates(date(1500, 1, 1), date(2199, 12, 31)),
    st.sampled_from(["%d %B %Y", "%B %d, %Y", "%Y-%m-%d", "%d.%m.%Y", "%d-%b-%Y"]),
)
def test_every_day_agrees_with_itself_and_not_with_the_next(day: date, form: str) -> None:
    (written,) = dates_of(f"It was on {day.isoformat()}.")
    (other,) = dates_of(f"It was on {day.strftime(form)}.")
    assert written.agrees(other)
    if day.day < 28:
        (after,) = dates_of(f"It was on {(day + timedelta(days=1)).strftime(form)}.")
        assert not written.agrees(after)


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert all(
        0 <= found.begin < found.end <= len(text) and text[found.begin : found.end] == found.written for found in dates_of(text)
    )
