"""The lists of a run are what was found, in memory and on disk, to the last bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval import Gold, Query, RetrievalResult, SearchableItem
from nlp_retrieval.errors import SourceError
from nlp_retrieval.evaluation.ranking_files import HITS, QUERIES, hits_table, queries_table, read_lists
from nlp_retrieval.evaluation.rankings import Listing, ListsBuilder, RunLists, are_passages, own_ids, without_own

IDS = ["a", "b", "c", "d é", "e\n"]
NAMES = st.sampled_from(["bm25.score", "bm25.rank", "fusion.score", "overlap"])
SCORES = st.floats(allow_nan=False, allow_infinity=False)
HITS_OF_ONE = st.lists(st.tuples(st.sampled_from(IDS), SCORES, st.dictionaries(NAMES, SCORES)), unique_by=lambda hit: hit[0])
Hit = tuple[str, float, dict[str, float]]


def results(hits: list[Hit]) -> list[RetrievalResult]:
    return [
        RetrievalResult(
            item=SearchableItem(item_id=item_id, content="x", metadata={"title": item_id * 2}), score=score, signals=told
        )
        for item_id, score, told in hits
    ]


def lists_of(found: dict[str, list[list[Hit]]], qrels: dict[str, dict[str, int]], n_queries: int) -> RunLists:
    names = [f"q{number}" for number in range(n_queries)]
    texts, families = [f"what is {name}?" for name in names], [None if n % 2 else f"f{n}" for n in range(n_queries)]
    groups = [f"hops={n % 3}" if n else None for n in range(n_queries)]
    gold = [Gold(query_id=name, relevance=qrels.get(name, {})) for name in names]
    builder = ListsBuilder(names, texts, families, groups, gold, qrels, {"gold alone": "Its title"})
    for name, one in found.items():
        builder.add(name, [results(hits) for hits in one])
    return builder.built()


def read_back(lists: RunLists, folder: Path) -> RunLists:
    pq.write_table(hits_table(lists), folder / HITS)
    pq.write_table(queries_table(lists), folder / QUERIES)
    return read_lists(folder)


def signals_of(listing: Listing, hit: int) -> dict[str, float]:
    return {name: float(values[hit]) for name, values in listing.signals.items() if not np.isnan(values[hit])}


def as_found(lists: RunLists) -> dict[str, list[list[Hit]]]:
    """The lists of each configuration, as they were given."""
    return {
        name: [
            [
                (lists.item_ids[listing.items[hit]], float(listing.scores[hit]), signals_of(listing, hit))
                for hit in range(len(listing.items))[listing.of(query)]
            ]
            for query in range(len(lists.query_ids))
        ]
        for name, listing in lists.listings.items()
    }


@given(data=st.data(), n_queries=st.integers(1, 4), n_configurations=st.integers(0, 3))
def test_what_is_read_back_is_what_was_found(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, n_queries: int, n_configurations: int
) -> None:
    found = {f"c {number}": [data.draw(HITS_OF_ONE) for _ in range(n_queries)] for number in range(n_configurations)}
    grades = st.dictionaries(st.sampled_from([*IDS, "gold alone"]), st.integers(-1, 3))
    qrels = {f"q{number}": data.draw(grades) for number in range(n_queries)}
    lists = lists_of(found, qrels, n_queries)
    again = read_back(lists, tmp_path_factory.mktemp("lists"))
    for one in (lists, again):
        assert as_found(one) == found
        assert one.qrels() == qrels
        assert {name: one.rankings(name) for name in one.listings} == {
            name: [[hit[:2] for hit in hits] for hits in queries] for name, queries in found.items()
        }
        for name, queries in found.items():
            expected = [max(0, qrels[f"q{q}"].get(hit[0], 0)) for q, hits in enumerate(queries) for hit in hits]
            assert one.grades(name).tolist() == expected
        titles = dict(zip(one.item_ids, one.titles, strict=True))
        assert all(title in (item_id * 2, "Its title", "") for item_id, title in titles.items())
    assert (again.query_ids, again.texts, again.families, again.groups) == (
        lists.query_ids, lists.texts, lists.families, lists.groups,
    )  # fmt: skip


def test_files_that_are_missing_damaged_or_of_another_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"queries\.parquet does not exist"):
        read_lists(tmp_path)
    lists = lists_of({"bm25": [[("a", 1.0, {})]]}, {}, 1)
    read_back(lists, tmp_path)
    whole = (tmp_path / HITS).read_bytes()
    (tmp_path / HITS).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SourceError, match=r"hits\.parquet cannot be read"):
        read_lists(tmp_path)
    pq.write_table(hits_table(lists).drop_columns(["signals"]), tmp_path / HITS)
    with pytest.raises(SourceError, match="does not have the columns"):
        read_lists(tmp_path)
    for metadata in ({}, {"nlp_retrieval": '{"format": 1, "configurations": 5}'}):
        pq.write_table(hits_table(lists).replace_schema_metadata(metadata), tmp_path / HITS)
        with pytest.raises(SourceError, match="of format None"):
            read_lists(tmp_path)
    two = hits_table(lists_of({"bm25": [[("a", 1.0, {})], [("b", 1.0, {})]]}, {}, 2))
    pq.write_table(two.take([1, 0]).replace_schema_metadata(two.schema.metadata), tmp_path / HITS)
    pq.write_table(queries_table(lists_of({}, {}, 2)), tmp_path / QUERIES)
    with pytest.raises(SourceError, match="hits of 'bm25' out of order"):
        read_lists(tmp_path)
    (tmp_path / HITS).write_bytes(whole)
    pq.write_table(queries_table(lists).slice(1), tmp_path / QUERIES)
    with pytest.raises(SourceError, match="not of one run"):
        read_lists(tmp_path)


def test_a_hit_that_is_the_query_itself_is_left_out_unless_it_is_gold() -> None:
    builder = ListsBuilder(["a", "b", "q"], ["?"] * 3, [None] * 3, [None] * 3, [], {"b": {"b": 1}}, {})
    builder.add(
        "one", [results([("b", 3.0, {"s": 3.0}), ("a", 2.0, {"s": 2.0})]), results([("b", 1.0, {})]), results([("a", 1.0, {})])]
    )
    lists = builder.built()
    own = own_ids(lists.query_ids, ["a", "b"], {"b": {"b": 1}}, ignore=True)
    assert own == ["a", None, None]
    left = as_found(replace(lists, listings=without_own(lists, own)))["one"]
    assert left == [[("b", 3.0, {"s": 3.0})], [("b", 1.0, {})], [("a", 1.0, {})]]


def test_queries_are_passages_where_at_least_half_have_the_text_of_theirs():
    queries = [Query(query_id=name, text=text) for name, text in (("a", "Whales  sing"), ("b", "cats purr"))]
    texts = {"a": ["krill", "whales sing at night"], "b": ["dogs bark"]}
    assert are_passages(queries, texts, None)
    assert not are_passages(queries, texts | {"a": ["krill"]}, None)
