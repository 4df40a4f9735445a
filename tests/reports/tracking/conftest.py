"""A benchmark with groups, a configuration that failed and a secret in a setting, and its files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.small_benchmark import benchmarker
from benchmarks.test_benchmarker import SECRET
from hashed_words import HashedWords

from nlp_retrieval import (
    BenchmarkReport,
    Bm25Retriever,
    FaissRetriever,
    OverlapReranker,
    Searcher,
    WandbSettings,
    log_to_wandb,
    write_run_files,
)
from nlp_retrieval.benchmarks.results import FailedConfiguration

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # the tests import MLflow before the package does
LOGIN = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="package")
def report(tmp_path_factory: pytest.TempPathFactory) -> BenchmarkReport:
    folder = tmp_path_factory.mktemp("tracked-benchmark")
    dense = FaissRetriever(HashedWords(api_key=SECRET))
    cascade = [OverlapReranker(), OverlapReranker(blend="replace")]
    searchers = {"bm25": Searcher([Bm25Retriever()]), "hybrid": Searcher([Bm25Retriever(k1=1.2), dense], reranker=cascade)}
    run = benchmarker(folder / "index", searchers=searchers, group_by="hops").run()
    report = write_run_files(run, folder / "run")
    failed = FailedConfiguration("missing", {"name": "searcher"}, "ModelError", "the model is not here")
    return replace(report, failed=[failed])


@pytest.fixture(scope="package")
def logged(report: BenchmarkReport, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of the runs of W&B by name, logged offline by a process that knows a login which is nobody's."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("WANDB_API_KEY", LOGIN)
        settings = WandbSettings(project="tests", mode="offline", group="one group")
        folders = log_to_wandb(report, settings, tmp_path_factory.mktemp("runs"))
    return dict(zip([*sorted_names(report), "missing", "summary"], folders, strict=True))


def sorted_names(report: BenchmarkReport) -> list[str]:
    """The configurations, best first."""
    best = sorted(report.configurations, key=lambda result: -result.measures["ndcg@10"])
    return [result.name for result in best]
