"""Negations and opposite words are seen."""

from __future__ import annotations

import pytest

from nlp_retrieval.systems.evidence.opposites import ANTONYMS, Opposites, negations


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("It is not so.", 1),
        ("It isn't so.", 1),
        ("It isn\u2019t so, and never was.", 2),
        ("Trials without controls failed.", 2),
        ("Notably, nothing is known.", 1),
        ("It is so.", 0),
    ],
)
def test_negations_are_counted(text: str, count: int) -> None:
    assert negations(text) == count


def test_a_word_that_meets_its_opposite_is_named() -> None:
    assert Opposites.of("Mortality increased.").met("Mortality decreased in both arms.") == [("increased", "decreased")]


def test_a_word_that_stands_there_too_has_no_opposite() -> None:
    assert Opposites.of("Mortality increased.").met("It increased at first and decreased later.") == []


def test_opposites_are_opposites_of_each_other() -> None:
    assert all(word in ANTONYMS[other] for word, others in ANTONYMS.items() for other in others)
    assert all(word not in others for word, others in ANTONYMS.items())
