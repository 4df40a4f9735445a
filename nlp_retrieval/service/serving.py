"""Listening: one process or several on one socket, until stopped; requests in progress are finished first.

Several processes are started fresh, not forked, and each opens the index itself; uvicorn starts those again that end.
"""

from __future__ import annotations

import asyncio
import logging
import logging.config
import os
import resource
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError, DependencyError, RetrievalError, install
from nlp_retrieval.service.endpoints import BaseService
from nlp_retrieval.service.logs import log_config
from nlp_retrieval.service.sessions import SessionRecord
from nlp_retrieval.service.settings import WRITING_SECONDS, ServiceSettings
from nlp_retrieval.service.work import leave_notes_out

if missing := [name for name in ("fastapi", "uvicorn", "prometheus_client") if find_spec(name) is None]:
    raise DependencyError(f"the service needs {' and '.join(missing)}: {install('service')}")

from uvicorn import Config, Server
from uvicorn.config import STARTUP_FAILURE
from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.supervisors import Multiprocess

from nlp_retrieval.service.application import create_app
from nlp_retrieval.service.observer import Observer

_MOST = 2048
_BACKLOG = 1024
_IDLE_SECONDS = 10
_READING_SECONDS = 30
_GRACE = 5


def _most_connections() -> int:
    """Return a fifth of the descriptors that other files leave: asyncio accepts more before the first can be closed."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if soft == resource.RLIM_INFINITY else max(16, min(_MOST, (soft - 96) // 5))


class _BoundedConnection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # one of two classes, chosen when imported
    """A uvicorn connection that is closed if no request arrives, or if nobody reads the answer.

    A connection uses a descriptor before it shows a token. Therefore the head of a request must arrive within seconds, and if
    connections run out, idle ones are closed: the oldest one of the address with the most connections.
    """

    _timer: asyncio.TimerHandle | None = None
    asked_last = 0.0

    @property
    def idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.asked_last = self.loop.time()
        self._end_after(self.timeout_keep_alive)
        if len(self.connections) > self.limit_concurrency * 7 // 8:
            others = [other for other in self.connections if other is not self and not other.transport.is_closing()]
            if idle := [other for other in others if other.idle]:
                counts = Counter((other.client or ("",))[0] for other in idle)
                min(idle, key=lambda other: (-counts[(other.client or ("",))[0]], other.asked_last)).transport.abort()

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._stop_timer()
        elif self.idle and self._timer is None:
            self._end_after(self.timeout_keep_alive)

    def on_response_complete(self) -> None:
        self.asked_last = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._end_after(_READING_SECONDS)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _end_after(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def listen(settings: ServiceSettings) -> socket.socket:
    """Return a socket that listens on the configured address."""
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        family, kind, protocol, _, address = found[0]
        # with the protocol named, asyncio sends small answers at once; otherwise each would wait 40 ms for the client's reply
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        said = f"cannot listen on {settings.host} port {settings.port}: {error.strerror or error}"
        raise ConfigurationError(f"{said}; choose another --port, or 0 for any that is free") from None
    return listener


def serve(
    opening: Callable[[], BaseService], settings: ServiceSettings, on_ready: Callable[[str], None], *, check: bool = False
) -> None:
    """Answer requests until SIGTERM or SIGINT; as a check, only open everything.

    Raises:
        DependencyError: a package of the service is not installed.
        RetrievalError: the service cannot be opened.
    """
    if settings.mcp:
        from nlp_retrieval.service.mcp import require_mcp

        require_mcp()
    if not check:
        logging.config.dictConfig(log_config(settings.log_format, settings.log_level))
        leave_notes_out()
    SessionRecord.of(settings)
    service = opening()  # before other processes open it, so that an error is reported once
    with listen(settings) as listener:
        host, port = listener.getsockname()[:2]
        on_ready(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
        if check or settings.workers > 1:
            service.close()
            del service
        if check:
            return
        if settings.workers > 1:
            _serve_by_many(opening, settings, listener)
        else:
            _serve_alone(service, settings, listener)


def _application(service: BaseService, settings: ServiceSettings) -> Observer:
    """Return the application, with its models loaded by a first query if they are to be; if that fails, requests try again."""
    log = logging.getLogger(__name__)
    if settings.warm:
        try:
            service.warm()
        except Exception as error:  # models may raise anything, and may answer again later
            log.warning("the first query failed: %s", without_secrets(str(error) or type(error).__name__))
    log.info("ready")
    return create_app(service, settings)


def _serve_alone(service: BaseService, settings: ServiceSettings, listener: socket.socket) -> None:
    server = Server(_config(settings, _application(service, settings)))

    def end(*_: object) -> None:
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):  # the server sends them to itself again when it has ended
        signal.signal(number, end)
    server.run([listener])


def _serve_by_many(opening: Callable[[], BaseService], settings: ServiceSettings, listener: socket.socket) -> None:
    supervisor = Multiprocess(_config(settings, partial(_worker, opening, settings, os.getpid()), factory=True), [listener])
    supervisor.run()
    if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes):
        raise RetrievalError("a worker could not start; see its output above")


def _worker(opening: Callable[[], BaseService], settings: ServiceSettings, parent: int) -> Observer:
    """Return the application, in a process of its own."""

    def end_with_parent() -> None:  # if it was killed, nobody else stops this process
        while os.getppid() == parent:
            time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)

    leave_notes_out()
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        return _application(opening(), settings)
    except RetrievalError as error:
        logging.getLogger(__name__).error("%s", without_secrets(str(error)))  # noqa: TRY400 -- a message for people
        raise SystemExit(STARTUP_FAILURE) from None


def _config(settings: ServiceSettings, app: Callable[..., object], *, factory: bool = False) -> Config:
    most = _most_connections()
    return Config(
        app,
        factory=factory,
        workers=settings.workers,
        ws="none",
        lifespan="on",
        log_config=log_config(settings.log_format, settings.log_level),
        access_log=False,
        proxy_headers=bool(settings.proxy),
        forwarded_allow_ips=settings.proxy,
        server_header=False,
        http=_BoundedConnection,
        limit_concurrency=most,
        timeout_keep_alive=max(1, min(_IDLE_SECONDS, int(settings.seconds))),
        backlog=min(_BACKLOG, most),  # maximum accepted at once
        timeout_graceful_shutdown=int(max(settings.seconds, WRITING_SECONDS)) + _GRACE,
        timeout_worker_healthcheck=60,
    )
