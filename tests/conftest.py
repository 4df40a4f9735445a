"""No test reaches a network or the user's own folders: models come from installed packages, W&B runs stay offline."""

from __future__ import annotations

import gc
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from nlp_retrieval import BenchmarkRun

pytest_plugins = ["soaking", "chat_server"]

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

settings.register_profile(
    "shared_machine", database=None, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("every_time_the_same", settings.get_profile("shared_machine"), derandomize=True)
settings.load_profile("every_time_the_same" if os.environ.get("CI") else "shared_machine")
"""A change is judged by what it does and not by chance; people, and the long part of the tests, look for more."""


def pytest_collection_finish() -> None:
    """What was collected stays to the end: frozen, no collection of garbage goes through its million objects again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def caches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the cache folders of this process's tests."""
    return tmp_path_factory.mktemp("caches")


@pytest.fixture(autouse=True)
def own_cache(caches: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder of the test's own, in place of the user's; most tests need none, so it is not made."""
    folder = caches / secrets.token_hex(8)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[BenchmarkRun, Path]:
    """The small benchmark, run once, and the folder of its index and of its files, ``run: 1``."""
    from benchmarks.small_benchmark import benchmarker

    from nlp_retrieval import write_run_files

    folder = tmp_path_factory.mktemp("small")
    run = benchmarker(folder / "index").run()
    return replace(run, report=write_run_files(run, folder / "run: 1")), folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The machine's Chromium."""
    from bench.browser import chromium

    with chromium() as started:
        yield started
