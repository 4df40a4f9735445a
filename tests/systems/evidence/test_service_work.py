"""An audit that nobody waits for any more is given up."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from nlp_retrieval import Bm25Retriever, Searcher
from nlp_retrieval.service.endpoints import RefusedError
from nlp_retrieval.service.work import WorkPool
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
from nlp_retrieval.systems.evidence.service import AuditBody, ProjectService
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier

DANUBE = "The Danube flows through Vienna."


def test_an_audit_ends_with_the_citation_after_which_nobody_waits(tmp_path):
    given_up, judged = Event(), []

    class SlowVerifier(LexicalVerifier):
        def judge_pairs(self, claims, passages):
            judged.extend(claims)
            assert given_up.wait(300)
            return super().judge_pairs(claims, passages)

    index = EvidenceIndex(tmp_path, Searcher([Bm25Retriever()]))
    index.add_document(DANUBE, "https://example.org/danube")
    index.build_index()
    service = ProjectService(index, SlowVerifier())
    (audit,) = (endpoint.run for endpoint in service.endpoints if endpoint.path == "/audit")
    report = f"{DANUBE[:-1]} [1]. " * 3 + "\n\n[1]: https://example.org/danube\n"
    threads = ThreadPoolExecutor(1)
    pool = WorkPool(1, 0, 0.2)
    pool._threads = threads
    with pytest.raises(RefusedError, match="more than"):
        asyncio.run(pool.run(lambda: audit(AuditBody(report=report))))
    given_up.set()
    assert threads.submit(lambda: "the thread is free").result() == "the thread is free"
    assert len(judged) == 1
