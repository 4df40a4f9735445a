"""What language models were asked is in the costs, the files, the table, the page and the runs, and nowhere else."""

from __future__ import annotations

import io
import json
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, MakeModel, asked, halves
from reports.page.test_page import ATTACK, Page
from reports.report_data import configuration, cost_like, measures_like, report_of, usual_report
from reports.wandb.first_screen import overview
from rich.console import Console

from benchmarks.small_benchmark import GOLD, QUERIES, benchmarker
from benchmarks.test_benchmarker import read
from nlp_retrieval import (
    BenchmarkReport,
    Bm25Retriever,
    ClaimPhrases,
    Query,
    RetrievalWarning,
    Searcher,
    WandbSettings,
    log_to_wandb,
    write_run_files,
)
from nlp_retrieval.benchmarks.cost import Cost, LanguageModelCost, ModelPrice, Prices, price_per_1000_queries, price_spent
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.reports.figures import COST_COLUMNS, LANGUAGE_MODEL_COLUMNS, cost_columns, fronts
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


def test_a_configuration_that_asks_the_same_as_an_earlier_one_spends_less_and_costs_the_same(
    server: ChatServer, model: MakeModel, tmp_path: Path
) -> None:
    searchers = {
        "one": decomposed(model()),
        "other": Searcher([Bm25Retriever(k1=1.2)], ClaimPhrases(model(), keep_query=False)),
    }
    report = benchmarker(tmp_path, searchers=searchers).run().report
    one, other = (asked_of(result.cost) for result in report.configurations)
    assert (one.calls, other.calls) == (20, 0)
    assert one.query_tokens_in == other.query_tokens_in == 100.0
    assert (one.latency_cache_hits, other.latency_cache_hits) == (0, 3)


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


def test_answers_of_which_no_tokens_are_known_count_as_none(server: ChatServer, model: MakeModel, tmp_path: Path) -> None:
    benchmarker(tmp_path / "index", searchers=both(model())).run()
    kept = sorted((tmp_path / "answers").rglob("*.json"))
    assert len(kept) == 20
    for number, file in enumerate(kept[:12]):
        content = read(file)
        del content["answer"]["tokens_in"]
        content["answer"]["tokens_out"] = [None, "10", -5][number % 3]
        file.write_text(json.dumps(content), "utf-8")
    report = benchmarker(tmp_path / "index", searchers=both(model())).run().report
    cost = asked_of(report.configurations[1].cost)
    assert (cost.calls, cost.cache_hits) == (0, 25)
    assert (cost.query_tokens_in, cost.query_tokens_out) == (40.0, 4.0)


def test_blank_queries_are_no_warm_up_and_are_not_asked_about(server: ChatServer, model: MakeModel, tmp_path: Path) -> None:
    queries = [Query(query_id="q0", text=" "), Query(query_id="q1", text="  "), *QUERIES[2:]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)
        report = benchmarker(tmp_path, searchers=both(model()), queries=queries, gold=GOLD, latency_queries=1).run().report
    cost = asked_of(report.configurations[1].cost)
    assert (cost.calls, cost.query_tokens_in) == (18, 90.0)
    assert cost.cache_hits - cost.latency_answers == 2


def test_costs_are_in_their_file_and_quality_has_none_of_them(server: ChatServer, model: MakeModel, tmp_path: Path) -> None:
    run = benchmarker(tmp_path / "index", searchers=both(model())).run()
    write_run_files(run, tmp_path / "run")
    costs = read(tmp_path / "run" / "costs.json")
    assert costs["bm25"]["language_model"] is None
    assert costs["decomposed"]["language_model"] == {
        "calls": 20, "cache_hits": 5, "tokens_in": 2000, "tokens_out": 200, "failures": 0, "degraded": 0,
        "query_tokens_in": 100.0, "query_tokens_out": 10.0, "latency_answers": 3, "latency_cache_hits": 0,
        "search_answers": 20, "search_cache_hits": 5,
        "models": {
            "openai/small": {"tokens_in": 2000, "tokens_out": 200, "query_tokens_in": 100.0, "query_tokens_out": 10.0}
        },
    }  # fmt: skip
    quality = (tmp_path / "run" / "results.json").read_text()
    assert not any(word in quality for word in ("tokens", "degraded", "calls", "cache"))


@pytest.mark.soak
def test_runs_of_weights_and_biases_hold_the_work_of_language_models(
    server: ChatServer, model: MakeModel, tmp_path: Path
) -> None:
    server.answer = failing_for([QUERIES[0].text], 400)
    with pytest.warns(RetrievalWarning, match="1 of 20 queries"):
        run = benchmarker(tmp_path / "index", searchers=both(model())).run()
    prices = Prices({"openai/small": ModelPrice(0.15, 0.6)})
    report = replace(write_run_files(run, tmp_path / "run"), prices=prices)
    folders = log_to_wandb(report, WandbSettings(project="tests", mode="offline"), tmp_path / "wandb")
    plain, with_model = (overview(folder)["summary"] for folder in folders[:2])
    with_cost = report.configurations[1].cost
    cost = asked_of(with_cost)
    assert with_cost is not None
    assert (cost.degraded, cost.query_tokens_in) == (1, 95.0)
    for name in (*KINDS, "query_tokens_in", "query_tokens_out", "latency_answers", "latency_cache_hits"):
        assert with_model[f"cost/language_model/{name}"] == getattr(cost, name)
    assert not [name for name in plain if "language_model" in name]
    per_1000, spent = price_per_1000_queries(with_cost, prices), price_spent(with_cost, prices)
    assert per_1000 == pytest.approx((95 * 0.15 + 9.5 * 0.6) / 1000)
    assert with_model["cost/price_per_1000_queries"] == pytest.approx(per_1000)
    assert with_model["cost/price_spent"] == pytest.approx(spent)
    assert (plain["cost/price_per_1000_queries"], plain["cost/price_spent"]) == (0, 0)
    for name, key in (("pareto", "latency_ms"), ("pareto_price", "price_per_1000_queries")):
        on_front = fronts(report)[key].names
        assert (plain[name], with_model[name]) == ("bm25" in on_front, "decomposed" in on_front)
    (table,) = [json.loads(path.read_text()) for path in folders[-1].rglob("comparison*.table.json")]
    for name in (*KINDS, "query_tokens_in"):
        place = table["columns"].index(f"language_model/{name}")
        assert {row[0]: row[place] for row in table["data"]} == {"bm25": None, "decomposed": getattr(cost, name)}
    place = table["columns"].index("price_per_1000_queries")
    assert {row[0]: row[place] for row in table["data"]} == pytest.approx({"bm25": 0.0, "decomposed": per_1000})


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


def test_where_no_model_was_asked_nothing_tells_of_models() -> None:
    report = usual_report()
    assert cost_columns(report) == COST_COLUMNS
    main = render_page(report).partition("<body>")[2]
    for text in (printed(report), main):
        assert not re.search(r"tokens|degraded|LM calls|from disk|language model", text)


def test_the_terminal_shows_models_in_a_table_of_their_own_at_eighty_columns() -> None:
    text = printed(report_with_model(), 80)
    assert len(re.findall("^ *configuration", text, re.M)) == 2
    head = text[text.rindex("* baseline") :]
    assert text.count("bm25 *") == 1
    assert "bm25" not in head
    row = next(line for line in head.splitlines() if line.strip().startswith("multi hop"))
    assert row.split()[2:] == ["1,234", "56", "987,654", "43,210", "823", "36.0", "7", "12"]
    assert all(word in head for word in ("LM", "tokens", "in/query", "out/query", "failed", "degraded"))


@pytest.mark.parametrize("width", [30, 40, 60, 80, 120])
def test_no_line_about_models_is_wider_than_the_terminal(width: int) -> None:
    text = printed(report_with_model("a-long-name-of-a-configuration-that-folds"), width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "…" not in text
    second = text[text.index("* baseline") :]
    assert "degraded" in second
    assert re.search(r" 12 *\n", second)
    assert ("1,234" in second) == ("calls" in second.partition("────")[0])


def test_an_ascii_terminal_shows_models() -> None:
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    Console(file=file, width=80).print(SummaryTable(view_of(report_with_model())))
    file.flush()


def test_a_name_in_a_note_is_no_markup() -> None:
    text = printed(report_with_model("[red]x[/red]\x1b[2J"), 100)
    assert one_line(text).count("[red]x[/red]") == 5  # what was found, both tables, two notes
    assert "\x1b" not in text
    page = Page(render_page(report_with_model(ATTACK)))
    assert len(page.of("script")) == 1
    assert not page.of("img")
    assert not page.open


def test_the_page_has_the_columns_and_every_figure_and_a_dash_where_no_model_was_asked() -> None:
    report = report_with_model()
    source = render_page(report)
    rows = re.findall(r'<tr><th scope="row".*?</tr>', source.partition("</tbody>")[0], re.S)
    wanted = len(report.configurations[0].measures) + 5 + 8
    assert [row.count("<td ") for row in rows] == [wanted] * 3
    assert sorted(row.count("\N{EN DASH}") for row in rows) == [0, 0, 8]
    values = {float(data["value"] or "nan") for data in Page(source).of("data")}
    assert {1234, 56, 987_654, 43_210, 823.4, 36.01, 7, 12} <= values
    for label in ("LM<br>calls", "tokens<br>in", "tokens<br>out", "failed<br>calls", "degraded"):
        assert f">{label}</th>" in source
    assert 'data-label="tokens in/query"' in source


def test_only_tokens_per_query_are_compared() -> None:
    report = report_with_model()
    compared = {
        column.key for column in LANGUAGE_MODEL_COLUMNS if column.best([column.value(one) for one in report.configurations])
    }
    assert compared == {"query_tokens_in"}
    by_key = {column.key: column for column in LANGUAGE_MODEL_COLUMNS}
    assert by_key["calls"].difference(3, 2) == ""
    assert by_key["query_tokens_in"].difference(300.0, 200.0) == "\N{MULTIPLICATION SIGN}1.50"


def test_a_latency_that_is_partly_from_disk_says_how_much() -> None:
    said = "9 of 50 answers of the language model in the latency sample came from disk; the latency is in part that of reading"
    assert f"multi hop: {said}" in one_line(printed(report_with_model()))
    assert said in render_page(report_with_model())


def test_one_question_is_told_of_in_the_singular() -> None:
    report = report_of(configuration("a", measures_like(0.3), cost=with_model(degraded=1)))
    said = "a: 1 question about 1,200 queries got no usable answer from the language model; its query was searched without it."
    assert said in one_line(printed(report))
    assert "1 question without an answer" in render_page(report)
