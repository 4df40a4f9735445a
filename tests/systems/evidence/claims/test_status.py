"""The status of a claim follows from the number of origins for and against it."""

from __future__ import annotations

import pytest

from nlp_retrieval.systems.evidence.verdict.claims import status_of


@pytest.mark.parametrize(
    ("supporting", "contradicting", "weak", "status"),
    [
        (0, 0, 0, "UNVERIFIED"),
        (0, 0, 3, "WEAK"),
        (1, 0, 3, "SUPPORTED"),
        (2, 0, 0, "VERIFIED"),
        (0, 1, 0, "REFUTED"),
        (0, 2, 1, "REFUTED"),
        (1, 1, 0, "DISPUTED"),
        (9, 1, 0, "DISPUTED"),
    ],
)
def test_the_rules(supporting: int, contradicting: int, weak: int, status: str) -> None:
    found, rule = status_of(supporting, contradicting, weak)
    assert found == status
    assert all(str(count) in rule for count in (supporting, contradicting) if count > 1)
