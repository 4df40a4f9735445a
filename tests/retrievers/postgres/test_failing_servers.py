"""A server that dies in the middle of a statement, and one whose disk is full: the old state or the new, and a clear error."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hashed_words import HashedWords
from soaking import mostly_soaked

from nlp_retrieval import PgvectorRetriever, Searcher
from nlp_retrieval.errors import IndexWriteError, ServerError
from nlp_retrieval.retrievers.postgres.embedded import EmbeddedServer
from nlp_retrieval.retrievers.postgres.engine import EMBEDDED

from .conftest import corpus
from .test_embedded import is_alive, postmaster, until
from .test_tables import found

WIDE = 1900
"""Dimensions of vectors that take 8 kB each."""


def _children(parent: int) -> list[int]:
    """What a process has started; the kernel may refuse to list them while one of them ends."""
    found: list[int] = []

    def listed() -> bool:
        with suppress(ProcessLookupError):
            found[:] = map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())
            return True
        return False

    assert until(listed)
    return found


def kill_all(folder: Path) -> None:
    """Kill a server and all processes that it has, as a power cut does."""
    parent = postmaster(EmbeddedServer(folder / EMBEDDED))
    os.kill(parent, signal.SIGSTOP)  # it starts no further ones
    pids = [parent, *_children(parent)]
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert until(lambda: not any(map(is_alive, pids)))


@contextmanager
def killed_at(words: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Kill the server of an index once, just before a statement with some words is sent."""
    killed: list[str] = []

    def wrapped(real: Callable[..., Any]) -> Callable[..., Any]:
        def ask(of: Any, query: Any, *args: Any, **options: Any) -> Any:
            text = query if isinstance(query, str) else query.decode() if isinstance(query, bytes) else query.as_string(of)
            if words in text and not killed:
                killed.append(text)
                kill_all(folder)
            return real(of, query, *args, **options)

        return ask

    with monkeypatch.context() as patch:
        for kind, method in ((psycopg.Connection, "execute"), (psycopg.Cursor, "execute"), (psycopg.Cursor, "copy")):
            patch.setattr(kind, method, wrapped(getattr(kind, method)))
        yield killed
    assert killed, f"no statement with {words!r} was sent"


def searcher_of(folder: Path, **settings: Any) -> Searcher:
    return Searcher([PgvectorRetriever(HashedWords(settings.pop("dimension", 24)), **settings)]).open(folder)


OPERATIONS: dict[str, Callable[[Searcher, Path], object]] = {
    "build": lambda searcher, folder: searcher.index(corpus(30, 100), folder, replace=True),
    "add": lambda searcher, _: searcher.add(corpus(5, 60), auto_compact=False),
    "compact": lambda searcher, _: searcher.compact(),
}


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        ("build", "COPY"),
        *(
            pytest.param("build", words, marks=pytest.mark.soak)
            for words in ("CREATE TABLE", "ADD PRIMARY KEY", "CREATE INDEX", "ANALYZE")
        ),
        pytest.param("add", "COPY", marks=pytest.mark.soak),
        ("compact", "INSERT INTO"),
    ],
)
def test_a_server_that_dies_while_it_writes_leaves_the_old_state_and_the_next_attempt_succeeds(
    operation: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, settings = tmp_path / "index", {"index_type": "hnsw"}
    searcher = Searcher([PgvectorRetriever(HashedWords(24), index_type="hnsw")])
    searcher.index(corpus(50), folder)
    searcher.add(corpus(5, 50), auto_compact=False)
    before = found(searcher, k=100)
    with killed_at(words, folder, monkeypatch), pytest.raises(ServerError, match=r"cannot be reached.*nothing was written"):
        OPERATIONS[operation](searcher, folder)
    assert found(searcher, k=100) == before
    assert found(searcher_of(folder, **settings), k=100) == before
    OPERATIONS[operation](searcher, folder)
    after = found(searcher, k=100)
    assert len(after) == {"build": 30, "add": 60, "compact": 55}[operation]
    assert found(searcher_of(folder, **settings), k=100) == after


@pytest.mark.parametrize("index_type", mostly_soaked(["hnsw", "exact"]))
def test_a_server_that_dies_in_the_middle_of_a_search_is_started_again(
    index_type: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searcher = Searcher([PgvectorRetriever(HashedWords(24), index_type=index_type)])  # type: ignore[arg-type]
    searcher.index(corpus(50), tmp_path)
    before = found(searcher)
    with killed_at("<#>", tmp_path, monkeypatch):
        assert found(searcher) == before


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """What is started meanwhile can write no larger file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_where_the_server_cannot_write_its_files_the_index_stays_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    first = Searcher([PgvectorRetriever(HashedWords(WIDE))])
    first.index(corpus(1200), folder)
    first.add(corpus(1200, 1200), auto_compact=False)
    before = found(first, k=20)
    searcher = searcher_of(folder, dimension=WIDE)
    with files_of_at_most(17 * 2**20):  # more than its log needs, and less than 2,400 vectors
        kill_all(folder)
        assert found(searcher, k=20) == before
    for operation in (
        searcher.compact,
        lambda: searcher.add(corpus(2400, 3000), auto_compact=False),
        lambda: searcher.index(corpus(2400, 9000), folder, replace=True),
    ):
        with pytest.raises(
            IndexWriteError, match=r"has no room.*(File too large|No space left).*nothing was written: run it again"
        ):
            operation()
        assert found(searcher, k=20) == before
    kill_all(folder)  # the next server may write again
    searcher.compact()
    assert found(searcher, k=20) == before
    assert len(searcher.opened.manifest.corpus.segments) == 1


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore:data outside .* that it no longer needs was not removed")
def test_a_disk_that_is_full(tmp_path: Path, figures: Any) -> None:
    """The server's folder in memory, with a little room; making such a file system needs rights that not every machine has."""
    folder, name = tmp_path / "index", "add, PostgreSQL: disk full"
    disk = folder / EMBEDDED
    disk.mkdir(parents=True)
    if os.system(f"mount -t tmpfs -o size=160m none {disk} 2>/dev/null") != 0:
        figures.add("Crashes", name, 0, 0, "no rights to mount a small file system here")
        return
    tried = right = 0
    said: list[str] = []
    try:
        searcher = Searcher([PgvectorRetriever(HashedWords(WIDE))])
        searcher.index(corpus(100), folder)
        expected = found(searcher, k=20)
        for free in (0, 64, 512, 2048, 8192, 24576):
            filler = disk / "filler"
            room = os.statvfs(disk)
            filler.write_bytes(bytes(max(0, room.f_bavail * room.f_frsize - free * 1024)))
            tried += 1
            try:
                searcher.add(corpus(1500, 1000 * tried), auto_compact=False)
            except (IndexWriteError, ServerError) as error:
                said.append(str(error))
                filler.unlink()
                right += found(searcher, k=20) == expected
            else:
                filler.unlink()
                expected = found(searcher, k=20)
                right += 1
            right -= found(searcher_of(folder, dimension=WIDE), k=20) != expected
        searcher = None  # type: ignore[assignment]  # its server stops
    finally:
        os.system(f"umount -l {disk}")
    figures.add("Crashes", name, tried, right, "0 to 24 MiB free, then more space")
    assert right == tried
    assert all("No space left" in message and "replace=True" not in message for message in said), said
    assert said
