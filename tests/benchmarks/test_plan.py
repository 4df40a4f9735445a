"""The plan says what a run then does, and does none of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, MakeModel, asked, fields, halves
from hashed_words import HashedWords, InMemory

from benchmarks.small_benchmark import GOLD, QUERIES, TEXTS, TITLES, benchmarker
from nlp_retrieval import (
    Bm25Retriever,
    ClaimPhrases,
    CrossEncoderReranker,
    EntityPhrases,
    FaissRetriever,
    HyDE,
    LinkGraphRetriever,
    Query,
    Searcher,
    SentenceTransformerEncoder,
)
from nlp_retrieval.benchmarks import TrecRun
from nlp_retrieval.benchmarks.plans import Plan, plan_of
from nlp_retrieval.core.index.build import build_index
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.retrievers import TitleMentions

MODEL = "sentence-transformers/all-MiniLM-L6-v2"


def shown(plan: Plan) -> str:
    return "\n".join(plan.lines(whole=True))


def test_indexes_are_found_where_they_are_and_else_to_be_built(tmp_path: Path) -> None:
    dense = FaissRetriever(HashedWords())
    searchers = {
        "bm25": Searcher([Bm25Retriever()]),
        "tuned": Searcher([Bm25Retriever(k1=2.0)]),
        "unstemmed": Searcher([Bm25Retriever(stemmer="none")]),
        "linked": Searcher([LinkGraphRetriever([Bm25Retriever(), dense], links=[TitleMentions()])]),
    }

    def states() -> dict[str, str]:
        return plan_of(benchmarker(tmp_path / "index", searchers=searchers)).indexes

    assert states() == dict.fromkeys(("bm25 stemmer=auto", "bm25 stemmer=none", "link_graph", "faiss"), "to build")
    assert not (tmp_path / "index").exists()
    items = list(InMemory(TEXTS, TITLES).stream())
    build_index(items, tmp_path / "index", [Bm25Retriever(k1=0.1), dense])
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert states() == {
        "bm25 stemmer=auto": "found", "bm25 stemmer=none": "to build", "link_graph": "to build", "faiss": "found",
    }  # fmt: skip
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    with pytest.warns(match="link_graph found no links"):
        benchmarker(tmp_path / "index", searchers=searchers).run()
    assert set(states().values()) == {"found"}


def test_models_that_are_not_here_are_named_and_none_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def loads(*_: object) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr(SentenceTransformerEncoder, "load_model", loads)
    monkeypatch.setattr(CrossEncoderReranker, "load_model", loads)
    monkeypatch.setattr(BaseRetriever, "index", loads)
    nowhere = "nobody/has-this-model"
    searchers = {
        "dense": Searcher([FaissRetriever(MODEL)]),
        "prompted": Searcher([FaissRetriever(SentenceTransformerEncoder(MODEL, query_prompt="q: "))]),
        "other": Searcher([FaissRetriever(nowhere)], EntityPhrases(spacy_pipeline="no_such_pipeline")),
        "reranked": Searcher([FaissRetriever(MODEL)], reranker=CrossEncoderReranker(str(tmp_path))),
        "run": TrecRun("gone.trec"),
        "no name of a file": TrecRun("x" * 300),
    }
    # with an index there, identities are compared
    build_index(list(InMemory(TEXTS, TITLES).stream()), tmp_path / "index", [Bm25Retriever()])
    plan = plan_of(benchmarker(tmp_path / "index", searchers=searchers))
    assert plan.missing == [nowhere, "no_such_pipeline", "gone.trec", "x" * 300]
    assert sorted(plan.indexes.values()) == ["not known", "to build"], "prompts of queries are in no index"
    assert f"not on this machine: {nowhere}, no_such_pipeline, gone.trec" in shown(plan)


def test_calls_are_as_many_as_a_run_makes(server: ChatServer, model: MakeModel, tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> Any:
        wanted = body["messages"][0]["content"]
        if "`phrases` (" in wanted:
            return halves(body)
        return fields(passage=f"a fox {asked(body, 'query')}")

    server.answer = answer
    queries = [*QUERIES, Query(query_id="twice", text=QUERIES[0].text), Query(query_id="no words", text="?!")]
    gold = [*GOLD, GOLD[0].model_copy(update={"query_id": "twice"}), GOLD[0].model_copy(update={"query_id": "no words"})]
    searchers = {
        "plain": Searcher([Bm25Retriever()]),
        "decomposed": Searcher([Bm25Retriever()], ClaimPhrases(model(), keep_query=False)),
        "the same, reranked": Searcher([Bm25Retriever()], ClaimPhrases(model(), keep_query=False), reranker="overlap"),
        "hyde": Searcher([Bm25Retriever()], HyDE(model())),
    }
    whole = benchmarker(tmp_path / "index", searchers=searchers, queries=queries, gold=gold, latency_queries=1)
    plan = plan_of(whole)
    assert server.calls == 0
    assert plan.calls == {"claim_phrases": 20, "hyde": 20}
    with pytest.warns(match="found nothing for 1 of 22 queries"):
        whole.run()
    assert server.calls == 40
    assert "language-model calls, hyde: at most 20; answers on disk make it fewer" in shown(plan)
