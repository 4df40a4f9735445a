"""Without a model: what is about the claim, which numbers and names are missing, and nothing that it cannot know."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.errors import ModelError, QueryError
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier

PASSAGE = "The bridge was opened in 1932. It carries rail, road and foot traffic between the business district and the shore."


def test_a_claim_in_the_words_of_the_passage_is_supported_rather_than_neutral() -> None:
    (judgement,) = LexicalVerifier().judge(["The bridge was opened in 1932."], [PASSAGE])
    assert judgement.support > judgement.neutral
    assert PASSAGE[slice(*judgement.sentence)] == "The bridge was opened in 1932."


def test_a_claim_of_something_else_is_neutral() -> None:
    (judgement,) = LexicalVerifier().judge(["Beetles of this genus feed on fungi."], [PASSAGE])
    assert judgement.neutral > max(judgement.support, judgement.contradict)


def test_another_number_speaks_against_support() -> None:
    right, wrong = LexicalVerifier().judge(["The bridge opened in 1932.", "The bridge opened in 1952."], [PASSAGE] * 2)
    assert wrong.signals["numbers_missing"] == 1.0
    assert right.signals["numbers_missing"] == 0.0
    assert wrong.support < right.support


def test_a_negation_speaks_for_contradict() -> None:
    right, wrong = LexicalVerifier().judge(
        ["The bridge was opened in 1932.", "The bridge was not opened in 1932."], [PASSAGE] * 2
    )
    assert (right.signals["negation"], wrong.signals["negation"]) == (0.0, 1.0)
    assert wrong.contradict > right.contradict


@given(st.text(max_size=200), st.text(max_size=400))
def test_any_texts_are_judged(claim: str, passage: str) -> None:
    (judgement,) = LexicalVerifier().judge([claim], [passage])
    assert 0 <= judgement.sentence[0] <= judgement.sentence[1] <= len(passage)


def test_as_many_passages_as_claims_are_needed() -> None:
    with pytest.raises(QueryError, match="2 claims and 1 passages"):
        LexicalVerifier().judge(["a", "b"], ["c"])


def test_a_calibration_that_is_not_there_is_named() -> None:
    with pytest.raises(ModelError, match=r"nowhere\.json is not a calibration"):
        LexicalVerifier("nowhere.json").judge(["a"], ["b"])
