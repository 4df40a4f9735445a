"""Finished runs at the command line: compared, shown again, and repeated."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from benchmarks.small_benchmark import collection, configuration

from .commands import refused, run


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
        "compare",
        f"{folder / 'run'}:clauses",
        str(tmp_path / "theirs.trec"),
        "--measures",
        "recall@3",
        "--output",
        str(tmp_path / "out"),
    )
    assert done.returncode == 0, done.stderr
    assert "clauses *" in done.stdout
    assert "theirs" in done.stdout
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    before = json.loads((folder / "run" / "results.json").read_text())["configurations"]
    assert results["k"] == [3]
    assert results["configurations"]["theirs"]["measures"]["recall@3"] == before["bm25"]["measures"]["recall@3"]
    assert (tmp_path / "out" / "report.html").exists()


def test_costs_of_different_machines_are_left_out(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "run", tmp_path / "other")
    content = json.loads((tmp_path / "other" / "report.json").read_text())
    del content["checksum"]
    content["report"]["manifest"]["hardware"]["cpu"] = "another"
    checksum = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    (tmp_path / "other" / "report.json").write_text(json.dumps(content | {"checksum": checksum}))
    done = run("compare", f"{folder / 'run'}:bm25", f"{tmp_path / 'other'}:clauses")
    assert "costs were measured on different machines and are left out" in done.stderr, done.stderr


def test_a_run_is_repeated_by_the_configuration_in_its_folder(folder: Path, tmp_path: Path) -> None:
    done = run("benchmark", str(folder / "run" / "config.yaml"), "--output", str(tmp_path / "again"), folder=folder)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again" / "results.json").read_bytes() == (folder / "run" / "results.json").read_bytes()


def test_no_command_writes_over_the_run_that_it_reads(folder: Path) -> None:
    before = (folder / "run" / "hits.parquet").read_bytes()
    refused(run("compare", str(folder / "run"), "--output", str(folder / "run")), 2, "choose another folder")
    assert (folder / "run" / "hits.parquet").read_bytes() == before
