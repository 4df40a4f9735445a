"""What language models were asked is in the costs, the files, the table, the page and the runs, and nowhere else."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, MakeModel, asked, halves
from reports.page.test_page import Page
from reports.report_data import configuration, cost_like, measures_like, report_of
from rich.console import Console

from benchmarks.small_benchmark import GOLD, QUERIES, benchmarker
from nlp_retrieval import (
    BenchmarkReport,
    Bm25Retriever,
    ClaimPhrases,
    Query,
    RetrievalWarning,
    Searcher,
    write_run_files,
)
from nlp_retrieval.benchmarks.cost import Cost, LanguageModelCost
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.reports.page.page import render_page
from nlp_retrieval.reports.terminal import SummaryTable
from nlp_retrieval.reports.view import view_of

KINDS = ("calls", "cache_hits", "tokens_in", "tokens_out", "failures", "degraded")


def decomposed(lm: LanguageModel) -> Searcher:
    return Searcher([Bm25Retriever()], ClaimPhrases(lm, keep_query=False))


def both(lm: LanguageModel) -> dict[str, Searcher]:
    return {"bm25": Searcher([Bm25Retriever()]), "decomposed": decomposed(lm)}


def asked_of(cost: Cost | None) -> LanguageModelCost:
    assert cost is not None
    assert cost.language_model is not None
    return cost.language_model


def counts(cost: Cost | None) -> dict[str, int]:
    return {kind: getattr(asked_of(cost), kind) for kind in KINDS}


def printed(report: BenchmarkReport, width: int = 100) -> str:
    file = io.StringIO()
    Console(file=file, width=width).print(SummaryTable(view_of(report)))
    return file.getvalue()


def one_line(text: str) -> str:
    return " ".join(text.split())


def failing_for(claims: list[str], reply: int | str) -> Callable[[dict[str, Any]], int | str]:
    return lambda body: reply if asked(body, "claim") in claims else halves(body)


# a real benchmark


def test_a_first_run_asks_once_for_each_query_and_counts_it(server: ChatServer, model: MakeModel, tmp_path: Path) -> None:
    run = benchmarker(tmp_path / "index", searchers=both(model()), latency_queries=3).run()
    plain, with_model = (result.cost for result in run.report.configurations)
    assert plain is not None
    assert plain.language_model is None
    assert server.calls == len(QUERIES)
    # two queries of the warm-up and three of the latency sample were on disk when all were searched
    assert counts(with_model) == {
        "calls": 20, "cache_hits": 5, "tokens_in": 2000, "tokens_out": 200, "failures": 0, "degraded": 0,
    }  # fmt: skip
    assert (asked_of(with_model).query_tokens_in, asked_of(with_model).query_tokens_out) == (100.0, 10.0)
    assert (asked_of(with_model).latency_answers, asked_of(with_model).latency_cache_hits) == (3, 0)
    assert (asked_of(with_model).search_answers, asked_of(with_model).search_cache_hits) == (20, 5)
    assert "from disk;" not in one_line(printed(run.report))


def test_a_second_run_spends_nothing_and_costs_and_finds_the_same(server: ChatServer, model: MakeModel, tmp_path: Path) -> None:
    first = benchmarker(tmp_path / "index", searchers=both(model())).run()
    write_run_files(first, tmp_path / "first")
    calls = server.calls
    second = benchmarker(tmp_path / "index", searchers=both(model())).run()
    write_run_files(second, tmp_path / "second")
    assert server.calls == calls
    cost = second.report.configurations[1].cost
    assert counts(cost) == {"calls": 0, "cache_hits": 25, "tokens_in": 0, "tokens_out": 0, "failures": 0, "degraded": 0}
    before = asked_of(first.report.configurations[1].cost)
    now = asked_of(cost)
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
    page = render_page(run.report)
    assert f"<li><bdi>decomposed</bdi>: {said}</li>" in page
    assert page.index(said) < page.index('<table id="comparison">')
    assert page.count("6 questions without an answer") == 2  # in the row of all queries, and in the configuration's details


def test_a_dead_endpoint_ends_no_benchmark(server: ChatServer, model: MakeModel, tmp_path: Path) -> None:
    server.answer = lambda body: 401
    with pytest.warns(RetrievalWarning, match="20 of 20 queries"):
        report = benchmarker(tmp_path, searchers=both(model(retries=0))).run().report
    plain, with_model = report.configurations
    assert with_model.measures == plain.measures
    cost = asked_of(with_model.cost)
    assert (cost.degraded, cost.tokens_in, cost.query_tokens_in, cost.latency_answers) == (20, 0, 0.0, 0)
    assert cost.failures == cost.calls == server.calls


def test_blank_queries_are_no_warm_up_and_are_not_asked_about(server: ChatServer, model: MakeModel, tmp_path: Path) -> None:
    queries = [Query(query_id="q0", text=" "), Query(query_id="q1", text="  "), *QUERIES[2:]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)
        report = benchmarker(tmp_path, searchers=both(model()), queries=queries, gold=GOLD, latency_queries=1).run().report
    cost = asked_of(report.configurations[1].cost)
    assert (cost.calls, cost.query_tokens_in) == (18, 90.0)
    assert cost.cache_hits - cost.latency_answers == 2


# how it is shown


def with_model(**changed: float) -> Cost:
    figures = {
        "calls": 1234, "cache_hits": 56, "tokens_in": 987_654, "tokens_out": 43_210, "failures": 7, "degraded": 12,
        "query_tokens_in": 823.4, "query_tokens_out": 36.01, "latency_answers": 50, "latency_cache_hits": 9,
        "search_answers": 1200, "search_cache_hits": 52,
    } | changed  # fmt: skip
    return replace(cost_like(20.0), language_model=LanguageModelCost(**figures))  # type: ignore[arg-type]


def report_with_model(name: str = "multi hop") -> BenchmarkReport:
    rows = [configuration("bm25", measures_like(0.3)), configuration(name, measures_like(0.4), cost=with_model())]
    return report_of(*rows, configuration("cheap", measures_like(0.2), cost=with_model(query_tokens_in=100.0, degraded=0)))


def test_the_page_has_the_columns_and_every_figure_and_a_dash_where_no_model_was_asked() -> None:
    report = report_with_model()
    source = render_page(report)
    rows = re.findall(r'<tr><th scope="row".*?</tr>', source.partition("</tbody>")[0], re.S)
    wanted = len(report.configurations[0].measures) + 4 + 8
    assert [row.count("<td") for row in rows] == [wanted] * 3
    assert sorted(row.count("\N{EN DASH}") for row in rows) == [0, 0, 8]
    shown = {*Page(source).texts("td"), *Page(source).texts("b")}
    assert {"1,234", "56", "987,654", "43,210", "823", "36.0", "7", "12"} <= shown
    for label in ("LM<br>calls", "tokens<br>in", "tokens<br>out", "failed<br>calls", "degraded"):
        assert f">{label}</th>" in source
    assert 'data-label="tokens in/query"' in source
