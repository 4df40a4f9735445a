"""Connections only to allowed addresses, and with a deadline.

A host is resolved once, and the connection goes to the checked address.

This prevents DNS rebinding: a name with one address when it is checked and another when it is used.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from threading import Thread
from typing import Any

from nlp_retrieval.errors import FetchError, FetchRefusedError
from nlp_retrieval.systems.evidence.web_research.web.httpcore_package import httpcore
from nlp_retrieval.systems.evidence.web_research.web.networks import not_public

__all__ = ["Deadline", "GuardedBackend", "Resolve", "resolve_host"]

Resolve = Callable[[str, int], list[str]]
"""Function from a host and a port to the host's numeric addresses."""


class Deadline:
    """Time limit of one whole fetch.

    Args:
        seconds: from now on.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self, most: float | None = None) -> float:
        """Return the seconds left, more than 0.

        Args:
            most: return no more than this.

        Raises:
            FetchError: none are left.
        """
        left = self._end - time.monotonic()
        if left <= 0:
            raise self.passed()
        return left if most is None else min(left, most)

    def passed(self) -> FetchError:
        """Return the error for an answer that is not complete in time."""
        return FetchError(f"there was no whole answer within {self._seconds:g} s; try again, or allow more seconds")


def resolve_host(host: str, port: int) -> list[str]:
    """Return the addresses of a host, by the resolver of this machine; a numeric address resolves to itself.

    Raises:
        OSError: the host is unknown.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class GuardedBackend(httpcore.NetworkBackend):
    """Connects to public addresses only, and bounds every wait by a deadline.

    Args:
        deadline: of the whole fetch.
        resolve: returns the addresses of a host.
        private: whether the host may have any address.
    """

    def __init__(self, deadline: Deadline, resolve: Resolve, private: bool) -> None:
        self._deadline, self._resolve, self._private = deadline, resolve, private
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address of a host that answers.

        Raises:
            FetchRefusedError: one of its addresses is not public.
            FetchError: it is unknown, or no address answers.
        """
        addresses = self._addresses(host, port)
        if not addresses:
            raise FetchError(f"the host {host} has no address; check how it is written")
        for address in addresses:
            reason = None if self._private else not_public(address)
            if reason is not None:
                raise FetchRefusedError(f"{host}: {reason}; nothing there is fetched unless the user names this host")
        while True:
            address, *addresses = addresses
            share = self._deadline.left(timeout) / (1 + len(addresses))
            try:
                stream = self._backend.connect_tcp(address, port, share, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if not addresses:
                    raise
            else:
                return _BoundedStream(stream, self._deadline)

    def _addresses(self, host: str, port: int) -> list[str]:
        answer: Future[list[str]] = Future()
        # a resolver cannot be interrupted; an abandoned thread ends by itself
        Thread(target=_fill, args=(answer, self._resolve, host, port), name="nlp_retrieval-resolver", daemon=True).start()
        if not wait([answer], self._deadline.left()).done:
            raise self._deadline.passed()
        try:
            return answer.result()
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise FetchError(f"the host {host} is not known ({reason}); check the address and the network") from None


def _fill(answer: Future[list[str]], resolve: Resolve, host: str, port: int) -> None:
    try:
        answer.set_result(resolve(host, port))
    except BaseException as error:
        answer.set_exception(error)


class _BoundedStream(httpcore.NetworkStream):
    """A stream whose every wait ends at the deadline."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream, self._deadline = stream, deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.left(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, self._deadline.left(timeout))
        return _BoundedStream(stream, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
