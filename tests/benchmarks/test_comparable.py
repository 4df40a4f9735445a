"""Runs are set side by side where they ask and expect the same of the same items; what differs is refused or said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hashed_words import InMemory
from reports.report_data import printed

from benchmarks.small_benchmark import QUERIES, TEXTS, TITLES, benchmarker
from nlp_retrieval import BenchmarkRun, Bm25Retriever, Searcher, compare_runs, write_run_files
from nlp_retrieval.benchmarks.runs import read_run_folder, read_sources
from nlp_retrieval.errors import QueryError, SourceError

DIFFERENT = "These configurations were run on different corpora"


def ran(folder: Path, name: str = "bm25", k1: float = 0.9, **changed: object) -> BenchmarkRun:
    entries = {name: Searcher([Bm25Retriever(k1=k1)])}
    return benchmarker(folder, searchers=entries, **changed).run()


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("first")
    write_run_files(ran(folder / "index"), folder / "run")
    return folder / "run"


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same queries and gold, over a corpus of one item more."""
    folder = tmp_path_factory.mktemp("larger")
    loader = InMemory([*TEXTS, "fox whale tree river"], [*TITLES, "Page 80"])
    write_run_files(ran(folder / "index", "larger", loader=loader), folder / "run")
    return folder / "run"


def test_another_text_of_one_query_is_refused_and_named(first: Path, tmp_path: Path) -> None:
    queries = [*QUERIES[:7], QUERIES[7].model_copy(update={"text": "an orbit of queens"}), *QUERIES[8:]]
    write_run_files(ran(tmp_path / "index", queries=queries), tmp_path / "run")
    with pytest.raises(QueryError, match=r"1 of 20 queries have other texts .* \(the first: 'q7'\)"):
        read_sources([str(first), str(tmp_path / "run")])


def test_another_corpus_is_refused_unless_corpora_are_compared(first: Path, larger: Path) -> None:
    said = r"'bm25' was run on a corpus of 80 items .* 'larger' on one of 81 .*--across-corpora"
    with pytest.raises(SourceError, match=said):
        read_sources([str(first), str(larger)])
    assert list(read_sources([str(first), str(larger)], across_corpora=True).lists.listings) == ["bm25", "larger"]


def test_everything_that_is_written_says_that_corpora_differ(first: Path, larger: Path, tmp_path: Path) -> None:
    run = compare_runs(read_sources([str(first), str(larger)], across_corpora=True))
    write_run_files(run, tmp_path / "out")
    fingerprints = [read_run_folder(one).report.manifest["corpus"]["fingerprint"] for one in (first, larger)]
    said = " ".join(printed(run.report, 200).split())
    assert f"{DIFFERENT}, and a difference may be one of corpora." in said
    assert f"bm25: 80 items (fingerprint {fingerprints[0][:12]}); larger: 81 items" in said
    for name in ("report.html", "table.md", "table.tex", "results.json"):
        assert DIFFERENT in (tmp_path / "out" / name).read_text(), name
    assert "80 and 81 items in different corpora" in (tmp_path / "out" / "report.html").read_text()
    for name in ("results.json", "costs.json"):
        content = json.loads((tmp_path / "out" / name).read_text())
        configurations = content.get("configurations", content)
        assert [one["corpus"]["fingerprint"] for one in configurations.values()] == fingerprints
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert [one["items"] for one in manifest["corpora"].values()] == [80, 81]
    assert "corpus" not in manifest


def test_other_families_of_queries_are_told_of(first: Path, tmp_path: Path) -> None:
    related = [one.model_copy(update={"family": "f"}) if place in {7, 8} else one for place, one in enumerate(QUERIES)]
    write_run_files(ran(tmp_path / "index", "other", queries=related), tmp_path / "run")
    (told,) = read_sources([str(first), str(tmp_path / "run")]).cautions
    assert "for 1 of 20 queries" in told
