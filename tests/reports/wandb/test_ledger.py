"""A sweep that is resumed logs each configuration once; one that failed is a run that failed; files are artifacts."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.small_benchmark import benchmarker, searchers

from nlp_retrieval import BenchmarkReport, WandbSettings, log_to_wandb, write_run_files
from nlp_retrieval.benchmarks.results import FailedConfiguration
from nlp_retrieval.reports.trackers import Ledger, _group_name

from .first_screen import first_screen, overview, records

SETTINGS = WandbSettings(project="tests", mode="offline")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> BenchmarkReport:
    folder = tmp_path_factory.mktemp("ledger-benchmark")
    kept = {name: one for name, one in searchers().items() if name != "dense"}
    return write_run_files(benchmarker(folder / "index", searchers=kept).run(), folder / "run")


@pytest.fixture(scope="module")
def first(report: BenchmarkReport, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    folder = tmp_path_factory.mktemp("ledger-runs")
    failed = [FailedConfiguration("missing", {"name": "searcher"}, "ModelError", "the model is not here")]
    return folder, log_to_wandb(replace(report, failed=failed), SETTINGS, folder)


@pytest.fixture
def folder(first: tuple[Path, list[Path]], tmp_path: Path) -> Path:
    """A copy of what was logged."""
    shutil.copytree(first[0], tmp_path / "copy", symlinks=True)
    return tmp_path / "copy"


def runs_in(folder: Path) -> set[str]:
    return {path.name for path in (folder / "wandb").glob("offline-run-*")}


def with_failure(report: BenchmarkReport) -> BenchmarkReport:
    return replace(report, failed=[FailedConfiguration("missing", {"name": "searcher"}, "ModelError", "the model is not here")])


def test_what_was_logged_is_not_logged_again_also_when_it_cost_something_else(report: BenchmarkReport, folder: Path) -> None:
    before = runs_in(folder)
    assert len(before) == 4
    (one, other) = report.configurations
    assert one.cost is not None
    slower = replace(one, cost=replace(one.cost, latency_ms=99.0))
    again = replace(with_failure(report), configurations=[slower, other], manifest=report.manifest | {"finished": "later"})
    folders = log_to_wandb(again, SETTINGS, folder)
    assert runs_in(folder) == before
    assert [path.name for path in folders] == [path.name for path in folders if path.is_dir()]
    assert {path.name for path in folders} == before


def test_a_run_that_was_begun_and_not_finished_is_logged_anew_in_its_place(report: BenchmarkReport, folder: Path) -> None:
    ledger = folder / "wandb-logged.json"
    content = json.loads(ledger.read_text())
    (sweep,) = content["sweeps"].values()
    gone = sweep["runs"]["summary: summary"]
    sweep["runs"]["summary: summary"] = ""
    ledger.write_text(json.dumps(content))
    names = runs_in(folder)
    folders = log_to_wandb(with_failure(report), SETTINGS, folder)
    after = runs_in(folder)
    assert len(after) == 4
    assert names - after <= {Path(gone).name}
    assert folders[-1].name.rpartition("-")[2] == Path(gone).name.rpartition("-")[2]
    assert overview(folders[-1])["state"] == "finished"


def test_other_results_are_another_sweep(report: BenchmarkReport, folder: Path) -> None:
    fewer = replace(report, configurations=report.configurations[:1], comparisons={}, pairwise=None)
    folders = log_to_wandb(fewer, SETTINGS, folder)
    assert len(runs_in(folder)) == 6
    assert len(folders) == 2


def test_a_group_is_called_by_its_folder_and_date_and_each_sweep_of_a_folder_has_its_own(
    report: BenchmarkReport, first: tuple[Path, list[Path]], tmp_path: Path
) -> None:
    date = report.manifest["finished"][:10]
    assert first_screen(first[1][0]).group == f"{first[0].name} {date}"
    assert _group_name(first[0], report) == f"{first[0].name} {date} (2)"
    (folder := tmp_path / "hover").mkdir()
    for number, wanted in enumerate((f"hover {date}", f"hover {date} (2)", f"hover {date} (3)")):
        ledger = Ledger(folder, {"sweep": number}, _group_name(folder, report))
        ledger.begin("x")
        assert ledger.group == wanted
    assert Ledger(folder, {"sweep": 1}, _group_name(folder, report)).group == f"hover {date} (2)"


def test_a_configuration_that_failed_is_a_run_that_failed_and_says_why(first: tuple[Path, list[Path]]) -> None:
    (bm25, _, missing, _) = first[1]
    seen = overview(missing)
    assert seen["state"] == "failed"
    assert (seen["summary"]["failed"], seen["summary"]["error"]) == ("the model is not here", "ModelError")
    assert overview(bm25)["state"] == "finished"


def test_lists_and_manifest_are_artifacts(first: tuple[Path, list[Path]], report: BenchmarkReport) -> None:
    bm25, hybrid, _, summary = first[1]
    wanted = {bm25: ("trec-run", {"bm25.trec"}), hybrid: ("trec-run", {"hybrid___overlap.trec"})}
    wanted[summary] = ("benchmark", {"manifest.json", "results.json", "qrels.txt"})
    for run, (kind, files) in wanted.items():
        logged = [one["artifact"] for one in records(run) if one["type"] == "artifact"]
        assert {one["type"] for one in logged} == {kind, "dataset", "run_table"}
        own = [one for one in logged if one["type"] == kind]
        assert len(own) == 1, logged
        entries = own[0]["manifest"]["contents"]
        assert {entry["path"] for entry in entries} == files


@pytest.mark.parametrize("content", ["{", "[]", '{"format": 1, "sweeps": {"a": 3}}', '{"format": 2, "sweeps": {}}'])
def test_a_ledger_that_cannot_be_believed_is_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "wandb-logged.json").write_text(content)
    ledger = Ledger(tmp_path, {"a": 1}, "group")
    assert ledger.finished("x") is None
    (tmp_path / "wandb").mkdir()
    ledger.begin("x")
    ledger.finish("x", tmp_path / "wandb")
    assert Ledger(tmp_path, {"a": 1}, "another group").finished("x") == tmp_path / "wandb"
    assert Ledger(tmp_path, {"a": 1}, "another group").group == "group"
    assert Ledger(tmp_path, {"a": 2}, "another group").finished("x") is None
