"""A multi-hop searcher is planned, varied, measured and held to its corpus in benchmarks as any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.small_benchmark import QUERIES, benchmarker
from benchmarks.test_shared_answers import run
from chat_server import ChatServer, MakeModel, asked, fields

from nlp_retrieval import Bm25Retriever
from nlp_retrieval.benchmarks.grid import build_grid
from nlp_retrieval.benchmarks.plans import plan_of
from nlp_retrieval.systems.hover.searcher import MultiHopSearcher


def hops(body: dict[str, Any]) -> str:
    """A summary or the next query, whichever is asked for."""
    words = asked(body, "claim").split()
    return fields(summary=f"about {words[0]}") if "passages" in str(body) else fields(query=" ".join(words[-2:]))


def test_hops_are_shared_stages(server: ChatServer, model: MakeModel, tmp_path: Path) -> None:
    server.answer = hops
    searchers = {"hops": MultiHopSearcher([Bm25Retriever()], model(), hops=2)}
    (first,), files = run(tmp_path, searchers)
    assert first.calls == server.calls == 2 * len(QUERIES)
    kept = sorted((tmp_path / "stages").rglob("*.stage"))
    assert len(list((tmp_path / "stages" / "candidates").iterdir())) >= 2
    (again,), files_again = run(tmp_path, {"hops": MultiHopSearcher([Bm25Retriever()], model(), hops=2)}, "again")
    assert files_again == files
    assert sorted((tmp_path / "stages").rglob("*.stage")) == kept
    assert (again.calls, again.cache_hits) == (0, 2 * len(QUERIES))
    assert (again.latency_answers, again.latency_cache_hits) == (first.latency_answers, first.latency_cache_hits) == (6, 0)


def test_calls_are_as_many_as_a_run_makes(server: ChatServer, model: MakeModel, tmp_path: Path) -> None:
    server.answer = hops
    searchers = {"hops": MultiHopSearcher([Bm25Retriever()], model(), hops=3)}
    whole = benchmarker(tmp_path / "index", searchers=searchers, latency_queries=1)
    plan = plan_of(whole)
    assert server.calls == 0
    assert plan.calls == {"multi_hop": 4 * len(QUERIES)}
    whole.run()
    assert server.calls == plan.language_model_calls == 4 * len(QUERIES)


def test_it_is_varied_in_a_grid() -> None:
    lm = {"name": "openai/small", "base_url": "http://localhost:1/v1"}
    grid = build_grid({"name": "multi_hop", "retrievers": ["bm25"], "lm": lm}, {"hops": [2, 3], "lm.temperature": [0.0, 0.7]})
    assert [one.config["hops"] for one in grid.searchers.values()] == [2, 2, 3, 3]
    assert [one.config["lm"]["temperature"] for one in grid.searchers.values()] == [0.0, 0.7, 0.0, 0.7]
