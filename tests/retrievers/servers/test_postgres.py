"""What is PostgreSQL's alone: the embedded server, URLs and their secrets, rights, graphs on an old and a new pgvector."""

from __future__ import annotations

import copy
import os
import pickle
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hashed_words import HashedWords
from postgres_server import admin_url

from nlp_retrieval import PgvectorRetriever, Searcher
from nlp_retrieval.errors import (
    ConfigurationError,
    ServerError,
    SourceError,
    UntrustedError,
)

from .conftest import corpus, found

SECRET = "s3cret-word"


def embedded() -> Searcher:
    return Searcher([PgvectorRetriever(HashedWords(24))])


def postmaster(folder: Path) -> int:
    return int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False


# the embedded server


@pytest.fixture
def folder() -> Iterator[Path]:
    """One with a short name, that is not among those which other runs of pytest close to other users."""
    made = Path(tempfile.mkdtemp(prefix="nlpr-"))
    yield made
    for file in made.rglob("postmaster.pid"):
        pid = int(file.read_text().splitlines()[0])
        os.kill(pid, signal.SIGINT)
        while is_alive(pid):
            time.sleep(0.01)
    shutil.rmtree(made)


def run_python(script: str, index: Path) -> subprocess.CompletedProcess[str]:
    head = "import sys, psycopg\nfrom nlp_retrieval.retrievers import EmbeddedServer\n"
    head += "from retrievers.servers.test_postgres import *\nindex = Path(sys.argv[1])\n"
    paths = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-c", head + script, str(index)]
    return subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, check=False, capture_output=True, text=True)


def test_it_runs_in_the_index_closed_to_others_until_its_process_ends_and_a_killed_one_loses_nothing(folder: Path) -> None:
    index = folder / "index"
    indexing = """
searcher = embedded()
searcher.index(corpus(50), index)
server = index / ".postgres"
with psycopg.connect(EmbeddedServer(server).url()) as connection:
    assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
print(postmaster(server))
"""
    ended = run_python(indexing, index)
    assert ended.returncode == 0, ended.stderr
    assert not is_alive(int(ended.stdout))
    assert stat.S_IMODE((index / ".postgres").stat().st_mode) == 0o700
    assert not stat.S_IMODE(folder.stat().st_mode) & 0o066, "others may pass, and neither list nor write"

    kill = "os.kill(postmaster(server), signal.SIGKILL)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    killed = run_python(indexing.replace("corpus(50), index", "corpus(60), index, replace=True") + kill, index)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    opening = "print(len(found(embedded().open(index), k=99)), postmaster(index / '.postgres'))"
    opened = run_python(opening, index)
    assert opened.returncode == 0, opened.stderr
    n_found, pid = map(int, opened.stdout.split())
    assert n_found == 60
    assert not is_alive(pid), "the killed process is no user any more"


def test_a_server_made_by_somebody_else_is_not_run_before_it_is_trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embedded().index(corpus(20), folder / "index")
    server = folder / "index" / ".postgres"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "another machine"))
    with pytest.raises(UntrustedError, match=f"NLP_RETRIEVAL_TRUSTED_SERVERS={server}"):
        embedded().open(folder / "index")
    monkeypatch.setenv("NLP_RETRIEVAL_TRUSTED_SERVERS", f"/somewhere/else:{server}")
    assert found(embedded().open(folder / "index"))


# connections


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (f"postgresql://me:{SECRET}@[::1/name", "not the URL of a PostgreSQL"),
        (f"postgresql://me:{SECRET}@127.0.0.1:1/name", "cannot be reached"),
        ("the server of the tests", "database .* does not exist"),
    ],
    ids=["no URL", "away", "no such database"],
)
def test_a_wrong_url_is_an_error_without_its_secret(
    url: str, message: str, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if url == "the server of the tests":
        url = admin_url().replace("/nlp_retrieval", "/no_such")
    monkeypatch.setenv("DSN", url)
    for given in (url, "env:DSN"):
        retriever = PgvectorRetriever(HashedWords(24), url=given)
        with pytest.raises((ConfigurationError, ServerError), match=message) as caught:
            retriever.index(corpus(3), index)
        assert SECRET not in f"{caught.value}{retriever!r}{retriever.config}{caught.value.__cause__}"
    with pytest.raises(SourceError, match="NO_SUCH_DSN is not set"):
        PgvectorRetriever(HashedWords(24), url="env:NO_SUCH_DSN").index(corpus(3), index)


def test_a_copy_keeps_the_password_and_a_pickle_refuses_it() -> None:
    retriever = PgvectorRetriever(HashedWords(24), url=f"postgresql://me:{SECRET}@host/name")
    assert copy.deepcopy(retriever).url == retriever.url
    with pytest.raises(ConfigurationError, match="secret"):
        pickle.dumps(retriever)
    assert pickle.loads(pickle.dumps(PgvectorRetriever(HashedWords(24), url="env:X"))).url == "env:X"


# schemas and vectors
