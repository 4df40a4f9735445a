"""Listening: one process or several on one socket, until stopped; requests in progress are finished first.

Several processes are started fresh, not forked, and each opens the index itself; uvicorn starts those again that end.
"""

from __future__ import annotations

import asyncio
import json
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
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from typing import Any

from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError, DependencyError, RetrievalError, install
from nlp_retrieval.service.endpoints import BaseService, current_request
from nlp_retrieval.service.sessions import SessionRecord
from nlp_retrieval.service.settings import WRITING_SECONDS, ServiceSettings
from nlp_retrieval.service.work import leave_notes_out
from nlp_retrieval.text.printing import printable

if missing := [name for name in ("fastapi", "uvicorn", "prometheus_client") if find_spec(name) is None]:
    raise DependencyError(f"the service needs {' and '.join(missing)}: {install('service')}")

from uvicorn import Config, Server
from uvicorn.config import STARTUP_FAILURE
from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.supervisors import Multiprocess

from nlp_retrieval.service.application import create_app
from nlp_retrieval.service.guard import RequestGuard

# Logs on standard error: one line per request and event, with the id of the request; neither bodies, query strings nor headers.

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}
"""Attributes of every record; others were given to it as ``extra``."""

_LONGEST = 16_384


class _Formatter(logging.Formatter):
    """Time, level, message and further fields without secrets: one JSON object in ASCII, or a line with a traceback below."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage().strip(),
            "request_id": current_request.get().request_id,
        }
        entry |= {"logger": record.name, "pid": record.process} if self._form == "json" else {}
        entry |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        traceback = str(without_secrets(self.formatException(record.exc_info)))[-_LONGEST:] if record.exc_info else ""
        entry = {name: value for name, value in without_secrets(entry).items() if value not in ("", None)}
        message = entry.pop("message", "")[:_LONGEST]
        if self._form == "json":
            return json.dumps(entry | {"message": message} | ({"traceback": traceback} if traceback else {}), default=repr)
        begin = f"{entry.pop('time')} {entry.pop('level'):7} {message}"
        line = printable(" ".join([begin, *(f"{name}={value}" for name, value in entry.items())]))
        return f"{line}\n{traceback}" if traceback else line


def log_config(form: str, level: str) -> dict[str, Any]:
    """Return the configuration of all loggers, as ``logging.config.dictConfig`` takes it."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": partial(_Formatter, form)}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {name: {"level": level.upper()} for name in ("nlp_retrieval", "uvicorn")},
    }


# Connections.

_MOST = 2048
_BACKLOG = 1024
_IDLE_SECONDS = 10
_READING_SECONDS = 30
_GRACE = 5


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
            self._end_after(None)
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
        self._end_after(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_after(None)
        super().connection_lost(exc)

    def _end_after(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)


def _listen(settings: ServiceSettings) -> socket.socket:
    """Return a socket that listens on the configured address."""
    try:
        addresses = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        family, kind, protocol, _, address = addresses[0]
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
    """Answer requests until SIGTERM or SIGINT; as a check, only open everything."""
    if settings.mcp:
        from nlp_retrieval.service.mcp import require_mcp

        require_mcp()
    if not check:
        logging.config.dictConfig(log_config(settings.log_format, settings.log_level))
        leave_notes_out()
    SessionRecord(settings.record)
    service = opening()  # before other processes open it, so that an error is reported once
    with _listen(settings) as listener:
        host, port = listener.getsockname()[:2]
        on_ready(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
        if not check and settings.workers == 1:
            server = Server(_config(settings, create_app(service, settings)))

            def end(*_: object) -> None:
                server.should_exit = True

            for number in (signal.SIGTERM, signal.SIGINT):  # the server sends them to itself again when it has ended
                signal.signal(number, end)
            server.run([listener])
            return
        service.close()
        del service
        if not check:
            worker = partial(_worker, opening, settings, os.getpid())
            supervisor = Multiprocess(_config(settings, worker, factory=True), [listener])
            supervisor.run()
            if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes):
                raise RetrievalError("a worker could not start; see its output above")


def _worker(opening: Callable[[], BaseService], settings: ServiceSettings, parent: int) -> RequestGuard:
    """Return the application, in a process of its own."""

    def end_with_parent() -> None:  # if it was killed, nobody else stops this process
        while os.getppid() == parent:
            time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)

    leave_notes_out()
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        return create_app(opening(), settings)
    except RetrievalError as error:
        logging.getLogger(__name__).error("%s", without_secrets(str(error)))  # noqa: TRY400 -- a message for people
        raise SystemExit(STARTUP_FAILURE) from None


def _config(settings: ServiceSettings, app: Callable[..., object], *, factory: bool = False) -> Config:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # a fifth of the descriptors that other files leave: asyncio accepts more before the first can be closed
    most = _MOST if soft == resource.RLIM_INFINITY else max(16, min(_MOST, (soft - 96) // 5))
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
