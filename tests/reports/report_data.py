"""Reports for the tests of what shows them: made by hand, with figures that are all different."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from rich.console import Console

from nlp_retrieval.benchmarks.cost import Cost, LanguageModelCost, ModelPrice, ModelTokens, Prices
from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult, Measures
from nlp_retrieval.evaluation.comparison import compare_by_group, intervals_by_group
from nlp_retrieval.reports.terminal import SummaryTable
from nlp_retrieval.reports.view import view_of

MEASURES = ("precision", "recall", "f1", "perfect_recall", "ndcg", "map", "mrr")


def measures_like(level: float, k_values: Sequence[int] = (5, 10, 21)) -> Measures:
    """Every measure at every cutoff, rising with the cutoff from about ``level``."""
    return {
        f"{name}@{k}": round(min(1.0, level + 0.04 * place + 0.0113 * step), 6)
        for place, name in enumerate(MEASURES)
        for step, k in enumerate(k_values)
    }


def printed(report: BenchmarkReport, width: int = 120, encoding: str = "utf-8") -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict")
    Console(file=file, width=width).print(SummaryTable(view_of(report)))
    file.flush()
    return file.buffer.getvalue().decode(encoding)


def cost_like(latency_ms: float = 10.0) -> Cost:
    return Cost(
        index_seconds=latency_ms * 1.7,
        index_bytes=int(latency_ms * 1_234_567),
        stage_ms={"process": latency_ms * 0.1, "retrieve": latency_ms * 0.8},
        latency_ms=latency_ms,
        latency_p95_ms=latency_ms * 2.1,
    )


def configuration(
    name: str, measures: Measures, groups: dict[str, Measures] | None = None, cost: Cost | None = None, empty_queries: int = 0
) -> ConfigurationResult:
    return ConfigurationResult(
        name=name,
        config={"name": "searcher", "retrievers": [{"name": "pyserini", "k1": 0.9}]},
        fingerprint=f"f-{name}",
        measures=measures,
        groups=groups or {},
        cost=cost or cost_like(),
        empty_queries=empty_queries,
    )


def report_of(
    *configurations: ConfigurationResult, k_values: Sequence[int] = (5, 10, 21), query_counts: dict[str, int] | None = None
) -> BenchmarkReport:
    """A report with the first configuration as its baseline."""
    return BenchmarkReport(
        configurations=list(configurations),
        baseline=configurations[0].name,
        k_values=list(k_values),
        query_counts=query_counts or {"": 1200},
        n_items=32_000,
        manifest={
            "finished": "2026-11-21T23:14:00+00:00",
            "versions": {"nlp_retrieval": "0.1.0"},
            "seed": 17,
            "main": f"recall@{max(k_values, default=21)}",
        },
        files={"results": "runs/wiki/results.json"},
    )


def usual_report() -> BenchmarkReport:
    """Three configurations, two groups of queries, three cutoffs."""
    rows = [("bm25", 0.31, 2.5), ("dense", 0.27, 24.0), ("hybrid", 0.36, 31.0)]
    return report_of(
        *(
            configuration(
                name,
                measures_like(level),
                {"hops=2": measures_like(level + 0.1), "hops=3": measures_like(level - 0.1)},
                cost_like(latency),
                empty_queries=place * 3,
            )
            for place, (name, level, latency) in enumerate(rows)
        ),
        query_counts={"": 1200, "hops=2": 700, "hops=3": 500},
    )


def model_cost(**models: ModelTokens) -> Cost:
    """A cost with the tokens of models of these names, each of the provider ``openai``."""
    tokens = {f"openai/{name}": of_model for name, of_model in models.items()}
    sums = {kind: sum(getattr(one, kind) for one in tokens.values()) for kind in ModelTokens.__dataclass_fields__}
    asked = LanguageModelCost(
        calls=1234, cache_hits=56, failures=7, degraded=0, latency_answers=50, latency_cache_hits=0, search_answers=1200,
        search_cache_hits=56, models=tokens, **sums,
    )  # fmt: skip
    return replace(cost_like(20.0), language_model=asked)


PRICES = Prices({"openai/small": ModelPrice(0.15, 0.6), "openai/large": ModelPrice(2.5, 10.0)})


def compared_report(
    families: int | None = None, names: Sequence[str] = ("bm25", "hybrid", "broken", "same")
) -> BenchmarkReport:
    """Three configurations compared over 60 queries: one far better, one far worse, and one that is the baseline's equal.

    Args:
        families: of how many the queries are; None: each stands alone. Five queries make up the group ``hops=4``.
        names: of the baseline, and of the three.
    """
    draw = np.random.default_rng(3)
    levels = dict(zip(names, (0.0, 0.3, -0.3, 0.0), strict=True))
    hard = draw.uniform(0.3, 0.6, 60)
    noise = {name: draw.normal(0, 0.1, 60) * (name not in (names[0], names[3])) for name in names}
    keys = list(measures_like(0.0))
    per_query = {
        name: {key: np.clip(hard + level + noise[name] + 0.001 * place, 0, 1) for place, key in enumerate(keys)}
        for name, level in levels.items()
    }
    of_queries = [None if families is None else f"f{query % families}" for query in range(60)]
    masks = {"hops=2": np.arange(60) < 55, "hops=4": np.arange(60) >= 55}
    intervals = intervals_by_group(per_query, of_queries, masks, 0)
    report = report_of(
        *(
            configuration(
                name,
                {key: float(values.mean()) for key, values in measures.items()},
                {group: {key: float(values[mask].mean()) for key, values in measures.items()} for group, mask in masks.items()},
                cost_like(5.0 + place),
            )
            for place, (name, measures) in enumerate(per_query.items())
        ),
        query_counts={"": 60, "hops=2": 55, "hops=4": 5},
    )
    return replace(
        report,
        configurations=[replace(one, intervals=intervals[one.name]) for one in report.configurations],
        comparisons=compare_by_group(per_query, names[0], of_queries, masks, 0),
    )
