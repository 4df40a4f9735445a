"""Listening: one process or several on one socket, until stopped; requests in progress are finished first.

Several processes are started fresh, not forked, and each opens the index itself.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError, RetrievalError
from nlp_retrieval.service.application import create_app, require_packages
from nlp_retrieval.service.endpoints import BaseService
from nlp_retrieval.service.settings import ServiceSettings
from nlp_retrieval.service.work import leave_notes_out

if TYPE_CHECKING:
    from fastapi import FastAPI
    from uvicorn import Config, Server

__all__ = ["listen", "serve"]

_BACKLOG = 1024
_IDLE_SECONDS = 10
_LOOKED_AFTER = 0.5
_GRACE = 5
_NOT_STARTED = 3


@dataclass(frozen=True)
class _Worker:
    """Creates the application in a worker process; it is pickled, so it holds plain values."""

    opening: Callable[[], BaseService]
    settings: ServiceSettings
    parent: int

    def __call__(self) -> FastAPI:
        leave_notes_out()
        threading.Thread(target=self._end_with_parent, daemon=True).start()
        try:
            return create_app(self.opening(), self.settings)
        except RetrievalError as error:
            logging.getLogger("uvicorn.error").error("%s", without_secrets(str(error)))  # noqa: TRY400 -- no traceback
            raise SystemExit(_NOT_STARTED) from None  # with any other code, it would be restarted repeatedly

    def _end_with_parent(self) -> None:
        """Exit if the parent process was killed: nobody else would stop this one."""
        while os.getppid() == self.parent:
            time.sleep(_LOOKED_AFTER)
        signal.raise_signal(signal.SIGTERM)


def listen(settings: ServiceSettings) -> socket.socket:
    """Return a socket that listens on the configured address.

    Raises:
        ConfigurationError: the address is not available.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )[0]
        # with the protocol named, asyncio sends small answers at once; otherwise each would wait 40 ms for the client's reply
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _taken(settings, error) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise _taken(settings, error) from None
    return listener


def _taken(settings: ServiceSettings, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"cannot listen on {settings.host} port {settings.port}: {error.strerror or error}; choose another --port, or 0 for "
        "any that is free"
    )


def serve(opening: Callable[[], BaseService], settings: ServiceSettings, told: Callable[[str], None]) -> None:
    """Answer requests until SIGTERM or SIGINT.

    Args:
        opening: opens the service; with several workers it is called in each of them, and must be picklable.
        settings: address, access and limits.
        told: called with the address.

    Raises:
        DependencyError: FastAPI or uvicorn is not installed.
        RetrievalError: the service cannot be opened.
    """
    require_packages()
    if settings.mcp:
        from nlp_retrieval.service.mcp import require_mcp

        require_mcp()
    leave_notes_out()
    service = opening()  # before other processes open it, so that an error is reported once
    with listen(settings) as listener:
        if settings.workers > 1:
            service.close()
            del service
            told(_address(listener))
            _serve_by_many(opening, settings, listener)
        else:
            from uvicorn import Server

            server = Server(_config(settings, create_app(service, settings)))
            with _ended_by_signals(server):
                told(_address(listener))
                server.run([listener])


def _serve_by_many(opening: Callable[[], BaseService], settings: ServiceSettings, listener: socket.socket) -> None:
    from uvicorn.supervisors import Multiprocess

    config = _config(settings, _Worker(opening, settings, os.getpid()), factory=True)
    processes = Multiprocess(config, [listener])
    processes.run()
    if any(process.exitcode == _NOT_STARTED for process in processes.processes):
        raise RetrievalError("a worker could not start; what it said stands above")


def _config(settings: ServiceSettings, app: Callable[..., object], *, factory: bool = False) -> Config:
    from uvicorn import Config

    from nlp_retrieval.service.connections import BoundedConnection, most_connections

    most = most_connections()
    longest = max(settings.limits.seconds, settings.limits.writing_seconds)
    return Config(
        app,
        factory=factory,
        workers=settings.workers,
        ws="none",
        lifespan="on",
        log_level="warning",
        use_colors=False,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        http=BoundedConnection,
        limit_concurrency=most,
        timeout_keep_alive=max(1, min(_IDLE_SECONDS, int(settings.limits.seconds))),
        backlog=min(_BACKLOG, most),  # maximum accepted at once
        timeout_graceful_shutdown=int(longest) + _GRACE,
        timeout_worker_healthcheck=60,
    )


@contextmanager
def _ended_by_signals(server: Server) -> Iterator[None]:
    """Let the signals that stop the server stop only the server: it sends them to itself again afterwards."""

    def end(*_: object) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
