"""What a benchmark left on disk can be read, compared and judged again, with the results that searching would give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.small_benchmark import benchmarker
from nlp_retrieval import BenchmarkRun, read_run_folder, write_run_files
from nlp_retrieval.benchmarks.comparing import compare_runs
from nlp_retrieval.benchmarks.results import FailedConfiguration
from nlp_retrieval.benchmarks.runs import PER_QUERY, REPORT, read_sources, report_bytes
from nlp_retrieval.core.files.frames import BATCH, open_parquet
from nlp_retrieval.errors import GoldError, SourceError
from nlp_retrieval.evaluation.trec import write_run
from nlp_retrieval.reports.write import parquet_bytes


def test_judging_again_gives_what_a_benchmark_with_that_baseline_gives(finished: tuple[BenchmarkRun, Path]) -> None:
    again = compare_runs(read_sources([str(finished[1] / "run: 1")]), baseline="dense").report
    other = benchmarker(finished[1] / "index", baseline="dense").run().report
    assert again.comparisons == other.comparisons
    assert [one.measures for one in again.configurations] == [one.measures for one in other.configurations]
    assert [one.intervals for one in again.configurations] == [one.intervals for one in other.configurations]
    assert again.query_counts == other.query_counts


def test_a_folder_alone_is_shown_as_it_was_measured(finished: tuple[BenchmarkRun, Path], tmp_path: Path) -> None:
    run, failed = finished[0], FailedConfiguration("broken", {"name": "searcher"}, "ModelError", "no model")
    grid = {"axes": {"b": "b"}, "values": {name: {"b": place} for place, name in enumerate(run.per_query)}}
    answered = [replace(one, measures=one.measures | {"answer_em": 1.0}) for one in run.report.configurations]
    manifest = run.report.manifest | {"grid": grid}
    report = replace(run.report, configurations=answered, baseline="dense", failed=[failed], manifest=manifest)
    values = {name: own | {"answer_em": np.ones(len(run.query_ids))} for name, own in run.per_query.items()}
    write_run_files(replace(run, report=report, per_query=values), tmp_path / "run")
    alone = compare_runs(read_sources([str(tmp_path / "run")])).report
    assert (alone.baseline, alone.failed, alone.manifest["grid"]) == ("dense", [failed], grid)
    assert [one.measures for one in alone.configurations] == [one.measures for one in answered]
    of_two = compare_runs(read_sources([f"{tmp_path / 'run'}:{name}" for name in ("bm25", "dense")])).report
    assert (of_two.baseline, of_two.failed, of_two.manifest["grid"]) == ("dense", [failed], grid)
    assert [one.measures["answer_em"] for one in of_two.configurations] == [1.0, 1.0]


def test_a_folder_alone_is_tested_with_its_own_seed_and_resamples(tmp_path: Path) -> None:
    run = benchmarker(tmp_path / "index", seed=7, resamples=200).run()
    write_run_files(run, tmp_path / "run")
    again = compare_runs(read_sources([str(tmp_path / "run")])).report
    assert [one.intervals for one in again.configurations] == [one.intervals for one in run.report.configurations]
    assert again.manifest["significance"] == run.report.manifest["significance"]


def test_configurations_and_trec_files_are_compared_over_the_same_queries(
    finished: tuple[BenchmarkRun, Path], tmp_path: Path
) -> None:
    run, folder = finished
    foreign = tmp_path / "foreign.trec"
    write_run(foreign, run.query_ids, run.rankings["bm25"])
    sources = read_sources(
        [f"{folder / 'run: 1'}:dense", str(folder / "run: 1" / "trec" / "hybrid___overlap.trec"), str(foreign)]
    )
    assert list(sources.lists.listings) == ["dense", "hybrid + overlap", "foreign"]
    assert "overlap" in " ".join(sources.lists.listing("hybrid + overlap").signals)
    compared = compare_runs(sources).report
    whole = {one.name: one for one in run.report.configurations}
    expected = {"dense": "dense", "hybrid + overlap": "hybrid + overlap", "foreign": "bm25"}
    for one in compared.configurations:
        assert one.measures == whole[expected[one.name]].measures
        assert one.groups == whole[expected[one.name]].groups
    assert [one.cost for one in compared.configurations] == [whole["dense"].cost, whole["hybrid + overlap"].cost, None]
    assert compared.baseline == "dense"


def test_files_of_other_tools_alone_are_judged_by_the_judgements_beside_them(
    finished: tuple[BenchmarkRun, Path], tmp_path: Path
) -> None:
    trec = finished[1] / "run: 1" / "trec"
    for name in ("bm25.trec", "dense.trec", "qrels.txt"):
        (tmp_path / name).write_bytes((trec / name).read_bytes())
    compared = compare_runs(read_sources([str(tmp_path / "bm25.trec"), str(tmp_path / "dense.trec")])).report
    whole = finished[0].report.configurations
    assert [one.measures["recall@10"] for one in compared.configurations] == [one.measures["recall@10"] for one in whole[:2]]
    assert compared.query_counts == {"": 20}
    (tmp_path / "qrels.txt").rename(tmp_path / "gold")
    with pytest.raises(GoldError, match="--qrels"):
        read_sources([str(tmp_path / "bm25.trec")])
    (tmp_path / "qrels.txt").write_text("q 0 d 0\n")
    with pytest.raises(GoldError, match=r"qrels\.txt: no query has gold with a grade above 0"):
        read_sources([str(tmp_path / "bm25.trec")])
    again = compare_runs(read_sources([str(tmp_path / "bm25.trec"), str(tmp_path / "dense.trec")], tmp_path / "gold"))
    assert again.report.comparisons == compared.comparisons
    rows = [line.split() for line in (tmp_path / "gold").read_text("utf-8").splitlines()]
    table = tmp_path / "gold.csv"
    table.write_text("".join(f"{line}\n" for line in ["query_id,doc_id,relevance", *(f"{q},{d},{g}" for q, _, d, g in rows)]))
    assert read_sources([str(tmp_path / "bm25.trec")], table).lists.qrels() == again.lists.qrels()


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("recall@10", {"a": 1.0}, "a measure is no column of floats"),
        ("recall@10", float("nan"), "does not hold numbers"),
        ("family", None, "family"),
        ("group", None, "group"),
    ],
)
def test_measures_that_are_no_numbers_and_columns_that_lack_are_refused(
    finished: tuple[BenchmarkRun, Path], tmp_path: Path, column: str, value: object, said: str
) -> None:
    report = write_run_files(finished[0], tmp_path)
    table = pq.read_table(tmp_path / PER_QUERY)
    changed = table.drop_columns([column])
    if value is not None:
        changed = changed.append_column(column, pa.array([value] * len(table)))
    pq.write_table(changed, tmp_path / PER_QUERY)
    (tmp_path / REPORT).write_bytes(report_bytes(report, tmp_path))
    with pytest.raises(SourceError, match=rf"per_query\.parquet .*{said}"):
        read_run_folder(tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not what a benchmark writes"),
        ("[]", "format None"),
        ('{"format": 7}', "format 7"),
        ('{"format": 6, "report": {}}', "checksum"),
    ],
)
def test_a_damaged_report_is_refused(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "report.json").write_text(content)
    with pytest.raises(SourceError, match=said):
        read_run_folder(tmp_path)


def test_ids_that_are_much_alike_are_packed_so_that_they_are_read_many_at_a_time(tmp_path: Path) -> None:
    ids = [f"https://example.org/corpus/page_{number:07d}" for number in range(50_000)]
    (tmp_path / "ids.parquet").write_bytes(parquet_bytes(pa.table({"item_id": ids})))
    file, rows = open_parquet(tmp_path / "ids.parquet")
    with file:
        assert rows == BATCH
