"""A limit on the size of an answer: a server that does not stop sending cannot fill the memory.

A good answer has a few hundred words. Bytes are counted as they arrive, including the bodies of errors, and the connection is
closed at the limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from dspy import lm15

LARGEST_ANSWER = 4 * 2**20
"""Bytes of one answer without its headers; enough for a hundred thousand tokens."""


class AnswerTooLargeError(lm15.LM15Error):  # type: ignore[misc]  # DSPy has no types
    """A server sent more than :data:`LARGEST_ANSWER`; the request is not retried."""


class Transport(Protocol):
    """Sends requests over HTTP."""

    def stream(self, request: Any) -> Any:
        """Return a response whose body has not been read yet."""

    def close(self) -> None:
        """Close the connections."""


class BoundedTransport:
    """A transport that reads at most :data:`LARGEST_ANSWER` bytes of the body of an answer, after decompression.

    Args:
        transport: sends the requests.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def stream(self, request: Any) -> Any:
        """Send a request.

        Raises:
            AnswerTooLargeError: the answer is compressed more than once, so a few bytes could expand without limit.
        """
        response = self._transport.stream(request)
        headers = response.headers_all("Content-Encoding")
        codings = [coding for header in headers for coding in header.split(",") if coding.strip()]
        if len(codings) > 1:
            response.close()
            raise AnswerTooLargeError(f"the answer is compressed {len(codings)} times over ({', '.join(codings)[:80]})")
        return type(response)(
            status=response.status,
            reason=response.reason,
            headers=response.headers,
            http_version=response.http_version,
            chunks=self._chunks(response),
            release=lambda body_consumed: response.close(),  # noqa: ARG005 -- the response knows itself whether it was read
        )

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def _chunks(self, response: Any) -> Iterator[bytes]:
        left = LARGEST_ANSWER
        for chunk in response:
            left -= len(chunk)
            if left < 0:
                raise AnswerTooLargeError(f"the answer is longer than {LARGEST_ANSWER:,} bytes; the rest was not read")
            yield chunk
