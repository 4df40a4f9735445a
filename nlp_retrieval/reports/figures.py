"""Figures of a report: the columns of the table of quality and cost, marks of significance, and Pareto fronts.

"Best" is the best value measured, and every value that prints the same shares it; it does not imply significance. A
mark is the verdict of the corrected test alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nlp_retrieval.benchmarks.cost import Cost, LanguageModelCost, amount, price_per_1000_queries
from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult
from nlp_retrieval.evaluation.comparison import Comparison, limits, unit_names, verdict
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.evaluation.resampling import holm
from nlp_retrieval.text.printing import counted

COST = "cost"
ABSENT = "\N{EN DASH}"


@dataclass(frozen=True)
class Column:
    """One column of figures: a measure, or a cost that is read from :class:`Cost`; a count concerns this run alone."""

    key: str
    family: str
    label: str
    cost: Callable[[Cost], float | None] | None = None
    lower_is_better: bool = False
    count: bool = False
    shown: Callable[[float], str] | None = None

    @property
    def title(self) -> str:
        """Complete heading: ``"Recall@5"``, ``"MRR"``, ``"median ms"``."""
        return f"{family_label(self.family)}{self.label}" if self.label.startswith("@") else self.label

    def value(self, result: ConfigurationResult, group: str = "") -> float | None:
        """Return the figure for a group of queries, or None if it was not measured. Cost is that of all queries."""
        if self.cost is not None:
            value = self.cost(result.cost) if result.cost is not None else None
        else:
            value = (result.groups.get(group, {}) if group else result.measures).get(self.key)
        return value if value is not None and math.isfinite(value) else None

    def text(self, value: float | None) -> str:
        """Return the formatted figure: three decimals for measures, about three digits for costs."""
        if value is None:
            return ABSENT
        if self.shown is not None:
            return self.shown(value)
        return f"{value:,.0f}" if self.count else f"{value:.3f}" if self.cost is None else amount(value)

    def best(self, values: Sequence[float | None]) -> set[int]:
        """Return the positions of the best value, including all that print the same; empty if all do."""
        measured = [value for value in values if value is not None]
        if len({self.text(value) for value in measured}) < 2 or self.count:
            return set()
        top = self.text(min(measured) if self.lower_is_better else max(measured))
        return {position for position, value in enumerate(values) if self.text(value) == top}


def _cost(key: str, label: str, within: str = "", *, count: bool = False, unit: float = 1) -> Column:
    """Return a column of a field of costs, or of one of their parts; None where there is no such part."""

    def read(cost: Cost) -> float | None:
        value = getattr(getattr(cost, within, None) if within else cost, key, None)
        return value if value is None or unit == 1 else value / unit

    return Column(key, COST, label, read, lower_is_better=True, count=count)


COST_COLUMNS = [
    _cost("latency_ms", "median ms"),
    _cost("latency_p95_ms", "p95 ms"),
    _cost("index_seconds", "index s"),
    _cost("index_bytes", "index MB", unit=1e6),
]
LANGUAGE_MODEL_COLUMNS = [
    _cost("calls", "LM calls", "language_model", count=True),
    _cost("cache_hits", "from disk", "language_model", count=True),
    _cost("tokens_in", "tokens in", "language_model", count=True),
    _cost("tokens_out", "tokens out", "language_model", count=True),
    _cost("query_tokens_in", "tokens in/query", "language_model"),
    _cost("query_tokens_out", "tokens out/query", "language_model"),
    _cost("failures", "failed calls", "language_model", count=True),
    _cost("degraded", "degraded", "language_model", count=True),
]
ANSWER_COLUMNS = [
    _cost("seconds", "answering s", "answering"),
    _cost("unanswered", "no answer", "answering", count=True),
    _cost("failed", "failed answers", "answering", count=True),
    _cost("dropped", "dropped citations", "answering", count=True),
]


def language_model_of(result: ConfigurationResult) -> LanguageModelCost | None:
    """Return the language model usage of a configuration; None if there was none, or cost was not measured."""
    return result.cost.language_model if result.cost is not None else None


def price_columns(report: BenchmarkReport) -> list[Column]:
    """Return the column of prices; empty if no price is known for a configuration that used a language model."""
    prices = report.prices
    if prices is None:
        return []
    per_1000 = Column(
        "price_per_1000_queries", COST, f"{prices.currency}/1k queries", lambda cost: price_per_1000_queries(cost, prices),
        lower_is_better=True, shown=price_text,
    )  # fmt: skip
    asked = [result for result in report.configurations if language_model_of(result) is not None]
    return [per_1000] if any(per_1000.value(result) is not None for result in asked) else []


def cost_columns(report: BenchmarkReport) -> list[Column]:
    """Return the columns of costs; those of language models and their price only if a configuration used one."""
    asked = any(language_model_of(result) is not None for result in report.configurations)
    answered = any(result.cost is not None and result.cost.answering is not None for result in report.configurations)
    of_models = [*LANGUAGE_MODEL_COLUMNS, *price_columns(report)] if asked else []
    return [*COST_COLUMNS, *of_models, *(ANSWER_COLUMNS if answered else [])]


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
    return "Cost" if family == COST else Measure(family).family_label


def query_groups(report: BenchmarkReport) -> list[str]:
    """Return the groups of queries in their order, ``""`` (all queries) first."""
    named = [*report.query_counts, *(group for result in report.configurations for group in result.groups)]
    return list(dict.fromkeys(["", *named]))


def best_first(report: BenchmarkReport) -> list[ConfigurationResult]:
    """Return the configurations by the main measure over all queries, best first; equal ones in the order of the report."""
    values = {result.name: result.measures.get(report.main_measure, -math.inf) for result in report.configurations}
    return sorted(report.configurations, key=lambda result: -value if math.isfinite(value := values[result.name]) else math.inf)


def grid_axes(report: BenchmarkReport) -> dict[str, dict[str, str]]:
    """Return the values of a grid's axes that vary, as text, by axis and configuration; empty without a grid."""
    grid = report.manifest.get("grid")
    values = grid.get("values") if isinstance(grid, dict) else None
    axes: dict[str, dict[str, str]] = {}
    for result in report.configurations:
        own = values.get(result.name) if isinstance(values, dict) else None
        for axis, value in own.items() if isinstance(own, dict) else ():
            axes.setdefault(str(axis), {})[result.name] = str(value)
    return {axis: of_axis for axis, of_axis in axes.items() if len(set(of_axis.values())) > 1}


def measure_columns(report: BenchmarkReport) -> list[Column]:
    """Return a column for every measure of any configuration, by measure and then by cutoff."""
    keys = {
        key for result in report.configurations for measures in (result.measures, *result.groups.values()) for key in measures
    }
    return [
        Column(str(measure), measure.family, measure.family_label if measure.cutoff is None else f"@{measure.cutoff}")
        for measure in sorted(map(Measure.parse, keys), key=lambda measure: measure.order)
    ]


def summary_columns(report: BenchmarkReport) -> list[Column]:
    """Return the main measure, chosen measures or the usual ones, latency, index size, and known prices."""
    measures = measure_columns(report)
    main = [column for column in measures if column.key == report.main_measure]
    kept = [column for column in measures if column.family in ("perfect_recall", "recall")]
    ndcg = [column for column in measures if column.family == "ndcg"]
    small = [column for column in ndcg if 1 <= (Measure.parse(column.key).cutoff or 0) <= 10]
    costs = [column for column in COST_COLUMNS if column.key in ("latency_ms", "index_bytes")]
    answers = [column for column in measures if column.family in ("answer_em", "answer_f1", "joint_f1")]
    shown = measures if report.manifest.get("measures") else kept + (small[-1:] or ndcg[:1]) + answers
    return main + [column for column in shown if column not in main] + costs + price_columns(report)


ALPHA = 0.05
UNTESTED = "Differences are not tested for significance; any of them may be chance."
NOTHING_TO_FIND = "no difference could have been significant"
NO_VERDICT = "Bold is the best value measured, significant or not."


BETTER, WORSE = "\N{BLACK UP-POINTING TRIANGLE}", "\N{BLACK DOWN-POINTING TRIANGLE}"


def mark_of(comparison: Comparison | None) -> str:
    """Return the mark of a verdict; empty for a figure that was not compared, or whose difference may be chance."""
    decided = "" if comparison is None else verdict(comparison, ALPHA)
    return {"better": BETTER, "worse": WORSE}.get(decided, "")


def by_figure(report: BenchmarkReport) -> dict[tuple[str, str, str], Comparison]:
    """Return the comparisons with the baseline by group, measure and configuration."""
    return {
        (group, comparison.measure, comparison.system): comparison
        for group, comparisons in report.comparisons.items()
        for comparison in comparisons
        if comparison.baseline == report.baseline
    }


def unit(comparison: Comparison) -> str:
    """Return the test's independent units, with their number: ``"1,000 queries"``, ``"812 families of queries"``."""
    return counted(comparison.families, *unit_names(comparison))


def legend(report: BenchmarkReport) -> str:
    """Return the meaning of the marks and their test, or a note that nothing was tested."""
    compared = [comparison for comparisons in report.comparisons.values() for comparison in comparisons]
    if not compared:
        return UNTESTED if len(report.configurations) > 1 else ""
    first = compared[0]
    verdicts = {verdict(comparison, ALPHA) for comparison in compared}
    better, worse = f"{BETTER} better", f"{WORSE} worse"
    if verdicts == {"not distinguishable"}:
        meaning = "No measure is distinguishable from the baseline's"
    else:
        meaning = ", ".join([better] * ("better" in verdicts) + [worse] * ("worse" in verdicts)) + " than the baseline"
    many = first.comparisons
    each = "each measure and group" if len(report.comparisons) > 1 else "each measure"
    corrected = f", Holm's correction for {many} comparisons in {each}" if many > 1 else ""
    test = f"paired randomisation test over {unit(first)}{corrected}"
    return f"{meaning} at level {ALPHA:g}: {test}. Unmarked differences may be chance."


def by_chance(report: BenchmarkReport) -> str:
    """Return the expected number of false marks if more is compared than is corrected together; otherwise ``""``."""
    compared = list(by_figure(report).items())
    together = {(group, measure) for group, measure, _ in dict(compared)}
    if len(together) < 2:
        return ""
    marked = [verdict(comparison, ALPHA) != "not distinguishable" for _, comparison in compared]
    stand = sum(p <= ALPHA and mark for p, mark in zip(holm([comparison.p for _, comparison in compared]), marked, strict=True))
    note = (
        f"In all there are {len(compared):,} comparisons with the baseline, in {len(together):,} pairs of a measure and a "
        f"group, each corrected separately: if nothing differed, expect false positives in up to "
        f"{ALPHA * len(together):.3g} of these."
    )
    least = min(comparison.least_p for _, comparison in compared)
    if any(marked) and least * len(compared) > ALPHA and not all(comparison.exact for _, comparison in compared):
        return f"{note} Too little was drawn to correct for all {len(compared):,} together; leave 'resamples' out."
    remaining = f"{stand:,} of the {sum(marked):,} marked differences remain significant"
    return f"{note} Corrected for all {len(compared):,} together, {remaining}." if any(marked) else note


def out_of_reach(report: BenchmarkReport) -> dict[str, list[str]]:
    """Return why no difference in a group could have been significant, with the groups concerned."""
    groups_by_reason: dict[str, list[str]] = {}
    for group, comparisons in report.comparisons.items():
        if reason := shared_reason(comparisons):
            groups_by_reason.setdefault(reason, []).append(group)
    return groups_by_reason


def shared_reason(comparisons: Sequence[Comparison]) -> str:
    """Return why none of some differences could have been significant; ``""`` if one could, or there is none."""
    reasons = [limits(comparison, ALPHA) for comparison in comparisons]
    if not all(reasons):
        return ""
    if len(set(reasons)) < 2:
        return next(iter(reasons), "")
    return limits(max(comparisons, key=lambda comparison: comparison.differing), ALPHA, of_many=True)


def p_phrase(p: float) -> str:
    """Return a p-value with its sign: ``"p = 0.023"``, ``"p <0.001"``."""
    text = p_text(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def p_text(p: float) -> str:
    """Return a formatted p-value: three decimals, and a fourth if they would round it to the level."""
    return "<0.001" if p < 0.0005 else f"{p:.4f}" if abs(p - ALPHA) < 0.0005 else f"{p:.3f}"


MARK = "\N{BLACK DIAMOND}"


@dataclass(frozen=True)
class Front:
    """A Pareto front: the configurations on it, and those that have both values."""

    names: tuple[str, ...]
    placed: tuple[str, ...]


def not_dominated(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Return for each point whether no other is at least as good in both values and better in one."""
    on_front = [False] * len(points)
    last: tuple[float, float] | None = None
    for position in sorted(range(len(points)), key=lambda position: (points[position][1], -points[position][0])):
        if last is None or points[position][0] > last[0] or points[position] == last:
            on_front[position] = True
            last = points[position]
    return on_front


def fronts(report: BenchmarkReport) -> dict[str, Front]:
    """Return the fronts by the key of their cost: ``"latency_ms"``, and ``"price_per_1000_queries"`` if prices are known."""
    measure = report.main_measure
    quality = Column(measure, Measure.parse(measure).family, measure)
    by_cost = {}
    for cost in [COST_COLUMNS[0], *price_columns(report)]:
        values = {result.name: (quality.value(result), cost.value(result)) for result in report.configurations}
        points = {name: (good, dear) for name, (good, dear) in values.items() if good is not None and dear is not None}
        if len(points) > 1:
            on_front = not_dominated(list(points.values()))
            by_cost[cost.key] = Front(tuple(name for name, on in zip(points, on_front, strict=True) if on), tuple(points))
    return by_cost


def latency_interval(result: ConfigurationResult) -> tuple[float, float] | None:
    """Return the interval of a median latency in milliseconds; None if unknown."""
    cost = result.cost
    if cost is None or cost.latency_low_ms is None or cost.latency_high_ms is None:
        return None
    return cost.latency_low_ms, cost.latency_high_ms


def front_legend(report: BenchmarkReport) -> str:
    """Return the meaning of a front's mark; ``""`` if there is no front."""
    if not fronts(report):
        return ""
    return (
        f"{MARK} on the Pareto front of {Measure.parse(report.main_measure).label} and this cost: no other configuration is at "
        "least as good in both and better in one. The front is of the values measured; neighbours on it may differ by chance."
    )
