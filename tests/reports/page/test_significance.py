"""What the corrected test bears out is marked wherever figures are shown, and nothing else is."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.small_benchmark import QUERIES, benchmarker
from benchmarks.test_benchmarker import read

from nlp_retrieval import BenchmarkRun, write_run_files
from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.evaluation.comparison import compare, verdict
from nlp_retrieval.reports.figures import by_figure, mark_of
from nlp_retrieval.reports.page.page import render_page
from nlp_retrieval.reports.tables import latex_table, markdown_table
from reports.report_data import compared_report, cost_like, printed, usual_report

from .test_page import Page


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[BenchmarkRun, Path]:
    """A run in which two queries each are of one family."""
    folder = tmp_path_factory.mktemp("significance")
    queries = [query.model_copy(update={"family": f"f{place // 2}"}) for place, query in enumerate(QUERIES)]
    run = benchmarker(folder / "index", queries=queries, resamples=None).run()
    write_run_files(run, folder / "run")
    return run, folder


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_a_run_compares_everything_with_the_baseline_over_all_queries_and_by_group(finished: tuple[BenchmarkRun, Path]) -> None:
    run = finished[0]
    assert list(run.report.comparisons) == ["", "hops=2", "hops=3", "hops=4"]
    every = sum(len(comparisons) for comparisons in run.report.comparisons.values())
    wanted = compare(run.per_query, "bm25", run.families, seed=0, drawn_for=every)
    assert run.report.comparisons[""] == wanted
    assert {(one.system, one.comparisons, one.families) for one in wanted} == {("dense", 2, 10), ("hybrid + overlap", 2, 10)}
    chosen = [place for place, query in enumerate(QUERIES) if query.metadata["hops"] == 3]
    alone = {name: {key: values[chosen] for key, values in one.items()} for name, one in run.per_query.items()}
    families = [run.families[place] for place in chosen]
    assert run.report.comparisons["hops=3"] == compare(alone, "bm25", families, seed=0, drawn_for=every)


def test_results_json_holds_every_comparison_with_its_verdict(finished: tuple[BenchmarkRun, Path]) -> None:
    run, folder = finished
    results = read(folder / "run" / "results.json")
    assert len(results["comparisons"]) == 4 * 2 * 21
    for found in results["comparisons"]:
        one = by_figure(run.report)[found["group"], found["measure"], found["system"]]
        assert (found["p_holm"], tuple(found["interval"]), found["wins"]) == (one.p_holm, one.interval, one.wins)
        assert found["verdict"] == verdict(one)


def test_the_page_has_every_verdict_of_the_main_measures_and_marks_figures_for_eye_and_ear() -> None:
    report = compared_report()
    source = render_page(report)
    value = report.configurations[1].measures["recall@5"]
    assert f'<b>{value:.3f}</b><i role="img" class="mark better" title="better, p &lt;0.001">▲</i>' in source
    page = Page(source)
    assert not page.open
    parts = re.findall(r"<tbody data-part.*?</tbody>", source, re.S)
    measures = {f"{name}@{k}" for name in ("recall", "perfect_recall") for k in report.k_values} | {"ndcg@10"}
    assert len(parts) == len(measures) + 2, "all queries in each, and each group in the main one"
    for part, one in zip(parts[:1], [by_figure(report)["", "recall@21", "hybrid"]], strict=True):
        row = next(row for row in part.split("<tr") if "<bdi>hybrid</bdi>" in row)
        assert "better</td>" in row
        assert f"<td>{one.difference:+.3f}</td><td>{one.interval[0]:+.3f} to {one.interval[1]:+.3f}</td>" in row
        assert f"{one.wins} / {one.ties} / {one.losses}" in row
    assert not any("style" in attributes for _, attributes in page.elements)


def markdown_cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)(?:\\\\)*\|", line.strip()[1:-1])
    return [re.sub(r"\\([\\`*_\[\]<>|~$&])", r"\1", cell.strip()) for cell in cells]


def test_the_markdown_table_reads_back() -> None:
    names = ("bm25", "a|b_c*d", "broken", r"back\slash")
    report = compared_report(names=names)
    lines = [line for line in markdown_table(report).splitlines() if line.startswith("|")]
    head, _, *rows = map(markdown_cells, lines)
    assert len(rows) == 12
    assert all(len(row) == len(head) for row in rows)
    assert [row[1] for row in rows[:4]] == ["bm25 (baseline)", *names[1:]]
    comparisons, place = by_figure(report), head.index("Recall@5")
    for row, result in zip(rows, report.configurations, strict=False):
        figure = row[place].replace("*", "")
        assert figure[:5] == f"{result.measures['recall@5']:.3f}"
        assert figure[5:] == {"▲": "†", "▼": "‡", "": ""}[mark_of(comparisons.get(("", "recall@5", result.name)))]


def test_the_latex_table_reads_back() -> None:
    names = ("bm25", "100% & {x}", "broken_one", "same")
    report = compared_report(names=names)
    fast = replace(report.configurations[3], cost=cost_like(0.001))
    source = latex_table(replace(report, configurations=[*report.configurations[:3], fast]))
    assert (r"\textless{}0.01" in source, "& <0.01" in source) == (True, False)
    body = source.partition(r"\toprule")[2].partition(r"\bottomrule")[0]
    lines = [line for line in body.splitlines() if line.endswith(r"\\")]
    columns = re.search(r"\\begin\{tabular\}\{(l+r+)\}", source)
    assert columns is not None
    rows = [re.split(r"(?<!\\) & ", line.removesuffix(r" \\")) for line in lines[1:]]
    assert {len(row) for row in rows} == {len(columns[1])}
    assert [row[1] for row in rows[1:5]] == ["bm25 (baseline)", r"100\% \& \{x\}", r"broken\_one", "same"]
    assert rows[2][3] == rf"\textbf{{{report.configurations[1].measures['perfect_recall@5']:.3f}}}\rlap{{$^{{\dagger}}$}}"
    assert rows[3][3].endswith(r"\rlap{$^{\ddagger}$}")
    assert rows[4][3] == f"{report.configurations[3].measures['perfect_recall@5']:.3f}"
    depth = 0
    for char in re.sub(r"\\[{}]", "", source):
        depth += (char == "{") - (char == "}")
        assert depth >= 0
    assert depth == 0


@pytest.mark.parametrize("shown", [printed, render_page, markdown_table, latex_table])
def test_reports_that_were_not_tested_say_so_everywhere(shown: Callable[[BenchmarkReport], str]) -> None:
    assert "differences are not tested for significance" in one_line(shown(usual_report())).lower()
