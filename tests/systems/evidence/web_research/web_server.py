"""A web server on 127.0.0.1 whose pages a test decides."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import repeat

from local_server import QuietHandler, serving


@dataclass
class Page:
    """What is answered.

    Args:
        body: bytes of it.
        status: of HTTP.
        media_type: of the body.
        headers: further ones; "Content-Length" replaces the right one.
        again: a part that is sent after the body again and again, until the client hangs up.
        pause: seconds before each of these parts.
        head_too: whether the body is all that is sent, status line and headers among it.
    """

    body: bytes = b""
    status: int = 200
    media_type: str = "text/html; charset=utf-8"
    headers: dict[str, str] = field(default_factory=dict)
    again: bytes = b""
    pause: float = 0.0
    head_too: bool = False


def html(text: str) -> Page:
    """A page of one paragraph."""
    return Page(f"<html><head><title>A page</title></head><body><p>{text}</p></body></html>".encode())


def redirect(location: str, status: int = 302) -> Page:
    return Page(status=status, headers={"Location": location})


@dataclass
class WebServer:
    """What a test knows of a server.

    Args:
        port: that it listens on.
        pages: by path; a function takes the path with its query.
        asked: paths with their queries, in the order of asking.
        headers: of the requests.
        sent: bytes that were sent of the parts that come again and again.
    """

    port: int
    pages: dict[str, Page | Callable[[str], Page]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    sent: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def web_server() -> Iterator[WebServer]:
    """Serve until the block ends."""
    closing = threading.Event()

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            if self.path in known.pages or self.path != "/robots.txt":
                known.asked.append(self.path)
            known.headers.append({name.lower(): value for name, value in self.headers.items()})
            found = known.pages.get(self.path.partition("?")[0], Page(b"nothing here", 404, "text/plain"))
            page = found if isinstance(found, Page) else found(self.path)
            self.close_connection = True
            if not page.head_too:
                self.send_response(page.status)
                lengths = {} if page.again else {"Content-Length": str(len(page.body))}
                for name, value in ({"Content-Type": page.media_type} | lengths | page.headers).items():
                    self.send_header(name, value)
                self.end_headers()
            self.wfile.write(page.body)
            for part in repeat(page.again) if page.again else ():
                if closing.wait(page.pause):
                    break
                self.wfile.write(part)
                known.sent += len(part)
            # data that the client does not read must not make the kernel reset what it has read
            self.connection.shutdown(socket.SHUT_WR)

    with serving(Handler, closing) as port:
        known = WebServer(port)
        yield known
