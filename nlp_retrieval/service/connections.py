"""Limits on connections: their number, and the time for sending a request and reading its answer.

A connection uses a descriptor before it shows a token. Therefore the head of a request must arrive within seconds, and if
connections run out, idle ones are closed: the oldest one of the address with the most connections.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter

from uvicorn.protocols.http.auto import AutoHTTPProtocol

__all__ = ["BoundedConnection", "most_connections"]

_MOST, _FEWEST, _FOR_OTHER_FILES = 2048, 16, 96
_READING_SECONDS = 30


def most_connections() -> int:
    """Return the maximum number of connections: a fifth of the descriptors not used by other files, at most 2,048.

    asyncio accepts as many again in each of three rounds before the first of them can be closed.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if soft == resource.RLIM_INFINITY else max(_FEWEST, min(_MOST, (soft - _FOR_OTHER_FILES) // 5))


class BoundedConnection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # one of two classes, chosen when imported
    """A uvicorn connection that is closed if no request arrives, or if nobody reads the answer."""

    _timer: asyncio.TimerHandle | None = None
    asked_last = 0.0

    @property
    def idle(self) -> bool:
        """Return whether no request is in progress."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start waiting for the head of a request, and make room for other connections."""
        super().connection_made(transport)
        self.asked_last = self.loop.time()
        self._end_after(self.timeout_keep_alive)
        if len(self.connections) > self.limit_concurrency * 7 // 8:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Continue reading; the first bytes of another head start another wait."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._stop_timer()
        elif self.idle and self._timer is None:
            self._end_after(self.timeout_keep_alive)

    def on_response_complete(self) -> None:
        """Record when the connection became idle."""
        self.asked_last = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Start waiting for a client that does not read."""
        super().pause_writing()
        self._end_after(_READING_SECONDS)

    def resume_writing(self) -> None:
        """Stop waiting: the client is reading."""
        super().resume_writing()
        self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection."""
        self._stop_timer()
        super().connection_lost(exc)

    def _end_after(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _make_room(self) -> None:
        idle = [other for other in self.connections if other is not self and other.idle and not other.transport.is_closing()]
        if idle:
            per_address = Counter(_address(other) for other in idle)
            busiest = max(per_address.values())
            candidates = [other for other in idle if per_address[_address(other)] == busiest]
            min(candidates, key=lambda other: other.asked_last).transport.abort()


def _address(connection: BoundedConnection) -> str:
    return connection.client[0] if connection.client else ""
