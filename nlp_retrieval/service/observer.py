"""The outermost layer of the service: every request has an id, is logged, counted and traced, whatever answers it."""

from __future__ import annotations

import logging
import string
import time
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import nullcontext
from typing import Any

from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.service.endpoints import refusal_of
from nlp_retrieval.service.guard import answer_refusal
from nlp_retrieval.service.logs import ACCESS, RequestContext, current_request
from nlp_retrieval.service.metrics import METHODS, Metrics
from nlp_retrieval.service.tracing import Tracing

__all__ = ["Observer"]

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[_Message, _Receive, _Send], Awaitable[None]]

_LONGEST_ID = 128
_OF_AN_ID = frozenset(string.ascii_letters + string.digits + "-_.:")
_LONGEST_PATH = 200
_GONE = 499
"""Status of a request whose client went away before the answer, in logs and figures."""

_access = logging.getLogger(ACCESS)


class Observer:
    """Logs and counts the requests of an application.

    Args:
        app: the ASGI application.
        routes: its paths without parameters, for requests that are refused before they are routed.
        quiet: paths of probes, which are logged at the level ``debug``.
        metrics: where requests are counted.
        tracing: makes a span of each request that is no probe; None for no spans.
    """

    def __init__(
        self, app: _App, routes: frozenset[str], quiet: frozenset[str], metrics: Metrics, tracing: Tracing | None = None
    ) -> None:
        self._app, self._routes, self._quiet, self._metrics, self._tracing = app, routes, quiet, metrics, tracing

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = _id_of(scope)
        token = current_request.set(RequestContext(request, scope["headers"]))
        begin, status = time.perf_counter(), 0
        method = scope["method"] if scope["method"] in METHODS else "other"

        async def sent(message: _Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request.encode())]
            await send(message)

        traced = self._tracing is not None and scope["path"] not in self._quiet
        self._metrics.in_flight.inc()
        with self._tracing.request(method, scope["headers"]) if self._tracing and traced else nullcontext() as span:
            try:
                await self._app(scope, receive, sent)
            except Exception as error:
                logging.getLogger(__name__).exception("the request failed")
                if not status:
                    await answer_refusal(refusal_of(error), sent)
            finally:
                self._metrics.in_flight.dec()
                route = self._route(scope)
                trace = ""
                if self._tracing is not None and span is not None:
                    trace = self._tracing.end_request(span, method, route, status or _GONE, request)
                self._record(scope, route, status or _GONE, time.perf_counter() - begin, trace)
                current_request.reset(token)

    def _route(self, scope: _Message) -> str:
        path: str = scope["path"]
        return getattr(scope.get("route"), "path", None) or (path if path in self._routes else "other")

    def _record(self, scope: _Message, route: str, status: int, seconds: float, trace: str) -> None:
        path, method = scope["path"], scope["method"]
        self._metrics.count_request(route, method, status, seconds)
        level = logging.WARNING if status >= 500 else logging.DEBUG if path in self._quiet else logging.INFO
        if _access.isEnabledFor(level):
            fields = {
                "method": method[:20],
                "path": path if path in self._routes else str(without_secrets(path[:_LONGEST_PATH])),
                "route": route,
                "status": status,
                "ms": round(seconds * 1000, 1),
                "client": scope["client"][0] if scope.get("client") else "",
                "trace_id": trace,
            }
            _access.log(level, "request", extra=fields)


def _id_of(scope: _Message) -> str:
    """The id that the client or a proxy gave, if it is a short word; otherwise a new one."""
    given = [value for name, value in scope["headers"] if name == b"x-request-id"]
    word = given[0].decode("latin-1") if len(given) == 1 else ""
    return word if 0 < len(word) <= _LONGEST_ID and _OF_AN_ID.issuperset(word) else uuid.uuid4().hex
