"""Offline runs hold the benchmark value by value, as W&B's own reader reads them back, and nothing that is secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
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
from reports.report_data import configuration, measures_like, report_of

LOGIN = "0123456789abcdef0123456789abcdef01234567"
LEET = [str(Path(sys.executable).with_name("wandb")), "leet", "inspect", "--json"]


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


@cache
def records(run: Path) -> list[dict[str, Any]]:
    """What a run recorded, in order, as W&B's own reader reads it."""
    found = subprocess.run([*LEET, str(run)], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in found.stdout.splitlines()]


@cache
def overview(run: Path) -> dict[str, Any]:
    """State, config and summary of a run, as W&B's own reader reads them."""
    found = subprocess.run([*LEET, "--summary", str(run)], check=True, capture_output=True, text=True)
    loaded: dict[str, Any] = json.loads(found.stdout)
    return loaded


def test_there_is_one_offline_run_per_configuration_and_one_that_sums_up(logged: list[Path]) -> None:
    assert len(logged) == 3
    assert all(run.is_dir() and run.name.startswith("offline-run-") and list(run.glob("*.wandb")) for run in logged)
    parent = logged[0].parent
    assert sorted(path for path in parent.iterdir() if path.name.startswith("offline-run-")) == sorted(logged)


def test_history_holds_every_measure_over_k_value_by_value(report: BenchmarkReport, logged: list[Path]) -> None:
    for run, result in zip(logged, report.configurations, strict=False):
        history = [line["history"]["item"] for line in records(run) if line["type"] == "history"]
        assert [line["k"] for line in history] == [3, 5, 10]
        for line in history:
            for family in ("precision", "recall", "f1", "perfect_recall", "ndcg", "map", "mrr"):
                name = f"{family}@{line['k']}"
                assert line[family] == pytest.approx(result.measures[name], abs=1e-12)
                for group in ("hops=2", "hops=3", "hops=4"):
                    assert line[f"{group}/{family}"] == pytest.approx(result.groups[group][name], abs=1e-12)


def test_headline_measures_are_defined_and_in_the_last_row_of_the_history(report: BenchmarkReport, logged: list[Path]) -> None:
    headline = {"recall@3", "recall@5", "recall@10", "perfect_recall@3", "perfect_recall@5", "perfect_recall@10", "ndcg@10"}
    for run, result in zip(logged, report.configurations, strict=False):
        *before, last = [line["history"]["item"] for line in records(run) if line["type"] == "history"]
        assert {name: last[name] for name in headline} == pytest.approx({name: result.measures[name] for name in headline})
        assert not [name for line in before for name in line if "@" in name]
        defined = [line["metric"] for line in records(run) if line["type"] == "metric"]
        assert {one["name"] for one in defined if one.get("step_metric") == "k"} >= headline | {"recall", "hops=3/ndcg"}
        assert "recall" not in overview(run)["summary"]


def test_the_config_of_a_run_holds_each_setting_once_and_flat(report: BenchmarkReport, logged: list[Path]) -> None:
    shared = {
        "queries": 20,
        "counted": "Counted: 20 queries.",
        "query_set": report.manifest["query_fingerprint"],
        "k": [3, 5, 10],
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
    assert summary == {key: shared[key] for key in ("queries", "counted", "query_set", "k", "baseline")}


def test_two_runs_that_differ_in_one_parameter_differ_in_one_key_of_their_config(tmp_path: Path) -> None:
    searchers = {"usual": Searcher([Bm25Retriever()]), "steep": Searcher([Bm25Retriever(k1=1.2)])}
    corpus = InMemory(TEXTS, TITLES)
    run = Benchmarker(searchers, corpus, QUERIES, GOLD, [3], index_path=tmp_path / "index", latency_queries=2).run()
    written = write_run_files(run, tmp_path / "run")
    folders = log_to_wandb(written, WandbSettings(project="tests", mode="offline"), tmp_path / "runs")
    usual, steep = (overview(folder)["config"] for folder in folders[:2])
    assert {key for key in usual.keys() | steep.keys() if usual.get(key) != steep.get(key)} == {"bm25/k1"}


def test_tags_are_short_names_of_parts(logged: list[Path]) -> None:
    told = [next(line["run"] for line in records(run) if line["type"] == "run").get("tags", []) for run in logged]
    assert told == [["bm25", "baseline"], ["bm25", "faiss", "hashed-words", "rrf"], []]


def test_the_summary_of_a_run_holds_every_measure_group_and_cost(report: BenchmarkReport, logged: list[Path]) -> None:
    for run, result in zip(logged, report.configurations, strict=False):
        summary = overview(run)["summary"]
        wanted = result.measures | {"hops=3/recall@10": result.groups["hops=3"]["recall@10"], "empty_queries": 0}
        wanted |= dict(zip(("recall@10/low", "recall@10/high"), result.intervals[""]["recall@10"], strict=True))
        assert wanted["recall@10/low"] < wanted["recall@10"] < wanted["recall@10/high"]
        assert result.cost is not None
        wanted |= {"cost/latency_ms": result.cost.latency_ms, "cost/stage_ms/bm25": result.cost.stage_ms["bm25"]}
        assert {name: summary[name] for name in wanted} == pytest.approx(wanted)
        assert summary["fingerprint"] == result.fingerprint
        assert overview(run)["state"] == "finished"


def test_what_the_tests_found_is_in_the_summaries_and_in_the_table(report: BenchmarkReport, logged: list[Path]) -> None:
    baseline, hybrid = (overview(run)["summary"] for run in logged[:2])
    assert not [key for key in baseline if key.startswith("significance/")]
    compared = {one.measure: one for one in report.comparisons[""]}
    assert len(compared) == 21
    for measure, one in compared.items():
        assert hybrid[f"significance/{measure}/p_holm"] == pytest.approx(one.p_holm, abs=1e-12)
        assert hybrid[f"significance/{measure}/difference"] == pytest.approx(one.difference, abs=1e-12)
    (path,) = logged[-1].rglob("comparison*.table.json")
    table = json.loads(path.read_text())
    place = table["columns"].index("recall@10 p_holm")
    assert [row[place] for row in table["data"]] == [None, pytest.approx(compared["recall@10"].p_holm)]


def test_the_pareto_front_is_in_the_summaries_and_in_the_table(report: BenchmarkReport, logged: list[Path]) -> None:
    on_front = [result.name in fronts(report)["latency_ms"].names for result in report.configurations]
    assert any(on_front)
    assert [overview(run)["summary"]["pareto"] for run in logged[:2]] == on_front
    assert not any("price" in key for key in overview(logged[0])["summary"])
    (path,) = logged[-1].rglob("comparison*.table.json")
    table = json.loads(path.read_text())
    assert [row[table["columns"].index("pareto")] for row in table["data"]] == on_front


def test_a_run_without_cost_is_logged_with_its_quality(tmp_path: Path) -> None:
    external = replace(configuration("external", measures_like(0.4)), cost=None)
    folders = log_to_wandb(report_of(external), WandbSettings(mode="offline"), tmp_path)
    summary = overview(folders[0])["summary"]
    assert summary["recall@5"] == external.measures["recall@5"]
    assert not [key for key in summary if key.startswith(("cost/", "pareto"))]
    (path,) = folders[-1].rglob("comparison*.table.json")
    assert [row[0] for row in json.loads(path.read_text())["data"]] == ["external"]


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


def test_the_last_run_holds_the_table_the_plots_and_the_page(report: BenchmarkReport, logged: list[Path]) -> None:
    tables = [json.loads(path.read_text()) for path in logged[-1].rglob("comparison*.table.json")]
    assert len(tables) == 1
    made_of = ["configuration", "retrievers", "encoder", "processor", "fusion", "reranker"]
    assert tables[0]["columns"][:7] == [*made_of, "precision@3"]
    assert [row[:6] for row in tables[0]["data"]] == [
        ["bm25", "bm25", None, "none", "none", "none"],
        ["hybrid", "bm25+faiss", "hashed-words", "none", "rrf", "none"],
    ]
    bounds = [tables[0]["columns"].index(f"recall@10/{bound}") for bound in ("low", "high")]
    assert [tuple(row[at] for at in bounds) for row in tables[0]["data"]] == [
        pytest.approx(one.intervals[""]["recall@10"]) for one in report.configurations
    ]
    place = tables[0]["columns"].index("recall@10")
    assert [row[place] for row in tables[0]["data"]] == [c.measures["recall@10"] for c in report.configurations]
    pages = list(logged[-1].rglob("report*.html"))
    assert [page.read_text() for page in pages] == [Path(report.files["report"]).read_text()]
    for name in ("recall over k", "quality against latency"):
        assert name in json.dumps(records(logged[-1]))


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
