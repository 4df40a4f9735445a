"""Servers that are away, too old, refuse, or are killed; the embedded one, its users, and processes that fork."""

from __future__ import annotations

import logging
import os
import pickle
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hashed_words import HashedWords
from milvus_server import TcpServer, shared_milvus
from soaking import mostly_soaked

from nlp_retrieval import MilvusRetriever, Searcher
from nlp_retrieval.errors import (
    ConfigurationError,
    ForkError,
    IndexWriteError,
    RetrievalError,
    ServerError,
    SourceError,
    UntrustedError,
)
from nlp_retrieval.retrievers.milvus.client import EMBEDDED
from nlp_retrieval.retrievers.milvus.collections import verify_collections
from nlp_retrieval.retrievers.servers.embedded import TRUSTED

from .conftest import corpus, found, records, searcher


def embedded(mode: str = "dense", **settings: object) -> Searcher:
    return Searcher([MilvusRetriever(HashedWords(dimension=24), mode, **settings)])  # type: ignore[arg-type]


def processes(folder: Path) -> list[int]:
    """The server of a folder, without its keeper."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if str(folder / EMBEDDED / "data").encode() in words and not any(word.endswith(b"keeper.py") for word in words):
                found.append(int(entry.name))
    return found


# servers elsewhere


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("http://127.0.0.1:1", ServerError, r"cannot be reached.*check that it runs"),
        ("http://me:s3cret@127.0.0.1:1/db", ServerError, r"me:\*\*\*@127.*cannot be reached"),
        ("ftp://host", ConfigurationError, "not the URL of a Milvus server"),
        ("file.db", ConfigurationError, "not the URL of a Milvus server"),
        ("http://host/a/b", ConfigurationError, "not the URL of a Milvus server"),
        ("env:NOT_SET_ANYWHERE", SourceError, "NOT_SET_ANYWHERE"),
    ],
)
def test_a_server_that_is_not_there_is_said_at_once_and_without_its_password(url, error, message, index):
    made = searcher(url=url)
    with pytest.raises(error, match=message) as caught:
        made.index(corpus(3), index)
    assert "s3cret" not in f"{caught.value}{made.config}{made.retrievers!r}"


@pytest.mark.parametrize(
    ("version", "settings", "message"),
    [
        ("v2.3.9", {}, "upgrade the server to 2.5, or newer"),
        ("2.4.17", {"mode": "both"}, "upgrade the server to 2.5, or newer"),
        ("2.5.27", {"index_type": "rabitq"}, "upgrade the server to 2.6, which has index_type='rabitq', or newer"),
        ("v2.3.9", {"index_type": "rabitq", "mode": "both"}, "upgrade the server to 2.6, which has index_type='rabitq'"),
    ],
)
def test_a_server_that_is_too_old_is_named_with_what_is_needed_before_anything_is_encoded(version, settings, message, index):
    class Encoding(HashedWords):
        def encode_passages(self, passages):
            raise AssertionError("encoded")

    made = searcher(encoder=Encoding(24), **settings)
    with (
        shared_milvus().saying_version(version),
        pytest.raises(ServerError, match=f"Milvus {version} is too old; {message}"),
    ):
        made.index(corpus(3), index)


def test_an_index_type_that_nothing_is_made_by_needs_no_newer_server(index):
    with shared_milvus().saying_version("v2.5.27"):
        made = searcher("bm25", index_type="rabitq")
        made.index(corpus(20), index)
        assert found(made)


def test_a_token_comes_from_the_environment_and_a_wrong_one_is_refused_and_not_shown(index, tmp_path, monkeypatch):
    server = TcpServer(tmp_path / "closed", token="root:right-word")
    monkeypatch.setenv("MILVUS_TEST_TOKEN", "root:right-word")
    try:
        made = searcher(url=server.url, token="env:MILVUS_TEST_TOKEN")
        made.index(corpus(20), index)
        assert found(made)
        assert verify_collections(index, server.url, "env:MILVUS_TEST_TOKEN") == []
        monkeypatch.setenv("MILVUS_TEST_TOKEN", "root:wr0ng-word")
        with pytest.raises(ServerError, match=r"refuses the user.*check the token") as caught:
            searcher(url=server.url, token="env:MILVUS_TEST_TOKEN").open(index)
        assert "wr0ng" not in str(caught.value)
    finally:
        server.close()


def test_a_server_that_goes_away_is_an_error_within_the_time_out(index, tmp_path):
    server = TcpServer(tmp_path / "data")
    made = searcher(url=server.url, timeout=60, retries=1)
    made.index(corpus(20), index)
    assert found(made)
    server.process.kill()
    server.process.wait()
    with pytest.raises(ServerError, match="cannot be reached"):
        found(made)
    server.close()


@pytest.mark.soak
def test_a_request_that_takes_too_long_is_ended(index, tmp_path):
    server = TcpServer(tmp_path / "data")
    searcher(url=server.url).index(corpus(20), index)
    made = searcher(url=server.url, timeout=20, retries=0).open(index)
    assert found(made)
    try:
        os.kill(server.process.pid, signal.SIGSTOP)
        with pytest.raises(ServerError, match=r"took longer than timeout=20 s"):
            found(made)
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    assert found(made)
    server.close()


def test_what_pymilvus_logs_of_our_requests_is_in_our_errors_alone(index, tmp_path, caplog):
    with caplog.at_level(logging.DEBUG), pytest.raises(ServerError):
        searcher(url="http://127.0.0.1:1").index(corpus(3), index)
    assert [
        record.name for record in caplog.records if record.name.startswith("pymilvus") and record.levelno > logging.INFO
    ] == []


# the embedded one


def test_the_embedded_server_is_private_shared_by_processes_and_stopped_with_its_last_user(index):
    made = embedded("both")
    made.index(corpus(40), index)
    wanted = found(made)
    assert stat.S_IMODE((index / EMBEDDED).stat().st_mode) == 0o700
    (pid,) = processes(index)
    script = (
        "import sys; from retrievers.milvus.test_servers import embedded, found; from pathlib import Path\n"
        "print(found(embedded('both').open(Path(sys.argv[1]))))"
    )
    tests = Path(__file__).parent.parent.parent
    paths = os.pathsep.join([str(tests), *filter(None, [os.environ.get("PYTHONPATH")])])
    told = subprocess.run(
        [sys.executable, "-c", script, str(index)],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == str(wanted)
    assert told.stderr == ""
    assert processes(index) == [pid]
    del made
    assert processes(index) == []
    assert verify_collections(index) == []
    assert processes(index) == []


def test_a_killed_server_is_started_again_and_loses_nothing(index):
    made = embedded("both", index_type="hnsw")
    made.index(corpus(300), index)
    made.add(corpus(5, 300), auto_compact=False)
    wanted = found(made)
    os.kill(*processes(index), signal.SIGKILL)
    assert found(made) == wanted
    answers: list[object] = []

    def ask() -> None:
        for _ in range(15):
            answers.append(found(made))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    while len(answers) < 5:
        time.sleep(0.005)
    os.kill(*processes(index), signal.SIGKILL)
    for thread in threads:
        thread.join()
    assert answers == [wanted] * 45
    made.delete(["d3"], auto_compact=False)
    made.compact()
    assert len(found(made, k=400)) == 304


@pytest.mark.soak
def test_a_server_killed_in_the_middle_of_a_build_costs_that_build_alone(index):
    searched = embedded()
    searched.index(corpus(50), index)
    before = found(searched)

    from pymilvus import MilvusClient

    real, left = MilvusClient.flush, [1]

    def killing(self, *args, **more):
        if left:
            left.pop()
            os.kill(*processes(index), signal.SIGKILL)
        return real(self, *args, **more)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(MilvusClient, "flush", killing)
        with pytest.raises(ServerError, match="run it again"):
            embedded().index(corpus(60), index, replace=True)
    assert found(embedded().open(index)) == before
    embedded().index(corpus(60), index, replace=True)
    last = embedded().open(index)
    assert len(found(last, k=100)) == 60
    del searched
    last.delete(["d1"], auto_compact=False)
    kept = {folder.name for folder in (index / EMBEDDED / "data" / "collections").iterdir()}
    assert {record.collection for record in records(index)} == kept


@pytest.mark.soak
def test_a_directory_is_moved_and_copied_with_its_server(index, tmp_path):
    made = embedded()
    made.index(corpus(40), index)
    wanted = found(made)
    del made
    shutil.copytree(index, tmp_path / "copy", symlinks=True)
    index.rename(tmp_path / "moved")
    for name in ("copy", "moved"):
        made = embedded().open(tmp_path / name)
        assert found(made) == wanted
        made.add(corpus(3, 40))
        assert len(found(made, k=100)) == 43
        del made


def test_a_server_made_by_somebody_else_is_not_run_before_it_is_trusted(index, tmp_path, monkeypatch):
    made = embedded()
    made.index(corpus(20), index)
    wanted = found(made)
    del made
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    with pytest.raises(UntrustedError, match=TRUSTED):
        embedded().open(index)
    assert processes(index) == []
    monkeypatch.setenv(TRUSTED, str(index / EMBEDDED))
    assert found(embedded().open(index)) == wanted


@pytest.mark.parametrize("name", mostly_soaked(["per%20cent", "l" * 100, "a b", "quo'te\"", "東京", "ha#sh?"], 2))
def test_the_folder_may_have_any_name(name, tmp_path):
    made = embedded()
    made.index(corpus(5), tmp_path / name)
    assert found(made)


def test_a_folder_that_cannot_be_used_is_an_error_that_says_so(index, tmp_path):
    index.mkdir()
    (index / EMBEDDED).write_text("no folder")
    with pytest.raises(IndexWriteError, match="cannot use"):
        embedded().index(corpus(3), index)


def test_data_that_is_no_data_does_not_start_and_says_what_to_do(index):
    made = embedded()
    made.index(corpus(20), index)
    (record,) = records(index)
    del made
    schema = index / EMBEDDED / "data" / "collections" / record.collection / "schema.json"
    schema.write_text("{")
    with pytest.raises(RetrievalError):
        embedded().open(index).search("fox", 3)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["truncate", "flip", "remove"])
def test_damaged_files_of_the_server_are_an_error_and_never_an_answer(kind, index):
    made = embedded(index_type="hnsw")
    made.index(corpus(200), index)
    wanted = found(made, k=200)
    del made
    data = index / EMBEDDED / "data" / "collections"
    files = sorted(path for path in data.rglob("*") if path.is_file() and path.suffix == ".parquet")
    assert files
    for path in files:
        content = path.read_bytes()
        if kind == "remove":
            path.unlink()
        else:
            middle = len(content) // 2
            path.write_bytes(
                content[:middle] if kind == "truncate" else content[:middle] + b"\xff\0\xff" + content[middle + 3 :]
            )
        try:
            assert found(embedded(index_type="hnsw").open(index), k=200) == wanted
        except RetrievalError:
            pass
        else:
            assert kind == "flip", "bytes that nothing depends on"


def test_a_fork_is_refused_and_a_pickle_opens_its_own(index):
    made = embedded()
    made.index(corpus(20), index)
    wanted = found(made)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            made.search(["fox"], 3)
            said = b"answered"
        except ForkError:
            said = b"refused"
        finally:
            os.write(writing, said)
            os._exit(0)
    os.close(writing)
    assert os.read(reading, 100) == b"refused"
    os.close(reading)
    os.waitpid(child, 0)
    assert found(made) == wanted
    assert found(pickle.loads(pickle.dumps(made)).open(index)) == wanted
