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


@pytest.mark.parametrize(("first", "second"), [(0, 8191), (5, 8192)])
def test_a_duplicate_id_is_an_error_that_names_both_places(first, second, tmp_path):
    corpus = documents(["x"] * 9001)
    corpus[second] = corpus[first]
    with pytest.raises(ItemError, match=rf"duplicate item id 'd{first}': items {first + 1} and {second + 1} "):
        write_items(corpus, tmp_path)


def test_a_lone_surrogate_is_an_error_that_names_the_item(tmp_path):
    item = SearchableItem.trusted("a", "", {"title": "bad \ud800"})
    with pytest.raises(ItemError, match=r"half of a surrogate pair") as caught:
        write_items([item], tmp_path)
    assert repr(item.item_id) in str(caught.value)


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


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> tuple[list[SearchableItem], ItemTable]:
    """Three record batches, the last one short."""
    corpus = [
        SearchableItem(item_id=f"{n}", content=f"text {n}", metadata={"title": f"t{n}"} if n % 3 else {"n": n})
        for n in range(2 * 8192 + 100)
    ]
    return corpus, written(corpus, tmp_path_factory.mktemp("large"))


def test_reading_from_a_row_on_gives_the_items_from_there(large):
    corpus, table = large
    for first in (0, 1, 8192, 9000, len(corpus) - 1, len(corpus)):
        assert list(table.stream(first_row=first)) == corpus[first:]


def test_the_mask_of_a_filter_is_kept_and_cannot_be_changed(large):
    mask = large[1].mask({"n": {"exists": True}})
    assert mask is large[1].mask({"n": {"exists": True}})
    assert not mask.flags.writeable


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


def test_ids_whose_hashes_meet_are_not_taken_for_duplicates(tmp_path, monkeypatch):
    monkeypatch.setattr(items_module, "hash", len, raising=False)
    assert written(documents(["a", "b", "c"]), tmp_path).ids() == ["d0", "d1", "d2"]
