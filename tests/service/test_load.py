"""Many clients at once while the index changes: no error, and no answer that mixes two states of it."""

from __future__ import annotations

import itertools
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx

from .running import Running, document, error_of, make_index, running

CLIENTS, SECONDS = 32, 2.0

ADDS_PAIRS = """
import sys, time
from nlp_retrieval import Bm25sRetriever, SearchableItem, Searcher
searcher = Searcher([Bm25sRetriever()]).open(sys.argv[1])
for n in range(1000):
    searcher.add([SearchableItem(item_id=f"{word}{n}", content=word) for word in ("heron", "stork")])
    print(n + 1, flush=True)
"""


def asked_by_all(ask, seconds=SECONDS):
    """Let clients ask until the time is over; return how often each did. The first error ends the test."""
    end = time.monotonic() + seconds

    def client(number):
        chance, asked = random.Random(number), 0
        while time.monotonic() < end:
            ask(number, chance)
            asked += 1
        return asked

    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(client, range(CLIENTS)))


def test_no_answer_mixes_two_generations_of_an_index(tmp_path):
    make_index(tmp_path / "index", 5)
    seen: list[int] = []
    with running([tmp_path / "index", "--workers", "2"]) as service:
        writer = subprocess.Popen(
            [sys.executable, "-c", ADDS_PAIRS, str(tmp_path / "index")], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        with httpx.Client(
            base_url=service.url, timeout=300, trust_env=False, limits=httpx.Limits(max_connections=64)
        ) as client:

            def ask(_, chance):
                if chance.random() < 0.1:
                    assert client.get("/stats").json()["n_items"] % 2 == 1
                    return
                words = ["heron", "fox", "stork"] if chance.random() < 0.5 else ["stork", "fox", "heron"]
                answer = client.post("/search", json={"queries": words, "k": 1000})
                assert answer.status_code == 200, answer.text
                first, foxes, last = answer.json()["results"]
                assert len(foxes) == 5
                assert len(first) == len(last)
                numbers = [{hit["item"]["item_id"][5:] for hit in hits} for hits in (first, last)]
                assert numbers[0] == numbers[1]
                seen.append(len(first))

            counts = asked_by_all(ask)
        writer.kill()
        writer.wait()
        writer.stdout.close()
    assert min(counts) > 0
    assert len(set(seen)) > 1  # it did change meanwhile


def test_clients_of_a_project_ask_everything_while_others_add(tmp_path):
    numbers = itertools.count()
    added: dict[int, str] = {}
    lock = threading.Lock()
    with running([tmp_path, "--as", "project", "-r", "bm25s"]) as service:
        with httpx.Client(
            base_url=service.url, timeout=300, trust_env=False, limits=httpx.Limits(max_connections=64)
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


def test_what_is_too_much_or_too_slow_is_refused_and_health_is_not(tmp_path):
    words = [tmp_path, "--as", "project", "-r", "bm25s", "--threads", "1", "--waiting", "1", "--seconds", "0.5"]
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
        assert client.get("/healthz").status_code == 200
    head = b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
    answer = service.raw(head)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b'"type":"too_slow"' in answer
    assert service.end(signal.SIGINT)[0] == 0
