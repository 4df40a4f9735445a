"""Charts of any report are well-formed, hold every figure that was measured, and stay inside their frame."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.evaluation.rankings import ListsBuilder
from nlp_retrieval.reports.page.charts import HEIGHT, WIDTH, over_coverage, over_cutoffs, quality_latency
from reports.report_data import configuration, cost_like, measures_like, report_of

NAN = float("nan")


def many(number: int) -> BenchmarkReport:
    levels = {f"number-{place}": (0.2 + 0.02 * place, 1.0 + place) for place in range(number)}
    return report_of(*(configuration(name, measures_like(level), cost=cost_like(ms)) for name, (level, ms) in levels.items()))


DEGENERATE = {
    "one configuration": many(1),
    "forty configurations": many(40),
    "nothing found": report_of(configuration("a", {"recall@5": 0.0, "perfect_recall@5": 0.0}), k_values=[5]),
    "far cutoffs": report_of(configuration("a", measures_like(0.3, [1, 2, 3, 1000])), k_values=[1, 2, 3, 1000]),
    "unequal latencies": report_of(
        *(configuration(str(ms), measures_like(0.3), cost=cost_like(ms)) for ms in (0.001, 1.0, 250_000.0))
    ),
    "a measure missing": report_of(
        configuration("a", measures_like(0.3)), configuration("b", {"recall@5": 0.2, "recall@21": NAN})
    ),
    "latency not a number": report_of(
        configuration("a", measures_like(0.3), cost=replace(cost_like(), latency_ms=NAN)),
        configuration("b", measures_like(0.3)),
    ),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_every_chart_is_well_formed_and_inside_its_frame(name: str) -> None:
    report = DEGENERATE[name]
    for chart in filter(None, (over_cutoffs(report), quality_latency(report))):
        root = ElementTree.fromstring(str(chart))
        assert root.attrib["role"] == "img"
        for part in root.iter():
            for key, most in (("x", WIDTH), ("y", HEIGHT), ("cx", WIDTH), ("cy", HEIGHT)):
                if key in part.attrib:
                    assert 0 <= float(part.attrib[key]) <= most
        numbers = re.findall(r"-?[0-9.]+", " ".join(part.attrib.get("d", "") for part in root.iter()))
        assert all(math.isfinite(float(number)) for number in numbers)


@pytest.mark.parametrize("n_queries", [19, 40])
def test_the_loss_over_coverage_is_that_of_queries_in_the_order_of_their_first_scores(n_queries: int) -> None:
    report = report_of(configuration("known", measures_like(0.5)), configuration("other", measures_like(0.4)))
    names = [f"q{number}" for number in range(n_queries)]
    nothing: list[None] = [None] * n_queries
    builder = ListsBuilder(names, names, nothing, nothing, [], {}, {})
    found = [[("a", 1.0 - number / n_queries), ("b", 0.0)] for number in range(n_queries - 1)]
    builder.add_rankings("known", [*found, []], {})
    quality = np.array([1.0] * 10 + [0.5] * (n_queries - 10))
    drawn = over_coverage(report, builder.built(), {"known": {report.main_measure: quality}})
    if n_queries < 20:
        assert not drawn
        return
    chart, caption = drawn.split("<figcaption>")
    ElementTree.fromstring(chart)
    assert "0.750 over the half of the queries" in caption
    assert "0.625 over all" in caption
    assert chart.count("<title") == 2, "the chart and one curve: the other configuration has no lists"
