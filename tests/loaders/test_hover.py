"""HoverLoader: HoVer's own release files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nlp_retrieval.core.models import Gold, Query
from nlp_retrieval.errors import ConfigurationError, SourceError
from nlp_retrieval.loaders.datasets import HoverLoader

from .conftest import Write


def claim(uid: str, hops: int = 2, label: str = "SUPPORTED", **other: Any) -> dict[str, Any]:
    facts = [["Eatza Pizza", 0], ["Your Pie", 0], ["Eatza Pizza", 3]]
    row = {"uid": uid, "claim": f"claim {uid}", "supporting_facts": facts, "label": label, "num_hops": hops}
    return row | {"hpqa_id": f"h-{uid}"} | other


CLAIMS = [claim("a"), claim("b", 3, "NOT_SUPPORTED"), claim("c", 4), claim("d", 3)]


def error_of(loader: HoverLoader) -> str:
    with pytest.raises(SourceError) as caught:
        loader.gold()
    return str(caught.value)


def test_claims_carry_family_hops_and_label_and_gold_is_each_title_once(write: Write, subtests: pytest.Subtests) -> None:
    for name in ["hover.json", "hover.json.gz"]:
        with subtests.test(name=name):
            loader = HoverLoader(write(name, json.dumps(CLAIMS[:1], indent=1)))
            assert loader.queries() == [
                Query(query_id="a", text="claim a", family="h-a", metadata={"hops": 2, "label": "SUPPORTED"})
            ]
            assert loader.gold() == [Gold(query_id="a", relevance={"Eatza Pizza": 1, "Your Pie": 1}, by="title")]


def test_claims_are_filtered_by_hops_and_label_and_gold_lines_up(write: Write, subtests: pytest.Subtests) -> None:
    for filters, kept in [
        ({}, "abcd"),
        ({"hops": [3]}, "bd"),
        ({"hops": (2, 4)}, "ac"),
        ({"label": "SUPPORTED"}, "acd"),
        ({"hops": [3], "label": "NOT_SUPPORTED"}, "b"),
    ]:
        with subtests.test(filters=filters, kept=kept):
            loader = HoverLoader(write("hover.json", json.dumps(CLAIMS)), **filters)
            assert [query.query_id for query in loader.queries()] == list(kept)
            assert [gold.query_id for gold in loader.gold()] == list(kept)


def test_a_filter_that_keeps_nothing_says_what_there_is(write: Write) -> None:
    path = write("hover.json", json.dumps(CLAIMS[:2]))
    message = error_of(HoverLoader(path, hops=[4]))
    assert message.startswith(f"{path}: no claim fits hops=[4]")
    assert "2 hops SUPPORTED: 1, 3 hops NOT_SUPPORTED: 1" in message
    assert "an empty list" in error_of(HoverLoader(write("empty.json", "[]")))


def test_the_test_release_has_claims_but_no_gold_and_says_so(write: Write) -> None:
    loader = HoverLoader(write("test.json", json.dumps([{"uid": "a", "claim": "c"}])))
    assert loader.queries() == [Query(query_id="a", text="c")]
    message = error_of(loader)
    assert 'entry 1: no "supporting_facts" (found: "uid", "claim")' in message
    assert "test release withholds the supporting facts: use the train or dev release" in message


def test_a_malformed_claim_is_an_error_with_its_place(write: Write, subtests: pytest.Subtests) -> None:
    for row, expected in [
        ({"claim": "c"}, 'no "uid" field (found: "claim"); is this a release file of HoVer?'),
        (claim("a", claim=None), '"claim" is null; expected text'),
        (claim(""), '"uid" is empty'),
        (claim("first"), 'the uid "first" is taken by'),
        ("text", "expected a JSON object, found text"),
    ]:
        with subtests.test(row=row, expected=expected):
            path = write("hover.json", json.dumps([claim("first"), row], indent=0))
            with pytest.raises(SourceError) as caught:
                HoverLoader(path).queries()
            assert str(caught.value).startswith(f"{path}, entry 2: ")
            assert expected in str(caught.value)


def test_malformed_supporting_facts_are_an_error(write: Write, subtests: pytest.Subtests) -> None:
    for facts in ["Title", [["", 0]], [[3, "Title"]], {"Title": 0}, [["T", 0], "U"], []]:
        with subtests.test(facts=facts):
            message = error_of(HoverLoader(write("hover.json", json.dumps([claim("a", supporting_facts=facts)]))))
            assert "entry 1: " in message
            assert '"supporting_facts"' in message


def test_a_filter_needs_its_field(write: Write) -> None:
    path = write("hover.json", json.dumps([{"uid": "a", "claim": "c"}]))
    assert 'no "num_hops" field' in error_of(HoverLoader(path, hops=[2]))


def test_settings_are_checked(subtests: pytest.Subtests) -> None:
    for settings in [{"hops": []}, {"hops": [0]}, {"hops": ["2"]}, {"hops": 2}, {"label": "REFUTED"}]:
        with subtests.test(settings=settings), pytest.raises(ConfigurationError):
            HoverLoader("hover.json", **settings)
