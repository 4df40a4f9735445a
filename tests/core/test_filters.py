"""Filters find exactly the items that fulfil them, by every retriever, and say what is wrong with them."""

from __future__ import annotations

import json
import math
import unicodedata
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlp_retrieval import (
    Bm25Retriever,
    RetrievalWarning,
    SearchableItem,
    Searcher,
)
from nlp_retrieval.core.filters import parse_filter
from nlp_retrieval.core.index.items import ITEMS_FILE, ItemTable, write_items
from nlp_retrieval.errors import ItemError, QueryError

WORDS = "fox whale tree river bridge castle novel film director painter island queen album singer orbit harbour".split()
COUNTRIES = ["Japan", "Peru", "Chile", "Norway"]
N_ITEMS = 60

# values of a key, of one type or mixed; a filter's values are drawn from them and from what lies around
NUMBERS = st.one_of(st.integers(-4, 4), st.sampled_from([2**53, 2**53 + 1, -(2**63), 2**63, 10**40]), st.floats(-4, 4))
WORDS_ = ["", "a", "b", "ab", "Ä", "A\u0308", "caf\u00e9", "cafe\u0301", "\U0001f600", "1", "true", "a*", "') OR 1=1 --"]
TIMES = [
    "2020", "2020-12", "2020-12-30", "2020-12-31", "2021-01-01", "2020-12-31T00:00:00", "2020-12-31T23:59:59.999999",
    "2021-01-01T00:30:00+01:00", "2020-12-31T23:30Z", "2020-12-31 18:30:00-05:00", "2020-12-31T10:00:00.1234567Z", "2020-02-30",
    "2020-13", "2020-12-31 or so",
]  # fmt: skip
TEXTS = st.sampled_from(WORDS_ + TIMES)
SINGLE = st.one_of(NUMBERS, TEXTS, st.booleans())
KINDS = [
    st.integers(-4, 4),
    st.floats(-4, 4) | st.integers(-4, 4),
    TEXTS,
    st.booleans(),
    st.lists(TEXTS, max_size=3),
    st.one_of(SINGLE, st.none(), st.lists(SINGLE, max_size=2)),
]
KEYS = ["a", "b", "all"]


@st.composite
def conditions(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> Any:
    if draw(st.booleans()):
        return draw(values)
    found: dict[str, Any] = {}
    for operator in draw(st.lists(st.sampled_from(["eq", "in", "gt", "gte", "lt", "lte", "exists"]), min_size=1, max_size=2)):
        if operator == "in":
            found[operator] = draw(st.lists(values, max_size=3))
        elif operator == "exists":
            found[operator] = draw(st.booleans())
        else:
            wanted = draw(values)
            found["eq" if isinstance(wanted, bool) else operator] = wanted
    return found


@st.composite
def filters(draw: st.DrawFn, values: dict[str, st.SearchStrategy[Any]], depth: int = 3) -> dict[str, Any]:
    names = [*values, *(["and", "or", "not"] if depth else [])]
    found: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=2)):
        if name in values:
            found[f"metadata.{name}" if name == "all" else name] = draw(conditions(values[name]))
        elif name == "not":
            found[name] = draw(filters(values, depth - 1))
        else:
            found[name] = [draw(filters(values, depth - 1)) for _ in range(draw(st.integers(1, 2)))]
    return found


def moment_of(text: str) -> datetime | None:
    """A day or a time, which is in UTC unless it says otherwise."""
    if not text[4:5] == text[7:8] == "-" or len(text) < 10:
        return None
    with suppress(ValueError):
        found = datetime.fromisoformat(text)
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    return None


def period_of(text: str) -> tuple[datetime, datetime] | None:
    """From when to before when a year, a month, a day or a time is."""
    for form, days in (("%Y", 366), ("%Y-%m", 31), ("%Y-%m-%d", 1)):
        with suppress(ValueError):
            start = datetime.strptime(text, form).replace(tzinfo=UTC)
            return start, start + timedelta(days)  # 2020 is a leap year, and December has 31 days
    moment = moment_of(text)
    return None if moment is None else (moment, moment + timedelta(microseconds=1))


def fulfils(metadata: dict[str, Any], where: dict[str, Any]) -> bool:
    """What a filter means, by hand."""

    def kind(value: Any) -> type:
        return bool if isinstance(value, bool) else str if isinstance(value, str) else float

    def single(value: Any, operator: str, wanted: Any) -> bool:
        if value is None or isinstance(value, dict | list):
            return False
        if operator == "in":
            return any(single(value, "eq", one) for one in wanted)
        if kind(value) is not kind(wanted):
            return False
        if isinstance(value, str):
            value, wanted = unicodedata.normalize("NFC", value), unicodedata.normalize("NFC", wanted)
            if (moment := moment_of(value)) is not None and (period := period_of(wanted)) is not None:
                start, end = period
                return {
                    "eq": start <= moment < end, "gt": moment >= end, "gte": moment >= start, "lt": moment < start,
                    "lte": moment < end,
                }[operator]  # fmt: skip
        return {
            "eq": value == wanted, "gt": value > wanted, "gte": value >= wanted, "lt": value < wanted, "lte": value <= wanted,
        }[operator]  # fmt: skip

    def of_key(value: Any, operator: str, wanted: Any) -> bool:
        if operator == "exists":
            return (value is not None) == wanted
        return any(single(one, operator, wanted) for one in (value if isinstance(value, list) else [value]))

    found = []
    for key, wanted in where.items():
        if key == "not":
            found.append(not fulfils(metadata, wanted))
        elif key in ("and", "or"):
            found.append((all if key == "and" else any)(fulfils(metadata, one) for one in wanted))
        else:
            value = metadata.get(key.removeprefix("metadata."))
            conditions = wanted if isinstance(wanted, dict) else {"eq": wanted}
            found.append(all(of_key(value, operator, one) for operator, one in conditions.items()))
    return all(found)


def mistyped(where: dict[str, Any], held: list[Any], key: str) -> bool:
    """Whether a filter compares a key with a value of another type than the only one that its values have."""

    def kind(value: Any) -> str:
        return "truth" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"

    if all(isinstance(value, list) and all(isinstance(one, str) for one in value) for value in held):
        kinds = {"text"}
    else:
        inner = [one for value in held for one in (value if isinstance(value, list) else [value])]
        kinds = {kind(one) for one in inner if one is not None}
    typed = len(kinds) == 1 and not any(value is None or isinstance(value, list) for value in held)
    typed = typed and not any(isinstance(value, int) and abs(value) > 2**53 for value in held)
    typed = typed or all(isinstance(value, list) and all(isinstance(one, str) for one in value) for value in held)
    found = []
    for name, wanted in where.items():
        if name == "not":
            found.append(mistyped(wanted, held, key))
        elif name in ("and", "or"):
            found += [mistyped(one, held, key) for one in wanted]
        elif name.removeprefix("metadata.") == key:
            compared = wanted if isinstance(wanted, dict) else {"eq": wanted}
            for operator, value in compared.items():
                values = value if operator == "in" else [] if operator == "exists" else [value]
                wrong = [kind(one) not in kinds for one in values]
                # where values are of several types, one that can be compared is enough
                found += wrong if typed else [bool(wrong) and all(wrong)]
    return any(found)


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_a_mask_holds_exactly_the_items_that_fulfil_the_filter(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    kinds = {key: data.draw(st.sampled_from(KINDS), label=key) for key in KEYS}
    metadata = data.draw(
        st.lists(st.fixed_dictionaries({}, optional=kinds), min_size=1, max_size=6).filter(
            lambda rows: all(any(key in row for row in rows) for key in KEYS)
        )
    )
    folder = tmp_path_factory.mktemp("items")
    write_items((SearchableItem(item_id=f"d{n}", content="x", metadata=row) for n, row in enumerate(metadata)), folder)
    table = ItemTable(folder / ITEMS_FILE)
    compared = dict(zip(map(id, KINDS), [NUMBERS, NUMBERS, TEXTS, st.booleans(), TEXTS, SINGLE], strict=True))
    around = {key: compared[id(kind)] for key, kind in kinds.items()}
    where = data.draw(filters(around))
    refused = any(mistyped(where, [row[key] for row in metadata if key in row], key) for key in KEYS)
    if refused:
        with pytest.raises(QueryError, match=r" in this index.* and .* is a "):
            table.mask(where)
        return
    mask = table.mask(where)
    assert mask.tolist() == [fulfils(row, where) for row in metadata]
    assert parse_filter(json.loads(json.dumps(where))) == parse_filter(where)


def items() -> list[SearchableItem]:
    made = []
    for number in range(N_ITEMS):
        text = " ".join(WORDS[(number * step + shift) % len(WORDS)] for step, shift in ((1, 0), (3, 1), (7, 2), (5, 3)))
        metadata = {"country": COUNTRIES[number % 4], "year": 2000 + number % 20, "title": f"Page {number}"}
        made.append(
            SearchableItem(item_id=f"d{number}", content=f"{text}. See Page {number * 7 % N_ITEMS}.", metadata=metadata)
        )
    return made


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filters")
    Searcher([Bm25Retriever()]).index(items(), folder)
    return folder


QUERIES = ["fox river", "castle novel film", "queen"]


def nested(where: dict[str, Any], depth: int) -> dict[str, Any]:
    for _ in range(depth):
        where = {"not": where}
    return where


def test_where_no_item_fulfils_it_nothing_is_found_and_that_is_told(index: Path) -> None:
    searcher = Searcher([Bm25Retriever()]).open(index)
    with pytest.warns(RetrievalWarning, match="no item of this index meets the filter"):
        assert searcher.search(QUERIES, 5, {"year": 1066}) == [[], [], []]


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"contry": "Japan"}, "no item of this index has the metadata key 'contry'; did you mean 'country'"),
        ({"year": "2015"}, "year is a number in this index, and '2015' is a text"),
        ({"year": {"ge": 3}}, r"where\.year: there is no operator 'ge'; did you mean 'gte'.* \(the opposite of a filter is "),
        ({"year": None}, r'where\.year: null is not a value; \{"exists": false\}'),
        ({"year": {"in": 2015}}, r"where\.year\.in: expected a list of values, found 2015"),
        ({"year": {"in": np.array(2015)}}, r"where\.year\.in: expected a list of values, found array\(2015\)"),
        ({"year": {"gte": math.nan}}, "nan is not a number to compare with"),
        ({"year": {"gt": False}}, "truth values have no order"),
        ({"or": []}, r"where\.or: expected a list of filters"),
        ({"or": [{"a": 1}] * 1001}, "where: 1,001 conditions are too many; at most 1,000"),
        ({"a": 10**5000}, r"where\.a: a number of 16,610 bits is too large to compare with"),
        (nested({"a": 1}, 65), "more than 64 filters inside each other"),
    ],
)
def test_what_is_no_filter_is_said_with_its_place(index: Path, where: Any, said: str) -> None:
    with pytest.raises(QueryError, match=said):
        Searcher([Bm25Retriever()]).open(index).search(QUERIES, 5, where)


def test_values_of_another_kind_in_a_later_part_are_compared_one_by_one(tmp_path: Path) -> None:
    searcher = Searcher([Bm25Retriever()])
    searcher.index([{"id": "a", "text": "fox", "year": 2001, "flag": True}], tmp_path)
    searcher.add([{"id": "b", "text": "fox", "year": "2010", "flag": 1}], auto_compact=False)
    for where, expected in [
        ({"year": {"gt": "2009"}}, [False, True]), ({"year": 2010}, [False, False]), ({"year": 2001}, [True, False]),
        ({"flag": 1}, [False, True]), ({"year": {"in": [True, "2010"]}}, [False, True]), ({"year": {"in": []}}, [False, False]),
        ({"year": {"in": np.array([2001, 7])}}, [True, False]),
    ]:  # fmt: skip
        mask = searcher.opened.items.mask(where)
        assert mask is not None
        assert mask.tolist() == expected, where
    with pytest.raises(QueryError, match="year is a number or a text in this index, and True is a truth value; give one"):
        searcher.search("fox", where={"year": True})


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_key_is_the_same_in_every_form_of_unicode(tmp_path: Path, form: Any) -> None:
    made = [{"id": "a", "text": "fox", unicodedata.normalize("NFC", "Größe"): 3}]
    made += [{"id": "b", "text": "fox", unicodedata.normalize("NFD", "Größe"): 4}]
    searcher = Searcher([Bm25Retriever()])
    searcher.index(made, tmp_path)
    where = {unicodedata.normalize(form, "Größe"): {"gte": 4}}
    assert [hit.item.item_id for hit in searcher.search("fox", where=where)[0]] == ["b"]
    with pytest.raises(ItemError, match="item 'c': two of its metadata keys are one"):
        searcher.add([{**made[0], **made[1], "id": "c"}])
