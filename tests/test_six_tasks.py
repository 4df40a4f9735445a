"""The six tasks of bench/six_tasks run as they are, take at most the lines of PyTerrier, and the page counts them right."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pandas
import pytest
from rerankers.tiny_models import save_bert

from bench.six_tasks import data
from bench.six_tasks.counting import counts
from nlp_retrieval import evaluate

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "bench" / "SIX_TASKS.md").read_text("utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| [")]
LIBRARIES = ["PyTerrier", "pyserini", "ranx", "Haystack"]


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


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_page_counts_lines_and_names_and_ours_are_at_most_those_of_pyterrier(row: list[str]) -> None:
    title, file = re.fullmatch(r"\[(.*)\]\((.*)\)", row[0]).groups()  # type: ignore[union-attr]
    section = PAGE.split(f"\n## {title[0].upper()}{title[1:]}\n")[1].split("\n## ")[0]
    written = dict(re.findall(r"^(\w+):\n\n```python\n(.*?)```", section, re.MULTILINE | re.DOTALL))
    programs = [(ROOT / "bench" / file).read_text("utf-8"), *(written.get(library, "") for library in LIBRARIES)]
    expected = ["{} lines, {} names".format(*counts(program)) if program else "-" for program in programs]
    assert row[1:] == expected
    assert counts(programs[0]) <= counts(programs[1])


def test_the_page_has_every_task() -> None:
    files = {path.stem for path in (ROOT / "bench" / "six_tasks").glob("*.py")} - {"__init__", "data", "counting"}
    assert {Path(re.findall(r"\((.*)\)", row[0])[0]).stem for row in ROWS} == files
