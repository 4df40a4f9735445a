"""Without a model: what is about the claim, which numbers and names are missing, and nothing that it cannot know."""

from __future__ import annotations

from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier

PASSAGE = "The bridge was opened in 1932. It carries rail, road and foot traffic between the business district and the shore."


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
