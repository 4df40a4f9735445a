"""A filter over a table's columns finds what Python finds by comparing the values themselves."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlp_retrieval.core.files.frames import items_of
from nlp_retrieval.core.index.items import ITEMS_FILE, ItemTable, write_items

ORDERED = {"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le}
MIDNIGHT = datetime(2020, 12, 31)
OFFSETS = [UTC, timezone(timedelta(hours=5, minutes=30)), timezone(-timedelta(hours=8))]


class Column(NamedTuple):
    """A type, its values, values to compare with as they are written in a filter, and what Python compares of each."""

    kind: pa.DataType
    values: st.SearchStrategy[Any]
    wanted: st.SearchStrategy[Any]
    value_of: Callable[[Any], Any]
    span_of: Callable[[Any], tuple[Any, Any]]
    """The first and the last of what the filter's value stands for."""


def alone(value: Any) -> tuple[Any, Any]:
    return value, value


def moment(value: datetime | date) -> datetime:
    whole = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    return whole if whole.tzinfo else whole.replace(tzinfo=UTC)


def span(text: str) -> tuple[datetime, datetime]:
    if len(text) > 10:
        return alone(moment(datetime.fromisoformat(text)))
    day = moment(date.fromisoformat(text))
    return day, day + timedelta(days=1, microseconds=-1)


def short(value: float) -> Decimal:
    return Decimal(str(np.float32(value)))


seconds = st.integers(-2, 2).map(lambda n: timedelta(seconds=n)) | st.integers(-30, 30).map(lambda n: timedelta(hours=n))
naive = seconds.map(lambda gap: MIDNIGHT + gap)
aware = st.tuples(naive, st.sampled_from(OFFSETS)).map(lambda pair: pair[0].replace(tzinfo=UTC).astimezone(pair[1]))
times = st.sampled_from(["2020-12-30", "2020-12-31", "2021-01-01"]) | (naive | aware).map(datetime.isoformat)
tenths = st.integers(-20, 20).map(lambda n: Decimal(n) / 10)
huge = st.integers(-3, 3).flatmap(lambda n: st.sampled_from([2**53 + n, 2**63 - 4 + n, n]))
COLUMNS = {
    "float32": Column(pa.float32(), tenths.map(float), tenths.map(float), short, lambda wanted: alone(Decimal(str(wanted)))),
    "decimal": Column(pa.decimal128(5, 1), tenths, tenths.map(float), Decimal, lambda wanted: alone(Decimal(str(wanted)))),
    "int64": Column(pa.int64(), huge.filter(lambda n: n < 2**63), huge | huge.map(float), int, alone),
    "uint64": Column(pa.uint64(), huge.filter(lambda n: n >= 0), huge, int, alone),
    "date": Column(pa.date32(), naive.map(datetime.date), times, moment, span),
    "seconds": Column(pa.timestamp("s"), naive, times, moment, span),
    "nanoseconds": Column(pa.timestamp("ns"), naive, times, moment, span),
    "in_utc": Column(pa.timestamp("us", "UTC"), aware, times, moment, span),
    "in_tokyo": Column(pa.timestamp("ms", "Asia/Tokyo"), aware, times, moment, span),
}


def test_single_precision_is_what_it_prints_inside_lists_structs_and_maps_too() -> None:
    kinds = [pa.list_(pa.float32()), pa.struct([("x", pa.float32())]), pa.map_(pa.string(), pa.float32())]
    columns = [pa.array([value], kind) for value, kind in zip(([0.7], {"x": 0.7}, [("x", 0.7)]), kinds, strict=True)]
    rows = (
        pa.table(columns, ["list", "struct", "map"]).append_column("id", pa.array(["a"])).append_column("text", pa.array([""]))
    )
    (item,) = items_of(rows)
    assert item.metadata == {"list": [0.7], "struct": {"x": 0.7}, "map": {"x": 0.7}}


@pytest.mark.parametrize("name", list(COLUMNS))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_columns_of_numbers_and_times(tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject) -> None:
    column = COLUMNS[name]
    values = data.draw(st.lists(column.values | st.none(), min_size=1, max_size=6).filter(any))
    rows = {"id": [f"d{number}" for number in range(len(values))], "text": ["x"] * len(values)}
    folder = tmp_path_factory.mktemp("items")
    write_items(items_of(pa.table(rows | {"value": pa.array(values, column.kind)})), folder)
    table = ItemTable(folder / ITEMS_FILE)
    present = [None if value is None else column.value_of(value) for value in values]

    wanted = data.draw(column.wanted)
    first, last = column.span_of(wanted)
    for each, compare in ORDERED.items():
        edge = first if each in ("gte", "lt") else last
        found = [value is not None and compare(value, edge) for value in present]
        assert table.mask({"value": {each: wanted}}).tolist() == found, (each, values, wanted)
    several = data.draw(st.lists(column.wanted, min_size=1, max_size=3))
    spans = [column.span_of(one) for one in several]
    found = [value is not None and any(a <= value <= b for a, b in spans) for value in present]
    assert table.mask({"value": {"in": several}}).tolist() == found, (values, several)
    assert table.mask({"not": {"value": {"in": several}}}).tolist() == [not one for one in found]
    assert table.mask({"value": {"exists": True}}).tolist() == [value is not None for value in present]


def test_a_value_of_numpy_is_what_it_prints_in_items_and_in_filters(tmp_path: Any) -> None:
    given = {"short": np.float32(0.7), "many": np.array([0.1, 0.7], np.float16), "day": np.datetime64("2020-12-31")}
    write_items(items_of([{"id": "a", "text": "x"} | given]), tmp_path)
    table = ItemTable(tmp_path / ITEMS_FILE)
    for where in ({"short": Decimal("0.7")}, {"short": np.float32(0.7)}, {"many": 0.1}, {"many": {"in": [np.float32(0.7)]}}):
        assert table.mask(where).tolist() == [True], where
    assert table.items(np.array([0]))[0].metadata == {"short": 0.7, "many": [0.1, 0.7], "day": "2020-12-31"}
    assert table.mask({"day": {"gt": np.datetime64("2020-12-30"), "lte": np.datetime64("2020-12-31")}}).tolist() == [True]
