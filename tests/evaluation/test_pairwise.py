"""Every two configurations, tested as one family: nothing is called better that the corrected test does not bear out."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from reports.page.test_page import ATTACK, Page
from reports.report_data import configuration, report_of
from scipy import stats

from evaluation.test_rankings import lists_of
from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.evaluation.comparison import LEVEL, RESAMPLES, Pairwise, compare, compare_pairs, turned, verdict
from nlp_retrieval.reports.figures import signed
from nlp_retrieval.reports.page.page import pairwise_section, render_page

MEASURE = "recall@10"
LEVELS = {"bm25": 0.0, "dense": 0.02, "hybrid": 0.3, "broken": -0.3, "same": 0.0}


def per_query(levels: dict[str, float] = LEVELS, queries: int = 60) -> dict[str, dict[str, Scores]]:
    draw = np.random.default_rng(5)
    hard = draw.uniform(0.3, 0.6, queries)
    noise = {name: draw.normal(0, 0.1, queries) for name in levels}
    if "same" in levels:
        noise["same"] = noise["bm25"]
    return {
        name: {MEASURE: np.clip(hard + level + noise[name], 0, 1), "mrr@10": draw.uniform(0, 1, queries)}
        for name, level in levels.items()
    }


def pairs(queries: int = 60) -> Pairwise:
    found = compare_pairs(per_query(queries=queries), MEASURE, [None] * queries, 0)
    assert found is not None
    return found


def test_every_two_are_compared_once_in_the_measure_alone() -> None:
    found = pairs()
    assert {(one.baseline, one.system) for one in found.comparisons} == set(combinations(LEVELS, 2))
    assert {one.measure for one in found.comparisons} == {MEASURE}
    assert {one.comparisons for one in found.comparisons} == {10}
    assert found.systems == list(LEVELS)


def test_p_values_are_those_of_scipy_corrected_for_all_pairs() -> None:
    found, values = pairs(), per_query()
    for one in found.comparisons:
        difference = values[one.system][MEASURE] - values[one.baseline][MEASURE]
        if not difference.any():
            assert one.p == 1.0
            continue
        theirs = stats.permutation_test(
            (difference,), np.mean, permutation_type="samples", n_resamples=9999, random_state=np.random.default_rng(1)
        )
        assert one.p == pytest.approx(theirs.pvalue, abs=0.02)
    ascending = sorted(found.comparisons, key=lambda one: one.p)
    adjusted = 0.0
    for place, one in enumerate(ascending):
        adjusted = max(adjusted, min(1.0, (10 - place) * one.p))
        assert one.p_holm == pytest.approx(adjusted)


def test_it_is_the_comparison_that_the_report_makes() -> None:
    values = {name: {MEASURE: one[MEASURE]} for name, one in per_query().items()}
    families = [f"f{query // 2}" for query in range(60)]
    found = compare_pairs(per_query(), MEASURE, families, 7)
    assert found is not None
    assert found.comparisons == compare(values, None, families, RESAMPLES, LEVEL, 7)


def test_each_pair_reads_the_same_from_both_sides() -> None:
    found = pairs()
    both = found.both_ways()
    assert len(both) == 20
    opposite = {"better": "worse", "worse": "better", "not distinguishable": "not distinguishable"}
    for (system, other), one in both.items():
        back = both[other, system]
        assert (one.system, one.baseline) == (system, other)
        assert verdict(back) == opposite[verdict(one)]
        assert (back.difference, back.wins, back.losses) == (-one.difference, one.losses, one.wins)
        assert back.interval == (-one.interval[1], -one.interval[0])
        assert turned(back) == one


def cells(source: str) -> list[list[str]]:
    body = re.findall(r"<tbody.*?</tbody>", source, re.S)[0]
    return [re.findall(r"<td.*?</td>", row, re.S) for row in body.split("</tr>")[:-1]]


def test_the_matrix_marks_what_the_test_bears_out_and_nothing_else() -> None:
    found = pairs()
    source = pairwise_section([found])
    both, marked = found.both_ways(), 0
    for name, row in zip(found.systems, cells(source), strict=True):
        assert len(row) == 5
        for other, cell in zip(found.systems, row, strict=True):
            if name == other:
                assert "better" not in cell
                assert "worse" not in cell
                continue
            told = verdict(both[name, other])
            assert ("\N{BLACK UP-POINTING TRIANGLE}" in cell) == (told == "better")
            assert ("\N{BLACK DOWN-POINTING TRIANGLE}" in cell) == (told == "worse")
            assert f" {told}, p " in cell
            marked += told != "not distinguishable"
    assert marked == 14
    assert "Holm's correction for 10 comparisons" in source
    assert not Page(source).open


def test_where_no_difference_could_have_been_borne_out_it_says_why() -> None:
    source = pairwise_section([pairs(queries=4)])
    assert "\N{BLACK UP-POINTING TRIANGLE}<" not in source
    assert "no difference could have been significant: 4 queries are too few" in source
    assert "too few" not in pairwise_section([pairs()])


def test_two_configurations_have_no_matrix_and_one_has_no_pair() -> None:
    values = per_query()
    two = compare_pairs({name: values[name] for name in ("bm25", "hybrid")}, MEASURE, [None] * 60, 0)
    assert two is not None
    assert len(two.comparisons) == 1
    report = report_of(*(configuration(name, {MEASURE: 0.5}) for name in ("bm25", "hybrid")), k_values=[10])
    assert 'id="pairs"' not in render_page(replace(report, pairwise=two))
    assert compare_pairs({"bm25": values["bm25"]}, MEASURE, [None] * 60, 0) is None
    assert pairwise_section([]) == ""


def test_some_of_many_are_corrected_for_all_pairs_so_that_they_can_be_chosen_by_what_is_tested() -> None:
    values = per_query({f"c{place}": place / 40 for place in range(8)})
    every, some = (compare_pairs(values, MEASURE, [None] * 60, 0, among=among) for among in (None, ["c7", "c5", "c0"]))
    assert every is not None
    assert some is not None
    assert some.systems == ["c7", "c5", "c0"]
    of_all = every.both_ways()
    assert {(one.system, one.baseline) for one in some.comparisons} == {("c5", "c7"), ("c0", "c7"), ("c0", "c5")}
    for one in some.comparisons:
        same = of_all[one.system, one.baseline]
        assert (one.p, one.comparisons, one.difference) == (same.p, 28, same.difference)
        assert same.p_holm <= one.p_holm <= min(1.0, 28 * one.p)


def test_the_page_compares_the_best_ten_and_the_baseline_in_every_usual_measure() -> None:
    values = per_query({"bm25": 0.0, **{f"c{place}": place / 40 for place in range(14)}})
    names = list(values)
    report = report_of(
        *(configuration(name, {key: float(column.mean()) for key, column in of.items()}) for name, of in values.items()),
        k_values=[10],
    )
    report = replace(report, pairwise=compare_pairs(values, MEASURE, [None] * 60, 0))
    lists = lists_of({name: [[("a", 1.0, {})]] * 60 for name in names}, {f"q{n}": {"a": 1} for n in range(60)}, 60)
    values = {name: of | {"ndcg@10": of["mrr@10"]} for name, of in values.items()}
    shown = replace(
        report, configurations=[replace(one, measures=one.measures | {"ndcg@10": 0.5}) for one in report.configurations]
    )
    source = render_page(shown, lists, values).partition('id="pairs"')[2].partition("</section>")[0]
    best = sorted(names, key=lambda name: -values[name][MEASURE].mean())
    assert re.findall(r'<th scope="col" title="(.*?)"', source) == [*best[:9], "bm25"]
    assert (
        re.findall(r'<option value="(.*?)"', source)
        == re.findall(r'<tbody data-measure="(.*?)"', source)
        == [MEASURE, "ndcg@10"]
    )
    assert "Holm's correction for 105 comparisons" in source
    both = compare_pairs(values, "ndcg@10", [None] * 60, 0, among=[*best[:9], "bm25"])
    assert both is not None
    first = both.both_ways()[best[0], best[1]]
    assert f">{signed(first.difference)}<" in source.partition('<tbody data-measure="ndcg@10"')[2]


def test_a_measure_that_was_not_taken_names_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="'bm25' was not measured in 'recall@11'; did you mean 'recall@10'"):
        compare_pairs(per_query(), "recall@11", [None] * 60, 0)


def test_names_in_the_matrix_stay_text() -> None:
    names = {ATTACK: 0.0, "b": 0.1, "c": 0.2}
    found = compare_pairs(per_query(names), MEASURE, [None] * 60, 0)
    assert found is not None
    page = Page(pairwise_section([found]))
    assert not page.of("script")
    assert not page.of("img")
    assert ATTACK in page.texts("bdi")
    assert not page.open
