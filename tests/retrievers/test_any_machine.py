"""Files, lists and scores are the same to the bit on any number of threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from .building import some_texts

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
ENVIRONMENTS = {f"{count} threads": dict.fromkeys(THREADS, str(count)) for count in (2, 4)}


@lru_cache(maxsize=1)
def on_one_thread() -> dict[str, Any]:
    return built_in(dict.fromkeys(THREADS, "1"))


def built_in(environment: dict[str, str]) -> dict[str, Any]:
    tests = Path(__file__).parents[1]
    path = os.pathsep.join([str(tests), str(tests.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-P", str(Path(__file__).with_name("building.py"))],
        env=os.environ | {"PYTHONPATH": path} | environment,
        capture_output=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_what_is_built_and_found_is_the_same_to_the_bit(name: str) -> None:
    wanted, found = on_one_thread(), built_in(ENVIRONMENTS[name])
    assert [key for key in wanted if found[key] != wanted[key]] == []
    texts = some_texts()
    for retriever in found.keys() - {"projection"}:
        for hits in found[retriever]["lists"]:
            keys = [(-float.fromhex(score), int(item_id[1:])) for item_id, score in hits]
            assert keys == sorted(keys)
            score_of: dict[str, str] = {}
            assert all(score == score_of.setdefault(texts[int(item_id[1:])], score) for item_id, score in hits)
