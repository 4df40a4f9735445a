"""Requests to the web: only to allowed addresses, and bounded in time and in bytes."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import time
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import cache
from threading import Thread
from typing import Any

from nlp_retrieval.errors import DependencyError, FetchError, FetchRefusedError, install
from nlp_retrieval.systems.evidence.web_research.addresses import USER_AGENT, WebTarget, shown

try:
    import httpcore2
    import protego  # noqa: F401 -- what fetches pages needs it too
except ImportError as error:
    raise DependencyError(f"fetching over HTTP needs httpcore2 and protego: {install('research')} ({error})") from None


# Only addresses on the public internet, by IANA's registries: Python's own ``is_global`` has changed between versions.

_NOT_PUBLIC_4 = tuple(
    ipaddress.IPv4Network(network)
    for network in """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
    192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
    """.split()
)
"""This network, private use, carrier-grade NAT, loopback, a cloud's own services, link-local, documentation, relays of 6to4,
benchmarks, multicast, reserved."""

_PUBLIC_6 = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(ipaddress.IPv6Network(network) for network in "2001::/23 2001:db8::/32 2002::/16 3fff::/20".split())
"""Exceptions within the public range: protocols' own addresses (Teredo and others), documentation, 6to4. Other embedded IPv4
addresses (mapped, compatible, NAT64) are outside of it, and so are loopback, link-local, private and multicast addresses."""


def not_public(address: str) -> str | None:
    """Return why an address is not on the public internet, as a phrase; None if it is."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return f"{address[:60]!r} is not an address"
    if isinstance(ip, ipaddress.IPv4Address):
        network = next((known for known in _NOT_PUBLIC_4 if ip in known), None)
        return None if network is None else f"{ip} is not on the public internet ({network})"
    if ip.scope_id is None and ip in _PUBLIC_6 and not any(ip in known for known in _NOT_PUBLIC_6):
        return None
    return f"{ip} is not on the public internet"


# A host is resolved once, and the connection goes to the checked address: so a name cannot have one address when it is
# checked and another when it is used (DNS rebinding).


class Deadline:
    """Time limit of one whole fetch."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self, most: float | None = None) -> float:
        """Return the seconds left, more than 0 and no more than some; a ``FetchError`` if none are left."""
        seconds = self._end - time.monotonic()
        if seconds <= 0:
            raise self.passed()
        return seconds if most is None else min(seconds, most)

    def passed(self) -> FetchError:
        """Return the error for an answer that is not complete in time."""
        return FetchError(f"there was no complete answer within {self._seconds:g} s; try again, or allow more seconds")


def resolve_host(host: str, port: int) -> list[str]:
    """Return the addresses of a host, by the resolver of this machine; a numeric address resolves to itself."""
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


class GuardedBackend(httpcore2.NetworkBackend):
    """Connects to public addresses only, unless the host is private, and bounds every wait by a deadline."""

    def __init__(self, deadline: Deadline, private: bool) -> None:
        self._deadline, self._private = deadline, private
        self._backend = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        """Connect to the first address of a host that answers, if all are public."""
        addresses = self._addresses(host, port)
        if not addresses:
            raise FetchError(f"the host {host} has no address; check how it is written")
        for address in addresses:
            reason = None if self._private else not_public(address)
            if reason is not None:
                raise FetchRefusedError(f"{host}: {reason}; it is fetched only if the user allows this host")
        while True:
            address, *addresses = addresses
            share = self._deadline.left(timeout) / (1 + len(addresses))
            try:
                stream = self._backend.connect_tcp(address, port, share, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if not addresses:
                    raise
            else:
                return _BoundedStream(stream, self._deadline)

    def _addresses(self, host: str, port: int) -> list[str]:
        answer: Future[list[str]] = Future()
        # a resolver cannot be interrupted; an abandoned thread ends by itself
        Thread(target=_fill, args=(answer, host, port), name="nlp_retrieval-resolver", daemon=True).start()
        if not wait([answer], self._deadline.left()).done:
            raise self._deadline.passed()
        try:
            return answer.result()
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise FetchError(f"the host {host} is not known ({reason}); check the address and the network") from None


def _fill(answer: Future[list[str]], host: str, port: int) -> None:
    try:
        answer.set_result(resolve_host(host, port))
    except BaseException as error:
        answer.set_exception(error)


class _BoundedStream(httpcore2.NetworkStream):
    """A stream whose every wait ends at the deadline."""

    def __init__(self, stream: httpcore2.NetworkStream, deadline: Deadline) -> None:
        self._stream, self._deadline = stream, deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.left(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, self._deadline.left(timeout))
        return _BoundedStream(stream, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


# A request carries no cookie, no credentials and no referrer, goes through no proxy, and follows no redirect.

_STEP = 2**16
_tls = cache(httpcore2.default_ssl_context)


@dataclass(frozen=True)
class WebAnswer:
    """Answer of a server: lower-case headers, the first of repeated ones, and the decompressed body if the status is 200."""

    status: int
    headers: dict[str, str]
    body: bytes


def ask_web(target: WebTarget, deadline: Deadline, max_bytes: int, accept: str, *, private: bool) -> WebAnswer:
    """Request a page once; ``private`` says whether its host may have an address that is not public."""
    where = shown(target.url)
    headers = [
        (b"Host", target.authority.encode()),
        (b"User-Agent", USER_AGENT.encode()),
        (b"Accept", accept.encode()),
        (b"Accept-Encoding", b"gzip, identity"),
        (b"Connection", b"close"),
    ]
    scheme, host, path = target.scheme.encode(), target.host.encode(), target.path.encode()
    connection = httpcore2.HTTPConnection(
        httpcore2.Origin(scheme, host, target.port),
        ssl_context=_tls() if target.scheme == "https" else None,
        network_backend=GuardedBackend(deadline, private),
    )
    request = httpcore2.Request("GET", httpcore2.URL(scheme=scheme, host=host, port=target.port, target=path), headers=headers)
    try:
        with connection:
            response = connection.handle_request(request)
            try:
                answered: dict[str, str] = {}
                for name, value in response.headers:
                    answered.setdefault(name.decode("latin-1").lower(), value.decode("utf-8", "replace"))
                body = bytearray()
                if response.status == 200:
                    coding = answered.get("content-encoding", "").strip().lower()
                    received = _bounded(response.iter_stream(), max_bytes, where)
                    for part in _bounded(_unpacked(received, coding, where), max_bytes, where):
                        body += part
            finally:
                response.close()
    except httpcore2.TimeoutException:
        raise deadline.passed() from None
    except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.ConnectionNotAvailable) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise FetchError(f"{where}: the server gave no complete answer ({shown(reason)})") from None
    return WebAnswer(response.status, answered, bytes(body))


def _unpacked(parts: Iterable[bytes], coding: str, where: str) -> Iterator[bytes]:
    """Yield the parts of a body, decompressed a step at a time."""
    if coding in ("", "identity"):
        yield from parts
        return
    if coding not in ("gzip", "x-gzip"):
        raise FetchError(f"{where}: the answer is compressed as {shown(coding)!r}, which was not requested")
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        for part in parts:
            left = part
            while left:
                if unpacking.eof:  # what follows is another member, or an error
                    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
                yield unpacking.decompress(left, _STEP)
                left = unpacking.unconsumed_tail or unpacking.unused_data
        yield unpacking.flush()
    except zlib.error as error:
        raise FetchError(f"{where}: the answer cannot be decompressed ({error})") from None
    if not unpacking.eof:
        raise FetchError(f"{where}: the compressed answer was cut off")


def _bounded(parts: Iterable[bytes], max_bytes: int, where: str) -> Iterator[bytes]:
    """Yield parts until there are too many bytes of them."""
    received = 0
    for part in parts:
        received += len(part)
        if received > max_bytes:
            raise FetchError(f"{where}: the answer is larger than {max_bytes:,} bytes; download it yourself, or allow more")
        yield part
