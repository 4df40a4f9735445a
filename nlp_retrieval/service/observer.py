"""The outermost layer of the service: every request has an id, is logged and counted, whatever answers it.

The figures are those of one process, for Prometheus. No label has a value that a client chooses: routes are those of the
schema, and other methods and paths count as ``other``.
"""

from __future__ import annotations

import logging
import re
import time
import uuid

from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.service.endpoints import refusal_of
from nlp_retrieval.service.guard import PROBES, App, Message, Receive, Send, answer_refusal
from nlp_retrieval.service.logs import ACCESS, RequestContext, current_request

_GONE = 499
"""Status of a request whose client went away before the answer, in logs and figures."""

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_METHODS = frozenset({"GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"})
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Metrics:
    """The figures of one process."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
        from prometheus_client.process_collector import ProcessCollector

        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        route = ("route", "method")
        name = "nlp_retrieval_{}".format
        self._requests = Counter(name("requests"), "Answered requests.", (*route, "status"), registry=registry)
        self._seconds = Histogram(name("request_seconds"), "Time of a request.", route, buckets=_SECONDS, registry=registry)
        self.in_flight = Gauge(name("requests_in_flight"), "Requests being answered.", registry=registry)

    def count_request(self, route: str, method: str, status: int, seconds: float) -> None:
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route, method).observe(seconds)

    def written(self) -> bytes:
        """Return all figures as Prometheus reads them."""
        from prometheus_client import generate_latest

        return generate_latest(self._registry)


class Observer:
    """Logs and counts the requests of an application."""

    def __init__(self, app: App, routes: frozenset[str], quiet: frozenset[str], metrics: Metrics) -> None:
        self._app, self._routes, self._quiet, self._metrics = app, routes, PROBES | quiet, metrics

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"].rstrip("/")
        scope = {**scope, "path": path if path in self._routes else scope["path"], "query_string": b""}  # nothing reads one
        given = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
        request = given if re.fullmatch("[A-Za-z0-9_.:-]{1,128}", given) else uuid.uuid4().hex
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
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._metrics.count_request(route, method, status, seconds)
        fields = {
            "method": method,
            "path": path if path in self._routes else str(without_secrets(path[:200])),
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 1),
            "client": scope["client"][0] if scope.get("client") else "",
        }
        level = logging.WARNING if status >= 500 else logging.DEBUG if path in self._quiet else logging.INFO
        logging.getLogger(ACCESS).log(level, "request", extra=fields)
