"""The first sentence of a report: it claims what the corrected test finds, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.evaluation.comparison import compare, compare_by_group, compare_pairs
from nlp_retrieval.reports.findings import headline, tied_with_best
from nlp_retrieval.reports.page.page import render_page

from .report_data import configuration, cost_like, printed, report_of, usual_report

KEY, LABEL = "recall@10", "Recall@10"


def report_on(
    latencies: Sequence[float] | None = None, families: str | None = None, /, **columns: Sequence[float]
) -> BenchmarkReport:
    """A report of one measure, from its value for each query; the first configuration is the baseline."""
    per_query = {name: {KEY: np.array(values, np.float64)} for name, values in columns.items()}
    of_queries = list(families or [None] * len(next(iter(columns.values()))))
    costs = [cost_like(latency) for latency in latencies or [5.0] * len(columns)]
    report = report_of(
        *(
            configuration(name, {KEY: float(per_query[name][KEY].mean())}, cost=cost)
            for name, cost in zip(columns, costs, strict=True)
        ),
        k_values=[10],
    )
    first = next(iter(columns))
    return replace(
        report,
        comparisons=compare_by_group(per_query, first, of_queries, {}, 0),
        pairwise=compare_pairs(per_query, KEY, of_queries, 0),
    )


STEPS = np.arange(40) / 100
LOW, HIGH = list(0.2 + STEPS / 2), list(0.4 + STEPS)


def test_the_winner_is_named_with_difference_interval_p_and_cost() -> None:
    report = report_on([4.0, 10.2], bm25=LOW, dense=HIGH)
    (oracle,) = compare({"bm25": {KEY: np.array(LOW)}, "dense": {KEY: np.array(HIGH)}}, "bm25", seed=0)
    low, high = oracle.interval
    assert high - low > 0.1
    assert oracle.p_holm < 0.0005
    found = f"{LABEL} +{oracle.difference:.3f} [{low:.2f}, {high:.2f}], p < 0.001"
    assert headline(report) == f"dense beats bm25: {found}; 6 ms slower".replace("0.", ".")


def test_the_highest_value_is_no_winner_if_it_may_be_chance() -> None:
    wild = [0.0] * 20 + [1.0] * 20  # a higher mean than the steady one, over queries that contradict each other
    report = report_on(bm25=[0.4] * 40, wild=wild, steady=[0.41 + step for step in STEPS / 4])
    assert np.mean(wild) > report.configurations[2].measures[KEY]
    assert headline(report).startswith("steady beats bm25: ")
    assert headline(report).endswith("; wild measured higher, which may be chance")


def test_nothing_distinguishable_is_said_with_the_largest_difference() -> None:
    generator = np.random.default_rng(4)
    values = {name: list(generator.uniform(0, 1, 40)) for name in ("bm25", "dense", "hybrid")}
    report = report_on(**values)
    found = {name: np.mean(values[name]) - np.mean(values["bm25"]) for name in ("dense", "hybrid")}
    largest = max(found, key=lambda name: abs(found[name]))
    text = headline(report)
    assert text.startswith(
        f"nothing is distinguishable from bm25 in {LABEL} ({np.mean(values['bm25']):.3f}): ".replace("0.", ".")
    )
    assert f"largest difference: {largest} " in text
    assert "beats" not in text
    alone = headline(report_on(bm25=values["bm25"], dense=values["dense"]))
    assert alone.startswith("dense is not distinguishable from bm25 in Recall@10 (")


def test_a_baseline_that_nothing_beats_is_said_to_be_unbeaten() -> None:
    report = report_on(bm25=HIGH, dense=LOW, same=HIGH)
    value = f"{np.mean(HIGH):.3f}"[1:]
    assert headline(report) == f"nothing beats bm25: {LABEL} {value}; dense is worse, 1 not distinguishable"


def test_equal_values_in_every_query_are_called_the_same() -> None:
    value = f"{np.mean(LOW):.3f}"[1:]
    assert headline(report_on(a=LOW, b=LOW)) == f"b and a have the same {LABEL} in every query (mean {value})"
    opposed = headline(report_on(None, "xxyy", a=[0.1, 0.2, 0.3, 0.4], b=[0.2, 0.1, 0.4, 0.3]))
    assert opposed.endswith("their differences add up to 0 in every family of queries")
    assert headline(report_on(a=LOW, b=LOW, c=LOW)) == f"both others and a have the same {LABEL} in every query (mean {value})"


def test_untested_and_single_configurations_claim_nothing() -> None:
    report = usual_report()
    best, first = (report.configurations[place].measures["recall@21"] for place in (2, 0))
    assert headline(report) == (
        f"hybrid has the highest Recall@21 ({best:.3f}; bm25 {first:.3f}); differences were not tested".replace("0.", ".")
    )
    alone = report_of(configuration("a", {KEY: 0.25}), k_values=[10])
    assert headline(alone) == f"a: {LABEL} .250"
    with_interval = replace(alone.configurations[0], intervals={"": {KEY: (0.2, 0.3)}})
    assert headline(replace(alone, configurations=[with_interval])) == f"a: {LABEL} .250 [.200, .300]"
    assert headline(report_of(configuration("a", {}))) == ""
    assert headline(report_of(configuration("a", {KEY: float("nan")}), k_values=[10])) == ""


def test_those_tied_with_the_best_are_those_that_the_pairwise_test_does_not_tell_apart() -> None:
    report = report_on(bm25=LOW, dense=HIGH, same=HIGH)
    assert tied_with_best(report) == ["same"]
    assert tied_with_best(replace(report, pairwise=None)) == []
    beaten = report_on(bm25=[0.0] * 7, **{name: [1.0] * 7 for name in ("one", "two", "three")})
    assert headline(beaten).startswith("one beats bm25: ")
    assert tied_with_best(beaten) == ["two", "three", "bm25"]
    assert "2 others not distinguishable" in render_page(beaten), "the test of all pairs does not deny what the other found"


def test_a_printed_report_has_plain_numbers_and_explains_the_marks_that_it_can_have() -> None:
    slow = report_on([1234.5, 2.9], bm25=LOW, dense=HIGH)
    assert ("1,234" in str(slow), "2.90" in str(slow), "e+" in str(slow)) == (True, True, False)
    assert "▲ better, ▼ worse" in str(slow)
    assert "▲" not in str(report_on(bm25=LOW))
    of_another = [replace(test, measure="precision@10") for test in slow.comparisons[""]]
    assert "nothing significant in these columns" in printed(replace(slow, comparisons={"": of_another}))
