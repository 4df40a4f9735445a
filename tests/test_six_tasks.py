"""The six tasks of bench/six_tasks run as they are."""

from __future__ import annotations

import runpy
from pathlib import Path

import pandas
import pytest
from rerankers.tiny_models import save_bert

from bench.six_tasks import data
from nlp_retrieval import evaluate

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def few_passages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the passages that answer, so that encoding them is quick."""
    monkeypatch.setattr(data, "corpus", data.corpus[data.corpus["docno"].isin(data.qrels["docno"])])
    monkeypatch.chdir(tmp_path)


def run(task: str) -> dict[str, object]:
    return runpy.run_path(str(ROOT / "bench" / "six_tasks" / f"{task}.py"))


@pytest.mark.parametrize("task", ["dataframe_to_result", "hybrid"])
def test_a_search_gives_a_data_frame_of_results(task: str) -> None:
    results = run(task)["results"]
    assert isinstance(results, pandas.DataFrame)
    assert list(results.columns) == ["qid", "docno", "rank", "score"]
    assert list(results["qid"].unique()) == list(data.topics["qid"])
    assert evaluate(results, data.qrels, "recall@10")["recall@10"] > 0.5


@pytest.mark.filterwarnings("ignore:.*are longer than the model reads")
def test_reranking_keeps_the_first_ten(tmp_path: Path) -> None:
    save_bert(tmp_path / "cross-encoder" / "ms-marco-MiniLM-L6-v2")  # a folder of this name comes before the hub
    results = run("rerank")["results"]
    first = run("dataframe_to_result")["results"]
    assert isinstance(results, pandas.DataFrame)
    assert isinstance(first, pandas.DataFrame)
    both = [frame[frame["rank"] <= 10].groupby("qid")["docno"].agg(set).to_dict() for frame in (results, first)]
    assert both[0] == both[1]
    assert results["docno"].tolist() != first[first["rank"] <= 10]["docno"].tolist()


def test_a_collection_is_evaluated() -> None:
    measured = run("evaluate_a_collection")["result"]
    assert list(measured.means()) == ["ndcg@10", "recall@100"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("task", "systems"), [("two_systems", 2), ("grid", 9)])
def test_systems_are_compared_with_corrected_tests(task: str, systems: int) -> None:
    report = run(task)["result"].report  # type: ignore[attr-defined]
    assert [len(report.configurations), report.main_measure] == [systems, "ndcg@10"]
    comparisons = report.comparisons[""]
    assert len(comparisons) == systems - 1
    assert all(comparison.p_holm >= comparison.p for comparison in comparisons)
