"""The outermost layer of the service: every request has an id, is logged and counted, whatever answers it."""

from __future__ import annotations

import logging
import string
import time
import uuid

from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.service.endpoints import refusal_of
from nlp_retrieval.service.guard import App, Message, Receive, Send, answer_refusal
from nlp_retrieval.service.logs import ACCESS, RequestContext, current_request
from nlp_retrieval.service.metrics import METHODS, Metrics

__all__ = ["Observer"]

_LONGEST_ID = 128
_OF_AN_ID = frozenset(string.ascii_letters + string.digits + "-_.:")
_LONGEST_PATH = 200
_GONE = 499
"""Status of a request whose client went away before the answer, in logs and figures."""

_access = logging.getLogger(ACCESS)


class Observer:
    """Logs and counts the requests of an application."""

    def __init__(self, app: App, routes: frozenset[str], quiet: frozenset[str], metrics: Metrics) -> None:
        self._app, self._routes, self._quiet, self._metrics = app, routes, quiet, metrics

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"].rstrip("/")
        scope = {**scope, "path": path if path in self._routes else scope["path"], "query_string": b""}  # nothing reads one
        request = _id_of(scope)
        token = current_request.set(RequestContext(request, scope["headers"]))
        begin, status = time.perf_counter(), 0

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request.encode())]
            await send(message)

        self._metrics.in_flight.inc()
        try:
            await self._app(scope, receive, sent)
        except Exception as error:
            logging.getLogger(__name__).exception("the request failed")
            if not status:
                await answer_refusal(refusal_of(error), sent)
        finally:
            self._metrics.in_flight.dec()
            self._record(scope, status or _GONE, time.perf_counter() - begin)
            current_request.reset(token)

    def _record(self, scope: Message, status: int, seconds: float) -> None:
        path: str = scope["path"]
        route = getattr(scope.get("route"), "path", None) or (path if path in self._routes else "other")
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._metrics.count_request(route, method, status, seconds)
        level = logging.WARNING if status >= 500 else logging.DEBUG if path in self._quiet else logging.INFO
        if _access.isEnabledFor(level):
            fields = {
                "method": method,
                "path": path if path in self._routes else str(without_secrets(path[:_LONGEST_PATH])),
                "route": route,
                "status": status,
                "ms": round(seconds * 1000, 1),
                "client": scope["client"][0] if scope.get("client") else "",
            }
            _access.log(level, "request", extra=fields)


def _id_of(scope: Message) -> str:
    """The id that the client or a proxy gave, if it is a short word; otherwise a new one."""
    given = [value for name, value in scope["headers"] if name == b"x-request-id"]
    word = given[0].decode("latin-1") if len(given) == 1 else ""
    return word if 0 < len(word) <= _LONGEST_ID and _OF_AN_ID.issuperset(word) else uuid.uuid4().hex
