"""Settings of components: declared once, checked, shown, compared, and split into those of the index and of the search."""

from __future__ import annotations

import pytest

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
