"""The items file: what goes in comes out, by row."""

from __future__ import annotations

import os
import random
import tempfile
from contextlib import suppress
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.engines import documents
from core.strategies import metadata, texts
from nlp_retrieval.core.index import items as items_module
from nlp_retrieval.core.index.items import ITEMS_FILE, ItemTable, write_items
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.errors import IndexDamagedError, ItemError


def written(items, folder) -> ItemTable:
    write_items(items, Path(folder))
    return ItemTable(Path(folder) / ITEMS_FILE)


def exact(value):
    """A value with the types that JSON tells apart; whole numbers may come back as floats of the same value."""
    if isinstance(value, dict):
        return {key: exact(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [exact(inner) for inner in value]
    return (isinstance(value, bool), value)


corpora = st.lists(st.tuples(texts, metadata()), min_size=1, max_size=8).map(
    lambda rows: [
        SearchableItem(item_id=f"{n}", content=content, metadata={normalize("NFC", key): value for key, value in kept.items()})
        for n, (content, kept) in enumerate(rows)
    ]
)


@given(corpora)
def test_whatever_goes_in_comes_out_equal(corpus):
    with tempfile.TemporaryDirectory() as folder:
        table = written(corpus, folder)
        found = table.items(np.arange(len(corpus)))
        assert found == corpus
        assert [exact(item.metadata) for item in found] == [exact(item.metadata) for item in corpus]
        assert table.ids() == [item.item_id for item in corpus]
        assert table.titles() == [item.title for item in corpus]
        assert [text for batch in table.texts(3) for text in batch] == [item.text for item in corpus]


@given(corpora)
def test_columns_and_single_values_are_read_alike(corpus):
    """A few rows are read value by value, many by column: 70 rows take the second way."""
    with tempfile.TemporaryDirectory() as folder:
        many = [item.model_copy(update={"item_id": f"{round_}-{item.item_id}"}) for round_ in range(70) for item in corpus]
        table = written(many, folder)
        assert table.items(np.arange(len(many))) == many


@pytest.mark.parametrize(
    "column",
    [
        [1, 2, 3],
        [1, 2.5, -0.0],
        [True, False, True],
        [True, 1, 0],
        [1, "1", None],
        [None, None, None],
        [[], ["a"], ["b", "c"]],
        [[], [1], [None]],
        [[], {}, ""],
        [2**53, 0.5, 1],
        [2**53 + 1, 0.5, 1],
        [2**64, -1, 0],
        ["null", "[]", "1"],
        [{"a": [None, {"b": 1.5}]}, [[[]]], "x"],
        ["\x00", "a\x00b", "\u2028"],
    ],
)
def test_a_column_of_mixed_values_keeps_each(column, tmp_path):
    corpus = [SearchableItem(item_id=f"{n}", content="", metadata={"x": value}) for n, value in enumerate(column)]
    corpus.append(SearchableItem(item_id="without", content=""))
    found = written(corpus, tmp_path).items(np.arange(len(corpus)))
    assert [exact(item.metadata) for item in found] == [exact(item.metadata) for item in corpus]
    assert "x" not in found[-1].metadata


def test_a_column_of_whole_numbers_comes_back_as_whole_numbers(tmp_path):
    corpus = [SearchableItem(item_id=f"{n}", content="", metadata={"year": 1990 + n}) for n in range(3)]
    assert [type(item.metadata["year"]) for item in written(corpus, tmp_path).items(np.arange(3))] == [int] * 3


@pytest.mark.parametrize("item_id", ["../../etc/passwd", "a/b", "a\nb", "\x00", "'; DROP TABLE", "🦊", " ", "a" * 10_000, "-0"])
def test_an_id_may_hold_any_characters(item_id, tmp_path):
    assert written([SearchableItem(item_id=item_id, content="x")], tmp_path).ids() == [item_id]


def test_two_items_with_the_same_text_both_survive(tmp_path):
    assert len(written(documents(["same", "same"]), tmp_path)) == 2


@pytest.mark.parametrize(("first", "second"), [(0, 1), (3, 17), (0, 8191), (5, 8192), (8190, 9000)])
def test_a_duplicate_id_is_an_error_that_names_both_places(first, second, tmp_path):
    corpus = documents(["x"] * 9001)
    corpus[second] = corpus[first]
    with pytest.raises(ItemError, match=rf"duplicate item id 'd{first}': items {first + 1} and {second + 1} "):
        write_items(corpus, tmp_path)


def test_ids_whose_hashes_meet_are_not_taken_for_duplicates(tmp_path, monkeypatch):
    monkeypatch.setattr(items_module, "hash", len, raising=False)
    assert written(documents(["a", "b", "c"]), tmp_path).ids() == ["d0", "d1", "d2"]


def test_an_empty_id_is_an_error_that_names_its_place(tmp_path):
    with pytest.raises(ItemError, match="item 2 has an empty id"):
        write_items([*documents(["x"]), SearchableItem.trusted("", "x", {})], tmp_path)


@pytest.mark.parametrize("wrong", ["text", {"item_id": "a", "content": "b"}, None])
def test_something_that_is_no_item_is_an_error_that_names_its_place(wrong, tmp_path):
    with pytest.raises(ItemError, match=f"item 1 is a {type(wrong).__name__}, not a SearchableItem"):
        write_items([wrong], tmp_path)


@pytest.mark.parametrize(
    "item",
    [
        SearchableItem.trusted("a", "bad \ud800", {}),
        SearchableItem.trusted("\udfff", "", {}),
        SearchableItem.trusted("a", "", {"title": "bad \ud800"}),
        SearchableItem.trusted("a", "", {"bad \ud800": 1}),
    ],
)
def test_a_lone_surrogate_is_an_error_that_names_the_item(item, tmp_path):
    with pytest.raises(ItemError, match=r"lone surrogate") as caught:
        write_items([item], tmp_path)
    assert repr(item.item_id) in str(caught.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}, [{"a": object()}]])
def test_metadata_that_json_cannot_hold_is_an_item_error_that_names_the_item(value, tmp_path):
    """Models are frozen, the dict inside is not: it can be spoilt after it was validated."""
    item = SearchableItem(item_id="spoilt", content="x")
    item.metadata["x"] = value
    with pytest.raises(ItemError, match="spoilt"):
        write_items([item], tmp_path)


def test_an_empty_corpus_is_an_error(tmp_path):
    with pytest.raises(ItemError, match="corpus is empty"):
        write_items(iter([]), tmp_path)


def test_the_fingerprint_sees_ids_content_metadata_and_order(tmp_path):
    def fingerprint(*items):
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        return write_items(items, folder)[1]

    a, b = documents(["a", "b"])
    changed = [
        (a, b),
        (b, a),
        (a,),
        (a, SearchableItem(item_id="d1", content="c")),
        (a, SearchableItem(item_id="d2", content="b")),
        (a, SearchableItem(item_id="d1", content="b", metadata={"x": 1})),
        (a, SearchableItem(item_id="d1", content="b", metadata={"x": True})),
        (a, SearchableItem(item_id="d1", content="b", metadata={"x": "1"})),
        (SearchableItem(item_id="d0", content="a\n"), b),
    ]
    assert len({fingerprint(*items) for items in changed}) == len(changed)
    assert fingerprint(a, b) == fingerprint(a, b)


def test_the_fingerprint_does_not_depend_on_the_order_of_keys(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    one = SearchableItem(item_id="a", content="", metadata={"x": 1, "y": 2})
    other = SearchableItem(item_id="a", content="", metadata={"y": 2, "x": 1})
    assert write_items([one], tmp_path / "1") == write_items([other], tmp_path / "2")


def test_only_the_items_file_is_left(tmp_path):
    write_items(documents(["a"]), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [ITEMS_FILE]


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> tuple[list[SearchableItem], ItemTable]:
    """Three record batches, the last one short."""
    corpus = [
        SearchableItem(item_id=f"{n}", content=f"text {n}", metadata={"title": f"t{n}"} if n % 3 else {"n": n})
        for n in range(2 * 8192 + 100)
    ]
    return corpus, written(corpus, tmp_path_factory.mktemp("large"))


@pytest.mark.parametrize("batch_size", [1000, 8192, 8193, 100_000])
def test_texts_in_batches_are_all_texts_in_order(large, batch_size):
    corpus, table = large
    batches = list(table.texts(batch_size))
    assert [text for batch in batches for text in batch] == [item.text for item in corpus]
    assert {len(batch) for batch in batches[:-1]} <= {batch_size}
    assert 0 < len(batches[-1]) <= batch_size


def test_a_stream_gives_all_items_in_order(large):
    corpus, table = large
    assert list(table.stream()) == corpus


@given(corpora, st.sets(st.sampled_from(["title", "year", "tags", "", "nowhere"])))
def test_a_stream_has_the_metadata_that_was_asked_for_and_no_other(corpus, keys):
    with tempfile.TemporaryDirectory() as folder:
        found = list(written(corpus, folder).stream(keys))
    assert [(item.item_id, item.content) for item in found] == [(item.item_id, item.content) for item in corpus]
    wanted = [{key: value for key, value in item.metadata.items() if key in keys and value is not None} for item in corpus]
    assert [{key: value for key, value in item.metadata.items() if value is not None} for item in found] == wanted


@pytest.mark.parametrize("n_rows", [0, 1, 10, 64, 65, 500])
def test_items_come_in_the_order_of_the_rows_asked_for_with_repeats(large, n_rows):
    corpus, table = large
    rows = np.random.default_rng(n_rows).integers(0, len(corpus), n_rows)
    rows = np.concatenate([rows, rows[::-1], [0, len(corpus) - 1, 8191, 8192, 16383, 16384]])
    assert table.items(rows) == [corpus[row] for row in rows]


def test_no_rows_give_no_items(large):
    assert large[1].items(np.zeros(0, np.int64)) == []


def test_equal_rows_give_the_same_object(large):
    first, _, again = large[1].items(np.array([5, 6, 5]))
    assert first is again


def test_a_file_that_is_no_items_file_is_damage(tmp_path):
    for content in (b"", b"ARROW1", b"not arrow at all" * 100):
        (tmp_path / ITEMS_FILE).write_bytes(content)
        with pytest.raises(IndexDamagedError, match=ITEMS_FILE):
            ItemTable(tmp_path / ITEMS_FILE)


def test_items_that_are_compressed_are_refused_before_they_fill_the_memory(tmp_path):
    write_items(documents(["a fox " * 10_000]), tmp_path)
    with pa.memory_map(str(tmp_path / ITEMS_FILE)) as source:
        table = pa.ipc.open_stream(source).read_all()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with (
        pa.OSFile(str(tmp_path / "bomb.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema, options=options) as writer,
    ):
        writer.write_table(table)
    before = pa.total_allocated_bytes()
    with pytest.raises(IndexDamagedError, match=r"bomb\.arrow is not an items file \(it is compressed"):
        ItemTable(tmp_path / "bomb.arrow")
    assert pa.total_allocated_bytes() == before


@pytest.mark.parametrize(
    ("column", "value"), [("item_id", None), ("content", None), ("metadata.any", ""), ("metadata.any", "{")]
)
def test_a_value_that_no_item_has_is_damage(column, value, tmp_path):
    write_items([SearchableItem(item_id="d", content="x", metadata={"any": {}})], tmp_path)
    with pa.memory_map(str(tmp_path / ITEMS_FILE)) as source:
        table = pa.ipc.open_stream(source).read_all()
    place = table.schema.get_field_index(column)
    table = table.set_column(place, table.schema.field(place), pa.array([value], pa.string()))
    with pa.OSFile(str(tmp_path / "odd.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    opened = ItemTable(tmp_path / "odd.arrow")
    for read in (lambda: opened.items(np.arange(1)), lambda: list(opened.texts(1)), lambda: opened.mask({"any": "x"})):
        with pytest.raises(IndexDamagedError, match=r"odd\.arrow is not an items file"):
            read()


def test_items_that_are_cut_off_while_they_are_open_are_damage(tmp_path):
    table = written(documents(["a fox " * 1000] * 100), tmp_path)
    os.truncate(tmp_path / ITEMS_FILE, 300_000)
    with pytest.raises(IndexDamagedError, match=r"items\.arrow is not an items file"):
        list(table.texts(10))


def test_any_flipped_byte_is_told_or_gives_well_formed_items(tmp_path, effort):
    """In a process of its own: what follows damaged offsets may die."""
    metadata = [{"title": f"T{n}", "n": n, "tags": ["a", "b"][: n % 3], "any": n if n % 2 else "x"} for n in range(50)]
    write_items([SearchableItem(item_id=f"d{n}", content="é" * n, metadata=m) for n, m in enumerate(metadata)], tmp_path)
    whole, draw = (tmp_path / ITEMS_FILE).read_bytes(), random.Random(7)
    for trial in range(30 * effort):
        damaged = bytearray(whole)
        damaged[draw.randrange(len(whole))] ^= draw.choice([0xFF, 1 << draw.randrange(8)])
        path = tmp_path / f"{trial}.arrow"
        path.write_bytes(damaged)
        if (child := os.fork()) == 0:
            try:
                with suppress(IndexDamagedError):
                    table = ItemTable(path)
                    assert all(isinstance(item.content, str) for item in table.items(np.arange(len(table))))
                    assert len(table.ids()) == len(table) == sum(map(len, table.texts(7)))
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0, f"flipped as draw {trial}"
