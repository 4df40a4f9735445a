"""What a passage says against a claim is seen where it says most of the same, and only there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.systems.evidence.lookups.checks import check, looked_up

PASSAGE = (
    "The trial was stopped early by its sponsor. Mortality increased among patients who were given the drug for a month. "
    "It was not given to children under the age of six. The clinic in Nairobi reported most of the cases."
)
MIGRAINE = (
    "Migraine recurred in 21 percent of the drug group and 23 percent of the placebo group; the difference was not "
    "statistically significant."
)
GRADES = "Grades improved\n\nGrades did not change in the two years of the pilot."


@pytest.mark.parametrize(
    ("claim", "source", "says", "sentence"),
    [
        ("The trial was not stopped early.", PASSAGE, "without the negation", "The trial was stopped early by its sponsor."),
        ("The drug was given to children under the age of six.", PASSAGE, "with a negation", "It was not given to children"),
        (
            "Mortality decreased among patients who were given the drug.",
            PASSAGE,
            "with 'increased' in place of 'decreased'",
            "Mortality increased",
        ),
        ("The trial was stopped early.", PASSAGE, "", "The trial was stopped early"),
        ("The drug was not given to children under the age of six.", PASSAGE, "", "It was not given to children"),
        # a change that is denied, of what the clause refers to
        ("The drug significantly reduced migraine.", MIGRAINE, "the difference was not statistically significant", "Migraine"),
        ("The drug had no significant effect on migraine.", MIGRAINE, "", "Migraine"),
        ("Grades improved.", GRADES, "Grades did not change", "Grades did not change"),
        ("The drug lowered pain.", "The drug lowered pain, but there was no effect on weight.", "", "The drug lowered"),
        ("Car traffic fell.", "Car traffic fell, whereas bus traffic was unchanged.", "", "Car traffic fell"),
        ("Bus traffic fell.", "Car traffic fell, whereas bus traffic was unchanged.", "bus traffic was unchanged", "Car"),
        ("The drug cut risk.", "We found no evidence that the drug reduces risk.", "no evidence that the drug", "We found"),
        ("Die Ernte sank.", "2019 \u00e4nderte sich die Ernte kaum.", "\u00e4nderte sich die Ernte kaum", "2019"),
        ("Pain did not differ between groups.", "Pain fell by 2 in both groups (difference 0.2; P = 0.49).", "", "Pain"),
        ("Sleep improved.", "Sleep was no better than before.", "Sleep was no better", "Sleep was"),
        (
            "Crime fell in the towns.",
            "In the towns, crime rates were the same as elsewhere.",
            "crime rates were the same",
            "In",
        ),
        ("Die Ernte stieg.", "Die Ernte hat sich nicht ver\u00e4ndert.", "nicht ver\u00e4ndert", "Die Ernte"),
        (
            "La qualit\u00e9 s'est am\u00e9lior\u00e9e.",
            "La qualit\u00e9 est rest\u00e9e stable.",
            "rest\u00e9e stable",
            "La qualit\u00e9",
        ),
        ("Le gel a tu\u00e9 les abeilles.", "Le gel n'a pas tu\u00e9 les abeilles.", "with a negation", "Le gel"),
        ("The pier will shut no later than 2035.", "The pier will shut by 2035.", "", "The pier"),
        (
            "The drug reduced migraine in adults.",
            "Migraine was measured in adults on the drug. The difference was not significant.",
            "The difference was not significant",
            "The difference",
        ),
        # in other words
        ("The clinic in Nairobi never treated soldiers of the army.", PASSAGE, "", "The clinic in Nairobi"),
        ("The trial was stopped early.", f"{PASSAGE} Others say that the trial was not stopped early.", "", "The trial"),
    ],
)
def test_a_sentence_that_says_otherwise_decides_and_is_described_truly(
    claim: str, source: str, says: str, sentence: str
) -> None:
    findings = looked_up(claim, source, source).findings
    assert [says in finding.detail for finding in findings] == ([True] if says else [])
    assert source[slice(*check(claim, source).sentence)].startswith(sentence)


def test_a_statement_in_the_mouth_of_another_is_seen() -> None:
    source = "The operator said that the line will reopen in May. The union wants a later date."
    for speaker, right in (("operator", True), ("union", False)):
        for claim in (
            f"According to the {speaker}, the line will reopen in May.",
            f"The {speaker} said the line will reopen in May.",
        ):
            assert (looked_up(claim, source, source).findings == ()) is right


SIGNALS = (
    "overlap sentence_overlap bigrams longest_run verbatim numbers_missing dates_missing names_missing "
    "negation opposite claim_negated"
)
PIECES = st.sampled_from(
    "more less trams opened closed not without with although while but , ; ( ) \u2014 . 3 12% 1962 1974 half two thirds "
    "Velmark the mayor opposition criticised by rose fell in and respectively | against advised no effect said".split()
)


@given(st.lists(PIECES, max_size=14).map(" ".join) | st.text(max_size=200), st.lists(PIECES, max_size=30).map(" ".join))
def test_signals_of_any_texts_are_shares(claim: str, passage: str) -> None:
    found = check(claim, passage)
    assert list(found.signals) == SIGNALS.split()
    assert all(0 <= value <= 1 for value in found.signals.values())
    assert 0 <= found.sentence[0] <= found.sentence[1] <= len(passage)
    assert all(finding.detail for finding in looked_up(claim, passage, passage).findings)
