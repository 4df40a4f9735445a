"""The project's own gate: the demonstration's claims are answered no worse than when this was last accepted.

``pytest tests/gate/test_own_search.py --update-gate REASON`` accepts what is found now.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from demo_index import DEMO
from demo_index import index as index  # noqa: PLC0414 -- a fixture

from nlp_retrieval import HoverLoader, Searcher
from nlp_retrieval.gate import GateSettings

BASELINES = Path(__file__).parent / "baselines"
SEARCHERS = {"bm25": {}, "bm25-overlap": {"reranker": "overlap"}}


@pytest.mark.parametrize("name", SEARCHERS)
def test_the_demonstration_is_searched_no_worse(retrieval_gate, index: Path, name: str) -> None:
    settings = GateSettings(
        BASELINES / f"{name}.jsonl",
        HoverLoader(DEMO / "claims.json"),
        {"recall@10": 0.1, "ndcg@10": 0.1},
        k=10,
        group_by="hops",
    )
    report = retrieval_gate(Searcher.open(index, retrievers=["bm25"], **SEARCHERS[name]), settings)
    assert report.queries == 81
