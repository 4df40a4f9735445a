"""PostgreSQL servers for tests, one of a kind for a whole run: the embedded one, one with an old extension, and Debian's."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from nlp_retrieval.retrievers.postgres.embedded import NAME, EmbeddedServer
from nlp_retrieval.retrievers.servers.embedded import TRUSTED

VARIABLE = "TESTS_POSTGRES_SERVER"


def shared_server(kind: str = "embedded") -> EmbeddedServer:
    """The server of a kind, which runs until this process ends: ``embedded``, ``old`` (pgvector 0.6.2) or ``debian``."""
    return _server(kind)


def admin_url(kind: str = "embedded") -> str:
    """The URL of that server for its superuser, as libpq has it."""
    return shared_server(kind).url().replace(f"{NAME}@", "postgres@", 1)


@cache
def _server(kind: str) -> EmbeddedServer:
    folder = Path(tempfile.mkdtemp(prefix="nlpr-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    server = EmbeddedServer(folder / ".postgres", programs=_programs(kind))
    trusted = [*filter(None, [os.environ.get(TRUSTED)]), str(server.folder)]
    os.environ[TRUSTED] = os.pathsep.join(trusted)  # each test has a cache of its own, which does not know it
    atexit.register(server.close)
    return server


def env_url(kind: str = "embedded") -> str:
    """The server of a kind, started, as the name of an environment variable that holds its URL."""
    name = f"{VARIABLE}_{kind.upper()}"
    os.environ[name] = shared_server(kind).url()
    return f"env:{name}"


def _programs(kind: str) -> Path | None:
    if kind == "embedded":
        return None
    if kind == "old":
        found = importlib.util.find_spec("pgserver")
        assert found is not None
        assert found.origin is not None
        return Path(found.origin).parent / "pginstall/bin"
    return debian_programs()


def debian_programs() -> Path | None:
    """The programs of this machine's own PostgreSQL, where it has one."""
    return next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
