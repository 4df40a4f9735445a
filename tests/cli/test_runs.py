"""Finished runs at the command line: compared, shown again, and repeated."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from benchmarks.small_benchmark import collection, configuration

from .commands import COMMAND, refused, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("runs")
    done = run("benchmark", str(configuration(made, collection(made / "data"))), folder=made)
    assert done.returncode == 0, done.stderr
    return made


def test_runs_are_compared_and_written(folder: Path, tmp_path: Path) -> None:
    trec = folder / "run" / "trec"
    shutil.copy(trec / "bm25.trec", tmp_path / "theirs.trec")
    done = run(
        "compare", f"{folder / 'run'}:clauses", str(tmp_path / "theirs.trec"), "--k", "3", "--output", str(tmp_path / "out")
    )
    assert done.returncode == 0, done.stderr
    assert "clauses *" in done.stdout
    assert "theirs" in done.stdout
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    before = json.loads((folder / "run" / "results.json").read_text())["configurations"]
    assert results["k"] == [3]
    assert results["configurations"]["theirs"]["measures"]["recall@3"] == before["bm25"]["measures"]["recall@3"]
    assert (tmp_path / "out" / "report.html").exists()


def test_a_table_is_printed_for_other_programs(folder: Path, tmp_path: Path) -> None:
    again = ("compare", str(folder / "run"), "--output", str(tmp_path / "again"))
    before = json.loads((folder / "run" / "results.json").read_text())["configurations"]
    done = run(*again, "--format", "csv", "--columns", "recall@3,latency_ms")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    whole = {row["configuration"]: float(row["recall@3"]) for row in rows if row["queries"] == "all"}
    assert whole == {name: one["measures"]["recall@3"] for name, one in before.items()}
    assert list(rows[0]) == ["queries", "configuration", "baseline", "recall@3", "latency_ms"]
    told = json.loads(run(*again, "--format", "json").stdout)
    assert {one["configuration"]: one["ndcg@10"] for one in told if one["queries"] == "all"} == {
        name: one["measures"]["ndcg@10"] for name, one in before.items()
    }
    refused(run(*again, "--columns", "recal@3"), 2, "did you mean 'recall@3'")


def test_a_table_in_a_pipe_has_all_columns_and_whole_names(folder: Path, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    words = [COMMAND, "compare", str(folder / "run"), "--output", str(tmp_path / "again")]
    piped = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    assert "columns left out" not in piped
    assert "columns left out" in subprocess.run(
        words, env=environment | {"COLUMNS": "40"}, capture_output=True, text=True, check=True
    ).stdout.replace("\n", " ")
    asked = run(*words[1:], "--columns", "latency_p95_ms,index_seconds", COLUMNS="40").stdout
    assert next(line for line in asked.splitlines() if "p95" in line).split() == ["p95", "index"]


def test_runs_of_another_corpus_are_compared_and_explained_only_where_that_is_asked_for(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "data", tmp_path / "data")
    with (tmp_path / "data" / "corpus.jsonl").open("a") as corpus:
        corpus.write(json.dumps({"_id": "d80", "title": "", "text": "one more fox"}) + "\n")
    settings = yaml.safe_load((folder / "sweep.yaml").read_text())
    settings["corpus"]["path"] = str(tmp_path / "data")
    settings |= {"index": str(tmp_path / "index"), "output": str(tmp_path / "other")}
    settings["searchers"] = {"larger": settings["searchers"]["bm25"]}
    del settings["baseline"]
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    assert run("benchmark", str(tmp_path / "sweep.yaml")).returncode == 0
    runs = [f"{folder / 'run'}:bm25", f"{tmp_path / 'other'}:larger"]
    for command in ("compare", "diff"):
        refused(run(command, *runs), 2, "'bm25' was run on a corpus of 80 items", "'larger' on one of 81", "--across-corpora")
        done = run(command, *runs, "--across-corpora")
        assert done.returncode == 0, done.stderr
        assert "These configurations were run on different corpora" in " ".join((done.stdout + done.stderr).split())


def test_a_run_is_repeated_by_the_configuration_in_its_folder(folder: Path, tmp_path: Path) -> None:
    done = run("benchmark", str(folder / "run" / "config.yaml"), "--output", str(tmp_path / "again"), folder=folder)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again" / "results.json").read_bytes() == (folder / "run" / "results.json").read_bytes()


def test_a_sweep_finishes_without_the_configuration_that_fails_and_ends_with_1(folder: Path, tmp_path: Path) -> None:
    settings = yaml.safe_load((folder / "sweep.yaml").read_text())
    settings["searchers"]["no model"] = {"retrievers": [{"name": "faiss", "encoder": str(tmp_path / "no-such-model")}]}
    settings["searchers"]["no run"] = {"name": "trec_run", "path": str(tmp_path / "none.trec")}
    settings["output"] = str(tmp_path / "out")
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    done = run("benchmark", str(tmp_path / "sweep.yaml"), folder=folder)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "2 of 4 configurations failed: no model: " in done.stderr
    assert "no model failed: " in " ".join(done.stdout.split())
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    before = json.loads((folder / "run" / "results.json").read_text())
    assert results["configurations"] == before["configurations"]
    assert list(results["failed"]) == ["no model", "no run"]
    assert "no-such-model" in results["failed"]["no model"]
    assert "none.trec" in (tmp_path / "out" / "report.html").read_text()


def test_no_command_writes_over_the_run_that_it_reads(folder: Path) -> None:
    before = (folder / "run" / "hits.parquet").read_bytes()
    refused(run("compare", str(folder / "run"), "--output", str(folder / "run")), 2, "choose another folder")
    assert (folder / "run" / "hits.parquet").read_bytes() == before
