"""The client of a Milvus server: opened on demand, reopened after a loss, and without secrets in messages.

A URL is ``http://host:19530`` or ``https://...``, with the name of a database behind a slash, or ``env:NAME``, the name of an
environment variable that holds it. A token comes from the environment alone.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from nlp_retrieval.core.files.atomic import sync_folder, sync_tree
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.errors import ConfigurationError, DependencyError, IndexDamagedError, IndexWriteError, ServerError, install
from nlp_retrieval.loaders.database import hide_secrets, resolve, scrub
from nlp_retrieval.retrievers.milvus import lite_process
from nlp_retrieval.retrievers.servers.embedded import DATA, KeptServer, make_private, remember, require_trust
from nlp_retrieval.text.printing import printable

if TYPE_CHECKING:
    from pymilvus import MilvusClient


# Milvus Lite in the folder ``.milvus`` of an index directory: a process of its own, shared, and stopped with its last user.
#
# Milvus Lite lets one process at a time open its folder, and loses nothing when that is killed. It reads files of FAISS, so a
# folder that was created elsewhere is served only once it is trusted.


EMBEDDED = ".milvus"
"""The folder of the embedded server, in the index directory."""

_SOCKET = "milvus.sock"
_STATUS = "status"
_UNDIVIDED = {"MILVUS_LITE_MEMTABLE_MEMORY_LIMIT_BYTES": str(2**30), "MILVUS_LITE_WAL_SIZE_LIMIT_BYTES": str(2**31)}
"""Settings that keep a collection of up to a gigabyte in one piece: Milvus Lite weighs words piece by piece."""


class MilvusLiteServer(KeptServer):
    """A user of the Milvus Lite of a folder; several, in any number of processes, share it.

    Args:
        folder: holds data, socket and log; created at first use, for this user alone.
    """

    socket = _SOCKET

    def uri(self) -> str:
        """Start the server if it is not running, and return its address (``unix:``).

        Raises:
            DependencyError: Milvus Lite is not installed.
            UntrustedError: the folder was created elsewhere.
            ServerError: the server does not start; the message holds its output.
            IndexWriteError: the folder cannot be written.
        """
        self.use()
        return f"unix:{self.sockets / _SOCKET}"

    def start(self) -> None:
        require_trust(self.folder, "milvus", "Milvus Lite")
        if importlib.util.find_spec("milvus_lite") is None:
            raise DependencyError(f"the embedded server needs Milvus Lite: {install('milvus')} (or pass url=... of a server)")
        data = self.folder / DATA
        if not data.exists():
            remember(self.folder, "milvus")
            data.mkdir(mode=0o700)
            sync_folder(self.folder)
        sockets = self.sockets
        make_private(sockets)
        status = self.folder / _STATUS
        for leftover in (status, sockets / _SOCKET):
            leftover.unlink(missing_ok=True)
        command: list[str | Path] = [sys.executable, "-P", lite_process.__file__, data, sockets / _SOCKET, status]
        failure = self.keep(status, command, environment={"PYTHONPATH": os.environ.get("PYTHONPATH", "")} | _UNDIVIDED)
        if failure is not None:
            raise ServerError(
                f"{self.folder}: Milvus Lite does not start: {failure}. The data may be damaged, or of another version: index "
                "again with replace=True after removing this folder; or pass url=env:NAME of a server"
            )

    def sync(self, collection: str) -> None:
        """Make a collection survive a loss of power; Milvus Lite itself writes files and does not sync them."""
        folder = self.folder / DATA / "collections"
        sync_tree(folder / collection)
        sync_folder(folder)


# Importing pymilvus without its side effects: settings from files, and log messages for errors that it also raises.

_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


def require_driver() -> None:
    """Import pymilvus, without the settings of a file ``.env`` that it would look for.

    Raises:
        DependencyError: it is not installed.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # our errors report forks and lost connections instead of gRPC
    before = os.environ.get("PYTHON_DOTENV_DISABLED")
    os.environ["PYTHON_DOTENV_DISABLED"] = "1"
    try:
        import pymilvus.decorators  # noqa: F401
    except ImportError as error:
        raise DependencyError(f"Milvus needs its driver: {install('milvus')} ({error})") from error
    finally:
        if before is None:
            del os.environ["PYTHON_DOTENV_DISABLED"]
        else:
            os.environ["PYTHON_DOTENV_DISABLED"] = before
    for name in ("pymilvus.decorators", "pymilvus.client.connection_manager", "pymilvus.client.grpc_handler"):
        logger = logging.getLogger(name)
        if _is_wanted not in logger.filters:
            logger.addFilter(_is_wanted)


def _is_wanted(record: logging.LogRecord) -> bool:
    """Return whether pymilvus may log an error; errors of our requests are raised, so they are reported only once."""
    del record
    return not _quiet.get()


@contextmanager
def silent() -> Iterator[None]:
    """Have pymilvus log nothing of the requests in a block."""
    before = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(before)


T = TypeVar("T")

_URL = re.compile(r"https?://[^\s/?#]++(?:/\w*+/?)?", re.ASCII)
_AWAY = ("UNAVAILABLE", "CANCELLED")
_CLOSED = ("closed channel", "should create connection first")

_CONNECTED_WITHIN = 10.0
_BACK_WITHIN = 30.0
"""Seconds to wait for a server to return: a killed embedded one counts as running until its keeper has ended."""
_POLL = 0.02
_LONGEST_WAIT = 2.0
_LITE = "milvus_lite"
_NO_COLLECTION, _NOT_LOADED, _RATE_LIMIT = {4, 100}, 101, 8
_NO_ROOM = re.compile(r"no space left|disk quota|memory quota|insufficient memory|disk full", re.IGNORECASE)

_SERVICE = "milvus.proto.milvus.MilvusService"
_READING = ("Search", "Query", "HasCollection", "DescribeCollection")
_REPEATED = re.compile(r"\[\w+\] Retry run out of \d+ retry times, (?:message=)?")


class MilvusConnections:
    """One server, and the client of it that several threads share.

    Args:
        url: see the module; None for the embedded server.
        token: ``env:NAME``, or None.
        embedded: the server to start whenever it is not running, if ``url`` is None.
        timeout: seconds that a reading request may take.
        retries: most retries of a request if the server is away or asks for patience.

    Raises:
        DependencyError: pymilvus is not installed.
        SourceError: an environment variable is not set.
        ConfigurationError: the URL is malformed.
    """

    def __init__(
        self, url: str | None, token: str | None, embedded: MilvusLiteServer | None, *, timeout: float, retries: int
    ) -> None:
        require_driver()
        self.embedded = embedded
        self._url = None if url is None else resolve(url)
        self._token = "" if token is None else resolve(token)
        self.shown = repr(embedded) if url is None else hide_secrets(url)
        self.timeout = timeout
        self.retries = retries
        self.process = os.getpid()
        self.version = ""
        self._client: MilvusClient | None = None
        self._lock = Lock()
        if self._url is not None and not _URL.fullmatch(self._url):
            raise ConfigurationError(f"{self.shown}: not the URL of a Milvus server; write http://host:19530 or https://host")

    @property
    def lite(self) -> bool:
        """Return whether the server is Milvus Lite."""
        return self.version.startswith(_LITE)

    @property
    def database(self) -> str:
        """The name of the database; empty for the default one."""
        return "" if self._url is None else self._url.partition("://")[2].partition("/")[2].strip("/")

    def read(self, work: Callable[[MilvusClient], T]) -> T:
        """Run a read, again if the server is temporarily away.

        Raises:
            ServerError: the server cannot be reached, takes too long, or refuses.
            IndexDamagedError: a collection of the index is missing.
        """
        for attempt in range(self.retries + 1):
            client = None
            try:
                with silent():
                    client = self.client()
                    return work(client)
            except _errors() as error:
                again = _is_temporary(error) or (self.embedded is not None and _is_lost(error))
                lost, explained = _is_lost(error), self.explained(error)
                if attempt == self.retries or not again:
                    raise explained from None
                if lost and client is not None and client is self._client:  # another thread may have reconnected
                    self.close()
                time.sleep(min(0.05 * 4**attempt, _LONGEST_WAIT))
        raise AssertionError("the last attempt returns or raises")

    def write(self, work: Callable[[MilvusClient], T]) -> T:
        """Run a write, once.

        Raises:
            ServerError, IndexWriteError: the message gives the reason; no index names the written data.
        """
        try:
            with silent():
                return work(self.client())
        except _errors() as error:
            raise self.explained(error, "; nothing of it is used: run it again") from None

    def patiently(self, work: Callable[[], T]) -> T:
        """Send one request of a write, again if the server asks for patience."""
        for attempt in range(self.retries + 5):
            try:
                return work()
            except _errors() as error:
                if _code(error) != _RATE_LIMIT:
                    raise
                let_go(error)
                time.sleep(min(0.1 * 2**attempt, _LONGEST_WAIT))
        return work()

    def client(self) -> MilvusClient:
        """The client, connected."""
        with self._lock:
            if self._client is not None and self.embedded is not None and not self.embedded.running:
                self.close()
            if self._client is None:
                self._client = self._connected()
            return self._client

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        with self._lock:
            client, self._client = self._client, None
            if client is not None and os.getpid() == self.process:
                client.close()

    def require(self, since: tuple[int, int], ability: str) -> None:
        """Raise a ServerError if the server is too old; Milvus Lite never is.

        Args:
            since: the required version.
            ability: the feature that requires it; may be empty.
        """
        self.read(lambda _: None)
        numbers = tuple(int(part) for part in re.findall(r"\d+", self.version)[:2])
        if not self.lite and numbers and numbers < since:
            needed = "{}.{}".format(*since) + (ability and f", which has {ability}")
            raise ServerError(f"{self.shown}: Milvus {self.version} is too old; upgrade the server to {needed}, or newer")

    def explained(self, error: Exception, and_so: str = "") -> Exception:
        """Turn a driver's error into one with advice."""
        text = str(getattr(error, "message", "") or _details(error) or error)
        for secret in filter(None, (self._token, *self._token.split(":"))):
            text = text.replace(secret, "***")
        text = _REPEATED.sub("", text, count=1)
        reason = printable(" ".join(scrub(text, self._url or "").split()))[:400]
        code, status, lost = _code(error), _status(error), _is_lost(error)
        let_go(error)
        if code in _NO_COLLECTION:
            return IndexDamagedError(
                f"{self.shown}: a collection of the index was dropped since it was opened ({reason}); index again with "
                "replace=True, or correct the url"
            )
        if _NO_ROOM.search(reason):
            return IndexWriteError(f"{self.shown}: the server has no room: {reason}; free some disk or memory there{and_so}")
        if status == "DEADLINE_EXCEEDED":
            explanation = f"a request took longer than timeout={self.timeout:g} s; raise it, or use index_type='hnsw'"
        elif status in ("UNAUTHENTICATED", "PERMISSION_DENIED") or "auth check failure" in text or "permission deny" in text:
            explanation = f"the server refuses the user: {reason}; check the token (pass token='env:NAME') and its rights"
        elif lost:
            explanation = f"the server cannot be reached: {reason}; check that it runs, and the URL"
        else:
            explanation = f"the server refuses: {reason}"
        return ServerError(f"{self.shown}: {explanation}{and_so}")

    def _connected(self) -> MilvusClient:
        from pymilvus import MilvusClient

        patience = min(_CONNECTED_WITHIN, self.timeout)
        options = {"grpc.service_config": self._deadlines()}

        def connected(uri: str) -> MilvusClient:
            client = MilvusClient(uri, token=self._token, timeout=patience, dedicated=True, grpc_options=options)
            try:
                self.version = client.get_server_version(timeout=patience)
            except BaseException:
                client.close()
                raise
            return client

        if self.embedded is None:
            assert self._url is not None  # noqa: S101 - of the constructor
            return connected(self._url)
        deadline = time.monotonic() + _BACK_WITHIN
        while True:
            try:
                return connected(self.embedded.uri())
            except _errors() as error:
                if not _is_lost(error) or time.monotonic() > deadline:
                    raise
                let_go(error)
            time.sleep(_POLL)

    def _deadlines(self) -> str:
        """The time-out of requests that read, in gRPC's form.

        If it were an argument, pymilvus would repeat a lost request until the time is over, and notice a killed server a minute
        late.
        """
        names = [{"service": _SERVICE, "method": method} for method in _READING]
        return json.dumps({"methodConfig": [{"name": names, "timeout": f"{self.timeout:.3f}s"}]})


def _errors() -> tuple[type[Exception], ...]:
    from grpc import RpcError
    from pymilvus.exceptions import MilvusException

    return RpcError, MilvusException


def _status(error: Exception) -> str:
    """The name of gRPC's status, from the error or its cause; empty if the server itself answered."""
    from grpc import RpcError

    if isinstance(error.__cause__, RpcError) and error.__cause__ is not error:
        return _status(error.__cause__)
    code = getattr(error, "code", None)
    status = code() if callable(code) else code
    return str(getattr(status, "name", ""))


def _code(error: Exception) -> int:
    code = getattr(error, "code", None)
    return code if isinstance(code, int) else 0


def _details(error: Exception) -> str:
    details = getattr(error, "details", None)
    return str(details() or "") if callable(details) else ""


def _is_lost(error: Exception) -> bool:
    """Return whether the connection is lost, and not only the request refused."""
    return _status(error) in _AWAY or "Fail connecting to server" in str(error) or _is_closed(error)


def _is_temporary(error: Exception) -> bool:
    """Return whether the same request may succeed soon; a failed connection has waited already."""
    return _status(error) in _AWAY or _code(error) == _RATE_LIMIT or _is_closed(error)


def _is_closed(error: Exception) -> bool:
    """Return whether another thread, which found the connection lost, has closed it."""
    return any(phrase in str(error) for phrase in _CLOSED)


def let_go(error: BaseException | None) -> None:
    """Release everything that the stack of an error holds.

    pymilvus raises errors from themselves: such a cycle would hold a searcher, and its embedded server, until it is collected.
    """
    while error is not None:
        cause, error.__cause__, error.__context__, error.__traceback__ = error.__cause__, None, None, None
        error = cause


def is_not_loaded(error: Exception) -> bool:
    """Return whether a restarted server has yet to load a collection."""
    return _code(error) == _NOT_LOADED
