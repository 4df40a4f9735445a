"""PostgreSQL servers for tests, one of a kind for a whole run: the embedded one, and one with an old pgvector."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import warnings
from functools import cache
from pathlib import Path

from nlp_retrieval.retrievers.servers.embedded import TRUSTED, EmbeddedServer

VARIABLE = "TESTS_POSTGRES_SERVER"


def admin_url(kind: str = "embedded") -> str:
    """The URL of a server, which runs until this process ends: ``embedded`` or ``old`` (PostgreSQL 16, pgvector 0.6.2)."""
    return _started(kind)


@cache
def _started(kind: str) -> str:
    folder = Path(tempfile.mkdtemp(prefix="nlpr-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if kind == "old":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pgserver import get_server
        return str(get_server(folder / "data").get_uri())
    server = EmbeddedServer(folder / ".postgres")
    trusted = [*filter(None, [os.environ.get(TRUSTED)]), str(server.folder)]
    os.environ[TRUSTED] = os.pathsep.join(trusted)  # each test has a cache of its own, which does not know it
    return server.url()


def env_url() -> str:
    """The embedded server, started, as the name of an environment variable that holds its URL."""
    os.environ[VARIABLE] = admin_url()
    return f"env:{VARIABLE}"
