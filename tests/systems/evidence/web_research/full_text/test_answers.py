"""Numbers and stances are read out of whatever a model writes, and nothing is made up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.systems.evidence.web_research.full_text import read_numbers, read_stances

VALID = range(1, 20)


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ([3, 1, 3], [3, 1]),
        (["[3]", "passage 1"], [3, 1]),
        ("[3, 1]", [3, 1]),
        ("Passages 3 and 1.", [3, 1]),
        ("3\n1\n99", [3, 1]),
        ('{"numbers": [3, 1]}', [3, 1]),
        ({"numbers": [3, 1]}, [3, 1]),
        ("[3, 1", [3, 1]),
        ([], []),
        ("[]", []),
        ("none", []),
        ("", None),
        ("None.", []),
        ([99, -5000], None),
        ("I cannot help with that", None),
        (["nothing that I see"], None),
        (None, None),
        (3.5, None),
        (True, None),
        ("1" * 50_000, None),
        ("[" * 50_000, None),
    ],
)
def test_numbers(answer: object, numbers: list[int] | None) -> None:
    assert read_numbers(answer, VALID) == numbers


@pytest.mark.parametrize(
    ("answer", "stances"),
    [
        (["3 supports", "1 contradicts"], {3: "supports", 1: "contradicts"}),
        ("[3]: supports; 1 refutes it", {3: "supports", 1: "contradicts"}),
        ('[{"passage": 3, "stance": "supports"}]', {3: "supports"}),
        ([{"passage": 3, "stance": "Contradicted"}], {3: "contradicts"}),
        ('{"findings": ["3 supports"]}', {3: "supports"}),
        (["3 supports", "3 contradicts", "4 supports"], {4: "supports"}),
        (["3 does not support", "4 neither", "5 supports"], {5: "supports"}),
        ([], {}),
        ("[]", {}),
        ("none", {}),
        (["3 neutral"], None),
        (["99 supports"], None),
        ("supports", None),
        (None, None),
    ],
)
def test_stances(answer: object, stances: dict[int, str] | None) -> None:
    assert read_stances(answer, VALID) == stances


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda one: st.lists(one) | st.dictionaries(st.text(), one),
)


@given(JSON)
def test_anything_is_read_without_an_error_and_only_what_was_shown_is_named(answer: object) -> None:
    assert set(read_numbers(answer, VALID) or ()) <= set(VALID)
    assert set(read_stances(answer, VALID) or ()) <= set(VALID)
