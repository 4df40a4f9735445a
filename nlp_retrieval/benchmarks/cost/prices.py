"""What language models cost in money: the user's table of prices, and the price of what a configuration asked.

No price is built in, because prices change. What is not known is None and never 0: a model without a price, or one whose
server does not tell its tokens, leaves the price of the whole configuration unknown. Only language models are priced; a
configuration that asked none has a price of 0.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from nlp_retrieval.benchmarks.cost.figures import Cost, ModelTokens
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.yaml_text import check_keys
from nlp_retrieval.errors import ConfigurationError

_CURRENCY = "currency"
_EXAMPLE = "{openai/gpt-4o-mini: {input: 0.15, output: 0.60}}"
_HIGHEST = 1e9
_LONGEST_CURRENCY = 8
_MODEL = re.compile(r"[^/\s]+/\S+")
_PER = 1e6
_QUERIES = 1000


@dataclass(frozen=True)
class ModelPrice:
    """What a language model charges.

    Args:
        input: for a million tokens of prompts, in the currency of the table; 0 or more.
        output: for a million tokens of answers.

    Raises:
        ConfigurationError: a price that is not a number from 0 to a billion.
    """

    input: float
    output: float

    def __post_init__(self) -> None:
        for side, price in asdict(self).items():
            if isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price <= _HIGHEST:
                raise ConfigurationError(f"{side}: {price!r} is not a price; give a number, per million tokens, of 0 or more")

    def of(self, tokens_in: float, tokens_out: float) -> float:
        """Return the price of tokens.

        Args:
            tokens_in: of prompts.
            tokens_out: of answers.
        """
        return (tokens_in * self.input + tokens_out * self.output) / _PER


@dataclass(frozen=True)
class Prices:
    """A table of prices.

    Args:
        models: by language model, named as in its configuration (``openai/gpt-4o-mini``).
        currency: a code such as ``USD``, or a sign; it is only shown.

    Raises:
        ConfigurationError: a name that is not of the form ``provider/model``, or a currency that is neither code nor sign.
    """

    models: dict[str, ModelPrice]
    currency: str = "USD"

    def __post_init__(self) -> None:
        for model in self.models:
            if not isinstance(model, str) or not _MODEL.fullmatch(model):
                raise ConfigurationError(
                    f"{model!r} is not a language model; name it as its configuration does, provider/model, such as "
                    "openai/gpt-4o-mini"
                )
        if not _is_currency(self.currency):
            raise ConfigurationError(f"currency: {self.currency!r} is not a currency; give a code such as USD, or a sign")

    @property
    def config(self) -> Config:
        """The table as plain values; :func:`read_prices` makes an equal one of them."""
        return {_CURRENCY: self.currency} | {model: asdict(price) for model, price in self.models.items()}


def read_prices(value: object, where: str) -> Prices:
    """Read a table of prices as a configuration file holds it.

    Args:
        value: a mapping from models to their ``input`` and ``output`` per million tokens; ``currency`` may stand beside
            them.
        where: named in errors, such as ``"sweep.yaml: prices"``.

    Raises:
        ConfigurationError: no such mapping; a model, key, price or currency that is none.
    """
    if not isinstance(value, Mapping) or not set(value) - {_CURRENCY}:
        raise ConfigurationError(f"{where}: expected prices by model, such as {_EXAMPLE}, found {value!r}")
    models: dict[str, ModelPrice] = {}
    for model, price in value.items():
        if model != _CURRENCY:
            models[model] = _read_price(price, f"{where}: {model}")
    try:
        return Prices(models, value.get(_CURRENCY, Prices.currency))
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from None


def price_per_1000_queries(cost: Cost, prices: Prices) -> float | None:
    """Return what 1,000 queries cost whose answers are not on disk yet; None where that is not known.

    Args:
        cost: of a configuration.
        prices: of language models.
    """
    per_query = _priced(cost, prices, lambda price, tokens: price.of(tokens.query_tokens_in, tokens.query_tokens_out))
    return None if per_query is None else _QUERIES * per_query


def price_spent(cost: Cost, prices: Prices) -> float | None:
    """Return what a configuration's measurement cost in this run; None where that is not known.

    Args:
        cost: of the configuration.
        prices: of language models.
    """
    return _priced(cost, prices, lambda price, tokens: price.of(tokens.tokens_in, tokens.tokens_out))


def unpriced(cost: Cost, prices: Prices) -> list[str]:
    """Return why the price of a configuration is not known, one reason for each model that it fails on.

    Args:
        cost: of the configuration.
        prices: of language models.
    """
    if cost.language_model is None:
        return []
    if not cost.language_model.models:
        return ["it is not known which models took the tokens"]
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
    # a server that says nothing of tokens counts as 0, and so does one that never answered
    sides = ((price.input, tokens.query_tokens_in), (price.output, tokens.query_tokens_out))
    return "no tokens are known of" if any(charged and not taken for charged, taken in sides) else ""


def _read_price(value: object, where: str) -> ModelPrice:
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{where}: expected prices such as {{input: 0.15, output: 0.60}}, found {value!r}")
    check_keys(dict(value), ("input", "output"), ("input", "output"), where)
    try:
        return ModelPrice(value["input"], value["output"])
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from None


def _is_currency(value: object) -> bool:
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_CURRENCY:
        return False
    return value.isalpha() or (len(value) == 1 and unicodedata.category(value) == "Sc")
