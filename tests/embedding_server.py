"""A server of the OpenAI embeddings protocol on 127.0.0.1, whose answers a test decides."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hashed_words import HashedWords
from local_server import QuietHandler, serving


@dataclass
class Raw:
    """An answer as it goes over the wire."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = None
    dripping: bool = False


Reply = dict[str, Any] | int | Raw
"""An object; a status with an error that repeats the key; or anything."""


@dataclass
class EmbeddingServer:
    """What a test knows of a server."""

    url: str
    answer: Callable[[dict[str, Any]], Reply]
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    busiest: int = 0

    @property
    def texts(self) -> list[str]:
        """All texts that were sent, in the order in which they came."""
        return [text for body in self.bodies for text in body["input"]]


def embedded(body: dict[str, Any], dimension: int = 16) -> dict[str, Any]:
    """The answer of a sound server: hashed words, a token a word, the last text first."""
    vectors = HashedWords(body.get("dimensions", dimension)).encode_passages(body["input"])
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": [3.0 * float(number) for number in vector] if any(vector) else [1.0] + [0.0] * 15,
        }
        for index, vector in enumerate(vectors)
    ]
    tokens = sum(len(text.split()) for text in body["input"])
    return {
        "object": "list",
        "data": data[::-1],
        "model": body["model"],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


@contextmanager
def embedding_server(answer: Callable[[dict[str, Any]], Reply] = embedded) -> Iterator[EmbeddingServer]:
    """Serve until the block ends."""
    lock, closing, busy = threading.Lock(), threading.Event(), 0

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            nonlocal busy
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                busy += 1
                known.busiest = max(known.busiest, busy)
                known.bodies.append(body)
                known.headers.append(dict(self.headers.items()) | {"path": self.path})
            try:
                self._reply(known.answer(body))
            finally:
                with lock:
                    busy -= 1

        def _reply(self, reply: Reply) -> None:
            if isinstance(reply, int):
                error = {"error": {"message": f"status {reply} for {self.headers.get('Authorization')}"}}
                reply = Raw(json.dumps(error).encode(), reply)
            if isinstance(reply, dict):
                reply = Raw(json.dumps(reply).encode())
            self.send_response(reply.status)
            self.send_header("Content-Length", str(len(reply.body) if reply.length is None else reply.length))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            for byte in reply.body if reply.dripping else ():
                self.wfile.write(bytes([byte]))
                if closing.wait(0.02):
                    break
            if reply.dripping:
                closing.wait()
            else:
                self.wfile.write(reply.body)
            self.close_connection = reply.dripping or reply.length is not None

    with serving(Handler, closing) as port:
        known = EmbeddingServer(f"http://127.0.0.1:{port}/v1", answer)
        yield known
