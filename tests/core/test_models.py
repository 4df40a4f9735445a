"""The vocabulary: what it accepts, what it refuses, and what reads as text."""

from __future__ import annotations

import copy
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nlp_retrieval.core.models import Gold, Query, RetrievalResult, SearchableItem

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


def test_a_trusted_result_equals_the_validated_one():
    item = SearchableItem(item_id="a", content="b")
    trusted = RetrievalResult.trusted(item, 1.5, {"terms.score": 1.5})
    assert trusted == RetrievalResult(item=item, score=1.5, signals={"terms.score": 1.5})


@pytest.mark.parametrize(
    ("model", "field"),
    [
        (SearchableItem(item_id="a", content="b"), "content"),
        (SearchableItem.trusted("a", "b", {}), "content"),
        (RetrievalResult(item=SearchableItem(item_id="a", content="b"), score=1.0), "score"),
        (RetrievalResult.trusted(SearchableItem(item_id="a", content="b"), 1.0, {}), "score"),
        (Query(query_id="q", text="t"), "text"),
        (Gold(query_id="q", relevance={"a": 1}), "relevance"),
    ],
)
def test_models_are_frozen(model, field):
    with pytest.raises(ValidationError, match="frozen"):
        setattr(model, field, "other")


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"price": math.nan}, r"metadata\.price "),
        ({"price": math.inf}, r"metadata\.price "),
        ({"a": {"b": [1.0, {"c": -math.inf}]}}, r"metadata\.a\.b\[1\]\.c "),
        ({"ok": 1.0, "rows": [[0.0], [0.0, math.nan]]}, r"metadata\.rows\[1\]\[1\] "),
    ],
)
def test_a_number_that_is_not_finite_is_refused_with_its_place(values, place):
    with pytest.raises(ValidationError, match=place + "is not a finite number"):
        SearchableItem(item_id="a", content="b", metadata=values)


@pytest.mark.parametrize("values", [{"a": object()}, {"a": {1, 2}}, {"a": b"bytes"}])
def test_metadata_that_is_not_json_is_refused(values):
    with pytest.raises(ValidationError):
        SearchableItem(item_id="a", content="b", metadata=values)


@pytest.mark.parametrize(
    "fields",
    [
        {"item_id": "", "content": "b"},
        {"item_id": 7, "content": "b"},
        {"item_id": "a", "content": None},
        {"item_id": "a", "content": b"b"},
        {"item_id": "a", "content": "b", "title": "unknown field"},
        {"content": "b"},
    ],
)
def test_an_item_needs_a_nonempty_id_and_a_text(fields):
    with pytest.raises(ValidationError):
        SearchableItem(**fields)


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_a_finite_number_is_refused(score):
    with pytest.raises(ValidationError):
        RetrievalResult(item=SearchableItem(item_id="a", content="b"), score=score)


def test_text_is_the_title_as_a_sentence_then_the_content():
    assert SearchableItem(item_id="a", content="body", metadata={"title": "Head"}).text == "Head. body"
    assert SearchableItem(item_id="a", content="body", metadata={"title": "Who?"}).text == "Who? body"


@pytest.mark.parametrize("values", [{}, {"title": ""}, {"title": None}])
def test_text_is_the_content_where_the_title_is_missing_or_no_string(values):
    item = SearchableItem(item_id="a", content="body", metadata=values)
    assert item.title == ""
    assert item.text == "body"


def test_items_with_the_same_text_and_different_ids_are_different():
    assert SearchableItem(item_id="a", content="b") != SearchableItem(item_id="c", content="b")


def test_metadata_of_two_items_is_not_shared():
    one, other = SearchableItem(item_id="a", content=""), SearchableItem(item_id="b", content="")
    assert one.metadata is not other.metadata


def test_gold_is_keyed_by_id_or_title_and_nothing_else():
    with pytest.raises(ValidationError):
        Gold(query_id="q", relevance={"a": 1}, by="url")
