"""What a benchmark found: quality and cost of every configuration, as data.

Quality and cost are kept apart, because quality can be compared byte by byte between two runs and time cannot. The
table, the page, Weights & Biases and the JSON files are all written from these objects, and from nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nlp_retrieval.benchmarks.cost.prices import Prices
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.explanation import Explanation
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.evaluation.comparison import Comparison
from nlp_retrieval.evaluation.pairwise import Pairwise

Measures = dict[str, float]
"""Mean over queries by measure name: ``"recall@5"``, ``"perfect_recall@21"``, ``"ndcg@10"``."""


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
    sample and the search over all queries. They are what this run spent, so answers that an earlier run, or another
    configuration, left on disk make them smaller. Tokens per query do not depend on what was on disk.

    Args:
        calls: requests that were sent, retries among them.
        cache_hits: answers that came from disk.
        tokens_in: of the prompts sent, as the server counts them; 0 where it does not say.
        tokens_out: of its answers.
        failures: requests that brought no answer.
        degraded: questions that were left without a usable answer in the search over all queries, the one that quality is
            judged on. A query may ask several questions.
        query_tokens_in: tokens of prompts per query, in the search over all queries; an answer from disk counts with what
            it took when it was asked for.
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
class Cost:
    """What one configuration costs.

    Args:
        index_seconds: to build its part of the index from the items; the sum over its retrievers, also where the index
            was found built (then it is what building it took at the time).
        index_bytes: size on disk of its part of the index, the items not counted.
        index_peak_bytes: largest resident memory of the process while its part of the index was built. It is of the whole
            process, so what was loaded before counts too.
        stage_ms: median milliseconds by stage for one query at a time, in the order of the stages.
        latency_ms: median milliseconds for one query, all stages together.
        latency_p95_ms: 95th percentile of the same.
        queries_per_second: throughput of one ``search`` call over all queries.
        search_peak_bytes: largest resident memory of the process while the configuration was searched.
        language_model: what its language models were asked; None where none was.
    """

    index_seconds: float
    index_bytes: int
    index_peak_bytes: int
    stage_ms: dict[str, float]
    latency_ms: float
    latency_p95_ms: float
    queries_per_second: float
    search_peak_bytes: int
    language_model: LanguageModelCost | None = None


@dataclass(frozen=True)
class ConfigurationResult:
    """One row of the comparison.

    Args:
        name: as the user named it.
        config: the searcher's own, complete.
        fingerprint: of configuration and models; equal configurations have equal ones.
        measures: over all queries.
        groups: the same by group of queries (``"hops=3"``).
        cost: see :class:`Cost`; None where it was not measured, as for a run of another tool.
        empty_queries: how many queries found nothing; they score 0 and count.
        intervals: of the means, low and high, by group (``""``: all queries) and measure; not of differences.
    """

    name: str
    config: Config
    fingerprint: str
    measures: Measures
    groups: dict[str, Measures]
    cost: Cost | None
    empty_queries: int
    intervals: dict[str, dict[str, tuple[float, float]]] = field(default_factory=dict)


@dataclass(frozen=True)
class FailedConfiguration:
    """A configuration that could not be run to its end; the others could.

    Args:
        name: as the user named it.
        config: the searcher's own, complete.
        error: the kind of error, by its class.
        reason: what it said.
        traceback: where it was raised, of an error that is not one of the project's own; else empty.
    """

    name: str
    config: Config
    error: str
    reason: str
    traceback: str = ""


@dataclass(frozen=True)
class ExplainedHit:
    """A hit and the chains that led to it.

    Args:
        item: what was found.
        relevant: whether it is gold.
        explanations: one for each retriever that can tell.
    """

    item: SearchableItem
    relevant: bool
    explanations: list[Explanation]


@dataclass(frozen=True)
class ExplainedQuery:
    """A query at which a configuration gains over the baseline, with the chains that led to its hits.

    Args:
        configuration: its name.
        query: its text.
        recall: of the configuration at the smallest cutoff.
        baseline_recall: of the baseline there.
        hits: up to that cutoff, best first.
    """

    configuration: str
    query: str
    recall: float
    baseline_recall: float
    hits: list[ExplainedHit]


@dataclass(frozen=True)
class BenchmarkReport:
    """A finished benchmark.

    Args:
        configurations: in the order in which they were named.
        baseline: the name of the configuration that the others are compared with.
        k_values: the cutoffs, ascending.
        query_counts: how many queries there are, by group; the key ``""`` counts all.
        n_items: size of the corpus.
        manifest: what is needed to run it again: configurations, fingerprints, versions, seeds, hardware; ``finished`` is
            when it ended, in ISO 8601.
        explained: queries with the chains of links that led to their hits, of configurations that can tell.
        comparisons: of every other configuration with the baseline in every measure, by group (``""``: all queries); empty
            where nothing was tested.
        pairwise: every two configurations compared in the main measure; None for a single one.
        failed: configurations that could not be run to their end, in the order in which they were named.
        prices: of language models; None where nothing is priced.
        files: where the run's files are, by what they are (``"report"``, ``"results"``, ``"trec"``, ...).
    """

    configurations: list[ConfigurationResult]
    baseline: str
    k_values: list[int]
    query_counts: dict[str, int]
    n_items: int
    manifest: Config
    explained: list[ExplainedQuery] = field(default_factory=list)
    comparisons: dict[str, list[Comparison]] = field(default_factory=dict)
    pairwise: Pairwise | None = None
    failed: list[FailedConfiguration] = field(default_factory=list)
    prices: Prices | None = None
    files: dict[str, str] = field(default_factory=dict)

    @property
    def main_measure(self) -> str:
        """The measure that is shown where there is room for one: recall at the largest cutoff, if it was measured."""
        measured = list(dict.fromkeys(key for result in self.configurations for key in result.measures))
        wanted = f"recall@{max(self.k_values, default=0)}"
        return wanted if wanted in measured else next(iter(measured), "")

    @property
    def selection_note(self) -> str:
        """How the configurations were chosen on the queries that they are judged by; ``""`` where they were not."""
        halving = self.manifest.get("halving")
        return str(halving.get("note", "")) if isinstance(halving, dict) else ""
