"""A server of the OpenAI chat-completions protocol on 127.0.0.1, whose answers a test decides, and models that ask it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
from local_server import QuietHandler, serving

from nlp_retrieval.lm.endpoint import ModelEndpoint
from nlp_retrieval.lm.language_model import LanguageModel


@dataclass
class Flood:
    """A head to send, and a part of a body that is sent again and again until the client hangs up."""

    head: bytes
    part: bytes
    most: int = 2**28
    sent: int = 0


Reply = str | int | float | bytes | dict[str, Any] | Flood | None
"""A text; an HTTP status; an object to send instead of an answer; seconds to wait before hanging up without one; bytes to
send one by one, the last again and again, 10 ms apart and without an end; a flood; None to hang up in the middle of an
answer."""

DRIPPING_HEAD = b"HTTP/1.1 200 OK\r\nX-Padding: x"
DRIPPING_BODY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n "


@dataclass
class ChatServer:
    """What a test knows of a server."""

    url: str
    answer: Callable[[dict[str, Any]], Reply]
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    busiest: int = 0

    @property
    def calls(self) -> int:
        """How many requests came."""
        return len(self.bodies)


def asked(body: dict[str, Any], name: str) -> str:
    """The value of an input field in a request that DSPy's chat adapter wrote."""
    text: str = body["messages"][-1]["content"]
    return text.split(f"[[ ## {name} ## ]]\n", 1)[1].split("\n\n", 1)[0]


def fields(**values: object) -> str:
    """An answer as DSPy's chat adapter asks for it."""
    parts = [
        f"[[ ## {name} ## ]]\n{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in values.items()
    ]
    return "\n\n".join([*parts, "[[ ## completed ## ]]"])


@contextmanager
def chat_server(answer: Callable[[dict[str, Any]], Reply]) -> Iterator[ChatServer]:
    """Serve until the block ends."""
    lock = threading.Lock()
    closing = threading.Event()
    busy = 0

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            nonlocal busy
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                busy += 1
                known.busiest = max(known.busiest, busy)
                known.bodies.append(body)
                known.keys.append(self.headers.get("Authorization"))
            try:
                self._reply(known.answer(body))
            finally:
                with lock:
                    busy -= 1

        def _reply(self, reply: Reply) -> None:
            if isinstance(reply, float):
                time.sleep(reply)
                self.close_connection = True
            elif isinstance(reply, bytes):
                for one in chain(reply, repeat(reply[-1])):
                    self.wfile.write(bytes([one]))
                    if closing.wait(0.01):
                        break
                self.close_connection = True
            elif isinstance(reply, Flood):
                self.close_connection = True
                self.wfile.write(reply.head)
                while reply.sent < reply.most:
                    self.wfile.write(reply.part)
                    reply.sent += len(reply.part)
            elif reply is None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "5000")
                self.end_headers()
                self.wfile.write(b'{"id": "half')
                self.close_connection = True
            elif isinstance(reply, dict):
                self._send(200, reply)
            elif isinstance(reply, int):
                self._send(reply, {"error": {"message": f"status {reply} for {self.headers.get('Authorization')}"}})
            else:
                message = {"role": "assistant", "content": reply}
                usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
                choice = {"index": 0, "message": message, "finish_reason": "stop"}
                self._send(200, {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage})

        def _send(self, status: int, content: dict[str, Any]) -> None:
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    with serving(Handler, closing) as port:
        known = ChatServer(f"http://127.0.0.1:{port}/v1", answer)
        yield known


MakeModel = Callable[..., LanguageModel]


def halves(body: dict[str, Any]) -> str:
    """The first and the second half of the claim."""
    words = asked(body, "claim").split()
    return fields(phrases=[" ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])])


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """Answers claims with their halves until the test says otherwise."""
    with chat_server(halves) as running:
        yield running


@pytest.fixture
def model(server: ChatServer, tmp_path: Path) -> MakeModel:
    """Makes models of the server, with waits of milliseconds and a folder of answers that they share."""

    def make(**settings: Any) -> LanguageModel:
        given = {"base_url": server.url, "cache_dir": tmp_path / "answers"}
        return LanguageModel("openai/small", **given | with_limits({"backoff": 0.001, "timeout": 5.0} | settings))

    return make


def with_limits(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings with the limits of requests among them as ``endpoint``."""
    limits = {key: value for key, value in settings.items() if key in ModelEndpoint.model_fields}
    return {key: value for key, value in settings.items() if key not in limits} | {"endpoint": limits}
