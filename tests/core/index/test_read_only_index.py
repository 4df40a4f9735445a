"""An index that may not be written to is read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from concurrency.forking import forked

from core.engines import documents
from nlp_retrieval import Bm25Retriever, Searcher

NOBODY = 65534


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An index in a folder that may not be written to; all may look into the folders above it."""
    with TemporaryDirectory() as folder:
        index = Path(folder) / "index"
        Path(folder).chmod(0o755)
        monkeypatch.setenv("XDG_CACHE_HOME", f"{folder}/cache")
        Searcher([Bm25Retriever()]).index(documents(["red fox", "blue dog"]), index)
        (index / ".lock").chmod(0o444)
        folders = [index, *(path for path in index.iterdir() if path.is_dir())]
        for one in folders:
            one.chmod(0o555)
        yield index
        for one in folders:
            one.chmod(0o755)


def test_it_is_searched(read_only: Path) -> None:
    def search() -> str:
        if os.geteuid() == 0:  # whom permissions do not hold
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        return Searcher.open(read_only).search("fox")[0][0].item.item_id

    assert forked(search) == "d0"
