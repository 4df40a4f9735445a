"""Connections that ask nothing do not keep out those that do."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest
from soaking import mostly_soaked

from .running import Running, make_index, running

TOKEN = "a-token-of-the-test"
HALF_A_HEAD = b"POST /search HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bear"


@contextlib.contextmanager
def opened(service: Running, sent: bytes, count: int) -> Iterator[list[socket.socket]]:
    """Connections that have sent something and go on no further."""
    with contextlib.ExitStack() as stack:
        sockets = []
        for _ in range(count):
            sockets.append(stack.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=300)))
            with contextlib.suppress(ConnectionError):
                sockets[-1].sendall(sent)
        yield sockets


def is_ended(connection: socket.socket) -> bool:
    """Wait until the other side ends a connection."""
    with contextlib.suppress(ConnectionError):
        while connection.recv(65536):
            pass
    return True


@pytest.mark.parametrize("sent", mostly_soaked([b"", HALF_A_HEAD, b"GET /stats HTTP/1.1\r\nHost: localhost\r\n\r\n"]))
def test_idle_connections_keep_nobody_out(tmp_path, sent):
    make_index(tmp_path / "index")
    words = [tmp_path / "index", "--workers", "2" if sent else "1"]
    with running(words, descriptors=256, NLP_RETRIEVAL_TOKEN=TOKEN) as service, opened(service, sent, 300):
        for _ in range(5):
            with service.client(TOKEN) as client:
                assert client.get("/readyz").status_code == 200
                assert client.post("/search", json={"query": "fox", "k": 3}).status_code == 200


def test_a_connection_that_asks_nothing_is_ended(tmp_path):
    make_index(tmp_path / "index")
    halves = (
        b"",
        HALF_A_HEAD,
        b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /read",
        b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf",
    )
    with running([tmp_path / "index", "--seconds", "1"]) as service, contextlib.ExitStack() as stack:
        connections = [stack.enter_context(opened(service, sent, 1))[0] for sent in halves]
        for connection in connections:
            assert is_ended(connection)
