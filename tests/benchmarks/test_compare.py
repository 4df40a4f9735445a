"""Folders that do not fit together are not compared as if they did, and what is half-written is not a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.small_benchmark import GOLD, QUERIES, benchmarker, searchers
from nlp_retrieval import Gold, RetrievalWarning, write_run_files
from nlp_retrieval.benchmarks.comparing import compare_runs
from nlp_retrieval.benchmarks.runs import read_run_folder, read_sources
from nlp_retrieval.evaluation.ranking_difference import changed_queries, difference
from nlp_retrieval.evaluation.trec import write_run


def folder_of(path: Path, index: Path, name: str, **changed: object) -> Path:
    changed = {"searchers": {name: searchers()[name]}} | changed
    write_run_files(benchmarker(index, **changed).run(), path)
    return path


def test_queries_in_another_order_are_lined_up_by_their_ids(tmp_path: Path) -> None:
    one = folder_of(tmp_path / "one", tmp_path / "index", "bm25")
    other = folder_of(tmp_path / "other", tmp_path / "index", "dense", queries=QUERIES[::-1], gold=GOLD[::-1])
    report = compare_runs(read_sources([str(one), str(other)])).report
    for result, folder in zip(report.configurations, (one, other), strict=True):
        assert result.measures == pytest.approx(read_run_folder(folder).report.configurations[0].measures)
    lists = read_sources([str(one), str(other)]).lists
    saved = read_run_folder(other).lists
    number = saved.number_of("q3")
    listing, own = lists.listing("dense"), saved.listing("dense")
    assert listing.signals.keys() == own.signals.keys()
    for name, values in listing.signals.items():
        np.testing.assert_array_equal(values[listing.of(lists.number_of("q3"))], own.signals[name][own.of(number)])


def test_lists_of_other_lengths_are_compared_where_all_of_them_reach(tmp_path: Path) -> None:
    deep = folder_of(tmp_path / "deep", tmp_path / "index", "bm25")
    short = folder_of(tmp_path / "short", tmp_path / "index", "bm25", k_values=[3], depth=3)
    sources = read_sources([str(deep), str(short)])
    assert f"{deep} and {short} were searched to depths of 100 and 3." in sources.cautions
    assert compare_runs(sources).report.k_values == [3]
    with pytest.warns(RetrievalWarning, match=r"ndcg@10.*: what lies beyond 3, where the lists of .* end, is not found"):
        assert compare_runs(sources, measures=["ndcg@10"]).report.k_values == [10]
    with pytest.warns(RetrievalWarning, match="map, ndcg: over the first 3 hits"):
        one, other = compare_runs(sources, measures=["AP", "nDCG", "P@2"]).report.configurations
    assert one.measures == other.measures


def test_a_run_keeps_its_measures_and_the_grade_from_which_a_document_counts(tmp_path: Path) -> None:
    graded = [
        Gold(query_id=gold.query_id, relevance={item: 1 + n % 3 for n, item in enumerate(gold.relevance)}) for gold in GOLD
    ]
    graded[0] = Gold(query_id=graded[0].query_id, relevance=dict.fromkeys(graded[0].relevance, 3))
    chosen = {"gold": graded, "measures": ["rbp@5", "recall@5"], "k_values": [5], "relevant_from": 2}
    folders = [folder_of(tmp_path / name, tmp_path / "index", name, **chosen) for name in ("bm25", "dense")]
    sources = read_sources(list(map(str, folders)))
    report = compare_runs(sources).report
    for result, folder in zip(report.configurations, folders, strict=True):
        assert result.measures == pytest.approx(read_run_folder(folder).report.configurations[0].measures)
    assert report.manifest["relevant_from"] == 2
    lower = folder_of(tmp_path / "lower", tmp_path / "index", "dense", **chosen | {"relevant_from": 1})
    said = f"{folders[0]} and {lower} took grades from 2 and 1 on as relevant."
    assert said in read_sources([str(folders[0]), str(lower)]).cautions
    assert "RBP 0.8@5" in str(report)
    both = report.configurations[0].name, report.configurations[1].name
    recalls = {row.query_id: row.one for row in changed_queries(sources.lists, *both, 5, relevant_from=2)}
    saved = read_run_folder(folders[0])
    for query_id, recall in recalls.items():
        assert recall == pytest.approx(saved.evaluations[both[0]].per_query["recall@5"][saved.lists.number_of(query_id)])
        assert (difference(sources.lists, *both, query_id, 5, 2).one_recall or 0.0) == pytest.approx(recall)
    assert compare_runs(sources, relevant_from=1).report.configurations[0].measures != report.configurations[0].measures


def test_a_run_file_whose_numbers_have_other_zeros_is_judged_and_tsv_gold_keeps_its_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write_run("~/a.trec", ["51", "100"], [[('"d1', 2.0), ("d2", 1.0)], [("d3", 1.0)]])
    (tmp_path / "qrels.tsv").write_text('051\t"d1\t1\n100\td3\t2\n')
    with pytest.warns(
        RetrievalWarning, match=r"1 of its queries have other zeros in front than here \(first: '51', here '051'"
    ):
        sources = read_sources(["~/a.trec"], "~/qrels.tsv")
    assert {name: [hit for hit, _ in listed] for name, listed in zip(
        sources.lists.query_ids, sources.lists.rankings("a"), strict=True
    )} == {"051": ['"d1', "d2"], "100": ["d3"]}  # fmt: skip
