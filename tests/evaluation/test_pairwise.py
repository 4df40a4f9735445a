"""Every two configurations, tested as one family: nothing is called better that the corrected test does not bear out."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from reports.page.test_page import ATTACK, Page
from reports.report_data import configuration, report_of
from scipy import stats

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.evaluation.comparison import Pairwise, compare_pairs, turned, verdict
from nlp_retrieval.reports.page.page import render_page

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


def section(found: Pairwise, values: dict[str, dict[str, Scores]] | None = None) -> str:
    """The part of the page; configurations are in the order of their means, the first is the baseline."""
    means = {name: float(one[MEASURE].mean()) for name, one in (values or per_query()).items()}
    report = report_of(*(configuration(name, {MEASURE: mean}) for name, mean in means.items()), k_values=[10])
    source = render_page(replace(report, manifest={"main": MEASURE}, pairwise=found))
    assert not Page(source).open
    return source.partition('aria-labelledby="pairs"')[2].partition("</section>")[0]


def cells(source: str) -> list[list[str]]:
    body = re.findall(r"<tbody.*?</tbody>", source, re.S)[0]
    return [re.findall(r"<td.*?</td>", row, re.S) for row in body.split("</tr>")[:-1]]


def test_the_matrix_marks_what_the_test_bears_out_and_nothing_else() -> None:
    found = pairs()
    source = section(found)
    both, marked = found.both_ways(), 0
    ranked = sorted(LEVELS, key=lambda name: -per_query()[name][MEASURE].mean())
    for name, row in zip(ranked, cells(source), strict=True):
        assert len(row) == 5
        for other, cell in zip(ranked, row, strict=True):
            if name == other:
                assert "better" not in cell
                assert "worse" not in cell
                continue
            told = verdict(both[name, other])
            assert ("\N{BLACK UP-POINTING TRIANGLE}" in cell) == (told == "better")
            assert ("\N{BLACK DOWN-POINTING TRIANGLE}" in cell) == (told == "worse")
            assert f"{told}, p " in cell
            marked += told != "not distinguishable"
    assert marked == 14
    assert "10 comparisons" in source


def test_where_no_difference_could_have_been_borne_out_it_says_why() -> None:
    source = section(pairs(queries=4), per_query(queries=4))
    assert "\N{BLACK UP-POINTING TRIANGLE}<" not in source
    assert "no difference could have been significant: 4 queries are too few" in source
    assert "too few" not in section(pairs())


def test_the_page_compares_the_best_ten_and_the_baseline_corrected_for_all_pairs() -> None:
    values = per_query({"bm25": 0.0, ATTACK: 0.5, **{f"c{place}": place / 40 for place in range(14)}})
    found = compare_pairs(values, MEASURE, [None] * 60, 0)
    assert found is not None
    source = section(found, values)
    best = sorted(values, key=lambda name: -values[name][MEASURE].mean())
    shown = re.findall(r'<th scope="row".*?<bdi>(.*?)</bdi>', source.replace("<wbr>", ""))
    assert [html.unescape(name) for name in shown] == [*best[:9], "bm25"]
    assert "120 comparisons" in source
    assert ATTACK not in source
