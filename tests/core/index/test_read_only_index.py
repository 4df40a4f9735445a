"""An index that may not be written to is read; what would write is an error that names the place."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from nlp_retrieval import Bm25Retriever, SearchableItem, Searcher

ITEMS = [SearchableItem(item_id=str(n), content=text) for n, text in enumerate(["red fox", "blue dog"])]
NOBODY = 65534


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An index, named by a relative path, in a folder that may not be written to; all may look into the folders above it."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        monkeypatch.chdir(folder)
        monkeypatch.setenv("XDG_CACHE_HOME", f"{folder}/cache")
        Searcher([Bm25Retriever()]).index(ITEMS, "index")
        folders = [Path("index"), *(path for path in Path("index").iterdir() if path.is_dir())]
        for one in folders:
            one.chmod(0o555)
        Path("index", ".lock").chmod(0o444)
        yield Path("index")
        for one in folders:
            one.chmod(0o755)
        monkeypatch.undo()


def as_nobody(attempt: Callable[[], object]) -> str:
    """What came of an attempt of a user who may not write, in a process of its own; permissions do not hold for root."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        said = "nothing"
        try:
            if os.geteuid() == 0:
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
            said = repr(attempt())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        finally:
            os.write(into, said.encode())
            os._exit(0)
    os.close(into)
    with os.fdopen(out) as told:
        said = told.read()
    os.waitpid(child, 0)
    return said


def test_it_is_searched(read_only: Path) -> None:
    assert as_nobody(lambda: Searcher.open(read_only).search("fox")[0][0].item.item_id) == "'0'"
