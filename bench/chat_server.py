"""A server of the chat protocol that answers after a fixed time; by default like a model that finds two names in a passage."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_PASSAGE = re.compile(r"^(\d+): (\S+)(?:.*?(\S+))?$", re.MULTILINE)


class SlowServer:
    """What is known of the server.

    Args:
        url: base URL, as a client wants it.
        busiest: the most requests that were being answered at one time.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.busiest = 0


@contextmanager
def slow_server(seconds: float, answer: Callable[[str], str] | None = None) -> Iterator[SlowServer]:
    """Serve on 127.0.0.1 until the block ends.

    Args:
        seconds: from a request to its answer.
        answer: what the model says to a prompt.
    """
    said = answer or _knowledge
    lock = threading.Lock()
    busy = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            nonlocal busy
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                busy += 1
                known.busiest = max(known.busiest, busy)
            time.sleep(seconds)
            content = json.dumps(_answer(body, said)).encode()
            with lock:
                busy -= 1
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    known = SlowServer(f"http://127.0.0.1:{server.server_port}/v1")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield known
    finally:
        server.shutdown()
        server.server_close()


def _knowledge(prompt: str) -> str:
    entries = {
        number: {"entities": [[first, "person"]], "triples": [[first, "is near", last or first]]}
        for number, first, last in _PASSAGE.findall(prompt)
    }
    return f"[[ ## knowledge ## ]]\n{json.dumps(entries)}\n\n[[ ## completed ## ]]"


def _answer(body: dict[str, Any], said: Callable[[str], str]) -> dict[str, Any]:
    prompt = body["messages"][-1]["content"]
    content = said(prompt)
    usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(content) // 4, "total_tokens": 0}
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    return {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
