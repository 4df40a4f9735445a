"""No test reaches a network or the user's own folders: models come from installed packages, W&B runs stay offline."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["soaking"]

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


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own, in place of the user's."""
    folder = tmp_path / "xdg-cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder
