"""Costs of searching: time, memory, calls, tokens and money."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated

from pydantic import BeforeValidator, Field, Strict

from nlp_retrieval.benchmarks.checked import read_settings, settings, values_of
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.errors import ConfigurationError


@dataclass(frozen=True)
class ModelTokens:
    """The tokens of one language model, counted as in :class:`LanguageModelCost`."""

    tokens_in: int
    tokens_out: int
    query_tokens_in: float
    query_tokens_out: float


@dataclass(frozen=True)
class LanguageModelCost:
    """Language model usage of one configuration while it was measured.

    ``calls``, ``cache_hits``, ``tokens_in``, ``tokens_out`` and ``failures`` cover the whole measurement: warm-up, latency
    sample, the search over all queries and, if questions are answered, the answers. They are what this run spent: answers left
    on disk by an earlier run or another configuration make them smaller. Tokens per query do not depend on the answers on
    disk.

    Args:
        calls: requests sent, including retries.
        cache_hits: answers read from disk.
        tokens_in: tokens of the prompts sent, as counted by the server; 0 if it does not report them.
        tokens_out: tokens of its answers.
        failures: requests without an answer.
        degraded: questions left without a usable answer in the search over all queries, the one used to judge
            quality. A query may ask several questions.
        query_tokens_in: tokens of prompts per query, in the search over all queries and for their answers; an answer from
            disk counts with its original tokens.
        query_tokens_out: tokens of answers per query.
        latency_answers: number of answers in the latency sample.
        latency_cache_hits: how many of those came from disk; their time includes no model call.
        search_answers: number of answers in the search over all queries.
        search_cache_hits: how many of those came from disk, including those of the latency sample.
        models: the tokens by model, named as in its configuration; they add up to the totals above.

    Examples:
        >>> from dataclasses import fields
        >>> [field.name for field in fields(LanguageModelCost)][:4]
        ['calls', 'cache_hits', 'tokens_in', 'tokens_out']
    """

    calls: int
    cache_hits: int
    tokens_in: int
    tokens_out: int
    failures: int
    degraded: int
    query_tokens_in: float
    query_tokens_out: float
    latency_answers: int
    latency_cache_hits: int
    search_answers: int
    search_cache_hits: int
    models: dict[str, ModelTokens] = field(default_factory=dict)


@dataclass(frozen=True)
class AnsweringCost:
    """Cost of answering all questions in one call, when they were first answered; ``dropped`` citations name nothing given."""

    seconds: float
    model_answers: int
    model_cache_hits: int
    unanswered: int
    failed: int
    dropped: int


@dataclass(frozen=True)
class Cost:
    """Costs of one configuration.

    Args:
        index_seconds: time to build its part of the index from the items; the sum over its retrievers, even if the index
            already existed (then it is the original build time).
        index_bytes: size on disk of its part of the index, without the items.
        stage_ms: median milliseconds by stage for one query at a time, in the order of the stages.
        latency_ms: median milliseconds for one query, all stages together.
        latency_p95_ms: 95th percentile of the latency.
        language_model: usage of its language models; None if it used none.
        answering: cost of answering; None if nothing was answered.
        latency_low_ms: lower end of the 95% interval of the median latency; None if fewer than six queries were timed.
        latency_high_ms: upper end.

    Examples:
        >>> corpus = JsonlLoader("animals.jsonl")
        >>> run = Benchmarker({"bm25": Searcher(["bm25"])}, corpus, queries, gold, index_path="index").run()
        >>> cost = run.report.configurations[0].cost
        >>> cost.index_bytes > 0, sorted(cost.stage_ms)
        (True, ['bm25', 'items'])
    """

    index_seconds: float
    index_bytes: int
    stage_ms: dict[str, float]
    latency_ms: float
    latency_p95_ms: float
    language_model: LanguageModelCost | None = None
    answering: AnsweringCost | None = None
    latency_low_ms: float | None = None
    latency_high_ms: float | None = None


# Prices of language models. An unknown price is None and never 0: a model without a price, or one whose server does not report
# its tokens, makes the price of the whole configuration unknown.

_CURRENCY = "currency"
_EXAMPLE = "{openai/gpt-4o-mini: {input: 0.15, output: 0.60}}"
_LONGEST_CURRENCY = 8
_MODEL = re.compile(r"[^/\s]+/\S+")
_PER = 1e6
_QUERIES = 1000


def _model_name(value: object) -> str:
    if not isinstance(value, str) or not _MODEL.fullmatch(value):
        raise ConfigurationError(
            f"{value!r} is not a language model; name it as its configuration does, provider/model, such as openai/gpt-4o-mini"
        )
    return value


def _currency(value: object) -> str:
    is_sign = isinstance(value, str) and list(map(unicodedata.category, value)) == ["Sc"]
    if isinstance(value, str) and (is_sign or (value.isalpha() and len(value) <= _LONGEST_CURRENCY)):
        return value
    raise ConfigurationError(f"{value!r} is not a currency; give a code such as USD, or a sign")


_Price = Annotated[float, Strict(), Field(ge=0.0, le=1e9, allow_inf_nan=False)]


@settings
class ModelPrice:
    """Price of a language model.

    Args:
        input: price per million prompt tokens, in the currency of the table; 0 or more.
        output: price per million answer tokens.

    Raises:
        ConfigurationError: a price is not a number from 0 to a billion.

    Examples:
        >>> ModelPrice(input=0.15, output=0.6)
        ModelPrice(input=0.15, output=0.6)
    """

    input: _Price
    output: _Price

    def of(self, tokens_in: float, tokens_out: float) -> float:
        """Return the price of tokens.

        Args:
            tokens_in: tokens of prompts.
            tokens_out: tokens of answers.
        """
        return (tokens_in * self.input + tokens_out * self.output) / _PER


@settings
class Prices:
    """A table of prices.

    Args:
        models: by language model, named as in its configuration (``openai/gpt-4o-mini``).
        currency: a code such as ``USD``, or a symbol; only displayed.

    Raises:
        ConfigurationError: a name is not of the form ``provider/model``, or a currency is neither a code nor a symbol.

    Examples:
        >>> Prices({"openai/gpt-4o-mini": ModelPrice(0.15, 0.6)}, currency="USD").models
        {'openai/gpt-4o-mini': ModelPrice(input=0.15, output=0.6)}
    """

    models: Annotated[
        dict[Annotated[str, BeforeValidator(_model_name)], ModelPrice],
        Field(serialization_alias=""),
    ]
    currency: Annotated[str, BeforeValidator(_currency)] = "USD"

    @property
    def config(self) -> Config:
        """The table as plain values; :func:`read_prices` creates an equal one from them."""
        return {_CURRENCY: self.currency} | {model: asdict(price) for model, price in self.models.items()}


def read_prices(value: object, where: str) -> Prices:
    """Read a table of prices from a configuration file."""
    if not isinstance(value, Mapping) or not set(value) - {_CURRENCY}:
        raise ConfigurationError(f"{where}: expected prices by model, such as {_EXAMPLE}, found {value!r}")
    models = {
        model: price
        if isinstance(price, ModelPrice)
        else read_settings(ModelPrice, price, f"{where}: {model}" if where else str(model))
        for model, price in value.items()
        if model != _CURRENCY
    }
    return values_of(Prices, {"models": models} | {key: value[key] for key in value if key == _CURRENCY}, where)


def price_per_1000_queries(cost: Cost, prices: Prices) -> float | None:
    """Return the price of 1,000 queries without any answers on disk; None if unknown."""
    per_query = _priced(cost, prices, lambda price, tokens: price.of(tokens.query_tokens_in, tokens.query_tokens_out))
    return None if per_query is None else _QUERIES * per_query


def price_spent(cost: Cost, prices: Prices) -> float | None:
    """Return the price of a configuration's measurement in this run; None if unknown."""
    return _priced(cost, prices, lambda price, tokens: price.of(tokens.tokens_in, tokens.tokens_out))


def unpriced(cost: Cost, prices: Prices) -> list[str]:
    """Return why the price of a configuration is unknown, one reason for each model that prevents it."""
    if cost.language_model is None:
        return []
    if not cost.language_model.models:
        return ["it is not known which models used the tokens"]
    reasons = {model: _why_not(prices.models.get(model), tokens) for model, tokens in cost.language_model.models.items()}
    return [f"{reason} {model}" for model, reason in reasons.items() if reason]


def _priced(cost: Cost, prices: Prices, price_of: Callable[[ModelPrice, ModelTokens], float]) -> float | None:
    if cost.language_model is None:
        return 0.0
    if unpriced(cost, prices):
        return None
    return sum(price_of(prices.models[model], tokens) for model, tokens in cost.language_model.models.items())


def _why_not(price: ModelPrice | None, tokens: ModelTokens) -> str:
    if price is None:
        return "there is no price for"
    # a server that does not report tokens counts as 0, and so does one that never answered
    sides = ((price.input, tokens.query_tokens_in), (price.output, tokens.query_tokens_out))
    return "no tokens are known of" if any(charged and not taken for charged, taken in sides) else ""
