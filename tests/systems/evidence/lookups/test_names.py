"""Names of claims are found, and looked up in passages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.systems.evidence.lookups.names import missing_names, names_of


@pytest.mark.parametrize(
    ("claim", "passage", "missing"),
    [
        ("It was written by Leo Tolstoy.", "Tolstoy, Leo, wrote it.", []),
        ("It was made by the BBC.", "The British Broadcasting Corporation made it.", []),
        ("It is a French film.", "The film was shot in Finland.", ["French"]),
        ("It helps HIV-positive people and M2-phenotype cells.", "It helps people with HIV, and cells of M2.", []),
        ("The melanocortin-4 receptor (PTEN) is needed.", "The melanocortin-4 receptor is needed.", ["PTEN"]),
        ("It was found by Wing that nets help.", "Nets help.", ["Wing"]),
        ("It is written in C.", "It is written in C++.", ["C"]),
        ("It is written in C.", "C and C++ are in it.", []),
        ("They asked GPT-4.", "They asked GPT-4o.", ["GPT-4"]),
        ("The survey was led by J. Smith.", "John Smith led the survey.", []),
    ],
)
def test_names_that_a_passage_lacks_are_named(claim: str, passage: str, missing: list[str]) -> None:
    assert missing_names(claim, passage) == missing


@given(st.text(max_size=300))
def test_any_text_has_its_own_names(text: str) -> None:
    assert missing_names(text, text) == []
    assert all(0 <= begin < end <= len(text) for begin, end in names_of(text))
