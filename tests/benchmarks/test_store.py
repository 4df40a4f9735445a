"""What a store gives back is what was put in, or nothing."""

from __future__ import annotations

import json
import os
import random
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nlp_retrieval.benchmarks import stage_store
from nlp_retrieval.benchmarks.stage_store import Entry, StageStore
from nlp_retrieval.errors import RetrievalWarning


def an_entry(size: int = 7) -> Entry:
    arrays = {
        "rows": np.arange(size, dtype=np.int64) * 3,
        "small": np.arange(size + 1, dtype=np.int32),
        "scores": np.linspace(-1, 1, size),
        "vectors": np.ones((size, 3), np.float32) * 0.1,
        "none": np.zeros((0, 4), np.float32),
        "gaps": np.array([np.nan, 1.0]),
    }
    return Entry({"queries": ["Wer schrieb Momo?", "\ud800 alone"], "seconds": 0.25, "nested": {"a": [1, None]}}, arrays)


def same(one: Entry | None, other: Entry) -> bool:
    if one is None or one.about != other.about or list(one.arrays) != list(other.arrays):
        return False
    pairs = zip(one.arrays.values(), other.arrays.values(), strict=True)
    return all(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)


def the_file(folder: Path) -> Path:
    (path,) = [path for path in folder.rglob("*") if path.is_file()]
    return path


def test_an_entry_comes_back_as_it_was_to_the_last_bit(tmp_path: Path) -> None:
    StageStore(tmp_path / "stages").keep("candidates", "abc", an_entry())
    again = StageStore(tmp_path / "stages").find("candidates", "abc")
    assert same(again, an_entry())
    assert again is not None
    assert not any(array.flags.writeable for array in again.arrays.values() if array.size)


def test_an_entry_without_arrays_and_one_without_values_come_back(tmp_path: Path) -> None:
    store = StageStore(tmp_path)
    store.keep("a", "one", Entry({"subqueries": [["x"], []]}))
    store.keep("a", "two", Entry({}, {"x": np.arange(3)}))
    assert [len(entry.arrays) for entry in StageStore(tmp_path).entries("a")] == [0, 1]


def test_nothing_is_there_under_another_name_or_group(tmp_path: Path) -> None:
    store = StageStore(tmp_path)
    store.keep("a", "one", an_entry())
    assert StageStore(tmp_path).find("a", "two") is None
    assert StageStore(tmp_path).find("b", "one") is None
    assert list(store.entries("b")) == []
    the_file(tmp_path).rename(tmp_path / "a" / "two.stage")
    assert StageStore(tmp_path).find("a", "two") is None


def test_every_flipped_byte_and_every_cut_tail_is_a_miss(tmp_path: Path) -> None:
    StageStore(tmp_path).keep("a", "one", an_entry(3))
    path = the_file(tmp_path)
    whole = path.read_bytes()
    draw = random.Random(1)
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        assert StageStore(tmp_path).find("a", "one") is None, place
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert StageStore(tmp_path).find("a", "one") is None, size
    path.write_bytes(whole + b"\0")
    assert StageStore(tmp_path).find("a", "one") is None
    path.write_bytes(whole)
    assert same(StageStore(tmp_path).find("a", "one"), an_entry(3))


def test_another_format_is_a_miss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    StageStore(tmp_path).keep("a", "one", an_entry())
    monkeypatch.setattr(stage_store, "FORMAT", 3)
    assert StageStore(tmp_path).find("a", "one") is None


def test_any_tool_that_reads_arrow_reads_an_entry(tmp_path: Path) -> None:
    StageStore(tmp_path).keep("a", "one", an_entry())
    with pa.ipc.open_stream(the_file(tmp_path)) as stream:
        assert stream.schema.metadata[b"name"] == b"one"
        (row,) = stream.read_all().to_pylist()
    assert row["rows"] == [0, 3, 6, 9, 12, 15, 18]
    assert json.loads(row["about"])["seconds"] == 0.25


def planted(tmp_path: Path, columns: dict[str, pa.Array], shapes: dict[str, object], **changed: Any) -> StageStore:
    """A file with a right checksum over a wrong content."""
    about = {"format": str(stage_store.FORMAT), "name": "one"} | changed.pop("metadata", {})
    fields = [pa.field(key, column.type, metadata={"shape": json.dumps(shapes.get(key))}) for key, column in columns.items()]
    schema = pa.schema(fields, about)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(**changed)) as stream:
        stream.write(pa.record_batch(list(columns.values()), schema))
    whole = sink.getvalue().to_pybytes()
    (tmp_path / "a").mkdir(exist_ok=True)
    (tmp_path / "a" / "one.stage").write_bytes(stage_store._sealed(schema, whole[len(schema.serialize()) : -8]))
    return StageStore(tmp_path)


def lists(values: pa.Array) -> pa.Array:
    return pa.LargeListArray.from_arrays([0, len(values)], values)


ABOUT = pa.array(["{}"], pa.large_string())
NUMBERS = lists(pa.array([1.0, 2.0, 3.0, 4.0]))


def test_what_is_planted_well_is_there(tmp_path: Path) -> None:
    found = planted(tmp_path, {"about": ABOUT, "x": NUMBERS}, {"about": [2], "x": [2, 2]}).find("a", "one")
    assert same(found, Entry({}, {"x": np.array([[1.0, 2.0], [3.0, 4.0]])}))


@pytest.mark.parametrize(
    ("columns", "shapes", "changed"),
    [
        ({}, {}, {}),
        ({"x": NUMBERS}, {"x": [4]}, {}),
        ({"about": pa.array(["[]"], pa.large_string())}, {"about": [2]}, {}),
        ({"about": pa.array(["{"], pa.large_string())}, {"about": [1]}, {}),
        ({"about": pa.array(["{}", "{}"], pa.large_string())}, {"about": [4]}, {}),
        ({"about": ABOUT}, {"about": [10**12]}, {}),
        ({"about": ABOUT, "x": NUMBERS}, {"about": [2], "x": [5]}, {}),
        ({"about": ABOUT, "x": NUMBERS}, {"about": [2], "x": [10**12]}, {}),
        ({"about": ABOUT, "x": NUMBERS}, {"about": [2], "x": [-1]}, {}),
        ({"about": ABOUT, "x": NUMBERS}, {"about": [2], "x": "no shape"}, {}),
        ({"about": ABOUT, "x": NUMBERS}, {"about": [2]}, {}),
        ({"about": ABOUT, "x": lists(pa.array(["a"]))}, {"about": [2], "x": [1]}, {}),
        ({"about": ABOUT, "x": lists(pa.array([1.0, None]))}, {"about": [2], "x": [2]}, {}),
        ({"about": ABOUT, "x": pa.array([1.0])}, {"about": [2], "x": [1]}, {}),
        ({"about": ABOUT, "x": NUMBERS}, {"about": [2], "x": [4]}, {"metadata": {"name": "other"}}),
        ({"about": ABOUT, "x": NUMBERS}, {"about": [2], "x": [4]}, {"metadata": {"more": "x"}}),
        ({"about": ABOUT, "x": lists(pa.array(np.zeros(10**7)))}, {"about": [2], "x": [10**7]}, {"compression": "zstd"}),
        ({"about": ABOUT, "x": lists(pa.array(np.zeros(10**7)))}, {"about": [2], "x": [10]}, {"compression": "lz4"}),
    ],
    ids=",".join,
)
def test_a_planted_file_is_a_miss_and_is_not_followed(
    tmp_path: Path, columns: dict[str, pa.Array], shapes: dict[str, object], changed: dict[str, Any]
) -> None:
    store = planted(tmp_path, columns, shapes, **changed)
    usual = pa.default_memory_pool()
    watched = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(watched)
    tracemalloc.start()
    try:
        assert store.find("a", "one") is None
        assert watched.max_memory() + tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)


def test_arrays_of_objects_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="object"):
        StageStore(tmp_path).keep("a", "one", Entry({}, {"x": np.array(["a", None], object)}))


def test_what_was_used_last_stays_in_memory_up_to_the_bound(tmp_path: Path) -> None:
    size = Entry({}, {"x": np.zeros(1000)}).bytes
    store = StageStore(tmp_path, memory_bytes=3 * size)
    for name in "abcd":
        store.remember("g", name, Entry({}, {"x": np.full(1000, ord(name), np.float64)}))
        store.find("g", "a")
    assert [store.find("g", name) is not None for name in "abcd"] == [True, False, True, True]
    assert store._held_bytes == 3 * size


def test_what_is_remembered_only_is_not_on_disk(tmp_path: Path) -> None:
    store = StageStore(tmp_path)
    store.remember("a", "one", an_entry())
    assert same(store.find("a", "one"), an_entry())
    assert StageStore(tmp_path).find("a", "one") is None


def test_the_size_on_disk_is_told(tmp_path: Path) -> None:
    store = StageStore(tmp_path / "stages")
    assert store.bytes() == 0
    store.keep("a", "one", an_entry())
    store.keep("b/c", "two", an_entry())
    assert store.bytes() == sum(path.stat().st_size for path in tmp_path.rglob("*.stage"))


def test_scratch_of_a_process_that_is_gone_is_cleared_and_never_read(tmp_path: Path) -> None:
    store = StageStore(tmp_path)
    store.keep("a", "one", an_entry())
    left, fresh = (tmp_path / "a" / name for name in (".one.stage.0123abcd", ".two.stage.4567cdef"))
    for path in (left, fresh):
        path.write_bytes(the_file(tmp_path / "a").read_bytes() if path == left else b"half")
    long_ago = time.time() - 7200
    os.utime(left, (long_ago, long_ago))
    store = StageStore(tmp_path)
    assert (left.exists(), fresh.exists()) == (False, True)
    assert len(list(store.entries("a"))) == 1


def test_a_disk_that_takes_nothing_is_said_once_and_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "stages").write_text("a file in the way")
    store = StageStore(tmp_path / "stages")
    with pytest.warns(RetrievalWarning, match="will be computed again"):
        store.keep("a", "one", an_entry())
    store.keep("a", "two", an_entry())
    assert store.find("a", "one") is None
