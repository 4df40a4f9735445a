"""One attempt to get an answer, within a time limit for the whole of it.

A socket's time-out only limits the wait for the next byte: a server that sends one now and then, like gateways while a model is
thinking, would be waited for indefinitely.
"""

from __future__ import annotations

from concurrent.futures import Future, wait
from threading import Thread
from typing import Any, Protocol

from dspy import lm15


class Wire(Protocol):
    """Sends a ``dspy.lm15.Request`` once."""

    def complete(self, request: Any) -> Any:
        """Return the ``dspy.lm15.Response``."""

    def close(self) -> None:
        """Close the connections."""


class BoundedWire:
    """A wire with a time limit for each attempt.

    A longer attempt goes on in a thread of its own, which ends when the server stops sending. There are at most as many such
    threads as the wire has connections.

    Args:
        wire: sends a request; its own time-outs end attempts at a server that sends nothing.
        seconds: limit for a whole attempt, from the connection to the last byte.
    """

    def __init__(self, wire: Wire, seconds: float) -> None:
        self._wire = wire
        self._seconds = seconds

    def complete(self, request: Any) -> Any:
        """Send a request.

        Raises:
            lm15.LM15Error: there is no complete answer in time.
        """
        answer: Future[Any] = Future()
        Thread(target=self._send, args=(request, answer), name="nlp_retrieval-lm-wire", daemon=True).start()
        if not wait([answer], self._seconds).done:
            raise lm15.TransportError(f"timed out: no whole answer within {self._seconds:g} s")
        return answer.result()

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()

    def _send(self, request: Any, answer: Future[Any]) -> None:
        try:
            answer.set_result(self._wire.complete(request))
        except BaseException as error:
            answer.set_exception(error)
