"""What language models were asked is in the costs, the files, the table, the page and the runs, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, MakeModel, asked, halves
from reports.report_data import printed

from benchmarks.small_benchmark import QUERIES, benchmarker
from nlp_retrieval import Bm25Retriever, ClaimPhrases, RetrievalWarning, Searcher, write_run_files
from nlp_retrieval.benchmarks.cost import Cost, LanguageModelCost
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.reports.page.page import render_page


def both(lm: LanguageModel) -> dict[str, Searcher]:
    decomposed = Searcher([Bm25Retriever()], ClaimPhrases(lm, keep_query=False))
    return {"bm25": Searcher([Bm25Retriever()]), "decomposed": decomposed}


def asked_of(cost: Cost | None) -> LanguageModelCost:
    assert cost is not None
    assert cost.language_model is not None
    return cost.language_model


def one_line(text: str) -> str:
    return " ".join(text.split())


def failing_for(claims: list[str], reply: int | str) -> Callable[[dict[str, Any]], int | str]:
    return lambda body: reply if asked(body, "claim") in claims else halves(body)


def test_a_second_run_spends_nothing_and_costs_and_finds_the_same(server: ChatServer, model: MakeModel, tmp_path: Path) -> None:
    first = benchmarker(tmp_path / "index", searchers=both(model())).run()
    write_run_files(first, tmp_path / "first")
    calls = server.calls
    second = benchmarker(tmp_path / "index", searchers=both(model())).run()
    write_run_files(second, tmp_path / "second")
    assert server.calls == calls
    cost = second.report.configurations[1].cost
    before = asked_of(first.report.configurations[1].cost)
    now = asked_of(cost)
    assert (now.calls, now.cache_hits, now.tokens_in, now.tokens_out, now.failures, now.degraded) == (0, 25, 0, 0, 0, 0)
    assert (now.query_tokens_in, now.query_tokens_out) == (before.query_tokens_in, before.query_tokens_out) == (100.0, 10.0)
    assert (now.latency_answers, now.latency_cache_hits) == (3, 3)
    for name in ("results.json", "trec/bm25.trec", "trec/decomposed.trec"):
        assert (tmp_path / "second" / name).read_bytes() == (tmp_path / "first" / name).read_bytes()
    said = (
        "decomposed: all 3 answers of the language model in the latency sample came from disk; the latency is that of "
        "reading them, not of the model."
    )
    assert said in one_line(printed(second.report))
    page = (tmp_path / "second" / "report.html").read_text("utf-8")
    assert page.count(said.removeprefix("decomposed: ")) == 2  # below the table, and below the stages
    assert "Answers of the language model came from disk: <bdi>decomposed</bdi>." in page


@pytest.mark.parametrize(
    ("latency_queries", "reply"),
    [(3, 400)]
    + [
        pytest.param(*case, marks=pytest.mark.soak)
        for case in [(20, 400), (3, ""), (20, ""), (3, "[[ ## phrases ## ]]\nnull"), (20, "[[ ## phrases ## ]]\nnull")]
    ],
)
def test_an_endpoint_that_fails_for_some_claims_leaves_them_as_they_are_and_each_is_counted_once(
    server: ChatServer, model: MakeModel, tmp_path: Path, reply: int | str, latency_queries: int
) -> None:
    unlucky = [query.text for query in QUERIES[4:10]]
    server.answer = failing_for(unlucky, reply)
    made = benchmarker(tmp_path, searchers=both(model(retries=0)), latency_queries=latency_queries)
    with pytest.warns(RetrievalWarning, match="6 of 20 queries"):
        run = made.run()
    cost = asked_of(run.report.configurations[1].cost)
    assert cost.degraded == 6
    assert cost.failures == (cost.calls - 14 if reply == 400 else 0)
    assert all(run.rankings["decomposed"])
    for place in range(4, 10):
        assert run.rankings["decomposed"][place] == run.rankings["bm25"][place]
    said = "6 questions about 20 queries got no usable answer from the language model; their queries were searched without it."
    assert f"decomposed: {said}" in one_line(printed(run.report))
    assert "calls degraded" in printed(run.report, 60)
    page = render_page(run.report)
    assert f"<li><bdi>decomposed</bdi>: {said}</li>" in page
    assert page.index(said) < page.index('<table id="comparison">')
    assert page.count("6 questions without an answer") == 2  # in the row of all queries, and in the configuration's details
