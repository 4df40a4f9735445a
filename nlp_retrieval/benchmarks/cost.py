"""What searching costs: time, memory, calls, tokens and money."""

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
from nlp_retrieval.core.files.yaml_text import check_keys
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.index.generation import Generation
from nlp_retrieval.core.index.manifest import RetrieverRecord
from nlp_retrieval.core.measure import OtherProcesses, PeakMemory, record_stages
from nlp_retrieval.core.models import RetrievalResult
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning
from nlp_retrieval.lm.counting import CallCounts, record_calls, summed

# The figures of what searching costs: seconds, bytes, calls and tokens, each of one configuration.


@dataclass(frozen=True)
class ModelTokens:
    """The tokens of one language model; of what and when they count, see :class:`LanguageModelCost`.

    Args:
        tokens_in: of the prompts sent.
        tokens_out: of its answers.
        query_tokens_in: tokens of prompts per query.
        query_tokens_out: the same of the answers.
    """

    tokens_in: int
    tokens_out: int
    query_tokens_in: float
    query_tokens_out: float


@dataclass(frozen=True)
class LanguageModelCost:
    """What the language models of one configuration were asked while it was measured.

    ``calls``, ``cache_hits``, ``tokens_in``, ``tokens_out`` and ``failures`` are of the whole measurement: warm-up, latency
    sample, the search over all queries and, where questions are answered, the answers. They are what this run spent, so what
    an earlier run, or another configuration, left on disk makes them smaller. Tokens per query do not depend on what was on
    disk.

    Args:
        calls: requests that were sent, retries among them.
        cache_hits: answers that came from disk.
        tokens_in: of the prompts sent, as the server counts them; 0 where it does not say.
        tokens_out: of its answers.
        failures: requests that brought no answer.
        degraded: questions that were left without a usable answer in the search over all queries, the one that quality is
            judged on. A query may ask several questions.
        query_tokens_in: tokens of prompts per query, in the search over all queries and for their answers; an answer from
            disk counts with what it took when it was asked for.
        query_tokens_out: the same of the answers.
        latency_answers: how many answers there were in the latency sample.
        latency_cache_hits: how many of those came from disk; in their time no model was asked.
        search_answers: how many answers there were in the search over all queries, which throughput is measured on.
        search_cache_hits: how many of those came from disk; the latency sample's are among them.
        models: the tokens by model, named as in its configuration; they add up to those above.
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
    """What answering all questions took, after the search; what its language models took is part of theirs.

    Args:
        seconds: for all questions in one call, when they were first answered.
        model_answers: how many answers of language models there were then.
        model_cache_hits: how many of those came from disk; in their time no model was asked.
        unanswered: questions that were found to have no answer.
        failed: questions that the answerer failed at.
        dropped: citations of what the answerer was not given.
    """

    seconds: float
    model_answers: int
    model_cache_hits: int
    unanswered: int
    failed: int
    dropped: int


@dataclass(frozen=True)
class Cost:
    """What one configuration costs.

    Args:
        index_seconds: to build its part of the index from the items; the sum over its retrievers, also where the index
            was found built (then it is what building it took at the time).
        index_bytes: size on disk of its part of the index, the items not counted.
        index_peak_bytes: largest resident memory of the process while its part of the index was built. It is of the whole
            process, so what was loaded before counts too: it depends on the order of the configurations, and no table has it.
        stage_ms: median milliseconds by stage for one query at a time, in the order of the stages.
        latency_ms: median milliseconds for one query, all stages together.
        latency_p95_ms: 95th percentile of the same.
        queries_per_second: throughput of one ``search`` call over all queries; None where workers computed stages beside one
            another, which says little of what one search takes.
        search_peak_bytes: largest resident memory of the process while the configuration was searched; as above.
        language_model: what its language models were asked; None where none was.
        answering: what answering took; None where nothing was answered.
        latency_low_ms: where the 95% interval of the median latency begins; None where fewer than six queries were timed.
        latency_high_ms: where it ends.
        other_cores: how many cores other processes kept busy on average while the run was timed; None where that is not known.
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
    """Return the figures of a cost as plain values, without those that depend on what the process did before."""
    return {name: value for name, value in asdict(cost).items() if name not in _OF_THE_PROCESS}


# What searching with a configuration gives and takes: all queries in one call, and a sample of them one at a time.

_WARM_UP = 2
_LEVEL = 0.05


class Searching(Protocol):
    """What can be measured."""

    @property
    def fingerprint(self) -> str:
        """Equal for equal configurations."""

    @property
    def stages(self) -> list[str]:
        """The names of its stages, in order."""

    @property
    def opened(self) -> Generation | None:
        """The generation of the index that it searches; None where it keeps its items in some other way."""

    def search(self, queries: Sequence[str], k: int) -> list[list[RetrievalResult]]:
        """Search."""


def generation_of(searcher: Searching) -> Generation | None:
    """Return the generation that a searcher has opened, by which it tells what it searches; None where it has none."""
    opened = getattr(searcher, "opened", None)
    return opened if isinstance(opened, Generation) else None


@dataclass(frozen=True)
class Sample:
    """Queries, and those of them that are searched one at a time.

    Args:
        texts: all of them.
        positions: of the sample, in the order in which it is searched.
        warm_up: positions of queries that are searched before it, so that models and indexes are open.
        filters: of all queries; None where one may find everything.
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
            count: how many; all of them where there are fewer.
            seed: of the draw.
            filters: of the queries; none by default.
        """
        positions = random.Random(seed).sample(range(len(texts)), min(count, len(texts)))  # noqa: S311 -- a sample
        drawn = {texts[position] for position in positions}  # a model asked about these would leave its answers on disk
        others = (position for position, text in enumerate(texts) if text not in drawn and not has_no_words(text))
        warm_up = list(islice(others, _WARM_UP)) or positions[:_WARM_UP]
        return cls(texts, positions, warm_up, list(filters) or [None] * len(texts))

    def taken(self) -> list[str]:
        """The queries of the sample."""
        return [self.texts[position] for position in self.positions]

    def told(self) -> Config:
        """Return what is searched one at a time as plain values: the queries, and their filters where they have any."""
        filters = [self.filters[position] for position in self.positions]
        return {"queries": self.taken()} | ({"filters": filters} if any(filters) else {})

    def search(self, searcher: Searching, position: int, k: int) -> list[list[RetrievalResult]]:
        """Search for one query."""
        return search_where(searcher, [self.texts[position]], k, self.filters[position])


@dataclass(frozen=True)
class Measured:
    """A configuration's search over all queries, and what it takes.

    Args:
        results: per query.
        seconds: ``[sample]``, one query at a time.
        stage_seconds: the same by stage.
        queries_per_second: throughput of one call with all queries; None where stages were computed beside others.
        peak_bytes: largest resident memory of the process.
        sampled: what language models were asked in the sample.
        searched: what each of them was asked in the search over all queries.
        candidates: what each retriever gave for all queries, by label; empty where stages are not shared.
        lists: ``[queries + 1]``, where each query's lists begin in those: one each, or one for each of its sub-queries.
        other_cores: how many cores other processes kept busy meanwhile; None where that is not known.
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
    """Search one query at a time, then for all; whatever other configurations have in common with this one.

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
        Seconds ``[sample]``, the same by stage, and what language models were asked, the warm-up not counted.
    """
    seconds = np.zeros(len(sample.positions))
    by_stage = {stage: np.zeros(len(sample.positions)) for stage in searcher.stages}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)  # the search over all queries says it once
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
    """Return what a configuration costs.

    Args:
        records: what the index says of its retrievers.
        asked: what each language model was asked while it was measured, sample and search over all queries.
        measured: its searches.
        answering: what answering took.
        answered: what each language model was asked for the answers.
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
    """Return the 95% interval of a median, from one value of the sample to another; None where there are fewer than six.

    How many values lie below the median is binomial with one half, whatever their distribution (Thompson 1936; Conover,
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
    """Return what language models cost; None where none was asked."""
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


# What language models cost in money: the user's table of prices, and the price of what a configuration asked.
#
# No price is built in, because prices change. What is not known is None and never 0: a model without a price, or one whose
# server does not tell its tokens, leaves the price of the whole configuration unknown. Only language models are priced; a
# configuration that asked none has a price of 0.

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
