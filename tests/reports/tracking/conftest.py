"""A benchmark with groups, a grid and a configuration that failed, and its files."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from benchmarks.small_benchmark import benchmarker, searchers

from nlp_retrieval import BenchmarkReport, write_run_files
from nlp_retrieval.benchmarks.results import FailedConfiguration

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # the tests import MLflow before the package does


@pytest.fixture(scope="package")
def report(tmp_path_factory: pytest.TempPathFactory) -> BenchmarkReport:
    folder = tmp_path_factory.mktemp("tracked-benchmark")
    kept = {name: one for name, one in searchers().items() if name != "dense"}
    report = write_run_files(benchmarker(folder / "index", searchers=kept).run(), folder / "run")
    failed = FailedConfiguration("missing", {"name": "searcher"}, "ModelError", "the model is not here")
    return replace(report, failed=[failed])
