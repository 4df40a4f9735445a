"""A benchmark says what ir-measures says, twice the same, and refuses what it cannot judge."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import ir_measures
import pytest
from hashed_words import HashedWords
from ir_measures import AP, RR, P, R, nDCG

from nlp_retrieval import BenchmarkRun, Bm25Retriever, FaissRetriever, Gold, Query, RetrievalWarning, Searcher, write_run_files

from .small_benchmark import GOLD, QUERIES, benchmarker

MEASURES = ("precision", "recall", "f1", "perfect_recall", "ndcg", "map", "mrr")


def read(path: Path) -> dict:  # type: ignore[type-arg]
    loaded: dict = json.loads(path.read_text("utf-8"))  # type: ignore[type-arg]
    return loaded


def test_results_hold_every_measure_by_name_overall_and_by_group_and_no_times(finished: tuple[BenchmarkRun, Path]) -> None:
    results = read(finished[1] / "run: 1" / "results.json")
    names = {f"{measure}@{k}" for measure in MEASURES for k in (3, 5, 10)}
    assert list(results["configurations"]) == ["bm25", "dense", "hybrid + overlap"]
    for one in results["configurations"].values():
        assert set(one["measures"]) == names
        assert {group: set(values) for group, values in one["groups"].items()} == {f"hops={h}": names for h in (2, 3, 4)}
        assert all(0 <= value <= 1 for value in one["measures"].values())
    assert results["query_groups"] == {"hops=2": 7, "hops=3": 7, "hops=4": 6}
    assert (results["queries"], results["items"], results["k"], results["baseline"]) == (20, 80, [3, 5, 10], "bm25")
    text = (finished[1] / "run: 1" / "results.json").read_text()
    assert not any(word in text for word in ("seconds", "latency", "_ms", "bytes", "finished"))


def test_two_runs_give_the_same_bytes(finished: tuple[BenchmarkRun, Path], tmp_path: Path) -> None:
    first = finished[1] / "run: 1"
    program = f"""
import sys; sys.path[:0] = {[str(Path(__file__).parents[1])]!r}
from pathlib import Path
from benchmarks.test_benchmarker import benchmarker, write_run_files
write_run_files(benchmarker(Path({str(tmp_path / "index")!r})).run(), {str(tmp_path / "run")!r})
"""
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ | {"PYTHONHASHSEED": "5"})
    trec = [f"trec/{name}" for name in ("qrels.txt", "bm25.trec", "dense.trec", "hybrid___overlap.trec")]
    for name in ("results.json", "per_query.parquet", *trec):
        assert (tmp_path / "run" / name).read_bytes() == (first / name).read_bytes(), name


@pytest.mark.parametrize("name", ["bm25", "dense", "hybrid + overlap"])
def test_ir_measures_finds_the_same_figures_in_the_trec_files(finished: tuple[BenchmarkRun, Path], name: str) -> None:
    trec = finished[1] / "run: 1" / "trec"
    qrels = list(ir_measures.read_trec_qrels(str(trec / "qrels.txt")))
    run = list(ir_measures.read_trec_run(str(trec / f"{name.replace(' ', '_').replace('+', '_')}.trec")))
    measures = read(finished[1] / "run: 1" / "results.json")["configurations"][name]["measures"]
    for k in (3, 5, 10):
        theirs = ir_measures.calc_aggregate([P @ k, R @ k, nDCG @ k, AP @ k, RR @ k], qrels, run)
        ours = {P @ k: "precision", R @ k: "recall", nDCG @ k: "ndcg", AP @ k: "map", RR @ k: "mrr"}
        for measure, family in ours.items():
            assert measures[f"{family}@{k}"] == pytest.approx(theirs[measure], abs=1e-9), (measure, k)


def test_the_table_has_a_row_for_each_configuration_with_its_measures_intervals_and_cost(
    finished: tuple[BenchmarkRun, Path],
) -> None:
    report = finished[0].report
    rows = report.table().to_arrow().to_pylist()
    assert [row["configuration"] for row in rows] == ["bm25", "dense", "hybrid + overlap"]
    assert [row["baseline"] for row in rows] == [True, False, False]
    for row, result in zip(rows, report.configurations, strict=True):
        assert {name: row[name] for name in result.measures} == result.measures
        for name, ends in result.intervals[""].items():
            assert (row[f"{name}.low"], row[f"{name}.high"]) == tuple(ends)
        assert result.cost is not None
        assert (row["latency_ms"], row["index_bytes"]) == (result.cost.latency_ms, result.cost.index_bytes)
        assert {name: row[f"stage_ms.{name}"] for name in result.cost.stage_ms} == result.cost.stage_ms
    assert report.table().to_pandas().loc[1, "recall@5"] == report.configurations[1].measures["recall@5"]
    assert report.table().to_polars().height == 3


def test_queries_that_find_nothing_score_0_and_count_and_are_warned_about_once(tmp_path: Path) -> None:
    queries = [*QUERIES[:2], Query(query_id="blank", text=" "), Query(query_id="stop", text="the of")]
    gold = [*GOLD[:2], Gold(query_id="blank", relevance={"d1": 1}), Gold(query_id="stop", relevance={"d2": 1})]
    made = benchmarker(tmp_path, searchers={"bm25": Searcher([Bm25Retriever()])}, queries=queries, gold=gold, latency_queries=4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = made.run().report.configurations[0]
    assert result.empty_queries == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)
        two = benchmarker(tmp_path, searchers={"bm25": Searcher([Bm25Retriever()])}, queries=QUERIES[:2], gold=GOLD[:2]).run()
    expected = two.report.configurations[0].measures
    assert result.measures == pytest.approx({name: value / 2 for name, value in expected.items()})
    said = [str(one.message) for one in caught if issubclass(one.category, RetrievalWarning)]
    assert len(said) == 1, said
    assert "2 of 4 queries" in said[0]


SECRET = "tr0ub4dor-and-3"


@pytest.mark.parametrize("folder", ["run", "index"])
def test_nothing_that_looks_like_a_key_is_written_into_the_run_or_the_index(tmp_path: Path, folder: str) -> None:
    secret = Searcher([FaissRetriever(HashedWords(api_key=SECRET))])
    run = benchmarker(tmp_path / "index", searchers={"dense": secret}).run()
    write_run_files(run, tmp_path / "run")
    files = [path for path in (tmp_path / folder).rglob("*") if path.is_file()]
    assert [path.name for path in files if SECRET.encode() in path.read_bytes()] == []
