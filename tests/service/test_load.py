"""Many clients at once while the index changes: no error, and no answer that mixes two states of it."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2

from .running import make_index, running

CLIENTS, SECONDS = 32, 2.0

ADDS_PAIRS = """
import sys, time
from nlp_retrieval import Bm25Retriever, SearchableItem, Searcher
searcher = Searcher([Bm25Retriever()]).open(sys.argv[1])
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
        with httpx2.Client(
            base_url=service.url, timeout=300, trust_env=False, limits=httpx2.Limits(max_connections=64)
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
