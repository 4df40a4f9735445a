"""What goes wrong between here and a server: lost connections, restarts, rights, time; and no message shows a secret."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from pathlib import Path

import psycopg
import pytest
from hashed_words import HashedWords
from postgres_server import debian_programs, env_url, shared_server

from nlp_retrieval import PgvectorRetriever, PostgresTextRetriever, Searcher
from nlp_retrieval.errors import ConfigurationError, ForkError, IndexDamagedError, ServerError, SourceError, UntrustedError
from nlp_retrieval.loaders.database import hide_secrets
from nlp_retrieval.retrievers.postgres.connections import Connections
from nlp_retrieval.retrievers.postgres.embedded import EmbeddedServer
from nlp_retrieval.retrievers.postgres.engine import EMBEDDED

from .conftest import Place, corpus
from .test_embedded import is_alive, kill, postmaster, until
from .test_tables import found

SECRET = "s3cret-word"


def end_all(server: EmbeddedServer) -> None:
    """End every connection but one's own, as an administrator does."""
    socket = server.url().replace("nlp_retrieval@", "postgres@")
    with psycopg.connect(socket, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'nlp_retrieval'")


def answers(searcher: Searcher) -> object:
    """What a searcher finds, or nothing where its server is away."""
    try:
        return found(searcher)
    except ServerError:
        return None


def runs(server: EmbeddedServer) -> bool:
    """Whether the parent of the server's processes is there; for a moment they answer without it."""
    try:
        return is_alive(postmaster(server))
    except (FileNotFoundError, IndexError):  # it is about to be started
        return False


def as_admin(statement: str) -> None:
    with psycopg.connect(shared_server().url().replace("nlp_retrieval@", "postgres@"), autocommit=True) as connection:
        connection.execute(statement)


def test_a_lost_connection_is_opened_again(place, index):
    searcher = place.searcher()
    searcher.index(corpus(20), index)
    before = found(searcher)
    end_all(shared_server())
    assert found(searcher) == before
    end_all(shared_server())
    searcher.add(corpus(3, 20))
    assert len(found(searcher, k=30)) == 23


def test_a_connection_that_is_lost_twice_is_an_error_that_says_what_to_do(place):
    connections = Connections(place.url)
    tried = []

    def work(connection):
        tried.append(connection)
        end_all(shared_server())
        connection.execute("SELECT 1")

    with pytest.raises(ServerError, match=r"cannot be reached.*check that it runs"):
        connections.read(work)
    assert len(tried) == 2


def test_a_server_that_is_killed_and_restarted_during_searches_answers_again(tmp_path):
    """With the embedded server: each search gives the right answer, or an error of the project."""
    searcher = Searcher([PgvectorRetriever(HashedWords(24))])
    searcher.index(corpus(200), tmp_path / "index")
    before, wrong, done = found(searcher), [], threading.Event()

    def search():
        while not done.is_set():
            try:
                if (now := found(searcher)) != before:
                    wrong.append(now)
            except ServerError as error:
                if "cannot be reached" not in str(error):
                    wrong.append(str(error))
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    server = EmbeddedServer(tmp_path / "index" / EMBEDDED)
    try:
        for _ in range(3):
            kill(server)
            assert until(lambda: answers(searcher) == before and runs(server))
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    assert found(searcher) == before


def test_a_killed_server_holds_what_was_committed_and_the_index_goes_on(tmp_path):
    index = tmp_path / "index"
    searcher = Searcher([PgvectorRetriever(HashedWords(24)), PostgresTextRetriever()])
    searcher.index(corpus(50), index)
    before = found(searcher)
    kill(EmbeddedServer(index / EMBEDDED))
    searcher.add(corpus(5, 50))
    assert until(lambda: len(found(searcher, k=100)) >= len(before) and runs(EmbeddedServer(index / EMBEDDED)))
    kill(EmbeddedServer(index / EMBEDDED))
    assert found(Searcher([PgvectorRetriever(HashedWords(24)), PostgresTextRetriever()]).open(index)) == found(searcher)


def test_retrievers_of_one_directory_share_its_server_which_stops_with_them(tmp_path):
    searcher = Searcher([PgvectorRetriever(HashedWords(24)), PostgresTextRetriever()])
    searcher.index(corpus(20), tmp_path / "index")
    assert found(searcher)
    pid = postmaster(EmbeddedServer(tmp_path / "index" / EMBEDDED))
    del searcher
    assert not Path(f"/proc/{pid}").exists()


def test_an_index_that_was_made_elsewhere_is_not_run(tmp_path, monkeypatch):
    Searcher([PgvectorRetriever(HashedWords(24))]).index(corpus(20), tmp_path / "index")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    with pytest.raises(UntrustedError, match="not made by this user on this machine"):
        Searcher([PgvectorRetriever(HashedWords(24))]).open(tmp_path / "index")


def test_an_index_without_its_hidden_folder_is_damaged(tmp_path):
    Searcher([PgvectorRetriever(HashedWords(24))]).index(corpus(20), tmp_path / "index")
    (tmp_path / "index" / EMBEDDED).rename(tmp_path / "gone")
    with pytest.raises(IndexDamagedError, match="there is no table"):
        Searcher([PgvectorRetriever(HashedWords(24))]).open(tmp_path / "index")


def test_a_statement_that_takes_too_long_is_stopped(place):
    connections = Connections(place.url, statement_timeout=0.05)
    with pytest.raises(ServerError, match=r"longer than statement_timeout=0\.05 s; raise it"):
        connections.read(lambda connection: connection.execute("SELECT pg_sleep(20)"))
    assert connections.read(lambda connection: connection.execute("SELECT 1").fetchone()) == (1,)


def test_what_a_broken_statement_leaves_is_no_trouble_for_the_next(place):
    connections = Connections(place.url, most=1)
    for _ in range(3):
        with pytest.raises(ServerError, match="the server refuses"):
            connections.read(lambda connection: connection.execute("SELECT no_such_column"))
    assert connections.read(lambda connection: connection.execute("SELECT 1").fetchone()) == (1,)


def test_a_role_without_rights_is_told_which_it_needs(place, index, monkeypatch):
    place.searcher().index(corpus(20), index)
    as_admin("DROP ROLE IF EXISTS reader_alone")
    as_admin("CREATE ROLE reader_alone LOGIN")
    monkeypatch.setenv("READER", shared_server().url().replace("nlp_retrieval@", "reader_alone@"))
    reader = PgvectorRetriever(HashedWords(24), url="env:READER", schema=place.schema)
    with pytest.raises(ServerError, match=r"the role may not do this: .*GRANT it .*SELECT"):
        Searcher([reader]).open(index)
    with pytest.raises(ServerError, match=r"the role may not do this: .*GRANT it CREATE"):
        Searcher([reader]).index(corpus(5), index.with_name("own"))
    as_admin(f'GRANT USAGE ON SCHEMA "{place.schema}" TO reader_alone')
    as_admin(f'GRANT SELECT ON ALL TABLES IN SCHEMA "{place.schema}" TO reader_alone')
    assert len(found(Searcher([reader]).open(index))) == 5


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (f"postgresql://me:{SECRET}@127.0.0.1:1", "names no database; write postgresql://user@host/name"),
        (f"host=127.0.0.1 password={SECRET}", "names no database"),
        (f"postgresql://me:{SECRET}@127.0.0.1:1/name", "cannot be reached"),
        (f"host=127.0.0.1 port=1 dbname=x password='{SECRET}'", "cannot be reached"),
        (f"mysql://me:{SECRET}@host/name", "not the URL of a PostgreSQL server"),
        ("host=127.0.0.1 nonsense =", "not the URL of a PostgreSQL server"),
        ("", "not the URL of a PostgreSQL server|names no database"),
    ],
)
def test_a_wrong_url_is_an_error_without_its_secret(url, message, index, monkeypatch):
    monkeypatch.delenv("PGDATABASE", raising=False)
    for given in (url, "env:DSN"):
        monkeypatch.setenv("DSN", url or " ")
        retriever = PgvectorRetriever(HashedWords(24), url=given)
        with pytest.raises((ConfigurationError, ServerError), match=message) as caught:
            retriever.index(corpus(3), index)
        shown = f"{caught.value}{retriever!r}{retriever.config}{caught.value.__cause__}"
        assert SECRET not in shown


def test_a_variable_that_is_not_set_is_named(index):
    with pytest.raises(SourceError, match="NO_SUCH_DSN is not set"):
        PgvectorRetriever(HashedWords(24), url="env:NO_SUCH_DSN").index(corpus(3), index)


def test_a_database_that_is_not_there_is_named(index):
    url = shared_server().url().replace("@/nlp_retrieval?", "@/no_such?")
    with pytest.raises(ServerError, match=r'no such database: .*"no_such".*createdb'):
        PgvectorRetriever(HashedWords(24), url=url).index(corpus(3), index)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:word@host/name", "postgresql://me:***@host/name"),
        ("host=h password=word dbname=d", "host=h password=*** dbname=d"),
        ("host=h password = 'a b\\' c' dbname=d", "host=h password = *** dbname=d"),
        ("postgresql://host/d?user=me&password=word", "postgresql://host/d?user=me&password=***"),
        ("host=h sslpassword=word", "host=h sslpassword=***"),
        ("env:NAME", "env:NAME"),
    ],
)
def test_secrets_of_a_url_are_not_shown(url, shown):
    assert hide_secrets(url) == shown


def test_a_copy_keeps_the_password_and_a_pickle_refuses_it():
    retriever = PostgresTextRetriever(url=f"postgresql://me:{SECRET}@host/name")
    assert copy.deepcopy(retriever).url == retriever.url
    with pytest.raises(ConfigurationError, match="secret"):
        pickle.dumps(retriever)
    assert pickle.loads(pickle.dumps(PostgresTextRetriever(url="env:X"))).url == "env:X"


def test_a_child_of_this_process_is_told_to_open_its_own(place, index):
    searcher = place.searcher()
    searcher.index(corpus(20), index)
    before = found(searcher)
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        said = "answered"
        try:
            found(searcher)
        except ForkError:
            said = "refused"
        os.write(into, said.encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(out, 100) == b"refused"
    assert found(searcher) == before


def test_searches_of_many_threads_share_few_connections(place, index):
    searcher = place.searcher(connections=2)
    searcher.index(corpus(200), index)
    before, wrong = found(searcher), []
    threads = [threading.Thread(target=lambda: found(searcher) == before or wrong.append(1)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


if debian_programs() is not None:

    def test_a_server_without_the_extension_says_what_to_install(index):
        with pytest.raises(ServerError, match=r"no extension 'vector'; install pgvector .*apt install"):
            Place("public", "debian").searcher().index(corpus(3), index)

    def test_full_text_search_needs_no_extension_and_runs_on_this_machines_postgresql(index):
        searcher = Searcher([PostgresTextRetriever(url=env_url("debian"))])
        searcher.index(corpus(50), index)
        searcher.delete(["d3"])
        searcher.compact()
        mine = Searcher([PostgresTextRetriever(url=env_url())])
        mine.index([item for item in corpus(50) if item.item_id != "d3"], index.with_name("mine"))
        assert found(searcher, k=50) == found(mine, k=50)
