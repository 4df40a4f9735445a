"""What is looked up between a claim and a source, on pairs that were written before the mechanism, by kind.

Half of each kind were there to develop on; the others ("judge") were measured once, at the end.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nlp_retrieval.systems.evidence.checks import LookedUp, looked_up

PAIRS = [json.loads(line) for line in Path(__file__).with_name("looked_up.jsonl").read_text("utf-8").splitlines()]
DEVELOP, JUDGE = 0.95, 0.9
"""Least shares of right ones; 68 of 68 and 63 of 66 were measured, 31 and 31 before the lookups knew subjects."""


def _is_right(label: str, found: LookedUp) -> bool:
    return {
        "true": not found.contradicts_source and not found.is_against,
        "false": found.contradicts_source,
        "against": found.is_against,
        "neutral": not found.is_against,
    }[label]


def _right(pairs: list[dict[str, str]], *, shuffled: bool = False) -> float:
    sources = [pair["source"] for pair in pairs]
    sources = sources[-7:] + sources[:-7] if shuffled else sources
    found = [looked_up(pair["claim"], source, source) for pair, source in zip(pairs, sources, strict=True)]
    return sum(_is_right(pair["label"], one) for pair, one in zip(pairs, found, strict=True)) / len(pairs)


@pytest.mark.parametrize(("half", "least"), [("develop", DEVELOP), ("judge", JUDGE)])
def test_most_pairs_of_each_half_are_looked_up_rightly_and_fewer_beside_other_sources(half: str, least: float) -> None:
    pairs = [pair for pair in PAIRS if pair["half"] == half]
    assert len(pairs) > 60
    assert _right(pairs) >= least
    assert _right(pairs, shuffled=True) < 0.6


@pytest.mark.parametrize(
    ("claim", "source", "how"),
    [
        ("The works took three years.", "The works began in 1962 and ended in 1965.", "three years: from 1962 to 1965"),
        (
            "Ost got 39 million more than Vest.",
            "Vest got 58 million, after Ost with 97 million.",
            "39 million: 97 million - 58 million",
        ),
        ("Output rose by 25%.", "Output was 400 tonnes in 2001 and 500 tonnes in 2002.", "25%: from 400 to 500"),
        ("Some 60% of the delegates agreed.", "Of the 500 delegates, 300 agreed.", "60%: 300 of 500"),
        ("The works took five years.", "The works began in 1962 and ended in 1965.", ""),
    ],
)
def test_a_computed_number_is_no_missing_one_and_says_how(claim: str, source: str, how: str) -> None:
    found = looked_up(claim, source, source)
    assert found.computed == ((how,) if how else ())
    assert bool(found.checks.missing_numbers) is not bool(how)


BEES = "In Osterland 12% of the farms keep bees. Hail destroyed 45% of the orchards in May."
CANAL = "In summer the canal carried 35 barges a week. A ferry is 80 metres long."
CLINIC = "The clinic treated 95 patients with burns. A new wing has 410 windows."
SLEEP = "Sleep is not only vital for memory and mood but also for growth."


@pytest.mark.parametrize(
    ("label", "claim", "source"),
    [
        # the number is in a sentence about something else
        ("against", "Some 45% of the farms in Osterland keep bees.", BEES),
        ("true", "Some 12% of the farms in Osterland keep bees.", BEES),
        ("against", "The canal carried 80 barges a week in summer.", CANAL),
        ("true", "The canal carried 35 barges a week in summer.", CANAL),
        ("against", "The clinic treated 410 patients with burns.", CLINIC),
        ("true", "The clinic, which has 410 windows, treated 95 patients.", CLINIC),
        ("false", "The fort was held until 1653.", "The fort was held until 1649."),
        ("true", "The fort was built by 1653.", "The fort was built in 1650."),
        # both have a negating word, or "not only"
        ("against", "False alarms are not counted as fires.", "False alarms are counted as fires."),
        ("true", "False alarms are counted as fires.", "False alarms are counted as fires."),
        ("against", "Failed bids are never returned.", "Failed bids are returned."),
        ("against", "Sleep is not vital for memory and mood.", SLEEP),
        ("true", "Sleep is vital for memory and mood.", SLEEP),
        ("true", "The mayor can close a street without a hearing.", "The mayor closes a street, without a hearing."),
        ("against", "The mayor cannot close a street without a hearing.", "The mayor can close a street without a hearing."),
        # another thing of a kind
        ("false", "The pump needs liquid nitrogen to run.", "The pump needs liquid helium to run."),
        ("neutral", "The pump needs liquid nitrogen to run.", "The pump needs liquid helium to run."),
        ("false", "The vaccine was first given to ferrets.", "The vaccine was first given to hamsters."),
        ("false", "She learnt to play the violin at six.", "She learnt to play the cello at six."),
        ("true", "He was treated for kidney cancer.", "He was treated for renal cancer, and his bladder was well."),
        ("true", "Cats and dogs caught it.", "Some cats caught it; no ferret did."),
        ("true", "The film is based on a novel by Ost.", "The movie is based on a book by Ost."),
        # a name is missing, and the other names of the claim are there
        ("false", "TNF5 binds to Dicer to cleave it.", "Dicer binds to ADAR2 and cleaves it."),
        ("true", "Dicer binds to ADAR2 to cleave it.", "Dicer binds to ADAR2 and cleaves it."),
        ("true", "The basic reproduction number (BRN) fell.", "The reproduction number fell."),
        ("false", "The basic reproduction number (TNF) fell.", "The basic reproduction number fell."),
        ("true", "It opened late. Visitors came at once.", "It opened late, and people came at once."),
    ],
)
def test_each_mechanism_is_right_on_pairs_that_it_was_not_made_for(label: str, claim: str, source: str) -> None:
    assert _is_right(label, looked_up(claim, source, source))
