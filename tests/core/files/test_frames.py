"""Items and queries as people hold them: DataFrames of pandas and Polars, Arrow tables, dicts, pairs and texts."""

from __future__ import annotations

import math
from collections import namedtuple
from datetime import date
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow as pa
import pytest

from nlp_retrieval import SearchableItem, Searcher
from nlp_retrieval.core.files.frames import items_of
from nlp_retrieval.errors import ItemError

ROWS = [
    {"docno": 7, "text": "a red fox", "title": "Fox", "year": 2001, "tags": ["x", "y"], "seen": date(2020, 1, 2)},
    {"docno": 8, "text": "", "title": None, "year": None, "tags": [], "seen": None},
    {"docno": 9, "text": "a blue whale", "title": "Whale", "year": 2003, "tags": None, "seen": date(2021, 1, 2)},
]
TABLE = pa.Table.from_pylist(ROWS)
ITEMS = [
    SearchableItem(
        item_id="7", content="a red fox", metadata={"title": "Fox", "year": 2001, "tags": ["x", "y"], "seen": "2020-01-02"}
    ),
    SearchableItem(item_id="8", content="", metadata={"year": None, "tags": [], "seen": None}),
    SearchableItem(
        item_id="9", content="a blue whale", metadata={"title": "Whale", "year": 2003, "tags": None, "seen": "2021-01-02"}
    ),
]


class Streams:
    """A table of an unknown library."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "source",
    [
        TABLE,
        polars.from_arrow(TABLE),
        TABLE.to_pandas(types_mapper=pandas.ArrowDtype).set_index("docno"),
        Streams(),
        ROWS,
        TABLE.to_pandas(types_mapper=pandas.ArrowDtype).to_dict("records"),
        {row["docno"]: {key: value for key, value in row.items() if key != "docno"} for row in ROWS},
        [namedtuple("Doc", row)(**row) for row in ROWS],
    ],
    ids=lambda source: type(source).__name__,
)
def test_items_are_the_same_from_every_form(source: Any) -> None:
    assert list(items_of(source)) == ITEMS


def test_an_index_of_pandas_with_a_name_is_a_column_and_another_is_not() -> None:
    frame = pandas.DataFrame({"id": ["a", "b", "c"], "text": ["x", "y", "z"], "year": [1.0, math.nan, 3.0]})
    by_id = list(items_of(frame.set_index("id")))
    assert by_id == list(items_of(frame))
    assert list(items_of(frame[frame["id"] != "b"])) == [by_id[0], by_id[2]]
    assert list(items_of(frame.sort_values("text", ascending=False))) == by_id[::-1]
    assert by_id[1].metadata == {"year": None}, "NaN is a missing value"


@pytest.mark.parametrize(
    "texts",
    [
        ["x", "y"],
        pandas.Series(["x", "y"], index=[5, 6]),
        polars.Series(["x", "y"]),
        [("0", "x"), (1, "y")],
        {"0": "x", "1": "y"},
    ],
    ids=lambda texts: type(texts).__name__,
)
def test_texts_have_their_positions_as_ids_and_pairs_their_own(texts: Any) -> None:
    assert list(items_of(texts)) == [SearchableItem(item_id="0", content="x"), SearchableItem(item_id="1", content="y")]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("text", "not as str; pass a DataFrame, or [item, ...]; a loader reads a file, such as JsonlLoader(path)"),
        ({"id": "a", "text": "x"}, "one item is given and a list is expected; write [item]"),
        ([5], "item 1 is 5 (int); expected a SearchableItem, a dict, a pair (id, text) or a text"),
        (pandas.DataFrame({"pmid": [1], "text": ["x"]}), 'no column with the id, such as "id" (found: "pmid", "text")'),
        (pandas.DataFrame({"id": [1], "docno": [2], "text": ["x"]}), 'DataFrame, row 1: "id", "docno" could each be the id'),
        (pandas.DataFrame({"id": [1, 2], "text": ["x", None]}), 'DataFrame, row 2: "text" is missing; fill it with text, or'),
        (
            pandas.DataFrame({"id": [1, 2, 3], "text": ["x"] * 3, "year": [None, 2001, "n.d."]}),
            "Conversion failed for column year with type object; name each column once, and make it one type, such as",
        ),
    ],
)
def test_a_bad_shape_is_an_error_that_says_where_and_what_to_write(source: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(ItemError) as caught:
        Searcher(["bm25"]).index(source, tmp_path / "index")
    assert said in str(caught.value)
    assert not (tmp_path / "index").exists()


FRAME = pandas.DataFrame({"qid": [1, 2], "query": ["red fox", "whale"], "family": ["f", None], "hops": [2, None]})


@pytest.fixture
def searcher(tmp_path: Path) -> Searcher:
    searcher = Searcher(["bm25"])
    searcher.index(TABLE, tmp_path / "index")
    return searcher


@pytest.mark.parametrize(
    ("queries", "ids"),
    [
        (FRAME, ["1", "2"]),
        ({"a": "red fox", 5: "whale"}, ["a", "5"]),
        ([("a", "red fox"), ("b", "whale")], ["a", "b"]),
        (["red fox", "whale"], ["0", "1"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_search_keeps_the_ids_of_its_queries(searcher: Searcher, queries: Any, ids: list[str]) -> None:
    found = searcher.search(queries)
    assert [one.query_id for one in found] == ids
    assert list(found) == list(searcher.search(["red fox", "whale"]))
    assert found.to_pandas()[["qid", "docno", "rank"]].to_dict("split")["data"] == [[ids[0], "7", 1], [ids[1], "9", 1]]


def test_a_series_with_ids_is_not_read_as_texts_without_them() -> None:
    with pytest.raises(ItemError, match=r"Series has ids as its index; pass dict\(series\)"):
        list(items_of(pandas.Series({"d7": "x", "d9": "y"})))
    assert [item.item_id for item in items_of(dict(pandas.Series({"d7": "x", "d9": "y"})))] == ["d7", "d9"]
    with pytest.raises(ItemError, match="Series has ids as its index"):
        list(items_of(pandas.DataFrame({"id": ["a"], "text": ["x"]}).set_index("id")["text"]))
