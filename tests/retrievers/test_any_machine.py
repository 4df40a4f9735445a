"""Files, lists and scores are the same to the bit on any number of threads, and on CPUs that know other instructions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import faiss
import pytest

from .building import some_texts

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
PLAIN = {"FAISS_SIMD_LEVEL": "NONE", "OPENBLAS_CORETYPE": "Prescott", "ATEN_CPU_CAPABILITY": "default"}
AVX2 = {"FAISS_SIMD_LEVEL": "AVX2", "OPENBLAS_CORETYPE": "Haswell", "ATEN_CPU_CAPABILITY": "avx2"}


def environments() -> dict[str, dict[str, str]]:
    """Those that this machine can take on."""
    found = {f"{count} threads": dict.fromkeys(THREADS, str(count)) for count in (2, 4)}
    found["a CPU of no wide instructions"] = PLAIN
    if faiss.SIMDConfig.is_simd_level_available(faiss.SIMDLevel_AVX2):  # type: ignore[attr-defined]
        found["a CPU of AVX2 alone"] = AVX2
    return found


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


@pytest.mark.parametrize("name", environments())
def test_what_is_built_and_found_is_the_same_to_the_bit(name: str) -> None:
    wanted, found = on_one_thread(), built_in(environments()[name])
    assert [key for key in wanted if found[key] != wanted[key]] == []
    texts = some_texts()
    for retriever in found.keys() - {"projection"}:
        for hits in found[retriever]["lists"]:
            keys = [(-float.fromhex(score), int(item_id[1:])) for item_id, score in hits]
            assert keys == sorted(keys)
            score_of: dict[str, str] = {}
            assert all(score == score_of.setdefault(texts[int(item_id[1:])], score) for item_id, score in hits)
