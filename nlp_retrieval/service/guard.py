"""What every request passes: it gets an id, is checked before it is read, and is logged and counted, whatever answers it.

A page in a browser on this machine can send requests to a service that listens on it, under a name that it controls. So
the name, and the origin where one is sent, must be this service's own; and a body must be declared as JSON, which no
page may send to another origin without permission.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import re
import time
import uuid
from dataclasses import replace

from prometheus_client import Counter, Gauge, Histogram
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nlp_retrieval.core.files.opening import parse_json
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.service.endpoints import Endpoint, RefusedError, RequestContext, current_request, refusal_of, refused_to_part
from nlp_retrieval.service.settings import ServiceSettings, TokenGrant, is_address

PROBES = frozenset({"/livez", "/readyz"})
"""Paths answered without a token, which reveal only whether the service works."""

METRICS = "/metrics"

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_counted = Counter("nlp_retrieval_requests", "Answered requests.", ("route", "method", "status"))
_timed = Histogram("nlp_retrieval_request_seconds", "Time of a request.", ("route", "method"), buckets=_SECONDS)
_in_flight = Gauge("nlp_retrieval_requests_in_flight", "Requests being answered.")
# figures of this process; no label has a value that a client chooses

_METHODS = frozenset({"GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"})
_LARGE = 2**18
_LINGER = 0.5
_GONE = 499
"""Status of a request whose client went away before the answer, in logs and figures."""


class RequestGuard:
    """Checks, logs and counts the requests of an application."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings, endpoints: list[Endpoint], routes: frozenset[str]) -> None:
        self._app, self._routes = app, routes
        self._open = PROBES | {endpoint.path for endpoint in endpoints if endpoint.page}
        unfiltered = {endpoint.path for endpoint in endpoints if not endpoint.filtered}
        self._filtered = {"/mcp", *(endpoint.path for endpoint in endpoints)} - unfiltered
        self._most, self._seconds = settings.body, settings.seconds
        self._grants = settings.tokens
        named = {name.lower().rstrip(".") for name in settings.allowed_hosts}
        # None for any name, which is allowed only with a token
        self._hosts = named | {"localhost", settings.host.lower()} if settings.on_loopback or named else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"].rstrip("/")
        scope = {**scope, "path": path if path in self._routes else scope["path"], "query_string": b""}  # nothing reads one
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request = given if re.fullmatch("[A-Za-z0-9_.:-]{1,128}", given) else uuid.uuid4().hex
        token = current_request.set(RequestContext(request, scope["headers"]))
        begin, status = time.perf_counter(), 0

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request.encode())]
            await send(message)

        _in_flight.inc()
        try:
            self._check_access(scope["path"], headers)
            if scope["method"] not in ("GET", "HEAD", "DELETE"):  # the body of these is not read
                receive = await self._with_body(headers, receive)
            await self._app(scope, receive, sent)
        except Exception as error:
            if not isinstance(error, RefusedError):
                logging.getLogger(__name__).exception("the request failed")
            if not status:
                await answer_to(refusal_of(error))(scope, receive, sent)
        finally:
            _in_flight.dec()
            self._record(scope, status or _GONE, time.perf_counter() - begin)
            current_request.reset(token)

    def _check_access(self, path: str, headers: Headers) -> None:
        """Refuse a host that is not this service, a page of another origin, and what the token does not allow."""
        if self._hosts is not None:
            hosts = headers.getlist("host")
            if len(hosts) != 1 or not self._is_own(hosts[0]):
                raise RefusedError(
                    421, "wrong_host", "this host name is not allowed; use localhost, or start the service with --allowed-host"
                )
            if not all(self._is_own(origin.partition("://")[2]) for origin in headers.getlist("origin")):
                raise RefusedError(403, "wrong_origin", "pages of other origins may not ask this service")
        if self._grants and path not in self._open:
            grant = self._granted(headers.getlist("authorization"))
            if grant.where is not None and path not in self._filtered:
                raise refused_to_part(path)
            current_request.set(replace(current_request.get(), token=grant.name, where=grant.where))

    def _is_own(self, written: str) -> bool:
        text = written.lower()
        name = text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0].removesuffix(".")
        # no page can be made to send an address that is not its own; probes of a container send that of the container
        return name in (self._hosts or ()) or (
            is_address(name) and (bool(self._grants) or ipaddress.ip_address(name).is_loopback)
        )

    def _granted(self, values: list[str]) -> TokenGrant:
        """Return what the token of a request may see."""
        scheme, _, token = values[0].partition(" ") if len(values) == 1 else ("", "", "")
        # digests: the comparison takes the same time for any input of any length
        digest = hashlib.sha256(token.strip().encode("latin-1")).digest()
        matching = [grant for grant in self._grants if hmac.compare_digest(digest, grant.sha256)]
        if not matching or scheme.lower() != "bearer":
            said = "the token is missing or wrong; send the header Authorization: Bearer, with the token"
            raise RefusedError(401, "unauthorized", said, {"www-authenticate": 'Bearer realm="nlp-retrieval"'})
        return matching[0]

    async def _with_body(self, headers: Headers, receive: Receive) -> Receive:
        """Return a receive function that gives the body, which has to be JSON, once, and then the messages after it."""
        declared, kind = headers.get("content-length", ""), headers.get("content-type", "").partition(";")[0].strip().lower()
        too_large = declared.isdigit() and (len(declared) > 18 or int(declared) > self._most)
        body, more = bytearray(), True
        try:
            async with asyncio.timeout(_LINGER if too_large else self._seconds):
                while more and len(body) <= 2 * self._most:  # a client that is cut off while it sends may not read the answer
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RefusedError(_GONE, "gone", "the client went away")
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
        except TimeoutError:
            if not too_large and len(body) <= self._most:
                said = f"the body did not arrive within {self._seconds:g} seconds"
                raise RefusedError(408, "too_slow", said, {"connection": "close"}) from None
        if too_large or len(body) > self._most:
            said = f"the body is larger than {self._most:,} bytes; send less at a time"
            raise RefusedError(413, "too_large", said, {"connection": "close"})
        whole = bytes(body).removeprefix(b"\xef\xbb\xbf")  # a byte order mark, as PowerShell sends it
        if kind != "application/json" and (kind or whole):  # an endpoint without a body needs neither
            raise RefusedError(415, "wrong_content_type", "send JSON, with the header Content-Type: application/json")
        try:
            if len(whole) > _LARGE:  # others are answered meanwhile
                await asyncio.to_thread(parse_json, whole)
            elif kind:
                parse_json(whole)
        except ValueError as error:
            raise RefusedError(400, "invalid_json", f"the body cannot be read: {error}") from None
        messages: list[Message] = [{"type": "http.request", "body": whole, "more_body": False}]

        async def again() -> Message:
            return messages.pop() if messages else await receive()

        return again

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        path: str = scope["path"]
        route = getattr(scope.get("route"), "path", None) or (path if path in self._routes else "other")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        _counted.labels(route, method, str(status)).inc()
        _timed.labels(route, method).observe(seconds)
        fields = {
            "method": method,
            "path": path if path in self._routes else str(without_secrets(path[:200])),
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 1),
            "client": scope["client"][0] if scope.get("client") else "",
        }
        quiet = path in PROBES or path == METRICS
        level = logging.WARNING if status >= 500 else logging.DEBUG if quiet else logging.INFO
        logging.getLogger("nlp_retrieval.access").log(level, "request", extra=fields)


def answer_to(refusal: RefusedError) -> Response:
    """Return the answer to a refused request."""
    return Response(refusal.body(), refusal.status, refusal.headers, "application/json")
