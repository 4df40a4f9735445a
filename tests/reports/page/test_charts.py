from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree

import pytest

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.reports.page.charts import WIDE, WIDER, marginal_effects, over_cutoffs, stage_bar
from nlp_retrieval.reports.page.page import quality_latency
from reports.report_data import configuration, cost_like, measures_like, report_of, usual_report

NAN = float("nan")


def many(number: int, **same: float) -> BenchmarkReport:
    return report_of(
        *(
            configuration(
                f"configuration-number-{place}",
                measures_like(same.get("level", 0.2 + 0.02 * place)),
                cost=cost_like(same.get("latency", 1.0 + place)),
            )
            for place in range(number)
        )
    )


DEGENERATE = {
    "one configuration": many(1),
    "twenty configurations": many(20),
    "twenty equal configurations": many(20, level=0.5, latency=4.0),
    "equal latencies": many(4, latency=4.0),
    "no latency": many(4, latency=0.0),
    "some without latency": report_of(
        configuration("a", measures_like(0.3), cost=cost_like(0.0)), configuration("b", measures_like(0.4))
    ),
    "perfect": many(3, level=1.0),
    "nothing found": report_of(configuration("a", {"recall@5": 0.0, "perfect_recall@5": 0.0}), k_values=[5]),
    "one cutoff": report_of(*(configuration(n, measures_like(0.3, [10])) for n in "ab"), k_values=[10]),
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


def charts_of(report: BenchmarkReport) -> list[str]:
    """All drawings of a report, in all their sizes; those of which there is nothing to draw are left out."""
    halves = {result.name: "even" if place % 2 == 0 else "odd" for place, result in enumerate(report.configurations)}
    drawn = [
        *(over_cutoffs(report, *size) for size in ((), (WIDER,))),
        over_cutoffs(report, family="perfect_recall"),
        *(quality_latency(report, *size) for size in ((), (WIDE,))),
        *(marginal_effects(report, {"half": halves}, *size) for size in ((), (WIDER,))),
    ]
    return [chart for chart in drawn if chart]


@pytest.mark.parametrize("case", DEGENERATE)
def test_every_chart_is_well_formed_and_has_real_coordinates_inside_its_box(case: str) -> None:
    for chart in charts_of(DEGENERATE[case]):
        root = ElementTree.fromstring(chart)
        assert not re.search(r"nan|inf\b", re.sub(r"<(title|desc|text).*?</\1>", "", chart), re.I)
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        for mark in root.iter("path"):
            if mark.get("class") == "marker":
                x, y = map(float, re.findall(r"[-\d.]+", mark.attrib["transform"]))
                assert 0 <= x <= width
                assert 0 <= y <= height


@pytest.mark.parametrize("case", DEGENERATE)
def test_labels_of_configurations_never_overlap(case: str) -> None:
    before = {"start": 0.0, "middle": 0.5, "end": 1.0}
    for chart in charts_of(DEGENERATE[case]):
        boxes = []
        for group in ElementTree.fromstring(chart).iter("g"):
            for text in group.iter("text"):
                if "extra" in text.attrib["class"]:  # shown alone, when it is pointed at
                    continue
                width = 6.2 * len(text.text or "")
                x = float(text.attrib["x"]) - width * before[text.attrib["text-anchor"]]
                boxes.append((x, x + width, float(text.attrib["y"])))
        for (left, right, y), (other_left, other_right, other_y) in combinations(boxes, 2):
            assert abs(y - other_y) > 12 or right <= other_left or other_right <= left


def test_every_configuration_is_labelled_and_described() -> None:
    report = usual_report()
    for chart in (over_cutoffs(report), over_cutoffs(report, WIDER), quality_latency(report), quality_latency(report, WIDE)):
        root = ElementTree.fromstring(chart)
        labels = {text.text for group in root.iter("g") for text in group.iter("text")}
        assert labels == {"bm25", "dense", "hybrid"}
        described = root.findtext("desc") or ""
        assert all(f"{result.measures['recall@21']:.3f}" in described for result in report.configurations)


def test_the_main_measure_is_drawn_over_its_cutoffs_if_it_has_several() -> None:
    root = ElementTree.fromstring(over_cutoffs(usual_report()))
    assert root.findtext("title") == "Recall over the cutoff k"
    ticks = {text.text for text in root.findall("text") if text.attrib["text-anchor"] == "middle"}
    assert {"5", "10", "21"} <= ticks
    assert over_cutoffs(report_of(configuration("a", measures_like(0.3, [10])), k_values=[10])) == ""


def test_the_best_five_and_the_baseline_are_named_among_many() -> None:
    report = many(20)
    best = {f"configuration-number-{place}" for place in (0, *range(15, 20))}
    for chart in (over_cutoffs(report, WIDER), quality_latency(report, WIDE)):
        texts = [text for group in ElementTree.fromstring(chart).iter("g") for text in group.iter("text")]
        assert best <= {text.text for text in texts if "extra" not in text.attrib["class"]}


def test_marginal_effects_are_the_means_of_the_configurations_with_each_value() -> None:
    recalls = {("rrf", "10"): 0.3, ("rrf", "60"): 0.4, ("sum", "10"): 0.6, ("sum", "60"): 0.8}
    report = report_of(*(configuration(" ".join(of), {"recall@5": value}) for of, value in recalls.items()), k_values=[5])
    axes = {axis: {" ".join(of): of[place] for of in recalls} for place, axis in enumerate(("fusion", "k"))}
    root = ElementTree.fromstring(marginal_effects(report, axes))
    assert root.findtext("desc") == "rrf: 0.350; sum: 0.700; 10: 0.450; 60: 0.600"
    dots = [group.findtext("title") for group in root.iter("g")]
    assert sorted(dots) == sorted(2 * [f"{' '.join(of)}: {value:.3f}" for of, value in recalls.items()])
    positions = [float(re.findall(r"[\d.]+", mark.attrib["d"])[0]) for mark in root.iter("path") if mark.get("class") == "dot"]
    assert positions[0] < positions[1] < positions[2] < positions[3]
    assert marginal_effects(report, {}) == ""


def test_series_differ_in_more_than_colour() -> None:
    root = ElementTree.fromstring(over_cutoffs(many(20)))
    looks = set()
    for group in root.iter("g"):
        curve, marker = (next(p for p in group.iter("path") if p.get("class") == name) for name in ("curve", "marker"))
        looks.add((curve.attrib["stroke-dasharray"], marker.attrib["d"]))
    assert len(looks) == 20


def test_an_axis_that_does_not_start_at_zero_says_so() -> None:
    assert "axis does not start at 0" in over_cutoffs(report_of(configuration("a", measures_like(0.8))))
    low = configuration("a", {"recall@5": 0.0, "recall@10": 0.3})
    assert "axis does not start at 0" not in over_cutoffs(report_of(low, k_values=[5, 10]))


def test_a_small_difference_does_not_fill_the_chart() -> None:
    close = report_of(configuration("a", {"recall@5": 0.801}), configuration("b", {"recall@5": 0.8}), k_values=[5])
    heights = [float(y) for y in re.findall(r'class="marker"[^>]*translate\([\d.]+ ([\d.]+)\)', quality_latency(close))]
    assert max(heights) - min(heights) < 5


def test_higher_recall_stands_higher_and_slower_stands_further_right() -> None:
    marks = re.findall(r"translate\(([\d.]+) ([\d.]+)\)", quality_latency(usual_report()))
    (x1, y1), (x2, y2), (x3, y3) = [(float(x), float(y)) for x, y in marks]
    assert x1 < x2 < x3
    assert y3 < y1 < y2


def test_nothing_measured_gives_no_chart() -> None:
    assert charts_of(report_of(configuration("a", {"mrr@5": NAN}), k_values=[5])) == []


def test_a_measure_of_any_size_is_drawn() -> None:
    report = report_of(*(configuration(f"c{place}", {"cost@5": 2500.0 * place}) for place in range(4)), k_values=[5])
    ticks = [text.text for text in ElementTree.fromstring(quality_latency(report)).findall("text") if text.text]
    assert {"0", "2,000", "8,000"} <= set(ticks)


def test_names_are_escaped_in_every_chart() -> None:
    for chart in charts_of(report_of(configuration('<b>&"x', measures_like(0.3)))):
        assert "<b>" not in chart
        assert any('<b>&"x' in (part.text or "") for part in ElementTree.fromstring(chart).iter())


def test_colours_come_from_classes_so_that_light_and_dark_share_one_drawing() -> None:
    for chart in charts_of(usual_report()):
        assert not re.search(r"#[0-9a-f]{3,6}\b|rgb\(|style=", chart)


@pytest.mark.parametrize("stage_ms", [{}, {"a": 0.0}, {"a": NAN, "b": 1.0}, {"a": 3.0, "b": 1.0}])
def test_a_stage_bar_fills_its_width_at_most(stage_ms: dict[str, float]) -> None:
    bar = ElementTree.fromstring(stage_bar(stage_ms, ["a", "b"], 4.0))
    widths = [float(rect.attrib["width"]) for rect in bar.iter("rect")]
    assert len(widths) == 2
    assert sum(widths) <= 100.01


def test_a_latency_of_zero_is_told_though_a_log_scale_has_no_zero() -> None:
    result = configuration("a", measures_like(0.3))
    assert "in 0.00 ms" in quality_latency(report_of(replace(result, cost=cost_like(0.0))))
