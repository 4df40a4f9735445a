"""The service as a user starts it, and clients that ask it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2

from nlp_retrieval import Bm25Retriever, SearchableItem, Searcher

COMMAND = str(Path(sys.executable).with_name("nlp-retrieval"))


class Running:
    """A service that answers, in a process of its own."""

    def __init__(
        self,
        words: Sequence[str | Path],
        descriptors: int | None = None,
        verb: Sequence[str] = ("serve", "--port", "0"),
        **environment: str,
    ) -> None:
        limited = [] if descriptors is None else ["sh", "-c", f'ulimit -n {descriptors} && exec "$@"', "limited"]
        self.process = subprocess.Popen(
            [*limited, COMMAND, *verb, *map(str, words)],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"HF_HUB_OFFLINE": "1"} | environment,
        )
        self.said: list[str] = []
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            if found := re.search(r" on (http://[\w.:\[\]]+)(?:/#(\S+))?", line):
                self.url, self.token = found.groups()
                break
        else:
            self.process.wait(300)
            self.process.stderr.close()
            raise AssertionError("".join(self.said))
        self._reader = threading.Thread(target=lambda: self.said.extend(self.process.stderr or []), daemon=True)
        self._reader.start()

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def client(self, token: str | None = None) -> httpx2.Client:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=300, trust_env=False)

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Return the exit code after a signal, and all that was said."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> tuple[int, str]:
        code = self.process.wait(300)
        self._reader.join(300)
        if self.process.stderr is not None:
            self.process.stderr.close()
        return code, "".join(self.said)

    def raw(self, request: bytes) -> bytes:
        """Return what answers to bytes, until the connection ends."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=300) as connection:
            connection.sendall(request)
            parts = []
            with contextlib.suppress(ConnectionResetError):
                while part := connection.recv(65536):
                    parts.append(part)
            return b"".join(parts)


@contextlib.contextmanager
def running(
    words: Sequence[str | Path],
    descriptors: int | None = None,
    verb: Sequence[str] = ("serve", "--port", "0"),
    **environment: str,
) -> Iterator[Running]:
    """A service, ended when the block ends; it has to end well."""
    service = Running(words, descriptors, verb, **environment)
    try:
        yield service
    except BaseException:
        service.process.kill()
        service.ended()
        raise
    if service.process.poll() is None:
        code, said = service.end()
        assert code == 0, said
        assert "Traceback" not in said, said[-3000:]


def until(check: Callable[[], Any]) -> Any:
    """Wait until a check returns something, and return it."""
    deadline = time.monotonic() + 120
    while not (found := check()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def item(number: int, text: str) -> SearchableItem:
    return SearchableItem(item_id=f"p{number}", content=text, metadata={"title": f"T{number}", "year": 2000 + number})


def make_index(folder: Path, count: int = 30) -> Searcher:
    """An index of items that speak of a fox, every third of a dog."""
    searcher = Searcher([Bm25Retriever()])
    searcher.index([item(n, f"fox number{n}" + " dog" * (n % 3 == 0)) for n in range(count)], folder)
    return searcher


def document(number: int, text: str = "", **other: str) -> dict[str, str]:
    return {"content": text or f"River number{number} flows.", "url": f"https://example.org/{number}", **other}


def error_of(response: httpx2.Response, status: int, kind: str) -> str:
    """The message of a refusal that has this status and type, and the one shape of all refusals."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    found: dict[str, Any] = json.loads(response.text)
    assert found.keys() == {"error"}
    assert found["error"].keys() == {"type", "message", "request_id"}
    assert found["error"]["type"] == kind
    assert found["error"]["request_id"] == response.headers["x-request-id"]
    assert "Traceback" not in response.text
    return str(found["error"]["message"])
