"""Settings of components: declared once, checked, shown, compared, and split into those of the index and of the search."""

from __future__ import annotations

import pytest

from nlp_retrieval import Bm25Retriever, WeightedSum
from nlp_retrieval.core.components.component import Component, canonical_json


def test_canonical_json_is_one_text_for_equal_values():
    assert canonical_json({"b": [1, None], "a": "ü"}) == '{"a":"ü","b":[1,null]}'
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(float("nan"))


def test_a_class_without_a_name_has_that_of_its_class() -> None:
    class SharedYears(Component):
        """Has no name."""

    assert SharedYears().config == {"name": "shared_years"}
    assert SharedYears.name == "shared_years"


def test_equal_numbers_are_one_setting() -> None:
    for one, other in [
        (WeightedSum({"a": 1, "b": 0.0}), WeightedSum({"a": 1.0, "b": -0.0})),
        (Bm25Retriever(k1=2), Bm25Retriever(k1=2.0)),
    ]:
        assert one == other
        assert canonical_json(one.config) == canonical_json(other.config)
