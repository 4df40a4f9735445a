"""Prices are the user's, are applied to the tokens of each model, and are unknown where anything is missing."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from chat_server import ChatServer, MakeModel, fields, halves
from reports.page.test_page import ATTACK, Page
from reports.report_data import PRICES, configuration, cost_like, measures_like, model_cost, priced_report, usual_report
from rich.console import Console

from benchmarks.small_benchmark import QUERIES, benchmarker
from nlp_retrieval import Bm25Retriever, ClaimPhrases, HyDE, Searcher, write_run_files
from nlp_retrieval.benchmarks.cost import (
    Cost,
    ModelPrice,
    ModelTokens,
    Prices,
    price_per_1000_queries,
    price_spent,
    read_prices,
    unpriced,
)
from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.benchmarks.runs import read_run_folder
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.processors.rules import Chain
from nlp_retrieval.reports.figures import cost_columns, price_columns, price_text
from nlp_retrieval.reports.page.page import render_page
from nlp_retrieval.reports.tables import latex_table, markdown_table
from nlp_retrieval.reports.terminal import SummaryTable
from nlp_retrieval.reports.view import price_note, prices_legend, view_of

TOKENS = ModelTokens(tokens_in=3_000_000, tokens_out=500_000, query_tokens_in=800.0, query_tokens_out=100.0)


def printed(report: BenchmarkReport, width: int = 120, *, verbose: bool = False) -> str:
    file = io.StringIO()
    Console(file=file, width=width).print(SummaryTable(view_of(report), verbose=verbose))
    return file.getvalue()


def one_line(text: str) -> str:
    return " ".join(text.split())


# the table of prices


def test_prices_are_read_from_a_configuration_file() -> None:
    text = "{openai/gpt-4o-mini: {input: 0.15, output: 0.60}, ollama_chat/qwen2.5:7b: {input: 0, output: 0}}"
    assert read_prices(yaml.safe_load(text), "sweep.yaml: prices") == Prices(
        {"openai/gpt-4o-mini": ModelPrice(0.15, 0.6), "ollama_chat/qwen2.5:7b": ModelPrice(0, 0)}
    )


@pytest.mark.parametrize("currency", ["USD", "EUR", "€", "credits"])
def test_the_currency_stands_beside_the_models(currency: str) -> None:
    found = read_prices({"currency": currency, "openai/a": {"input": 1, "output": 2}}, "prices")
    assert found == Prices({"openai/a": ModelPrice(1, 2)}, currency)


def test_the_config_of_a_table_builds_an_equal_one() -> None:
    table = Prices(PRICES.models, "EUR")
    assert read_prices(table.config, "prices") == table


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "sweep.yaml: prices: expected prices by model, such as {openai/gpt-4o-mini: {input: 0.15, output: 0.60}}"),
        ({}, "expected prices by model"),
        ({"currency": "USD"}, "expected prices by model"),
        ([{"openai/a": 1}], "expected prices by model"),
        ({"openai/a": 0.15}, "sweep.yaml: prices: openai/a: expected settings (input, output), found 0.15"),
        ({"openai/a": None}, "openai/a: expected settings (input, output), found None"),
        ({"openai/a": {"input": 1}}, "openai/a: 'output' missing; keys there can be: input, output"),
        ({"openai/a": {"input": 1, "ouput": 1}}, "openai/a: unknown key 'ouput'; did you mean 'output'"),
        ({"openai/a": {"input": "0.15", "output": 1}}, "openai/a.input: expected a number, found '0.15'"),
        ({"openai/a": {"input": True, "output": 1}}, "openai/a.input: expected a number, found True"),
        ({"openai/a": {"input": 1, "output": -0.5}}, "openai/a.output: expected a number of at least 0, found -0.5"),
        ({"openai/a": {"input": 1, "output": math.nan}}, "output: expected a finite number, found nan"),
        ({"openai/a": {"input": math.inf, "output": 1}}, "input: expected a finite number, found inf"),
        ({"openai/a": {"input": 10**400, "output": 1}}, "openai/a.input: "),
        ({"openai/a": {"input": None, "output": 1}}, "input: expected a number, found None"),
        ({"gpt-4o-mini": {"input": 1, "output": 1}}, "sweep.yaml: prices: 'gpt-4o-mini' is not a language model; name it as"),
        ({4: {"input": 1, "output": 1}}, "4 is not a language model"),
        ({"openai/a b": {"input": 1, "output": 1}}, "'openai/a b' is not a language model"),
        ({"currency": 3, "openai/a": {"input": 1, "output": 1}}, "sweep.yaml: prices: currency: 3 is not a currency"),
        ({"currency": "", "openai/a": {"input": 1, "output": 1}}, "currency: '' is not a currency"),
        ({"currency": "[red]", "openai/a": {"input": 1, "output": 1}}, "currency: '[red]' is not a currency"),
        ({"currency": "a very long one", "openai/a": {"input": 1, "output": 1}}, "is not a currency; give a code such as USD"),
    ],
)
def test_a_table_that_is_none_is_refused_in_a_sentence(value: object, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_prices(value, "sweep.yaml: prices")
    assert said in str(caught.value)


@pytest.mark.parametrize("make", [lambda: ModelPrice(-1, 0), lambda: Prices({"gpt": ModelPrice(1, 1)})])
def test_a_table_made_in_python_is_checked_too(make: Callable[[], object]) -> None:
    with pytest.raises(ConfigurationError):
        make()


# prices of configurations


def test_a_price_is_that_of_the_tokens_of_each_model() -> None:
    both = model_cost(small=TOKENS, large=replace(TOKENS, tokens_in=0, tokens_out=0))
    # a query takes 800 tokens in and 100 out of each model
    per_query = (800 * 0.15 + 100 * 0.6) / 1e6 + (800 * 2.5 + 100 * 10.0) / 1e6
    assert price_per_1000_queries(both, PRICES) == pytest.approx(1000 * per_query)
    assert price_spent(both, PRICES) == pytest.approx(3 * 0.15 + 0.5 * 0.6)  # the large model's answers were on disk
    assert unpriced(both, PRICES) == []


def test_without_a_model_there_is_nothing_to_pay() -> None:
    assert (price_per_1000_queries(cost_like(), PRICES), price_spent(cost_like(), PRICES)) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("cost", "reasons"),
    [
        (model_cost(small=TOKENS, other=TOKENS), ["there is no price for openai/other"]),
        (model_cost(other=TOKENS, new=TOKENS), ["there is no price for openai/other", "there is no price for openai/new"]),
        (model_cost(small=replace(TOKENS, query_tokens_in=0.0)), ["no tokens are known of openai/small"]),
        (model_cost(small=replace(TOKENS, query_tokens_out=0.0)), ["no tokens are known of openai/small"]),
        (model_cost(), ["it is not known which models used the tokens"]),
    ],
)
def test_a_price_is_unknown_and_never_zero_where_anything_is_missing(cost: Cost, reasons: list[str]) -> None:
    assert price_per_1000_queries(cost, PRICES) is None
    assert price_spent(cost, PRICES) is None
    assert unpriced(cost, PRICES) == reasons


def test_a_model_that_charges_nothing_costs_nothing_whatever_its_server_tells() -> None:
    silent = model_cost(local=ModelTokens(0, 0, 0.0, 0.0))
    free = Prices({"openai/local": ModelPrice(0, 0)})
    assert (price_per_1000_queries(silent, free), price_spent(silent, free)) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00"),
        (0.00001, "<0.0001"),
        (0.00042, "0.00042"),
        (0.0123, "0.012"),
        (0.18, "0.18"),
        (3.5, "3.50"),
        (1234, "1,234"),
    ],
)
def test_small_prices_keep_two_digits(value: float, text: str) -> None:
    assert price_text(value) == text


# what models were really asked


def two_models(server: ChatServer, folder: Path) -> dict[str, Searcher]:
    """One configuration of two models: one halves the query, and one writes a passage about each half."""

    def answer(body: dict[str, Any]) -> str:
        return fields(passage="a fox and a whale") if body["model"] == "large" else halves(body)

    server.answer = answer
    small, large = (
        LanguageModel(f"openai/{name}", base_url=server.url, cache_dir=folder / "answers", endpoint={"backoff": 0.001})
        for name in ("small", "large")
    )
    processor = Chain([ClaimPhrases(small, keep_query=False), HyDE(large, keep_query=False)])
    return {"bm25": Searcher([Bm25Retriever()]), "chain": Searcher([Bm25Retriever()], processor)}


def models_of(cost: Cost | None) -> dict[str, ModelTokens]:
    assert cost is not None
    assert cost.language_model is not None
    return cost.language_model.models


@pytest.mark.parametrize("stages", [pytest.param(None, marks=pytest.mark.soak), "stages"])
def test_tokens_are_counted_by_model_and_a_second_run_has_the_same_price_and_spends_nothing(
    server: ChatServer, tmp_path: Path, stages: str | None
) -> None:
    def run() -> BenchmarkReport:
        folder = tmp_path / stages if stages else None
        made = benchmarker(tmp_path / "index", searchers=two_models(server, tmp_path), stage_folder=folder)
        return replace(made.run().report, prices=PRICES)

    first = run()
    requests = [body["model"] for body in server.bodies]
    models = models_of(first.configurations[1].cost)
    assert list(models) == ["openai/large", "openai/small"]
    for name, tokens in models.items():
        number = requests.count(name.removeprefix("openai/"))
        assert (tokens.tokens_in, tokens.tokens_out) == (100 * number, 10 * number)
    assert models["openai/small"].query_tokens_in == 100.0
    assert models["openai/large"].query_tokens_out == 10 * requests.count("large") / len(QUERIES)
    again = run()
    assert len(server.bodies) == len(requests)
    for name, tokens in models_of(again.configurations[1].cost).items():
        assert tokens == replace(models[name], tokens_in=0, tokens_out=0)
    prices = [[column.value(report.configurations[1]) for column in price_columns(report)] for report in (first, again)]
    assert prices[0][0] == prices[1][0]
    assert prices[0][0] is not None
    assert prices[0][0] > 0
    assert prices[1][1] == 0.0
    calls = {name: requests.count(name) for name in ("small", "large")}
    wanted = calls["small"] * (100 * 0.15 + 10 * 0.6) / 1e6 + calls["large"] * (100 * 2.5 + 10 * 10.0) / 1e6
    assert prices[0][1] == pytest.approx(wanted)


def test_a_benchmark_takes_prices_and_its_report_is_read_back_with_them(
    server: ChatServer, model: MakeModel, tmp_path: Path
) -> None:
    searchers = {"decomposed": Searcher([Bm25Retriever()], ClaimPhrases(model()))}
    run = benchmarker(tmp_path / "index", searchers=searchers, prices=PRICES).run()
    report = write_run_files(run, tmp_path / "run")
    assert report.prices == PRICES
    assert read_run_folder(tmp_path / "run").report == report
    (result,) = report.configurations
    assert [column.text(column.value(result)) for column in price_columns(report)] == ["0.021", "0.00042"]
    assert read_prices(report.manifest["prices"], "manifest") == PRICES


def test_a_dead_endpoint_has_no_price(server: ChatServer, model: MakeModel, tmp_path: Path) -> None:
    server.answer = lambda body: 401
    searchers = {"decomposed": Searcher([Bm25Retriever()], ClaimPhrases(model(retries=0)))}
    with pytest.warns(UserWarning, match="20 of 20 queries"):
        report = replace(benchmarker(tmp_path, searchers=searchers).run().report, prices=PRICES)
    (result,) = report.configurations
    assert price_columns(report) == []
    assert price_note(report, result) == "its price is unknown: no tokens are known of openai/small."


# how prices are shown


def test_prices_stand_beside_quality_and_cost_in_the_terminal() -> None:
    text = printed(priced_report())
    first, second = text.split("* baseline")
    assert "USD/1k" in first
    rows = {line.split()[0]: line.split() for line in first.splitlines() if line.strip()}
    assert [rows[name][-1] for name in ("dense", "small", "large")] == ["0.00◆", "0.18◆", "3.50◆"]
    spent = {line.split()[0]: line.split()[-1] for line in second.splitlines() if line.strip()}
    assert (spent["small"], spent["large"]) == ("0.30", "0.00")
    notes = one_line(printed(priced_report(), verbose=True))
    assert "USD per million tokens, as given: openai/small 0.15 in, 0.6 out; openai/large 2.5 in, 10 out." in notes


@pytest.mark.parametrize("width", [80, 100])
def test_prices_fit_into_a_terminal(width: int) -> None:
    text = printed(priced_report(), width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "3.50" in text


def test_the_page_and_the_tables_in_files_have_the_prices() -> None:
    report = priced_report()
    source = render_page(report)
    assert not Page(source).open
    values = {float(data["value"] or "nan") for data in Page(source).of("data")}
    assert {0.18, 3.5, 0.3} <= {round(value, 9) for value in values}
    assert 'data-label="USD/1k queries"' in source
    assert prices_legend(report) in source
    head, *rows = (line for line in markdown_table(report).splitlines() if line.startswith("|"))
    assert head.endswith("| USD/1k queries |")
    assert [row.split("|")[-2].strip().strip("*◆") for row in rows[1:]] == ["0.00", "0.00", "0.18", "3.50"]
    assert "USD/1k queries" in latex_table(report)


def test_a_configuration_whose_price_is_unknown_has_a_dash_and_a_reason() -> None:
    report = priced_report()
    other = configuration("other", measures_like(0.5), cost=model_cost(new=TOKENS))
    report = replace(report, configurations=[*report.configurations, other])
    note = "its price is unknown: there is no price for openai/new."
    assert [price_note(report, result) for result in report.configurations] == ["", "", "", "", note]
    assert [column.text(column.value(other)) for column in price_columns(report)] == ["\N{EN DASH}"] * 2
    assert f"other: {note}" in one_line(printed(report))
    assert f"<li><bdi>other</bdi>: {note}</li>" in render_page(report)


def test_where_no_price_is_known_there_is_no_column_and_the_reason_stands() -> None:
    report = replace(priced_report(), prices=Prices({"openai/else": ModelPrice(1, 1)}))
    assert price_columns(report) == []
    assert prices_legend(report) == ""
    for shown in (printed(report), render_page(report).partition("<body>")[2]):
        assert "USD" not in shown
        assert "there is no price for openai/small" in one_line(shown)


@pytest.mark.parametrize(
    "report", [usual_report(), replace(priced_report(), prices=None), replace(usual_report(), prices=PRICES)]
)
def test_where_nothing_is_priced_nothing_tells_of_prices(report: BenchmarkReport) -> None:
    assert not any("price" in column.key for column in cost_columns(report))
    for shown in (printed(report), markdown_table(report), latex_table(report), render_page(report).partition("<body>")[2]):
        assert not re.search(r"USD|\bprice", shown)


def test_a_model_of_any_name_stays_text() -> None:
    name = f"openai/{''.join(ATTACK.split())}"
    cost = model_cost()
    assert cost.language_model is not None
    report = priced_report()
    odd = replace(cost, language_model=replace(cost.language_model, models={name: TOKENS, "openai/[red]\x1b[2J": TOKENS}))
    with_price = replace(report, prices=Prices(PRICES.models | {name: ModelPrice(1, 1)}))
    for prices in (report, with_price):
        shown = replace(prices, configurations=[*report.configurations, configuration("odd", measures_like(0.5), cost=odd)])
        page = Page(render_page(shown))
        assert len(page.of("script")) == 1
        assert not page.of("img")
        assert not page.open
        assert "\x1b" not in printed(shown) + markdown_table(shown) + latex_table(shown)
        assert "[red]" in printed(shown)
