"""Costs of searching: time, memory, calls, tokens and money."""

from __future__ import annotations

import math
import random
import re
import statistics
import time
import unicodedata
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any, Protocol

import numpy as np

from nlp_retrieval.benchmarks.filters import search_each, search_where
from nlp_retrieval.benchmarks.stages.trace import Retrieved
from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.context import record_stages
from nlp_retrieval.core.files.yaml_text import check_keys
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.index.generation import Generation
from nlp_retrieval.core.index.manifest import RetrieverRecord
from nlp_retrieval.core.models import RetrievalResult
from nlp_retrieval.core.processes import OtherProcesses, PeakMemory
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning
from nlp_retrieval.lm.counting import CallCounts, record_calls, summed

# The cost figures: seconds, bytes, calls and tokens, per configuration.


@dataclass(frozen=True)
class ModelTokens:
    """The tokens of one language model; for what is counted, see :class:`LanguageModelCost`.

    Args:
        tokens_in: tokens of the prompts sent.
        tokens_out: tokens of its answers.
        query_tokens_in: tokens of prompts per query.
        query_tokens_out: tokens of answers per query.
    """

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
        search_answers: number of answers in the search over all queries, which throughput is measured on.
        search_cache_hits: how many of those came from disk, including those of the latency sample.
        models: the tokens by model, named as in its configuration; they add up to the totals above.
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
    """Cost of answering all questions, after the search, including its language models.

    Args:
        seconds: for all questions in one call, when they were first answered.
        model_answers: number of language model answers in that call.
        model_cache_hits: how many of those came from disk; their time includes no model call.
        unanswered: questions that were judged to have no answer.
        failed: questions on which the answerer failed.
        dropped: citations of passages or sentences that the answerer was not given.
    """

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
        index_peak_bytes: largest resident memory of the process while its part of the index was built. It covers the whole
            process, including what was loaded before: it depends on the order of the configurations, so no table shows it.
        stage_ms: median milliseconds by stage for one query at a time, in the order of the stages.
        latency_ms: median milliseconds for one query, all stages together.
        latency_p95_ms: 95th percentile of the latency.
        queries_per_second: throughput of one ``search`` call over all queries; None if workers computed stages in
            parallel, which says little about the time of one search.
        search_peak_bytes: largest resident memory of the process while the configuration was searched; same limitation.
        language_model: usage of its language models; None if it used none.
        answering: cost of answering; None if nothing was answered.
        latency_low_ms: lower end of the 95% interval of the median latency; None if fewer than six queries were timed.
        latency_high_ms: upper end.
        other_cores: average number of cores kept busy by other processes while the run was timed; None if unknown.
    """

    index_seconds: float
    index_bytes: int
    index_peak_bytes: int
    stage_ms: dict[str, float]
    latency_ms: float
    latency_p95_ms: float
    queries_per_second: float | None
    search_peak_bytes: int
    language_model: LanguageModelCost | None = None
    answering: AnsweringCost | None = None
    latency_low_ms: float | None = None
    latency_high_ms: float | None = None
    other_cores: float | None = None


_OF_THE_PROCESS = ("index_peak_bytes", "search_peak_bytes")


def comparable_figures(cost: Cost) -> dict[str, Any]:
    """Return the figures of a cost as plain values, without those that depend on the earlier state of the process."""
    return {name: value for name, value in asdict(cost).items() if name not in _OF_THE_PROCESS}


# Measuring the search of a configuration: all queries in one call, and a sample of them one at a time.

_WARM_UP = 2
_LEVEL = 0.05


class Searching(Protocol):
    """A searcher that can be measured."""

    @property
    def fingerprint(self) -> str:
        """Equal for equal configurations."""

    @property
    def stages(self) -> list[str]:
        """The names of its stages, in order."""

    @property
    def opened(self) -> Generation | None:
        """The generation of the index that it searches; None if it stores its items in another way."""

    def search(self, queries: Sequence[str], k: int) -> list[list[RetrievalResult]]:
        """Search."""


def generation_of(searcher: Searching) -> Generation | None:
    """Return the generation that a searcher has opened; None if it has none."""
    opened = getattr(searcher, "opened", None)
    return opened if isinstance(opened, Generation) else None


@dataclass(frozen=True)
class Sample:
    """Queries, and the sample of them that is searched one at a time.

    Args:
        texts: all of them.
        positions: positions of the sample, in search order.
        warm_up: positions of queries searched before the sample, so that models and indexes are open.
        filters: filters of all queries; None for a query without a filter.
    """

    texts: list[str]
    positions: list[int]
    warm_up: list[int]
    filters: list[Where | None]

    @classmethod
    def draw(cls, texts: list[str], count: int, seed: int, filters: Sequence[Where | None] = ()) -> Sample:
        """Draw a sample, without replacement.

        Args:
            texts: the queries.
            count: size of the sample; all of them if there are fewer.
            seed: seed of the sample.
            filters: filters of the queries; none by default.
        """
        positions = random.Random(seed).sample(range(len(texts)), min(count, len(texts)))  # noqa: S311 -- a sample
        drawn = {texts[position] for position in positions}  # asking a model about these would leave its answers on disk
        others = (position for position, text in enumerate(texts) if text not in drawn and not has_no_words(text))
        warm_up = list(islice(others, _WARM_UP)) or positions[:_WARM_UP]
        return cls(texts, positions, warm_up, list(filters) or [None] * len(texts))

    def taken(self) -> list[str]:
        """The queries of the sample."""
        return [self.texts[position] for position in self.positions]

    def told(self) -> Config:
        """Return the queries searched one at a time as plain values, with their filters if they have any."""
        filters = [self.filters[position] for position in self.positions]
        return {"queries": self.taken()} | ({"filters": filters} if any(filters) else {})

    def search(self, searcher: Searching, position: int, k: int) -> list[list[RetrievalResult]]:
        """Search for one query."""
        return search_where(searcher, [self.texts[position]], k, self.filters[position])


@dataclass(frozen=True)
class Measured:
    """A configuration's search over all queries, and its cost.

    Args:
        results: per query.
        seconds: ``[sample]``, one query at a time.
        stage_seconds: by stage.
        queries_per_second: throughput of one call with all queries; None if stages were computed in parallel with others.
        peak_bytes: largest resident memory of the process.
        sampled: usage of language models in the sample.
        searched: usage of each language model in the search over all queries.
        candidates: output of each retriever for all queries, by label; empty if stages are not shared.
        lists: ``[queries + 1]``, start of each query's lists in those: one each, or one for each of its sub-queries.
        other_cores: number of cores kept busy by other processes meanwhile; None if unknown.
    """

    results: list[list[RetrievalResult]]
    seconds: Scores
    stage_seconds: dict[str, Scores]
    queries_per_second: float | None
    peak_bytes: int
    sampled: CallCounts
    searched: dict[str, CallCounts]
    candidates: dict[str, Retrieved] = field(default_factory=dict)
    lists: Rows | None = None
    other_cores: float | None = None


def measure_alone(searcher: Searching, sample: Sample, k: int, others: OtherProcesses | None = None) -> Measured:
    """Search one query at a time, then all together, without stages shared with other configurations.

    Args:
        searcher: opened.
        sample: the queries.
        k: length of the lists.
        others: the other processes on this machine.
    """
    with PeakMemory() as peak:
        seconds, by_stage, sampled = time_queries(searcher, sample, k)
        with record_calls() as searched:
            begin = time.perf_counter()
            results = search_each(searcher, sample.texts, k, sample.filters)
            elapsed = time.perf_counter() - begin
    rate = len(sample.texts) / elapsed
    other_cores = others.cores if others is not None else None
    return Measured(results, seconds, by_stage, rate, peak.bytes, sampled, searched.by_model, other_cores=other_cores)


def time_queries(searcher: Searching, sample: Sample, k: int) -> tuple[Scores, dict[str, Scores], CallCounts]:
    """Search for the queries of a sample one at a time, after a warm-up.

    Returns:
        Seconds ``[sample]``, the same by stage, and the usage of language models, not counting the warm-up.
    """
    seconds = np.zeros(len(sample.positions))
    by_stage = {stage: np.zeros(len(sample.positions)) for stage in searcher.stages}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)  # the search over all queries warns once
        for position in sample.warm_up:
            sample.search(searcher, position, k)
        with record_calls() as asked:
            for number, position in enumerate(sample.positions):
                with record_stages() as stages:
                    begin = time.perf_counter()
                    sample.search(searcher, position, k)
                    seconds[number] = time.perf_counter() - begin
                for stage, taken in by_stage.items():
                    taken[number] = stages.get(stage, 0.0)
    return seconds, by_stage, asked.counts


def cost_of(
    records: Sequence[RetrieverRecord],
    asked: Mapping[str, CallCounts],
    measured: Measured,
    answering: AnsweringCost | None = None,
    answered: Mapping[str, CallCounts] | None = None,
) -> Cost:
    """Return the cost of a configuration.

    Args:
        records: the index's records of its retrievers.
        asked: usage of each language model while it was measured, in the sample and the search over all queries.
        measured: the measured searches.
        answering: the cost of answering.
        answered: usage of each language model for the answers.
    """
    low, high = median_interval(1000 * measured.seconds) or (None, None)
    return Cost(
        index_seconds=sum(record.cost.seconds for record in records),
        index_bytes=sum(segment.bytes for record in records for segment in record.segments),
        index_peak_bytes=max((record.cost.peak_bytes for record in records), default=0),
        stage_ms={stage: 1000 * statistics.median(values.tolist()) for stage, values in measured.stage_seconds.items()},
        latency_ms=1000 * statistics.median(measured.seconds.tolist()),
        latency_p95_ms=1000 * float(np.percentile(measured.seconds, 95)),
        queries_per_second=measured.queries_per_second,
        search_peak_bytes=measured.peak_bytes,
        language_model=_language_model_cost(asked, measured, answered or {}),
        answering=answering,
        latency_low_ms=low,
        latency_high_ms=high,
        other_cores=measured.other_cores,
    )


def median_interval(values: Scores) -> tuple[float, float] | None:
    """Return the 95% interval of a median, from one value of the sample to another; None for fewer than six values.

    The number of values below the median is binomial with p = 1/2, whatever their distribution (Thompson 1936; Conover,
    Practical Nonparametric Statistics, 3.2).

    Args:
        values: ``[sample]``.
    """
    n, below, chance = len(values), 0, 0.5 ** len(values)
    if 2 * chance > _LEVEL:
        return None
    while 2 * (chance + math.comb(n, below + 1) * 0.5**n) <= _LEVEL:
        below += 1
        chance += math.comb(n, below) * 0.5**n
    ordered = np.sort(values)
    return float(ordered[below]), float(ordered[n - 1 - below])


def _language_model_cost(
    asked: Mapping[str, CallCounts], measured: Measured, answered: Mapping[str, CallCounts]
) -> LanguageModelCost | None:
    """Return the cost of language models; None if none was used."""
    total, sampled, searched = summed(asked.values()), measured.sampled, summed(measured.searched.values())
    if total == CallCounts():
        return None
    n_queries = len(measured.results)
    whole = _tokens(total, searched + summed(answered.values()), n_queries)
    models = {
        model: _tokens(counts, summed(one[model] for one in (measured.searched, answered) if model in one), n_queries)
        for model, counts in asked.items()
    }
    return LanguageModelCost(
        calls=total.calls,
        cache_hits=total.cache_hits,
        tokens_in=whole.tokens_in,
        tokens_out=whole.tokens_out,
        failures=total.failures,
        degraded=searched.degraded,
        query_tokens_in=whole.query_tokens_in,
        query_tokens_out=whole.query_tokens_out,
        latency_answers=sampled.answers,
        latency_cache_hits=sampled.cache_hits,
        search_answers=searched.answers,
        search_cache_hits=searched.cache_hits,
        models=models,
    )


def _tokens(asked: CallCounts, searched: CallCounts, n_queries: int) -> ModelTokens:
    return ModelTokens(
        tokens_in=asked.tokens_in,
        tokens_out=asked.tokens_out,
        query_tokens_in=(searched.tokens_in + searched.kept_tokens_in) / n_queries,
        query_tokens_out=(searched.tokens_out + searched.kept_tokens_out) / n_queries,
    )


# Prices of language models: the user's table of prices, and the price of a configuration's usage.
#
# No price is built in, because prices change. An unknown price is None and never 0: a model without a price, or one whose
# server does not report its tokens, makes the price of the whole configuration unknown. Only language models are priced; a
# configuration that used none has a price of 0.

_CURRENCY = "currency"
_EXAMPLE = "{openai/gpt-4o-mini: {input: 0.15, output: 0.60}}"
_HIGHEST = 1e9
_LONGEST_CURRENCY = 8
_MODEL = re.compile(r"[^/\s]+/\S+")
_PER = 1e6
_QUERIES = 1000


@dataclass(frozen=True)
class ModelPrice:
    """Price of a language model.

    Args:
        input: price per million prompt tokens, in the currency of the table; 0 or more.
        output: price per million answer tokens.

    Raises:
        ConfigurationError: a price is not a number from 0 to a billion.
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
            tokens_in: tokens of prompts.
            tokens_out: tokens of answers.
        """
        return (tokens_in * self.input + tokens_out * self.output) / _PER


@dataclass(frozen=True)
class Prices:
    """A table of prices.

    Args:
        models: by language model, named as in its configuration (``openai/gpt-4o-mini``).
        currency: a code such as ``USD``, or a symbol; only displayed.

    Raises:
        ConfigurationError: a name is not of the form ``provider/model``, or a currency is neither a code nor a symbol.
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
        """The table as plain values; :func:`read_prices` creates an equal one from them."""
        return {_CURRENCY: self.currency} | {model: asdict(price) for model, price in self.models.items()}


def read_prices(value: object, where: str) -> Prices:
    """Read a table of prices from a configuration file.

    Args:
        value: a mapping from models to their ``input`` and ``output`` per million tokens; it may also contain
            ``currency``.
        where: source for error messages, such as ``"sweep.yaml: prices"``.

    Raises:
        ConfigurationError: it is not such a mapping, or a model, key, price or currency is invalid.
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
    """Return the price of 1,000 queries without any answers on disk; None if unknown.

    Args:
        cost: cost of a configuration.
        prices: prices of language models.
    """
    per_query = _priced(cost, prices, lambda price, tokens: price.of(tokens.query_tokens_in, tokens.query_tokens_out))
    return None if per_query is None else _QUERIES * per_query


def price_spent(cost: Cost, prices: Prices) -> float | None:
    """Return the price of a configuration's measurement in this run; None if unknown.

    Args:
        cost: cost of the configuration.
        prices: prices of language models.
    """
    return _priced(cost, prices, lambda price, tokens: price.of(tokens.tokens_in, tokens.tokens_out))


def unpriced(cost: Cost, prices: Prices) -> list[str]:
    """Return why the price of a configuration is unknown, one reason for each model that prevents it.

    Args:
        cost: cost of the configuration.
        prices: prices of language models.
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
    # a server that does not report tokens counts as 0, and so does one that never answered
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
