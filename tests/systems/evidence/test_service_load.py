"""Many clients at once while a project changes: no error, and what is too much or too slow is refused."""

from __future__ import annotations

import itertools
import threading

import httpx2
from service.running import document, running
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
