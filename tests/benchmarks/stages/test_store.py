"""What a store gives back is what was put in, or nothing."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

import numpy as np
import pytest

from nlp_retrieval.benchmarks.stages import store as stage_store
from nlp_retrieval.benchmarks.stages.store import Entry, StageStore
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
    if one is None or one.told != other.told or list(one.arrays) != list(other.arrays):
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
    monkeypatch.setattr(stage_store, "_MAGIC", b"nlp-retrieval stage 2 ")
    assert StageStore(tmp_path).find("a", "one") is None


def planted(tmp_path: Path, head: object, rest: bytes = b"") -> StageStore:
    """A file with a right checksum over a wrong content."""
    import hashlib

    body = json.dumps(head).encode() + b"\n" + rest
    path = tmp_path / "a" / "one.stage"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"nlp-retrieval stage 1 " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    return StageStore(tmp_path)


@pytest.mark.parametrize(
    "head",
    [
        [],
        {"name": "one"},
        {"name": "one", "told": {}, "arrays": [["x", "|O", [1]]]},
        {"name": "one", "told": {}, "arrays": [["x", "<f8", [10**9]]]},
        {"name": "one", "told": {}, "arrays": [["x", "<f8", "no shape"]]},
        {"name": "one", "told": {}, "arrays": [["x", "<f8"]]},
        {"name": "other", "told": {}, "arrays": []},
    ],
    ids=str,
)
def test_a_planted_file_is_a_miss_and_no_objects_are_made_of_it(tmp_path: Path, head: object) -> None:
    assert planted(tmp_path, head, b"\0" * 64).find("a", "one") is None


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
