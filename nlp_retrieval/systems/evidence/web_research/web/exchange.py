"""One request for a page and its answer, bounded in time and in bytes, also after decompression.

A request carries no cookie, no credentials and no referrer, goes through no proxy, and follows no redirect.
"""

from __future__ import annotations

import ssl
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from nlp_retrieval.errors import FetchError
from nlp_retrieval.systems.evidence.web_research.web.connections import Deadline, GuardedBackend, Resolve
from nlp_retrieval.systems.evidence.web_research.web.httpcore_package import httpcore
from nlp_retrieval.systems.evidence.web_research.web.target import WebTarget, shown

__all__ = ["WebAnswer", "ask_web"]

_STEP = 2**16


@dataclass(frozen=True)
class WebAnswer:
    """Answer of a server.

    Args:
        status: of HTTP.
        headers: by their names in lower case; the first of repeated ones.
        body: decompressed; empty if the status is neither 200 nor wanted.
    """

    status: int
    headers: dict[str, str]
    body: bytes


def ask_web(
    target: WebTarget,
    deadline: Deadline,
    max_bytes: int,
    user_agent: str,
    accept: str,
    resolve: Resolve,
    *,
    private: bool = False,
) -> WebAnswer:
    """Request a page once.

    Args:
        target: to request.
        deadline: of the whole exchange.
        max_bytes: the most bytes of the answer, as sent and after decompression.
        user_agent: of the request.
        accept: wanted media types.
        resolve: returns the addresses of a host.
        private: whether the host may have an address that is not public.

    Raises:
        FetchRefusedError: the host is not on the public internet.
        FetchError: there is no answer, or it is too large, too slow, or broken.
    """
    where = shown(target.url)
    headers = [
        (b"Host", target.authority.encode()),
        (b"User-Agent", user_agent.encode()),
        (b"Accept", accept.encode()),
        (b"Accept-Encoding", b"gzip, identity"),
        (b"Connection", b"close"),
    ]
    scheme, host, path = target.scheme.encode(), target.host.encode(), target.path.encode()
    connection = httpcore.HTTPConnection(
        httpcore.Origin(scheme, host, target.port),
        ssl_context=_ssl_context() if target.scheme == "https" else None,
        network_backend=GuardedBackend(deadline, resolve, private),
    )
    request = httpcore.Request("GET", httpcore.URL(scheme=scheme, host=host, port=target.port, target=path), headers=headers)
    try:
        with connection:
            response = connection.handle_request(request)
            try:
                answered: dict[str, str] = {}
                for name, value in response.headers:
                    answered.setdefault(name.decode("latin-1").lower(), value.decode("utf-8", "replace"))
                body = b""
                if response.status == 200:
                    body = _bounded(_plain(response.iter_stream(), answered, max_bytes, where), max_bytes, where)
            finally:
                response.close()
    except httpcore.TimeoutException:
        raise deadline.passed() from None
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ConnectionNotAvailable) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise FetchError(f"{where}: the server gave no whole answer ({shown(reason)})") from None
    return WebAnswer(response.status, answered, body)


@cache
def _ssl_context() -> ssl.SSLContext:
    return httpcore.default_ssl_context()


def _plain(parts: Iterable[bytes], headers: dict[str, str], max_bytes: int, where: str) -> Iterator[bytes]:
    """Yield the parts of a body, decompressed a step at a time."""
    length = headers.get("content-length", "")
    if length.isascii() and length.isdigit() and (len(length) > 18 or int(length) > max_bytes):
        raise _too_large(max_bytes, where)
    coding = headers.get("content-encoding", "").strip().lower()
    if coding in ("", "identity"):
        yield from parts
    elif coding in ("gzip", "x-gzip"):
        yield from _unpacked(parts, max_bytes, where)
    else:
        raise FetchError(f"{where}: the answer is compressed as {shown(coding)!r}, which was not asked for and is not read")


def _unpacked(parts: Iterable[bytes], max_bytes: int, where: str) -> Iterator[bytes]:
    received = 0
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        for part in parts:
            received += len(part)
            if received > max_bytes:
                raise _too_large(max_bytes, where)
            rest = part
            while rest and not unpacking.eof:
                yield unpacking.decompress(rest, _STEP)
                rest = unpacking.unconsumed_tail
        while not unpacking.eof and (more := unpacking.decompress(unpacking.unconsumed_tail, _STEP)):
            yield more
    except zlib.error as error:
        raise FetchError(f"{where}: the answer cannot be decompressed ({error})") from None
    if not unpacking.eof:
        raise FetchError(f"{where}: the compressed answer was cut off")


def _bounded(parts: Iterable[bytes], max_bytes: int, where: str) -> bytes:
    body = bytearray()
    for part in parts:
        body += part
        if len(body) > max_bytes:
            raise _too_large(max_bytes, where)
    return bytes(body)


def _too_large(max_bytes: int, where: str) -> FetchError:
    return FetchError(f"{where}: the answer is larger than {max_bytes:,} bytes; download it yourself, or allow more")
