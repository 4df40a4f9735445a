"""What a passage says against a claim is seen where it says most of the same, and only there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.systems.evidence.checks import SIGNALS, check, looked_up

PASSAGE = (
    "The trial was stopped early by its sponsor. Mortality increased among patients who were given the drug for a month. "
    "It was not given to children under the age of six. The clinic in Nairobi reported most of the cases."
)


@pytest.mark.parametrize(
    ("claim", "contradiction", "sentence"),
    [
        ("The trial was not stopped early.", "without the negation", "The trial was stopped early by its sponsor."),
        ("The drug was given to children under the age of six.", "with a negation", "It was not given to children"),
        (
            "Mortality decreased among patients who were given the drug.",
            "with 'increased' in place of 'decreased'",
            "Mortality increased",
        ),
        ("The trial was stopped early.", "", "The trial was stopped early"),
        ("Mortality increased among patients who were given the drug.", "", "Mortality increased"),
        ("The drug was not given to children under the age of six.", "", "It was not given to children"),
    ],
)
def test_a_sentence_that_says_otherwise_decides(claim: str, contradiction: str, sentence: str) -> None:
    found = check(claim, PASSAGE)
    assert found.contradiction == contradiction
    assert PASSAGE[slice(*found.sentence)].startswith(sentence)


@pytest.mark.parametrize(
    ("claim", "source", "contradiction", "refuted"),
    [
        (
            "The clinic in Nairobi never treated soldiers of the army.",
            PASSAGE,
            "without the negation",
            False,
        ),
        (
            "It was built in the last year of the war by people of the town. The clinic in Nairobi did not report the cases.",
            PASSAGE,
            "without the negation",
            True,
        ),
        (
            "According to tenants, higher rents in the harbour made many families leave.",
            "Officials of the ministry recorded lower rents in the harbour for years.",
            "with 'lower' in place of 'higher'",
            False,
        ),
        (
            "According to tenants, higher taxes in the city made many families leave.",
            "Officials of the ministry recorded lower rents in the harbour for years.",
            "",
            False,
        ),
    ],
)
def test_a_negation_or_an_opposite_counts_in_a_claim_of_other_words_and_refutes_what_it_covers(
    claim: str, source: str, contradiction: str, *, refuted: bool
) -> None:
    found = looked_up(claim, source, source)
    assert found.checks.contradiction == contradiction
    assert found.contradicts_source == bool(contradiction)
    assert found.is_against == refuted


def test_a_negation_about_something_else_says_nothing() -> None:
    assert check("Doctors were not told of the outcome in advance.", PASSAGE).contradiction == ""


def test_a_negation_says_nothing_where_another_sentence_has_it_too() -> None:
    both = "The trial was stopped early. Later reports say that the trial was not stopped early."
    assert check("The trial was not stopped early.", both).contradiction == ""
    assert check("The trial was stopped early.", both).contradiction == ""


@pytest.mark.parametrize(
    ("claim", "of_another"),
    [
        ("The clinic in Mombasa reported most of the cases.", True),
        ("The clinic in Nairobi reported most of the cases.", False),
        ("Surgeons from Mombasa trained nurses abroad.", False),
    ],
)
def test_what_is_said_of_another_name_is_told_from_what_is_not_said(claim: str, of_another: bool) -> None:
    assert check(claim, PASSAGE).is_of_another is of_another


@pytest.mark.parametrize(
    ("claim", "missing"),
    [
        ("The Long Bridge was opened on 12 March 2019.", ()),
        ("The Long Bridge was opened on 2019-03-12.", ()),
        ("The Long Bridge was opened in March 2019.", ()),
        ("The Long Bridge was opened on 12 May 2019.", ("12 May 2019",)),
        ("The Long Bridge was opened on 13 March 2019.", ("13 March 2019",)),
        ("The Long Bridge is 12 km long.", ("12 km",)),
    ],
)
def test_dates_are_compared_as_a_whole_and_numbers_with_their_units(claim: str, missing: tuple[str, ...]) -> None:
    passage = "The Long Bridge was opened on 2019-03-12 after 13 years; it is 12 miles long. In May 2018 a pier fell."
    found = check(claim, passage)
    assert found.missing_numbers == missing
    assert found.missing_names == ()
    assert (found.signals["dates_missing"] == 1) == (bool(missing) and "km" not in claim)


@given(st.text(max_size=200), st.text(max_size=400))
def test_signals_of_any_texts_are_shares(claim: str, passage: str) -> None:
    found = check(claim, passage)
    assert tuple(found.signals) == SIGNALS
    assert all(0 <= value <= 1 for value in found.signals.values())
    assert 0 <= found.sentence[0] <= found.sentence[1] <= len(passage)


@pytest.mark.parametrize("start", ["(", ", ", "\u2014 ", "Although ", "but ("])
def test_the_opposite_of_a_word_may_begin_a_clause(start: str) -> None:
    assert check("More trams run.", f"{start}less trams run.").contradiction == "with 'less' in place of 'More'"


PIECES = st.sampled_from(
    "more less trams opened closed not without with although while but , ; ( ) \u2014 . 3 12% 1962 1974 half two thirds "
    "Velmark the mayor opposition criticised by rose fell in and respectively | against advised".split()
)


@given(st.lists(PIECES, max_size=14).map(" ".join), st.lists(PIECES, max_size=30).map(" ".join))
def test_words_that_the_checks_know_are_checked_in_any_order(claim: str, passage: str) -> None:
    found = looked_up(claim, passage, passage)
    assert all(0 <= value <= 1 for value in found.checks.signals.values())
    assert 0 <= found.checks.sentence[0] <= found.checks.sentence[1] <= len(passage)
