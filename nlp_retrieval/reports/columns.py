"""The table of quality and cost: its columns, the best values, and the format of its figures.

The terminal, the page and the tables in files take their columns from here, so that a figure reads the same
everywhere. "Best" is the best value measured, and every value that prints the same shares it; it does not imply significance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nlp_retrieval.benchmarks.cost import AnsweringCost, Cost, LanguageModelCost, price_per_1000_queries, price_spent
from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult
from nlp_retrieval.evaluation.evaluator import LABELS, Measure

COST = "cost"
ABSENT = "\N{EN DASH}"


@dataclass(frozen=True)
class Column:
    """One column of figures.

    Args:
        key: the name of a measure (``"recall@5"``) or the field of a cost.
        family: key for showing and hiding columns together: a measure without its cutoff, or ``"cost"``.
        label: the heading below that of its family.
        lower_is_better: true of times and sizes.
        cost: returns the figure from a cost, or None if the cost lacks it; None for a measure.
        count: whether it concerns this run alone, such as a number of calls; no such value is called best.
        shown: how to format a figure, if not like other measures, costs or counts.
    """

    key: str
    family: str
    label: str
    lower_is_better: bool = False
    cost: Callable[[Cost], float | None] | None = None
    count: bool = False
    shown: Callable[[float], str] | None = None

    @property
    def title(self) -> str:
        """Complete heading: ``"Recall @5"``, ``"MRR"``, ``"median ms"``."""
        return f"{family_label(self.family)} {self.label}" if self.label.startswith("@") else self.label

    def value(self, result: ConfigurationResult, group: str = "") -> float | None:
        """Return the figure for a group of queries, or None if it was not measured. Cost is that of all queries."""
        if self.cost is not None:
            value = self.cost(result.cost) if result.cost is not None else None
        else:
            measures = result.groups.get(group, {}) if group else result.measures
            value = measures.get(self.key)
        return value if value is not None and math.isfinite(value) else None

    def text(self, value: float | None) -> str:
        """Return the formatted figure: three decimals for measures, about three digits for costs."""
        if value is None:
            return ABSENT
        if self.shown is not None:
            return self.shown(value)
        if self.count:
            return f"{value:,.0f}"
        return f"{value:.3f}" if self.cost is None else amount(value)

    def difference(self, value: float | None, baseline: float | None) -> str:
        """Return the comparison of a figure with the baseline's: the difference of measures, the ratio of costs."""
        if value is None or baseline is None or self.count:
            return ""
        if self.cost is not None:
            return f"\N{MULTIPLICATION SIGN}{amount(value / baseline)}" if baseline > 0 else ""
        return signed(value - baseline)

    def best(self, values: Sequence[float | None]) -> set[int]:
        """Return the positions of the best value, including all that print the same; empty if all do."""
        measured = [value for value in values if value is not None]
        printed = {self.text(value) for value in measured}
        if len(printed) < 2 or self.count:
            return set()
        top = self.text(min(measured) if self.lower_is_better else max(measured))
        return {place for place, value in enumerate(values) if self.text(value) == top}


COST_COLUMNS = [
    Column("latency_ms", COST, "median ms", True, lambda cost: cost.latency_ms),
    Column("latency_p95_ms", COST, "p95 ms", True, lambda cost: cost.latency_p95_ms),
    Column("queries_per_second", COST, "queries/s", False, lambda cost: cost.queries_per_second),
    Column("index_seconds", COST, "index s", True, lambda cost: cost.index_seconds),
    Column("index_bytes", COST, "index MB", True, lambda cost: cost.index_bytes / 1e6),
]


def _of_model(figure: str) -> Callable[[Cost], float | None]:
    def read(cost: Cost) -> float | None:
        value: float | None = getattr(cost.language_model, figure, None)
        return value

    return read


LANGUAGE_MODEL_COLUMNS = [
    Column("calls", COST, "LM calls", True, _of_model("calls"), count=True),
    Column("cache_hits", COST, "from disk", True, _of_model("cache_hits"), count=True),
    Column("tokens_in", COST, "tokens in", True, _of_model("tokens_in"), count=True),
    Column("tokens_out", COST, "tokens out", True, _of_model("tokens_out"), count=True),
    Column("query_tokens_in", COST, "tokens in/query", True, _of_model("query_tokens_in")),
    Column("query_tokens_out", COST, "tokens out/query", True, _of_model("query_tokens_out")),
    Column("failures", COST, "failed calls", True, _of_model("failures"), count=True),
    Column("degraded", COST, "degraded", True, _of_model("degraded"), count=True),
]


def _of_answering(figure: Callable[[AnsweringCost], float]) -> Callable[[Cost], float | None]:
    return lambda cost: None if cost.answering is None else figure(cost.answering)


ANSWER_COLUMNS = [
    Column("answer_seconds", COST, "answering s", True, _of_answering(lambda cost: cost.seconds)),
    Column("unanswered", COST, "no answer", True, _of_answering(lambda cost: cost.unanswered), count=True),
    Column("failed_answers", COST, "failed answers", True, _of_answering(lambda cost: cost.failed), count=True),
    Column("dropped_citations", COST, "dropped citations", True, _of_answering(lambda cost: cost.dropped), count=True),
]


def language_model_of(result: ConfigurationResult) -> LanguageModelCost | None:
    """Return the language model usage of a configuration; None if there was none, or cost was not measured."""
    return result.cost.language_model if result.cost is not None else None


def price_columns(report: BenchmarkReport) -> list[Column]:
    """Return the columns of prices; empty if no price is known for a configuration that used a language model."""
    prices = report.prices
    if prices is None:
        return []
    per_1000 = Column(
        "price_per_1000_queries",
        COST,
        f"{prices.currency}/1k queries",
        True,
        lambda cost: price_per_1000_queries(cost, prices),
        shown=price_text,
    )
    asked = [result for result in report.configurations if language_model_of(result) is not None]
    if all(per_1000.value(result) is None for result in asked):
        return []
    spent = f"{prices.currency} spent"
    return [
        per_1000,
        Column("price_spent", COST, spent, True, lambda cost: price_spent(cost, prices), count=True, shown=price_text),
    ]


def cost_columns(report: BenchmarkReport) -> list[Column]:
    """Return the columns of costs; those of language models and their price only if a configuration used one."""
    asked = any(language_model_of(result) is not None for result in report.configurations)
    answered = any(result.cost is not None and result.cost.answering is not None for result in report.configurations)
    of_models = [*LANGUAGE_MODEL_COLUMNS, *price_columns(report)] if asked else []
    return [*COST_COLUMNS, *of_models, *(ANSWER_COLUMNS if answered else [])]


def amount(value: float) -> str:
    """Return a cost with about three digits: 0.52, 3.10, 24.6, 1,250."""
    if value < 0.005 and value > 0:
        return "<0.01"
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"


def price_text(value: float) -> str:
    """Return a price with about two digits if it is small: 0.0042, 0.15, 3.10."""
    if not value or value >= 0.1:
        return amount(value)
    return f"{value:.2g}" if value >= 0.0001 else "<0.0001"


def signed(difference: float, decimals: int = 3) -> str:
    """Return a difference with its sign, ± if it prints as 0."""
    moved = f"{difference:+.{decimals}f}".replace("-", "\N{MINUS SIGN}")
    return f"±{moved[1:]}" if not float(moved[1:]) else moved


def family_label(family: str) -> str:
    """Return the heading of a measure or of the costs."""
    return "Cost" if family == COST else LABELS.get(family, family)


def query_groups(report: BenchmarkReport) -> list[str]:
    """Return the groups of queries in their order, ``""`` (all queries) first."""
    named = [*report.query_counts, *(group for result in report.configurations for group in result.groups)]
    return list(dict.fromkeys(["", *named]))


def measure_columns(report: BenchmarkReport) -> list[Column]:
    """Return a column for every measure of any configuration, by measure and then by cutoff."""
    keys = {
        key for result in report.configurations for measures in (result.measures, *result.groups.values()) for key in measures
    }
    return [
        Column(str(one), one.family, one.family_label if one.cutoff is None else f"@{one.cutoff}")
        for one in sorted(map(Measure.parse, keys), key=lambda measure: measure.order)
    ]


def summary_columns(report: BenchmarkReport) -> list[Column]:
    """Return perfect recall and recall at every cutoff, nDCG at 10 or below, answers, latency, index size, and known prices.

    Args:
        report: a finished benchmark.
    """
    measures = measure_columns(report)
    kept = [column for column in measures if column.family in ("perfect_recall", "recall")]
    ndcg = [column for column in measures if column.family == "ndcg"]
    small = [column for column in ndcg if 1 <= (Measure.parse(column.key).cutoff or 0) <= 10]
    costs = [column for column in COST_COLUMNS if column.key in ("latency_ms", "index_bytes")]
    answers = [column for column in measures if column.family in ("answer_em", "answer_f1", "joint_f1")]
    return kept + (small[-1:] or ndcg[:1]) + answers + costs + price_columns(report)[:1]
