"""Checks of a request before it is read: its host, origin, token and size; and of its body, before it is used.

A page in a browser on this machine can send requests to a service that listens on it, under a name that it controls. So
the name, and the origin where one is sent, must be this service's own; and a body must be declared as JSON, which no
page may send to another origin without permission.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import ipaddress
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import replace
from typing import Any

from nlp_retrieval.core.files.json_text import parse_json
from nlp_retrieval.service.endpoints import RefusedError, refused_to_part
from nlp_retrieval.service.logs import current_request
from nlp_retrieval.service.settings import ServiceSettings, TokenGrant, is_address

PROBES = frozenset({"/livez", "/readyz"})
"""Paths answered without a token, which reveal only whether the service works."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

_TO_CLIENTS, _TO_BROWSERS = 'Bearer realm="nlp-retrieval"', 'Basic realm="nlp-retrieval", charset="UTF-8"'
"""How the token is asked for; of several ways in one header Chromium reads only the first."""
_LARGE = 2**18
_LINGER = 0.5


class RequestGuard:
    """Refuses requests before they are read completely."""

    def __init__(
        self,
        app: App,
        settings: ServiceSettings,
        without_token: frozenset[str] = frozenset(),
        filtered: frozenset[str] = frozenset(),
    ) -> None:
        self._app = app
        self._without_token = PROBES | without_token
        self._most, self._seconds = settings.body, settings.seconds
        self._filtered = filtered
        self._grants = settings.grants
        named = {name.lower().rstrip(".") for name in settings.allowed_hosts}
        # None for any name, which is allowed only with a token
        self._hosts = named | {"localhost", settings.host.lower()} if settings.on_loopback or named else None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            headers: dict[bytes, list[bytes]] = {}
            for name, value in scope["headers"]:
                headers.setdefault(name.lower(), []).append(value)
            self._check_names(headers)
            if self._grants and scope["path"] not in self._without_token:
                grant = self._granted(headers)
                if grant.where is not None and scope["path"] not in self._filtered:
                    raise refused_to_part(scope["path"])
                current_request.set(replace(current_request.get(), token=grant.name, where=grant.where))
            if scope["method"] not in ("POST", "PATCH"):  # its body is not read
                await self._app(scope, receive, send)
                return
            body = await self._body(headers, receive)
        except RefusedError as refusal:
            await answer_refusal(refusal, send)
            return
        if body is not None:  # otherwise the client has gone away
            await self._app(scope, _replayed(body, receive), send)

    def _check_names(self, headers: dict[bytes, list[bytes]]) -> None:
        """Refuse a host that is not this service, and a page of another origin."""
        if self._hosts is None:
            return
        hosts = headers.get(b"host", [])
        if len(hosts) != 1 or not self._is_own(hosts[0]):
            raise RefusedError(
                421, "wrong_host", "this host name is not allowed; use localhost, or start the service with --allowed-host"
            )
        if not all(self._is_own(origin.partition(b"://")[2]) for origin in headers.get(b"origin", [])):
            raise RefusedError(403, "wrong_origin", "pages of other origins may not ask this service")

    def _is_own(self, written: bytes) -> bool:
        name = _host_name(written.decode("latin-1"))
        # no page can be made to send an address that is not its own; probes of a container send that of the container
        return name in (self._hosts or ()) or (
            is_address(name) and (bool(self._grants) or ipaddress.ip_address(name).is_loopback)
        )

    def _granted(self, headers: dict[bytes, list[bytes]]) -> TokenGrant:
        """Return what the token of a request may see."""
        values = headers.get(b"authorization", [])
        scheme, _, token = values[0].partition(b" ") if len(values) == 1 else (b"", b"", b"")
        if scheme.lower() == b"basic":  # a browser asks for the token as a password
            scheme, token = b"bearer", _password(token)
        # digests: the comparison takes the same time for any input of any length
        digest = hashlib.sha256(token.strip()).digest()
        matching = [grant for grant in self._grants if hmac.compare_digest(digest, grant.sha256)]
        if not matching or scheme.lower() != b"bearer":
            raise RefusedError(
                401,
                "unauthorized",
                "the token is missing or wrong; send the header Authorization: Bearer, with the token",
                {"www-authenticate": _TO_BROWSERS if b"text/html" in b"".join(headers.get(b"accept", [])) else _TO_CLIENTS},
            )
        return matching[0]

    async def _body(self, headers: dict[bytes, list[bytes]], receive: Receive) -> bytes | None:
        """Return the body, which has to be JSON; None if the client went away."""
        kind = b"".join(headers.get(b"content-type", [])).partition(b";")[0].strip().lower()
        declared = b"".join(headers.get(b"content-length", []))
        too_large = declared.isdigit() and (len(declared) > 18 or int(declared) > self._most)
        parts, size, more = [], 0, True
        try:
            async with asyncio.timeout(_LINGER if too_large else self._seconds):
                while more and size <= 2 * self._most:  # a client that is cut off while it sends may never read the answer
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    part = message.get("body", b"")
                    size += len(part)
                    parts += [part] if size <= self._most else []
                    more = message.get("more_body", False)
        except TimeoutError:
            if not too_large and size <= self._most:
                said = f"the body did not arrive within {self._seconds:g} seconds"
                raise RefusedError(408, "too_slow", said, {"connection": "close"}) from None
        if too_large or size > self._most:
            said = f"the body is larger than {self._most:,} bytes; send less at a time"
            raise RefusedError(413, "too_large", said, {"connection": "close"})
        if not kind and not size:
            return b""  # for an endpoint without a body
        if kind != b"application/json":
            raise RefusedError(415, "wrong_content_type", "send JSON, with the header Content-Type: application/json")
        body = b"".join(parts)
        try:
            if size > _LARGE:  # others are answered meanwhile
                await asyncio.to_thread(parse_json, body)
            else:
                parse_json(body)
        except ValueError as error:
            raise RefusedError(400, "invalid_json", f"the body cannot be read: {error}") from None
        return body


async def answer_refusal(refusal: RefusedError, send: Send) -> None:
    """Send the answer to a refused request."""
    body = refusal.body()
    headers = {"content-type": "application/json", "content-length": str(len(body))} | refusal.headers
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a receive function that gives a body already read, once, and then the messages after it."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again


def _host_name(value: str) -> str:
    """The name in a Host header, without the port."""
    if value.startswith("["):
        return value[1:].partition("]")[0].lower()
    return value.partition(":")[0].lower().removesuffix(".")


def _password(credentials: bytes) -> bytes:
    """Return the password of Basic authentication; empty if there is none."""
    try:
        return base64.b64decode(credentials.strip(), validate=True).partition(b":")[2]
    except ValueError:
        return b""
