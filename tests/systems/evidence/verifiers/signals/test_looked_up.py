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
