"""What a store gives back is what was put in, or nothing."""

from __future__ import annotations

import hashlib
import json
import random
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from nlp_retrieval.benchmarks import stage_store
from nlp_retrieval.benchmarks.stage_store import Entry, StageStore


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


def planted(folder: Path, head: object, body: bytes = b"") -> StageStore:
    """A file with a right checksum over a wrong content."""
    rest = (head if isinstance(head, str) else json.dumps(head)).encode() + b"\n" + body
    (folder / "a").mkdir(exist_ok=True)
    (folder / "a" / "one.stage").write_bytes(hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest)
    return StageStore(folder)


HEAD = {"format": stage_store.FORMAT, "name": "one", "about": {}, "arrays": {"x": ["<f8", [2, 2]]}}
BODY = np.arange(4.0).tobytes()


@pytest.mark.parametrize(
    "head",
    [
        "", "{", "[" * 10**5, [], {}, HEAD | {"about": 7}, HEAD | {"name": "other"}, HEAD | {"format": 3},
        *({key: value for key, value in HEAD.items() if key != left_out} for left_out in HEAD),
        *(HEAD | {"arrays": {"x": described}} for described in (
            ["<f8", [3, 2]], ["<f8", [1]], ["<f8", [10**12]], ["<f8", [2**62, 4]], ["<f8", [-1]], ["<f8", [-2, -2]],
            ["<f8", "no shape"], ["<f8"], ["O", [4]], ["|V8", [4]], ["<f2", [16]], [7, [4]], "x",
        )),
    ],
    ids=lambda head: str(head)[:60],
)  # fmt: skip
def test_a_planted_file_is_a_miss_and_takes_no_memory(tmp_path: Path, head: object) -> None:
    store = planted(tmp_path, head, BODY)
    tracemalloc.start()
    try:
        assert store.find("a", "one") is None
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()
