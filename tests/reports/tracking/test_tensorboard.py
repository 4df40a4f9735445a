"""TensorBoard's own reader reads the benchmark back, value by value."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata

from nlp_retrieval import BenchmarkReport
from nlp_retrieval.errors import OutputError
from nlp_retrieval.reports import TensorboardLogger


@pytest.fixture(scope="module")
def folder(report: BenchmarkReport, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tensorboard")
    TensorboardLogger().log(report, folder)
    return folder


def read(folder: Path, name: str) -> EventAccumulator:
    return EventAccumulator(str(folder / "tensorboard" / name)).Reload()


def test_there_is_a_folder_per_configuration_that_was_run(folder: Path) -> None:
    assert {path.name for path in (folder / "tensorboard").iterdir()} == {"bm25", "hybrid___overlap"}


def test_curves_have_k_as_their_step_for_all_queries_and_for_each_group(report: BenchmarkReport, folder: Path) -> None:
    for result, name in zip(report.configurations, ("bm25", "hybrid___overlap"), strict=True):
        events = read(folder, name)
        for tag, measures in (("recall", result.measures), ("mrr", result.measures), ("hops=3/ndcg", result.groups["hops=3"])):
            family = tag.rpartition("/")[2]
            found = {event.step: event.value for event in events.Scalars(tag)}
            assert found == pytest.approx({k: measures[f"{family}@{k}"] for k in (3, 5, 10)}, rel=1e-6)


def test_every_measure_interval_and_cost_is_a_figure(report: BenchmarkReport, folder: Path) -> None:
    for result, name in zip(report.configurations, ("bm25", "hybrid___overlap"), strict=True):
        events, cost = read(folder, name), result.cost
        assert cost is not None
        wanted = result.measures | {"cost/latency_ms": cost.latency_ms, "cost/stage_ms/bm25": cost.stage_ms["bm25"]}
        wanted |= {"recall@10/low": result.intervals[""]["recall@10"][0]}
        assert {tag: events.Scalars(tag)[0].value for tag in wanted} == pytest.approx(wanted, rel=1e-6)


def test_hyperparameters_are_the_flat_configuration_and_metrics_the_headline(folder: Path) -> None:
    contents = read(folder, "hybrid___overlap").SummaryMetadata
    start = metadata.parse_session_start_info_plugin_data(contents(metadata.SESSION_START_INFO_TAG).plugin_data.content)
    told = {key: value.string_value or value.number_value for key, value in start.hparams.items()}
    assert (told["retrievers"], told["encoder"], told["bm25/k1"], told["items"]) == ("bm25+faiss", "hashed-words", 1.2, 80)
    assert start.group_name == "hybrid + overlap"
    experiment = metadata.parse_experiment_plugin_data(contents(metadata.EXPERIMENT_TAG).plugin_data.content)
    assert {"recall@10", "ndcg@10", "cost/latency_ms"} <= {info.name.tag for info in experiment.metric_infos}
    assert {info.name for info in experiment.hparam_infos} == set(told)


def test_logged_again_it_takes_the_place_of_what_was_logged(report: BenchmarkReport, folder: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    shutil.copytree(folder, again)
    kept = again / "tensorboard" / "notes.txt"
    kept.write_text("mine")
    before = len(read(folder, "bm25").Scalars("recall"))
    TensorboardLogger().log(report, again)
    assert len(list((again / "tensorboard" / "bm25").iterdir())) == 1
    assert len(read(again, "bm25").Scalars("recall")) == before == 3
    assert kept.read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_an_output_error(report: BenchmarkReport, tmp_path: Path) -> None:
    (tmp_path / "tensorboard").write_text("in the way")
    with pytest.raises(OutputError, match="tensorboard"):
        TensorboardLogger().log(report, tmp_path)
