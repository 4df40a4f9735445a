"""How much of an answer is read from the wire: a server that does not stop sending fills no memory.

What was asked for is a few hundred words. Bytes are counted as they come, of errors' bodies too, and the connection is
closed at the limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from dspy import lm15

LARGEST_ANSWER = 4 * 2**20
"""Bytes of one answer, headers not counted; a hundred thousand tokens fit into it."""


class AnswerTooLargeError(lm15.LM15Error):  # type: ignore[misc]  # DSPy has no types
    """A server sent more than :data:`LARGEST_ANSWER`; it is not asked the same again."""


class Transport(Protocol):
    """Sends requests over HTTP."""

    def stream(self, request: Any) -> Any:
        """Return a response whose body is yet to be read."""

    def close(self) -> None:
        """Close the connections."""


class BoundedTransport:
    """A transport of whose answers no more than so much is read.

    Args:
        transport: sends the requests.
        largest: bytes of the body of one answer, after decompression.
    """

    def __init__(self, transport: Transport, largest: int = LARGEST_ANSWER) -> None:
        self._transport = transport
        self._largest = largest

    def stream(self, request: Any) -> Any:
        """Send a request.

        Raises:
            AnswerTooLargeError: the answer is compressed more than once: a few bytes could become any number in one step.
        """
        response = self._transport.stream(request)
        codings = [one for value in response.headers_all("Content-Encoding") for one in value.split(",") if one.strip()]
        if len(codings) > 1:
            response.close()
            raise AnswerTooLargeError(f"the answer is compressed {len(codings)} times over ({', '.join(codings)[:80]})")
        return type(response)(
            status=response.status,
            reason=response.reason,
            headers=response.headers,
            http_version=response.http_version,
            chunks=self._chunks(response),
            release=lambda body_consumed: response.close(),  # noqa: ARG005 -- the response itself knows
        )

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def _chunks(self, response: Any) -> Iterator[bytes]:
        left = self._largest
        for chunk in response:
            left -= len(chunk)
            if left < 0:
                raise AnswerTooLargeError(f"the answer is longer than {self._largest:,} bytes; the rest was not read")
            yield chunk
