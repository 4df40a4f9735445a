"""A sweep is measured by what was chosen: in Python, in a file, on the command line, and judged again afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import ir_measures
import pytest
import yaml
from hashed_words import HashedWords
from typer.testing import CliRunner

from nlp_retrieval import BenchmarkReport, Bm25Retriever, FaissRetriever, Searcher, write_run_files
from nlp_retrieval.benchmarks.benchmarker import run_searchers
from nlp_retrieval.benchmarks.runs import read_run_folder
from nlp_retrieval.benchmarks.settings import read_benchmark_config
from nlp_retrieval.cli.app import app
from nlp_retrieval.evaluation.measures import DEPTH

from .small_benchmark import benchmarker, collection, configuration


def measured(report: BenchmarkReport) -> list[str]:
    return list(report.configurations[0].measures)


def test_a_measure_that_is_added_changes_no_other(tmp_path: Path) -> None:
    searchers = {"hybrid": Searcher([Bm25Retriever(), FaissRetriever(HashedWords())])}
    one, both = (
        benchmarker(tmp_path / "index", searchers=searchers, measures=measures) for measures in (["ndcg@3"], ["ndcg@3", "AP"])
    )
    assert (list(one.k_values), list(both.k_values)) == ([3], [3, DEPTH])
    ran, again = run_searchers(one), run_searchers(both)
    assert measured(again.report) == ["ndcg@3", "map"]
    assert ran.per_query["hybrid"]["ndcg@3"].tolist() == again.per_query["hybrid"]["ndcg@3"].tolist()
    assert ran.rankings == again.rankings
    assert ran.report.manifest["depth"] == again.report.manifest["depth"] == DEPTH
    deep = run_searchers(benchmarker(tmp_path / "index", searchers=searchers, measures=["AP"], depth=7))
    assert max(map(len, deep.rankings["hybrid"])) == 7


def test_grades_below_the_relevant_ones_count_for_graded_measures_alone(tmp_path: Path) -> None:
    settings = benchmarker(tmp_path / "index", measures=["ndcg@10", "R@10", "Success@10", "ERR@10"])
    graded = [one.model_copy(update={"relevance": dict(one.relevance) | {"d0": 2, "d1": 1}}) for one in settings.gold]
    lists = {}
    for relevant_from in (1, 2):
        run = run_searchers(replace(settings, gold=graded, relevant_from=relevant_from))
        lists[relevant_from] = run.report.configurations[0].measures
        folder = tmp_path / f"run{relevant_from}"
        write_run_files(run, folder)
        qrels = list(ir_measures.read_trec_qrels(str(folder / "trec" / "qrels.txt")))
        ranked = list(ir_measures.read_trec_run(str(folder / "trec" / "bm25.trec")))
        recall = ir_measures.R(rel=relevant_from) @ 10
        assert lists[relevant_from]["recall@10"] == pytest.approx(ir_measures.calc_aggregate([recall], qrels, ranked)[recall])
    assert {name for name in lists[1] if lists[1][name] == lists[2][name]} >= {"ndcg@10", "ERR@10"}
    assert lists[1]["recall@10"] != lists[2]["recall@10"]
    assert "grades from 2 are relevant" in repr(read_run_folder(folder).evaluations["bm25"])


def test_a_file_chooses_measures_and_the_command_line_others(tmp_path: Path) -> None:
    path = configuration(tmp_path, collection(tmp_path / "data"))
    settings = yaml.safe_load(path.read_text())
    del settings["k"]
    path.write_text(yaml.safe_dump(settings | {"measures": ["R@10", "ndcg@3"], "main": "ndcg@3", "relevant_from": 1}))
    config = read_benchmark_config(path)
    assert (config.measured, config.main_measure) == (["recall@10", "ndcg@3"], "ndcg@3")
    runner = CliRunner()
    done = runner.invoke(app, ["benchmark", str(path), "--measures", "P@5,R@10"])
    assert done.exit_code == 0, done.output
    saved = read_run_folder(tmp_path / "run")
    assert (measured(saved.report), saved.report.main_measure) == (["precision@5", "recall@10"], "precision@5")
    again = ["compare", str(tmp_path / "run"), "--main", "R@10", "--output", str(tmp_path / "again")]
    done = runner.invoke(app, again)
    assert done.exit_code == 0, done.output
    assert read_run_folder(tmp_path / "again").report.main_measure == "recall@10"
    done = runner.invoke(app, ["benchmark", str(path), "--main", "R@7"])
    assert done.exit_code == 2
    assert "main: 'R@7' is not measured" in done.output
