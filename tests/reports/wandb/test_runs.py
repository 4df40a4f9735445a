"""Offline runs hold the benchmark value by value, as W&B's own reader reads them back, and nothing that is secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmarks.small_benchmark import GOLD, QUERIES, TEXTS, TITLES
from benchmarks.test_benchmarker import SECRET
from hashed_words import HashedWords, InMemory

from nlp_retrieval import Benchmarker, Bm25Retriever, FaissRetriever, Searcher, WandbSettings, log_to_wandb, write_run_files
from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.errors import OutputError
from nlp_retrieval.reports.figures import fronts
from nlp_retrieval.reports.findings import headline
from reports.report_data import configuration, measures_like, report_of

from .first_screen import first_screen, history, overview, records

LOGIN = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> BenchmarkReport:
    folder = tmp_path_factory.mktemp("wandb-benchmark")
    searchers = {
        "bm25": Searcher([Bm25Retriever()]),
        "hybrid": Searcher([Bm25Retriever(k1=1.2), FaissRetriever(HashedWords(api_key=SECRET))]),
    }
    run = Benchmarker(
        searchers, InMemory(TEXTS, TITLES), QUERIES, GOLD, [3, 5, 10], index_path=folder / "index", latency_queries=2
    ).run()
    return write_run_files(run, folder / "run")


@pytest.fixture(scope="module")
def logged(report: BenchmarkReport, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The folders of the runs, logged offline by a process that knows a login which is nobody's."""
    folder = tmp_path_factory.mktemp("runs")
    before = os.environ.get("WANDB_API_KEY")
    os.environ["WANDB_API_KEY"] = LOGIN
    try:
        return log_to_wandb(report, WandbSettings(project="tests", mode="offline", group="one group"), folder)
    finally:
        if before is None:
            del os.environ["WANDB_API_KEY"]
        else:
            os.environ["WANDB_API_KEY"] = before


def test_there_is_one_offline_run_per_configuration_and_one_that_sums_up(logged: list[Path]) -> None:
    assert len(logged) == 3
    assert all(run.is_dir() and run.name.startswith("offline-run-") and list(run.glob("*.wandb")) for run in logged)
    parent = logged[0].parent
    assert sorted(path for path in parent.iterdir() if path.name.startswith("offline-run-")) == sorted(logged)


def table(run: Path, key: str) -> dict[str, dict[str, Any]]:
    """The rows of a table by the value of their first column."""
    (path,) = run.rglob(f"{key}_*.table.json")
    content = json.loads(path.read_text())
    return {row[0]: dict(zip(content["columns"], row, strict=True)) for row in content["data"]}


def test_the_first_screen_has_the_main_measure_costs_and_the_comparison_and_no_panel_of_k(logged: list[Path]) -> None:
    for run in logged[:2]:
        assert first_screen(run).panels == {
            "Charts": ["ndcg@10"],
            "cost": ["cost/index_bytes", "cost/latency_ms"],
            "Tables": ["figures"],
        }
    assert first_screen(logged[-1]).panels == {
        "Media": ["main measure", "report"],
        "Tables": ["comparison"],
        "Custom Chart Tables": ["Custom Chart Tables/ndcg over k_table", "Custom Chart Tables/quality against latency_table"],
        "Custom Charts": ["ndcg over k", "quality against latency"],
    }


def test_what_is_drawn_over_configurations_is_one_row_of_history(report: BenchmarkReport, logged: list[Path]) -> None:
    for run, result in zip(logged, report.configurations, strict=False):
        assert result.cost is not None
        (row,) = history(run)
        wanted = {"ndcg@10": result.measures["ndcg@10"], "cost/latency_ms": result.cost.latency_ms}
        wanted["cost/index_bytes"] = result.cost.index_bytes
        assert {name: row[name] for name in wanted} == pytest.approx(wanted, abs=1e-12)
        assert not [line for line in records(run) if line["type"] == "metric"]


def test_no_run_has_more_than_forty_keys_in_its_summary(logged: list[Path], tmp_path: Path) -> None:
    assert max(len(overview(run)["summary"]) for run in logged) <= 40
    wide = [f"ndcg@{k}" for k in range(1, 60)]
    chosen = report_of(configuration("one", dict.fromkeys(wide, 0.5), {"hops=2": dict.fromkeys(wide, 0.4)}))
    chosen = replace(chosen, manifest=chosen.manifest | {"measures": wide, "main": "ndcg@7"})
    summary = overview(log_to_wandb(chosen, WandbSettings(mode="offline"), tmp_path)[0])["summary"]
    assert len(summary) <= 40
    assert {"ndcg@7", "fingerprint", "cost/latency_ms", "cost/index_bytes"} <= set(summary)


def test_all_figures_of_a_run_are_in_its_table(report: BenchmarkReport, logged: list[Path]) -> None:
    compared = {one.measure: one for one in report.comparisons[""]}
    for run, result in zip(logged, report.configurations, strict=False):
        rows = table(run, "figures")
        for group, measures in {"": result.measures, **result.groups}.items():
            for measure, value in measures.items():
                row = rows[f"{group}/{measure}" if group else measure]
                found = (row["value"], row["low"], row["high"])
                assert found == pytest.approx((value, *result.intervals[group][measure]), abs=1e-12)
        assert result.cost is not None
        assert rows["cost/stage_ms/bm25"]["value"] == pytest.approx(result.cost.stage_ms["bm25"])
        tested = {name: (row["difference"], row["p_holm"]) for name, row in rows.items() if row["p_holm"] is not None}
        others = {} if result.name == "bm25" else compared
        assert tested == {name: pytest.approx((one.difference, one.p_holm), abs=1e-12) for name, one in others.items()}


def test_the_data_set_is_an_input_of_every_run_without_its_text_or_secrets(report: BenchmarkReport, logged: list[Path]) -> None:
    contents = set()
    for run in logged:
        (used,) = [
            line["artifact"] for line in records(run) if line["type"] == "artifact" and line["artifact"].get("use_after_commit")
        ]
        assert used["type"] == "dataset"
        assert first_screen(run).inputs == [used["name"]]
        (entry,) = used["manifest"]["contents"]
        contents.add(Path(entry["local_path"]).read_text())
    (content,) = contents
    dataset, manifest = json.loads(content), report.manifest
    assert (dataset["corpus"]["fingerprint"], dataset["corpus"]["items"]) == (manifest["corpus"]["fingerprint"], 80)
    assert (dataset["queries"]["count"], dataset["queries"]["fingerprint"]) == (20, manifest["query_fingerprint"])
    assert dataset["gold"]["fingerprint"] == manifest["query_parts"]["gold"]
    assert dataset["corpus"]["loader"]["texts"] == "80 values"
    assert not [secret for secret in (SECRET, LOGIN, TEXTS[0]) if secret in content]


def test_measures_that_are_chosen_are_logged_without_any_recall_and_one_parameter_is_one_key(tmp_path: Path) -> None:
    searchers = {"usual": Searcher([Bm25Retriever()]), "steep": Searcher([Bm25Retriever(k1=1.2)])}
    run = Benchmarker(
        searchers,
        InMemory(TEXTS, TITLES),
        QUERIES,
        GOLD,
        measures=["ndcg@10"],
        index_path=tmp_path / "index",
        latency_queries=2,
    ).run()
    folders = log_to_wandb(write_run_files(run, tmp_path / "run"), WandbSettings(mode="offline"), tmp_path / "runs")
    for folder, result in zip(folders, run.report.configurations, strict=False):
        assert first_screen(folder).panels["Charts"] == ["ndcg@10"]
        assert overview(folder)["summary"]["ndcg@10"] == result.measures["ndcg@10"]
    assert first_screen(folders[-1]).panels["Custom Charts"] == ["quality against latency"]
    assert "recall" not in json.dumps([records(folder) for folder in folders])
    usual, steep = (overview(folder)["config"] for folder in folders[:2])
    assert {key for key in usual.keys() | steep.keys() if usual.get(key) != steep.get(key)} == {"bm25/k1"}


def test_the_config_of_a_run_holds_each_setting_once_and_flat(report: BenchmarkReport, logged: list[Path]) -> None:
    shared = {
        "queries": 20,
        "counted": "Counted: 20 queries.",
        "query_set": report.manifest["query_fingerprint"],
        "k": [3, 5, 10],
        "list_depth": 100,
        "latency_k": 10,
        "baseline": "bm25",
        "corpus": report.manifest["corpus"]["fingerprint"],
        "items": 80,
        "processor": "none",
        "reranker": "none",
        "scope": "pooled",
    }
    lexical = {f"bm25/{key}": value for key, value in Bm25Retriever().config.items() if key != "name" and value is not None}
    bm25, hybrid, summary = (overview(run)["config"] for run in logged)
    assert bm25 == shared | {"retrievers": "bm25", "fusion": "none"} | lexical
    told = {key: value for key, value in hybrid.items() if not key.startswith("faiss/")}
    encoder = {"retrievers": "bm25+faiss", "encoder": "hashed-words", "fusion": "rrf", "fusion/k": 60}
    assert told == shared | lexical | encoder | {"bm25/k1": 1.2}
    assert (hybrid["faiss/encoder/dimension"], hybrid["faiss/encoder/api_key"]) == (16, "***")
    assert "faiss/encoder" not in hybrid
    named = ("queries", "counted", "query_set", "k", "list_depth", "latency_k", "baseline")
    assert summary == {key: shared[key] for key in named}


def test_tags_are_short_names_of_parts(logged: list[Path]) -> None:
    told = [next(line["run"] for line in records(run) if line["type"] == "run").get("tags", []) for run in logged]
    assert told == [["bm25", "baseline"], ["bm25", "faiss", "hashed-words", "rrf"], []]


def test_the_summary_of_a_run_holds_main_measures_costs_and_the_interval_and_test_of_the_main_measure(
    report: BenchmarkReport, logged: list[Path]
) -> None:
    compared = {one.measure: one for one in report.comparisons[""]}
    for run, result in zip(logged, report.configurations, strict=False):
        summary = overview(run)["summary"]
        names = [f"{family}@{k}" for family in ("recall", "perfect_recall") for k in (3, 5, 10)]
        wanted: dict[str, Any] = {name: result.measures[name] for name in ("ndcg@10", *names)} | {"empty_queries": 0}
        wanted |= dict(zip(("ndcg@10/low", "ndcg@10/high"), result.intervals[""]["ndcg@10"], strict=True))
        assert wanted["ndcg@10/low"] < wanted["ndcg@10"] < wanted["ndcg@10/high"]
        assert result.cost is not None
        wanted |= {"cost/latency_ms": result.cost.latency_ms}
        if result.name != report.baseline:
            test = compared["ndcg@10"]
            wanted |= {"significance/ndcg@10/p_holm": test.p_holm, "significance/ndcg@10/difference": test.difference}
        assert {name: summary[name] for name in wanted} == pytest.approx(wanted)
        assert len([name for name in summary if name.startswith("significance/")]) == (0 if result.name == "bm25" else 2)
        assert summary["fingerprint"] == result.fingerprint
        assert overview(run)["state"] == "finished"
    assert overview(logged[-1])["summary"]["headline"] == headline(report)


def test_the_comparison_has_the_p_value_of_the_main_measure(report: BenchmarkReport, logged: list[Path]) -> None:
    rows, tests = table(logged[-1], "comparison"), {one.measure: one for one in report.comparisons[""]}
    assert {name: row["ndcg@10 p_holm"] for name, row in rows.items()} == {
        "bm25": None,
        "hybrid": pytest.approx(tests["ndcg@10"].p_holm),
    }


def test_the_pareto_front_is_in_the_summaries_and_in_the_table(report: BenchmarkReport, logged: list[Path]) -> None:
    on_front = [result.name in fronts(report)["latency_ms"].names for result in report.configurations]
    assert any(on_front)
    assert [overview(run)["summary"]["pareto"] for run in logged[:2]] == on_front
    assert not any("price" in key for key in overview(logged[0])["summary"])
    rows = table(logged[-1], "comparison")
    assert [rows[result.name]["pareto"] for result in report.configurations] == on_front


def test_a_run_without_cost_is_logged_with_its_quality(tmp_path: Path) -> None:
    external = replace(configuration("external", measures_like(0.4)), cost=None)
    folders = log_to_wandb(report_of(external), WandbSettings(mode="offline"), tmp_path)
    summary = overview(folders[0])["summary"]
    assert summary["recall@21"] == external.measures["recall@21"]
    assert not [key for key in summary if key.startswith(("cost/", "pareto"))]
    assert list(table(folders[-1], "comparison")) == ["external"]
    assert first_screen(folders[0]).inputs == []


def test_all_runs_are_of_one_group_under_their_names(logged: list[Path]) -> None:
    for run, name, job in zip(
        logged, ("bm25", "hybrid", "summary"), ("configuration", "configuration", "summary"), strict=True
    ):
        about = next(line["run"] for line in records(run) if line["type"] == "run")
        assert (about["run_group"], about["display_name"], about["job_type"], about["project"]) == (
            "one group",
            name,
            job,
            "tests",
        )


def test_the_last_run_holds_the_table_with_the_best_first_and_the_page(report: BenchmarkReport, logged: list[Path]) -> None:
    (path,) = logged[-1].rglob("comparison_*.table.json")
    made_of = ["configuration", "retrievers", "encoder", "processor", "fusion", "reranker"]
    main = ["ndcg@10", "ndcg@10/low", "ndcg@10/high", "ndcg@10 p_holm"]
    assert json.loads(path.read_text())["columns"][:10] == [*made_of, *main]
    rows = table(logged[-1], "comparison")
    best = sorted(report.configurations, key=lambda result: -result.measures["ndcg@10"])
    assert list(rows) == [result.name for result in best]
    assert [list(rows[name].values())[1:6] for name in ("bm25", "hybrid")] == [
        ["bm25", None, "none", "none", "none"],
        ["bm25+faiss", "hashed-words", "none", "rrf", "none"],
    ]
    for result in report.configurations:
        row = rows[result.name]
        assert {name: row[name] for name in result.measures} == pytest.approx(result.measures)
        assert (row["ndcg@10/low"], row["ndcg@10/high"]) == pytest.approx(result.intervals[""]["ndcg@10"])
    pages = list(logged[-1].rglob("report_*.html"))
    assert [page.read_text() for page in pages] == [Path(report.files["report"]).read_text()]


def test_the_main_measure_of_all_configurations_is_drawn_with_its_intervals(
    report: BenchmarkReport, logged: list[Path]
) -> None:
    (page,) = logged[-1].rglob("main measure_*.html")
    text = page.read_text()
    assert f"<h1>{headline(report)}</h1>" in text
    for result in report.configurations:
        low, high = result.intervals[""]["ndcg@10"]
        assert f"<th>{result.name}<td" in text
        assert f"{result.measures['ndcg@10']:.3f} [{low:.3f}, {high:.3f}]" in text
    (test,) = [one for one in report.comparisons[""] if one.measure == "ndcg@10"]
    assert f"p = {test.p_holm:.3f}" in text


def test_no_secret_is_in_any_file_of_any_run(logged: list[Path]) -> None:
    files = [path for path in logged[0].parent.rglob("*") if path.is_file()]
    assert len(files) > 3
    for secret in (SECRET, LOGIN):
        assert [path.name for path in files if secret.encode() in path.read_bytes()] == []


def test_without_a_login_runs_are_offline_and_no_network_is_tried(report: BenchmarkReport, tmp_path: Path) -> None:
    program = f"""
import socket, sys
def refuse(*args, **kwargs):
    raise SystemExit("a network was tried: %r" % (args,))
inside = socket.socket.connect
def connect(self, address):
    if self.family not in (socket.AF_UNIX,) and address[0] not in ("127.0.0.1", "::1", "localhost"):
        refuse(address)
    return inside(self, address)
socket.socket.connect = connect
known = socket.getaddrinfo
socket.getaddrinfo = lambda host, *a, **k: known(host, *a, **k) if host in ("127.0.0.1", "::1", "localhost") else refuse(host)
from nlp_retrieval import *
from nlp_retrieval.benchmarks import Cost
report = BenchmarkReport(
    [ConfigurationResult("one", {{"retrievers": [{{"name": "bm25"}}]}}, "f", {{"recall@5": 0.5}}, {{}},
     Cost(1.0, 2, 3, {{}}, 4.0, 5.0, 6.0, 7), 0)], "one", [5], {{"": 2}}, 3, {{}})
for path in log_to_wandb(report, WandbSettings(), {str(tmp_path)!r}):
    print(path)
"""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("WANDB_")}
    home = tmp_path / "home"
    home.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=clean | {"HOME": str(home), "NETRC": str(home / "none")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    runs = [Path(line) for line in done.stdout.splitlines()]
    assert len(runs) == 2
    assert all(run.name.startswith("offline-run-") for run in runs)


def test_the_environment_is_left_as_it_was(report: BenchmarkReport, logged: list[Path]) -> None:
    assert "WANDB_SILENT" not in os.environ
    assert "WANDB_API_KEY" not in os.environ or os.environ["WANDB_API_KEY"] != LOGIN


def test_a_folder_that_cannot_be_written_is_an_output_error(report: BenchmarkReport, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="file"):
        log_to_wandb(report, WandbSettings(mode="offline"), tmp_path / "file" / "runs")
