"""Finished runs at the command line: compared, shown again, repeated, and set side by side query by query."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest
from benchmarks.small_benchmark import collection, configuration

from nlp_retrieval.benchmarks import read_run_folder
from nlp_retrieval.evaluation.ranking_difference import changed_queries
from nlp_retrieval.evaluation.ranking_files import read_lists

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
    compared = f"{folder / 'run'}:clauses", str(tmp_path / "theirs.trec")
    done = run("compare", *compared, "--measures", "recall@3", "--output", str(tmp_path / "out"))
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
    repeated = str(folder / "run" / "config.yaml")
    done = run("benchmark", repeated, "--output", str(tmp_path / "again"), folder=folder, PYTHONHASHSEED="5")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again" / "results.json").read_bytes() == (folder / "run" / "results.json").read_bytes()


def test_no_command_writes_over_the_run_that_it_reads(folder: Path) -> None:
    before = (folder / "run" / "hits.parquet").read_bytes()
    refused(run("compare", str(folder / "run"), "--output", str(folder / "run")), 2, "choose another folder")
    assert (folder / "run" / "hits.parquet").read_bytes() == before


def test_without_a_query_diff_lists_those_that_change_most(folder: Path) -> None:
    pair = (f"{folder / 'run'}:clauses", f"{folder / 'run'}:bm25")
    done = run("diff", *pair, "--k", "3")
    assert done.returncode == 0, done.stderr
    assert "the 20 of 20 queries that change most" in " ".join(done.stdout.split())
    wanted = changed_queries(read_lists(folder / "run"), "clauses", "bm25", 3, "ndcg")
    assert [query for query in done.stdout.split() if re.fullmatch(r"q\d+", query)] == [row.query_id for row in wanted]
    main = read_run_folder(folder / "run").report.main_measure
    assert " ".join(run("diff", *pair).stdout.split()).startswith(f"{main} from clauses to bm25: ")


def test_queries_that_diff_does_not_list_are_counted_by_what_they_lack(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / f"{name}.trec").write_text("".join(f"q{number} Q0 d1 1 2.0 {name}\n" for number in range(4)))
    (tmp_path / "qrels.txt").write_text("q0 0 d1 1\nq1 0 d1 0\n")
    done = run("diff", "one.trec", "other.trec", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "note: 1 query without a relevant document: not listed; name one with --query\n" in done.stderr
    assert "note: 2 queries without judgements: left out\n" in done.stderr
