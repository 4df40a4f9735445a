"""Offline runs hold the benchmark value by value, as W&B's own reader reads them back, and nothing that is secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from benchmarks.small_benchmark import QUERIES
from benchmarks.test_benchmarker import SECRET

from nlp_retrieval import BenchmarkReport
from nlp_retrieval.reports.figures import fronts
from nlp_retrieval.reports.findings import headline

from .conftest import LOGIN, sorted_names
from .wandb_runs import history, overview, records, table

REFUSES_NETWORK = """
import json, socket, sys
def refuse(*args, **kwargs):
    raise SystemExit("a network was tried: %r" % (args,))
inside, known = socket.socket.connect, socket.getaddrinfo
HERE = ("127.0.0.1", "::1", "localhost")
def connect(self, address):
    if self.family != socket.AF_UNIX and address[0] not in HERE:
        refuse(address)
    return inside(self, address)
socket.socket.connect = connect
socket.getaddrinfo = lambda host, *a, **k: known(host, *a, **k) if host in HERE else refuse(host)
"""


def test_there_is_an_offline_run_for_each_configuration_and_one_that_sums_up(logged: dict[str, Path]) -> None:
    assert all(run.name.startswith("offline-run-") and list(run.glob("*.wandb")) for run in logged.values())
    for name, run in logged.items():
        about = next(line["run"] for line in records(run) if line["type"] == "run")
        assert (about["display_name"], about["run_group"], about["project"]) == (name, "one group", "tests")
        assert about["job_type"] == ("summary" if name == "summary" else "configuration")


def test_measures_are_curves_over_k(report: BenchmarkReport, logged: dict[str, Path]) -> None:
    for result in report.configurations:
        rows = {row["k"]: row for row in history(logged[result.name]) if "k" in row}
        assert sorted(rows) == [3, 5, 10]
        for k, row in rows.items():
            assert row["recall"] == pytest.approx(result.measures[f"recall@{k}"])
            assert row["hops=3/ndcg"] == pytest.approx(result.groups["hops=3"][f"ndcg@{k}"])


def test_the_summary_of_a_run_has_every_figure(report: BenchmarkReport, logged: dict[str, Path]) -> None:
    tests = {one.system: one for one in report.comparisons[""] if one.measure == "ndcg@10"}
    for result in report.configurations:
        summary, cost = overview(logged[result.name])["summary"], result.cost
        assert cost is not None
        wanted: dict[str, float] = dict(result.measures) | {"hops=3/recall@10": result.groups["hops=3"]["recall@10"]}
        wanted |= dict(zip(("ndcg@10/low", "ndcg@10/high"), result.intervals[""]["ndcg@10"], strict=True))
        wanted |= {"cost/latency_ms": cost.latency_ms, "cost/stage_ms/bm25": cost.stage_ms["bm25"], "empty_queries": 0}
        wanted |= {"pareto": result.name in fronts(report)["latency_ms"].names}
        if test := tests.get(result.name):
            wanted |= {"ndcg@10/difference": test.difference, "ndcg@10/p_holm": test.p_holm}
        assert {name: summary[name] for name in wanted} == pytest.approx(wanted)
        assert summary["fingerprint"] == result.fingerprint
    assert overview(logged["summary"])["summary"]["headline"] == headline(report)


def test_every_query_is_in_a_table_with_its_text_and_measures(report: BenchmarkReport, logged: dict[str, Path]) -> None:
    values = pq.read_table(report.files["per_query"]).to_pylist()
    for result in report.configurations:
        rows = table(logged[result.name], "queries")
        assert {query_id: row["query"] for query_id, row in rows.items()} == {one.query_id: one.text for one in QUERIES}
        own = {row["query_id"]: row["recall@5"] for row in values if row["configuration"] == result.name}
        assert {query_id: row["recall@5"] for query_id, row in rows.items()} == pytest.approx(own)


def test_the_summary_compares_configurations_and_holds_the_page_and_the_files(
    report: BenchmarkReport, logged: dict[str, Path]
) -> None:
    rows = table(logged["summary"], "comparison")
    assert list(rows) == sorted_names(report)
    keys = ("retrievers", "fusion", "reranker", "reranker/2", "reranker/2/blend", "bm25/k1")
    assert [rows["hybrid"][key] for key in keys] == ["bm25+faiss", "rrf", "overlap+overlap", "overlap", "replace", 1.2]
    assert [rows["bm25"][key] for key in keys] == ["bm25", "none", "none", None, None, 0.9]
    for result in report.configurations:
        assert rows[result.name]["recall@5"] == pytest.approx(result.measures["recall@5"])
    (page,) = logged["summary"].rglob("report_*.html")
    assert page.read_text() == Path(report.files["report"]).read_text()
    artifacts = [line["artifact"] for line in records(logged["summary"]) if line["type"] == "artifact"]
    (kept,) = (artifact for artifact in artifacts if artifact["type"] != "run_table")
    assert {entry["path"] for entry in kept["manifest"]["contents"]} == {
        "report.html", "results.json", "manifest.json", "table.md", "table.tex", "per_query.parquet",
    }  # fmt: skip


def test_no_secret_is_in_any_file_of_any_run(logged: dict[str, Path]) -> None:
    assert overview(logged["hybrid"])["config"]["faiss/encoder/api_key"] == "***"
    files = [path for path in logged["bm25"].parent.rglob("*") if path.is_file()]
    assert len(files) > 3
    for secret in (SECRET, LOGIN):
        assert [path.name for path in files if secret.encode() in path.read_bytes()] == []
    assert "WANDB_SILENT" not in os.environ


def said(home: Path, program: str, *cases: tuple[str | None, dict[str, str]]) -> list[str]:
    """What a program prints that knows no login."""
    left = {key: value for key, value in os.environ.items() if not key.startswith("WANDB_") and "proxy" not in key.lower()}
    clean = left | {"HOME": str(home), "NETRC": str(home / "none")}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=clean, cwd=home, input=json.dumps(cases), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def test_without_a_login_runs_are_offline_and_no_network_is_tried(tmp_path: Path) -> None:
    program = f"""{REFUSES_NETWORK}
from nlp_retrieval import *
from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult
result = ConfigurationResult("one", {{"retrievers": [{{"name": "bm25"}}]}}, "f", {{"recall@5": 0.5}}, {{}}, None, 0)
report = BenchmarkReport([result], "one", [5], {{"": 2}}, 3, {{}})
for path in log_to_wandb(report, WandbSettings(), "."):
    print(path.name)
"""
    runs = said(tmp_path, program)
    assert len(runs) == 2
    assert all(run.startswith("offline-run-") for run in runs)
