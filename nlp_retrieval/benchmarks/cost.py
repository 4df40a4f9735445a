"""Costs of searching: time, memory, calls, tokens and money."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated

from pydantic import AfterValidator, Field, Strict

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

    ``calls``, ``cache_hits``, ``tokens_in``, ``tokens_out`` and ``failures`` are what this run spent, from the warm-up to the
    answers; answers on disk make them smaller. Tokens per query do not depend on these. ``degraded`` counts the questions
    that got no usable answer in the search over all queries; ``models`` has the tokens by model.
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
    """Costs of one configuration; times of a query are medians over a sample, searched one query at a time.

    ``latency_low_ms`` and ``latency_high_ms`` are the 95% interval of the median, None for fewer than six queries.
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


def amount(value: float) -> str:
    """Return a cost with about three digits: 0.52, 3.10, 24.6, 1,250."""
    if value < 0.005 and value > 0:
        return "<0.01"
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"


# Prices of language models. An unknown price is None and never 0: a model without a price, or one whose server does not report
# its tokens, makes the price of the whole configuration unknown.

_CURRENCY = "currency"
_EXAMPLE = "{openai/gpt-4o-mini: {input: 0.15, output: 0.60}}"
_PER = 1e6


def _currency(value: str) -> str:
    """Letters or one sign: a currency of somebody else's report is shown on a terminal."""
    if (value.isalpha() and len(value) <= 8) or list(map(unicodedata.category, value)) == ["Sc"]:
        return value
    raise ConfigurationError(f"{value!r} is not a currency; give a code such as USD, or a sign")


def _model(value: str) -> str:
    provider, _, name = value.partition("/")
    if not provider or not name or any(map(str.isspace, value)):
        raise ConfigurationError(f"{value!r} is not provider/model, such as openai/gpt-4o-mini")
    return value


_Price = Annotated[float, Strict(), Field(ge=0.0, le=1e9, allow_inf_nan=False)]


@settings
class ModelPrice:
    """Price of a language model, per million tokens of prompts and of answers."""

    input: _Price
    output: _Price

    def of(self, tokens_in: float, tokens_out: float) -> float:
        """Return the price of tokens of prompts and of answers."""
        return (tokens_in * self.input + tokens_out * self.output) / _PER


@settings
class Prices:
    """A table of prices by language model, named as in its configuration; the currency is only displayed."""

    models: Annotated[dict[Annotated[str, AfterValidator(_model)], ModelPrice], Field(serialization_alias="")]
    currency: Annotated[str, AfterValidator(_currency)] = "USD"

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
    if cost.language_model is None:
        return 0.0
    if unpriced(cost, prices):
        return None
    used = cost.language_model.models.items()
    return 1000 * sum(prices.models[model].of(tokens.query_tokens_in, tokens.query_tokens_out) for model, tokens in used)


def unpriced(cost: Cost, prices: Prices) -> list[str]:
    """Return why the price of a configuration is unknown, one reason for each model that prevents it."""
    if cost.language_model is None:
        return []
    if not cost.language_model.models:
        return ["it is not known which models used the tokens"]
    reasons = {model: _why_not(prices.models.get(model), tokens) for model, tokens in cost.language_model.models.items()}
    return [f"{reason} {model}" for model, reason in reasons.items() if reason]


def _why_not(price: ModelPrice | None, tokens: ModelTokens) -> str:
    if price is None:
        return "there is no price for"
    # a server that does not report tokens counts as 0, and so does one that never answered
    sides = ((price.input, tokens.query_tokens_in), (price.output, tokens.query_tokens_out))
    return "no tokens are known of" if any(charged and not counted for charged, counted in sides) else ""
