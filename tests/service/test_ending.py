"""How a service ends: what is under way is answered, and what was promised is on the disk."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from .running import Running, document, make_index


def long_text(number: int) -> str:
    return "\n\n".join(f"River number{number} reaches the town of place{n} after {n} kilometres." for n in range(400))


def test_a_request_under_way_is_answered_before_it_ends(tmp_path):
    service = Running([tmp_path, "--as", "project", "-r", "bm25s"])
    with service.client() as client, ThreadPoolExecutor(1) as pool:
        documents = [document(n, long_text(n)) for n in range(20)]
        answer = pool.submit(client.post, "/index", json={"documents": documents})
        while not (tmp_path / "10_graph").exists():  # it is being worked on
            time.sleep(0.005)
        assert not answer.done()
        code, said = service.end(signal.SIGTERM)
        assert answer.result().json()["added"] == [True] * 20
    assert code == 0
    assert said.count("\n") == 1, said
    with pytest.raises(httpx.ConnectError):
        httpx.get(service.url, trust_env=False)


def test_workers_end_where_the_process_that_started_them_is_killed(tmp_path):
    make_index(tmp_path / "index")
    service = Running([tmp_path / "index", "--workers", "2"])
    with service.client() as client:
        assert client.get("/healthz").status_code == 200
    service.process.kill()
    service.process.wait(300)
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            httpx.get(f"{service.url}/healthz", trust_env=False, timeout=2)
        except httpx.ConnectError:
            break
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    else:
        pytest.fail("a worker still answers")
    service.ended()
