"""MLflow's own client reads the benchmark back, value by value, from a file beside the results."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow import MlflowClient

from nlp_retrieval import BenchmarkReport
from nlp_retrieval.benchmarks import MlflowSettings
from nlp_retrieval.errors import ConfigurationError, OutputError
from nlp_retrieval.reports import log_to_mlflow
from nlp_retrieval.reports.trackers import check_tracker

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SADeprecationWarning")  # of MLflow's own queries

FINISHED, FAILED = "FINISHED", "FAILED"


@pytest.fixture(scope="module")
def folder(report: BenchmarkReport, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the benchmark is logged, while no server is named."""
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("MLFLOW_TRACKING_URI", raising=False)
        folder = tmp_path_factory.mktemp("mlflow")
        log_to_mlflow(report, MlflowSettings(), folder)
        yield folder


def runs(folder: Path, experiment: str = "nlp_retrieval"):  # type: ignore[no-untyped-def]
    """The runs by name, and the client that reads them."""
    client = MlflowClient(tracking_uri=f"sqlite:///{folder / 'mlflow.db'}")
    found = client.search_runs([client.get_experiment_by_name(experiment).experiment_id])
    by_name = {run.info.run_name: run for run in found}
    assert len(by_name) == len(found)
    return by_name, client


def test_there_is_one_run_per_configuration_under_one_that_sums_up(report: BenchmarkReport, folder: Path) -> None:
    found, _ = runs(folder)
    params = found["hybrid"].data.params
    assert (params["retrievers"], params["bm25/k1"], params["k"]) == ("bm25+faiss", "1.2", "[3, 5, 10]")
    assert found["bm25"].data.tags["fingerprint"] == report.configurations[0].fingerprint
    assert {name: run.info.status for name, run in found.items()} == {
        "bm25": FINISHED, "hybrid": FINISHED, "missing": FAILED, "summary": FINISHED,
    }  # fmt: skip
    above = found["summary"].info.run_id
    assert {run.data.tags.get("mlflow.parentRunId") for name, run in found.items() if name != "summary"} == {above}
    assert found["missing"].data.tags["failed"] == "the model is not here"


def test_a_deleted_experiment_is_not_written_to(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "mlflow.db", tmp_path)
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    client.delete_experiment(client.get_experiment_by_name("nlp_retrieval").experiment_id)
    with pytest.raises(ConfigurationError, match="'nlp_retrieval' was deleted; restore it, or choose another name"):
        check_tracker(MlflowSettings(), tmp_path)


def test_every_measure_interval_group_and_cost_is_a_metric(report: BenchmarkReport, folder: Path) -> None:
    found, _ = runs(folder)
    for result in report.configurations:
        metrics, cost = found[result.name].data.metrics, result.cost
        assert cost is not None
        wanted = {name.replace("@", "_at_"): value for name, value in result.measures.items()}
        wanted |= {"hops:3/recall_at_10": result.groups["hops=3"]["recall@10"], "cost/latency_ms": cost.latency_ms}
        low, high = result.intervals[""]["ndcg@10"]
        wanted |= {"ndcg_at_10/low": low, "ndcg_at_10/high": high, "empty_queries": 0.0}
        assert {name: metrics[name] for name in wanted} == pytest.approx(wanted)


def test_a_server_that_is_not_there_is_told_of_before_the_work_without_its_password(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = MlflowSettings(uri=f"http://ann:word@127.0.0.1:{port}")
    with pytest.raises(OutputError, match="cannot be reached") as raised:
        check_tracker(settings, tmp_path)
    assert "word" not in str(raised.value)
