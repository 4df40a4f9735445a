"""Many clients and a writer at once, on a service that is killed and started again."""

from __future__ import annotations

import http.client
import json
import os
import signal
import statistics
import threading
import time
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path

import pytest
from soaking import Figures

from .running import Running, item, make_index, running, until

CLIENTS, ITEMS, ADDITIONS, ADDED, PAUSE = 32, 30_000, 60, 50, 10
QUESTION = json.dumps({"query": "fox dog number77", "k": 10})


def whole(status: int, body: bytes) -> bool:
    """Whether an answer has ten results, best first."""
    scores = [hit["score"] for hit in json.loads(body)["results"]] if status == 200 else []
    return len(scores) == 10 and all(one >= other for one, other in pairwise(scores))


class Clients:
    """Ask one question again and again, each on a connection of its own, which is made anew where a kill broke it."""

    def __init__(self, service: Running) -> None:
        self.service = service
        self.are_done = threading.Event()
        self.answers: list[tuple[float, bool]] = []
        self._threads = [threading.Thread(target=self._ask) for _ in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def _ask(self) -> None:
        broken = (OSError, http.client.HTTPException)  # where the service was killed
        while not self.are_done.is_set():
            made = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=300)
            with closing(made) as connection, suppress(*broken):
                while not self.are_done.is_set():
                    begin = time.perf_counter()
                    connection.request("POST", "/search", QUESTION, {"Content-Type": "application/json"})
                    response = connection.getresponse()
                    body = response.read()
                    self.answers.append((time.perf_counter() - begin, whole(response.status, body)))
            self.are_done.wait(0.05)

    def end(self) -> None:
        self.are_done.set()
        for thread in self._threads:
            thread.join()


@pytest.mark.soak
def test_a_service_that_is_killed_under_load_comes_back_and_no_answer_is_torn(tmp_path: Path, figures: Figures) -> None:
    writer = make_index(tmp_path / "index", ITEMS)
    first = Running([tmp_path / "index"])
    clients = Clients(first)

    def add(numbers: range) -> None:
        for number in numbers:
            clients.are_done.wait(PAUSE)
            writer.add([item(ITEMS + ADDED * number + n, f"fox of wave{number}") for n in range(ADDED)])

    try:
        add(range(ADDITIONS // 2))
        first.end(signal.SIGKILL)
        begin = time.perf_counter()
        with running([tmp_path / "index"]) as again, again.client() as client:
            clients.service, back = again, time.perf_counter() - begin
            add(range(ADDITIONS // 2, ADDITIONS))
            for number in range(ADDITIONS):
                asked = {"query": f"wave{number}", "k": 2 * ADDED}
                until(lambda asked=asked: len(client.post("/search", json=asked).json()["results"]) == ADDED)
            clients.end()
    finally:
        clients.end()
    times = statistics.quantiles([seconds for seconds, _ in clients.answers], n=100)
    middle, most = (f"{1000 * times[at]:.0f}" for at in (49, 98))
    figures.add(
        "Service",
        f"{CLIENTS} clients and a writer, killed half-way",
        len(clients.answers),
        sum(is_whole for _, is_whole in clients.answers),
        f"{ADDITIONS} additions, {ADDITIONS * PAUSE // 60} minutes: median {middle} ms, p99 {most} ms with {os.cpu_count()} "
        f"cores for clients and service; back after {back:.1f} s; all that were added are there",
    )
    assert all(is_whole for _, is_whole in clients.answers)
