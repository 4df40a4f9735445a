"""Entities by a pipeline."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from nlp_retrieval.text.mentions import SpacyMentions


def test_a_pipeline_reads_for_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, both = threading.Lock(), threading.Barrier(2)

    class Pipeline:
        def pipe(self, texts):
            assert reading.acquire(blocking=False), "another thread reads"
            for text in texts:
                yield SimpleNamespace(ents=[SimpleNamespace(text=text)])
            reading.release()

    mentions = SpacyMentions("any")
    monkeypatch.setattr(mentions, "_load", Pipeline)

    def read(name: str) -> list[set[str]]:
        both.wait(30)
        return list(mentions.entities([name] * 2000))

    with ThreadPoolExecutor() as pool:
        paris, rome = pool.map(read, ("Paris", "Rome"))
    assert (paris[-1], rome[-1]) == ({"paris"}, {"rome"})
