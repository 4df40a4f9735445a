"""Prices are the user's, are applied to the tokens of each model, and are unknown where anything is missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, fields, halves
from reports.report_data import PRICES, model_cost

from benchmarks.small_benchmark import QUERIES, benchmarker
from nlp_retrieval import Bm25Retriever, ClaimPhrases, HyDE, Searcher
from nlp_retrieval.benchmarks.cost import Cost, ModelTokens, Prices, price_per_1000_queries, read_prices, unpriced
from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.core import BaseUserQueryProcessor
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.reports.figures import price_columns

TOKENS = ModelTokens(tokens_in=3_000_000, tokens_out=500_000, query_tokens_in=800.0, query_tokens_out=100.0)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "sweep.yaml: prices: expected prices by model, such as {openai/gpt-4o-mini: {input: 0.15, output: 0.60}}"),
        ({"openai/a": 0.15}, "sweep.yaml: prices: openai/a: expected settings (input, output), found 0.15"),
        ({"openai/a": {"input": 1, "ouput": 1}}, "openai/a: unknown key 'ouput'; did you mean 'output'"),
        ({"openai/a": {"input": "0.15", "output": 1}}, "openai/a: input: Input should be a valid number; found '0.15'"),
        ({"openai/a": {"input": 1, "output": -1}}, "openai/a: output: Input should be greater than or equal to 0; found -1"),
        ({"gpt": {"input": 1, "output": 1}}, "prices: 'gpt' is not provider/model, such as openai/gpt-4o-mini"),
        ({"currency": 3, "openai/a": {"input": 1, "output": 1}}, "prices: currency: Input should be a valid string; found 3"),
        ({"currency": "\x1b[2J%$", "openai/a": {"input": 1, "output": 1}}, "currency: '\\x1b[2J%$' is not a currency"),
    ],
)
def test_a_table_that_is_none_is_refused_in_a_sentence(value: object, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_prices(value, "sweep.yaml: prices")
    assert said in str(caught.value)


def test_what_is_missing_inside_a_table_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"^'output' missing"):
        Prices({"openai/a": {"input": 1.0}})  # type: ignore[dict-item]


class Both(BaseUserQueryProcessor):
    """A processor after another."""

    name = "both"

    def __init__(self, first: BaseUserQueryProcessor, then: BaseUserQueryProcessor) -> None:
        self.first = first
        self.then = then

    def process(self, nlqs: list[str]) -> list[list[str]]:
        found = self.first.process(nlqs)
        distinct = list(dict.fromkeys(phrase for phrases in found for phrase in phrases))
        then = dict(zip(distinct, self.then.process(distinct), strict=True))
        return [[sub for phrase in phrases for sub in then[phrase]] for phrases in found]


def test_a_price_is_that_of_the_tokens_of_each_model() -> None:
    both = model_cost(small=TOKENS, large=replace(TOKENS, tokens_in=0, tokens_out=0))
    # a query takes 800 tokens in and 100 out of each model
    per_query = (800 * 0.15 + 100 * 0.6) / 1e6 + (800 * 2.5 + 100 * 10.0) / 1e6
    assert price_per_1000_queries(both, PRICES) == pytest.approx(1000 * per_query)
    assert unpriced(both, PRICES) == []


@pytest.mark.parametrize(
    ("cost", "reasons"),
    [
        (model_cost(small=TOKENS, other=TOKENS), ["there is no price for openai/other"]),
        (model_cost(other=TOKENS, new=TOKENS), ["there is no price for openai/other", "there is no price for openai/new"]),
        (model_cost(small=replace(TOKENS, query_tokens_in=0.0)), ["no tokens are known of openai/small"]),
        (model_cost(), ["it is not known which models used the tokens"]),
    ],
)
def test_a_price_is_unknown_and_never_zero_where_anything_is_missing(cost: Cost, reasons: list[str]) -> None:
    assert price_per_1000_queries(cost, PRICES) is None
    assert unpriced(cost, PRICES) == reasons


def two_models(server: ChatServer, folder: Path) -> dict[str, Searcher]:
    """One configuration of two models: one halves the query, and one writes a passage about each half."""

    def answer(body: dict[str, Any]) -> str:
        return fields(passage="a fox and a whale") if body["model"] == "large" else halves(body)

    server.answer = answer
    small, large = (
        LanguageModel(f"openai/{name}", base_url=server.url, cache_dir=folder / "answers", endpoint={"backoff": 0.001})
        for name in ("small", "large")
    )
    processor = Both(ClaimPhrases(small, keep_query=False), HyDE(large, keep_query=False))
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
