"""Many clients at once while a project changes: no error, and what is too much or too slow is refused."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from service.running import Running, document, error_of, running
from service.test_load import asked_by_all


def test_clients_of_a_project_ask_everything_while_others_add(tmp_path):
    numbers = itertools.count()
    added: dict[int, str] = {}
    lock = threading.Lock()
    with running([tmp_path, "--as", "project", "-r", "bm25"]) as service:
        with httpx2.Client(
            base_url=service.url, timeout=300, trust_env=False, limits=httpx2.Limits(max_connections=64)
        ) as client:

            def post(path, **body):
                answer = client.post(path, json=body)
                assert answer.status_code == 200, answer.text
                return answer.json()

            def ask(client_number, chance):
                if client_number < 2:
                    with lock:
                        number = next(numbers)
                    text = f"River number{number} is {number + 100} kilometres long."
                    assert post("/index", documents=[document(number, text)])["added"] == [True]
                    added[number] = text
                    return
                known = dict(added)
                number = chance.choice(sorted(known)) if known else None
                what = chance.random()
                if number is None or what < 0.1:
                    assert client.get("/stats").json()["document_count"] >= len(known)
                elif what < 0.6:
                    (found,) = post("/search", query=f"number{number}", k=3)["passages"]
                    assert (found["content"], found["url"]) == (known[number], f"https://example.org/{number}")
                elif what < 0.8:
                    verdict = post("/verify", claim=known[number])
                    assert verdict["supporting_evidence"][0]["quote"] == known[number]
                else:
                    report = f"{known[number]} [1]\n\n## References\n\n[1] River. https://example.org/{number}\n"
                    assert [row["status"] for row in post("/audit", report=report)["citations"]] == ["PASS"]

            counts = asked_by_all(ask)
        assert min(counts) > 0
        with service.client() as client:
            assert client.get("/stats").json()["document_count"] == len(added)


@pytest.mark.soak
def test_what_is_too_much_or_too_slow_is_refused_and_health_is_not(tmp_path):
    words = [tmp_path, "--as", "project", "-r", "bm25", "--threads", "1", "--waiting", "1", "--seconds", "0.5"]
    text = "\n\n".join(f"The river number{n} is {n} kilometres long." for n in range(800))
    report = "".join(f"River number{n} is {n} kilometres long [1].\n\n" for n in range(40))
    report += "## References\n\n[1] River. https://example.org/1\n"
    service = Running(words)
    with service.client() as client, ThreadPoolExecutor(4) as pool:
        client.post("/index", json={"documents": [document(1, text)]})
        audits = [pool.submit(client.post, "/audit", json={"report": report}) for _ in range(4)]
        answers = sorted((one.result() for one in audits), key=lambda one: one.status_code)
        for answer in answers[:2]:
            assert "try again" in error_of(answer, 503, "overloaded")
            assert answer.headers["retry-after"] == "1"
        for answer in answers[2:]:
            assert "0.5 seconds" in error_of(answer, 504, "too_long")
        assert client.get("/readyz").status_code == 200
    head = b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
    answer = service.raw(head)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b'"type":"too_slow"' in answer
    assert service.end(signal.SIGINT)[0] == 0


def long_text(number: int) -> str:
    return "\n\n".join(f"River number{number} reaches the town of place{n} after {n} kilometres." for n in range(400))


@pytest.mark.soak
def test_a_request_under_way_is_answered_before_it_ends(tmp_path):
    service = Running([tmp_path, "--as", "project", "-r", "bm25"])
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
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(service.url, trust_env=False)
