"""Clients of a project add, search and audit at once: what was added is found, and nothing is lost."""

from __future__ import annotations

import itertools
import threading

import httpx2
from service.running import document, running
from service.test_load import asked_by_all


def test_clients_of_a_project_search_and_audit_while_others_add(tmp_path):
    numbers, lock = itertools.count(), threading.Lock()
    added: dict[int, str] = {}
    connections = httpx2.Limits(max_connections=64)
    with running([tmp_path, "--as", "project", "-r", "bm25"]) as service:
        with httpx2.Client(base_url=service.url, timeout=300, trust_env=False, limits=connections) as client:

            def post(path, **body):
                answer = client.post(path, json=body)
                assert answer.status_code == 200, answer.text
                return answer.json()

            def ask(client_number, chance):
                known = dict(added)
                if client_number < 2 or not known:
                    with lock:
                        number = next(numbers)
                    text = f"River number{number} is {number + 100} kilometres long."
                    assert post("/index", documents=[document(number, text)])["added"] == [True]
                    added[number] = text
                    return
                number = chance.choice(sorted(known))
                if chance.random() < 0.6:
                    (found,) = post("/search", query=f"number{number}", k=3)["passages"]
                    assert (found["content"], found["url"]) == (known[number], f"https://example.org/{number}")
                else:
                    report = f"{known[number]} [1]\n\n## References\n\n[1] River. https://example.org/{number}\n"
                    assert [row["status"] for row in post("/audit", report=report)["rows"]] == ["PASS"]

            assert min(asked_by_all(ask)) > 0
        with service.client() as client:
            assert client.get("/stats").json()["document_count"] == len(added)
