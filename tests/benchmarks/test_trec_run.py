"""A run of another tool stands among searchers, and is judged like them."""

from __future__ import annotations

import warnings
from pathlib import Path

from nlp_retrieval import RetrievalWarning, write_run_files
from nlp_retrieval.benchmarks.entrants import TrecRun
from nlp_retrieval.evaluation.trec import write_run

from .small_benchmark import QUERIES, benchmarker, searchers

IDS = [query.query_id for query in QUERIES]


def written(path: Path, lists: dict[str, list[tuple[str, float]]]) -> TrecRun:
    write_run(path, list(lists), list(lists.values()), "other tool")
    return TrecRun(str(path))


def some_lists(ids: list[str]) -> dict[str, list[tuple[str, float]]]:
    return {name: [(f"d{(7 * n + 11 * rank) % 80}", 9.0 - rank) for rank in range(30)] for n, name in enumerate(ids)}


def test_the_run_of_a_searcher_scores_as_the_searcher_does(tmp_path: Path) -> None:
    run = benchmarker(tmp_path / "index").run()
    write_run_files(run, tmp_path / "run")
    others = {name: TrecRun(str(tmp_path / "run" / "trec" / f"{name}.trec")) for name in ("bm25", "dense")}
    mixed = benchmarker(
        tmp_path / "index", searchers={"bm25 (file)": others["bm25"], **searchers(), "d": others["dense"]}
    ).run()
    by_name = {one.name: one for one in mixed.report.configurations}
    assert list(by_name) == ["bm25 (file)", "bm25", "dense", "hybrid + overlap", "d"]
    assert by_name["bm25 (file)"].measures == by_name["bm25"].measures
    assert by_name["d"].measures == by_name["dense"].measures
    assert by_name["d"].cost is None
    assert by_name["dense"].cost is not None
    assert mixed.report.baseline == "bm25 (file)"
    same = [one for one in mixed.report.comparisons[""] if one.system == "bm25"]
    assert all(one.difference == 0 and one.wins == one.losses == 0 for one in same)


def test_queries_that_are_not_in_the_file_score_0_count_and_are_told(tmp_path: Path) -> None:
    other = written(tmp_path / "o.trec", some_lists([*IDS[:15], "someone else's"]))
    made = benchmarker(tmp_path, searchers={"other": other})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = made.run()
    told = [str(one.message) for one in caught if issubclass(one.category, RetrievalWarning)]
    assert len(told) == 2
    assert "5 of 20 queries are not in it (the first: 'q15'); they score 0 and count" in told[0]
    assert '1 of its queries are not asked here (the first: "someone else\'s")' in told[1]
    assert run.report.configurations[0].empty_queries == 5
    assert run.report.query_counts[""] == 20
