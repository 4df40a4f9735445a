"""What a store gives back is what was put in, or nothing."""

from __future__ import annotations

import hashlib
import json
import random
import tracemalloc
import zlib
from pathlib import Path

import numpy as np

from nlp_retrieval.benchmarks.stage_store import FORMAT, Entry, StageStore


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


def test_a_planted_file_is_a_miss_and_takes_no_memory(tmp_path: Path) -> None:
    """With a right checksum over a wrong content."""
    (tmp_path / "a").mkdir()
    for planted in ("[" * 10**5, ["<f8", [10**12]], ["<f8", [-2, -2]], ["O", [4]]):
        whole = {"format": FORMAT, "name": "one", "about": {}, "arrays": {"x": planted}}
        head = planted if isinstance(planted, str) else json.dumps(whole)
        rest = zlib.compress(head.encode() + b"\n" + np.arange(4.0).tobytes())
        (tmp_path / "a" / "one.stage").write_bytes(hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest)
        tracemalloc.start()
        try:
            assert StageStore(tmp_path).find("a", "one") is None, planted
            assert tracemalloc.get_traced_memory()[1] < 10**7
        finally:
            tracemalloc.stop()
