"""The vocabulary: what it accepts, what it refuses, and what reads as text."""

from __future__ import annotations

import copy
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nlp_retrieval.core.models import SearchableItem

from .strategies import metadata


@given(st.text(min_size=1), st.text(), metadata())
def test_a_trusted_item_equals_the_validated_one(item_id, content, values):
    trusted = SearchableItem.trusted(item_id, content, values)
    validated = SearchableItem(item_id=item_id, content=content, metadata=values)
    assert trusted == validated
    assert trusted.model_dump() == validated.model_dump()
    assert trusted.model_dump_json() == validated.model_dump_json()
    assert repr(trusted) == repr(validated)
    assert trusted.model_fields_set == validated.model_fields_set
    assert copy.deepcopy(trusted) == validated
    assert trusted.model_copy() == validated


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"price": math.nan}, r"metadata\.price"),
        ({"a": {"b": [1.0, {"c": -math.inf}]}}, r"metadata\.a\..*b\..*c"),
    ],
)
def test_a_number_that_is_not_finite_is_refused_with_its_place(values, place):
    with pytest.raises(ValidationError, match=rf"{place}.*\n.*a finite number"):
        SearchableItem(item_id="a", content="b", metadata=values)


def test_text_is_the_title_as_a_sentence_then_the_content():
    assert SearchableItem(item_id="a", content="body", metadata={"title": "Head"}).text == "Head. body"
    assert SearchableItem(item_id="a", content="body", metadata={"title": "Who?"}).text == "Who? body"
