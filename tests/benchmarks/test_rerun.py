"""A manifest is enough to repeat a run, and what is different this time is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.small_benchmark import benchmarker, collection, configuration
from nlp_retrieval import BenchmarkRun, write_run_files
from nlp_retrieval.benchmarks.benchmarker import run_searchers
from nlp_retrieval.benchmarks.manifest import benchmark_of, differences, moved_results, read_manifest
from nlp_retrieval.benchmarks.settings import read_benchmark_config
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning, SourceError, UntrustedError
from nlp_retrieval.reports.write import results_of


def finished(folder: Path) -> Path:
    config = read_benchmark_config(configuration(folder, collection(folder / "data")))
    write_run_files(run_searchers(config.settings()), folder / "run")
    return folder / "run"


def trusted(manifest: Config, index: Path | None = None) -> BenchmarkRun:
    """The benchmark of a manifest of our own, run again; it reads its collection from a file."""
    with pytest.warns(RetrievalWarning, match=r"is trusted: query_loader\.path: read"):
        settings = benchmark_of(manifest, index=index, trust=True)
    return run_searchers(settings)


def test_a_run_is_repeated_from_its_manifest_with_the_same_results(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    before = read_manifest(folder)
    assert before == read_manifest(folder / "manifest.json")
    report = trusted(before, index=tmp_path / "another index").report
    again = json.loads(json.dumps(results_of(report)))
    assert again == json.loads((folder / "results.json").read_text())
    assert differences(before, report.manifest) == []
    assert moved_results(json.loads((folder / "results.json").read_text()), again) == []


def test_changed_data_and_versions_are_told(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    before = read_manifest(folder)
    before["versions"]["numpy"] = "1.0"
    before["hardware"]["cores"] = 96
    before["versions"]["gone"] = "2"
    corpus = tmp_path / "data" / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("whale", "walrus"))
    queries = tmp_path / "data" / "queries.jsonl"
    queries.write_text(queries.read_text().replace("whale", "walrus", 1))
    report = trusted(before, index=tmp_path / "another index").report
    told = differences(before, report.manifest)
    assert any(line.startswith("the corpus changed: the fingerprint was ") for line in told)
    assert "the queries or gold changed: texts" in told
    assert any(line.startswith("versions: numpy was 1.0, and is ") for line in told)
    assert "versions: gone was 2, and is not there" in told
    assert any(line.startswith("hardware: cores was 96") for line in told)
    moved = moved_results(json.loads((folder / "results.json").read_text()), results_of(report))
    assert any(line.startswith("bm25: ") and " -> " in line for line in moved)


def test_gold_alone_is_part_of_what_is_compared(tmp_path: Path) -> None:
    before = read_manifest(finished(tmp_path))
    grades = tmp_path / "data" / "qrels" / "test.tsv"
    lines = grades.read_text().splitlines()
    grades.write_text("\n".join(lines[:-1]) + "\n")
    told = differences(before, trusted(before).report.manifest)
    assert told == ["the queries or gold changed: gold"]


def test_what_of_the_queries_changed_is_told_part_by_part() -> None:
    corpus = {"corpus": {"fingerprint": "c"}}
    parts = dict.fromkeys(["texts", "gold", "families", "groups"], "before")
    before = corpus | {"query_fingerprint": "1", "query_parts": parts}

    def told(number: str, **changed: str) -> list[str]:
        return differences(before, corpus | {"query_fingerprint": number, "query_parts": parts | changed})

    assert told("1") == []
    assert told("2", gold="now", families="now") == ["the queries or gold changed: gold, families"]
    assert told("1", groups="now") == ["the queries or gold changed: groups"]
    assert told("2") == ["the queries or gold changed: their order"]


def test_what_an_older_manifest_cannot_tell_is_said() -> None:
    now = {"corpus": {"fingerprint": "c"}, "query_fingerprint": "2", "query_parts": {}}
    assert differences({"corpus": {"fingerprint": None}, "query_fingerprint": "1"}, now) == [
        "whether the corpus changed is not known: the manifest does not hold its fingerprint",
        "the queries or gold changed: which of them, the older manifest does not tell",
    ]
    assert differences({"corpus": {"fingerprint": "c"}, "query_fingerprint": "2"}, now) == []


def test_a_manifest_reads_no_file_that_nobody_let_it_read(tmp_path: Path) -> None:
    before = read_manifest(finished(tmp_path))
    with pytest.raises(UntrustedError, match=r"corpus\.loader\.path: read '.*'; index: use, or write, the index at .*--trust"):
        benchmark_of(before)


def test_queries_that_were_given_in_python_cannot_be_read_again(tmp_path: Path) -> None:
    write_run_files(benchmarker(tmp_path / "index").run(), tmp_path / "run")
    with pytest.raises(ConfigurationError, match="given in Python"):
        benchmark_of(read_manifest(tmp_path / "run"))


def test_a_hidden_key_is_named_by_its_place(tmp_path: Path) -> None:
    before = read_manifest(finished(tmp_path))
    before["searchers"]["bm25"]["config"]["retrievers"][0]["api_key"] = "***"
    with pytest.raises(ConfigurationError, match=r"hides manifest\.searchers\.bm25\.config\.retrievers\[0\]\.api_key"):
        benchmark_of(before)


@pytest.mark.parametrize(
    ("content", "said"), [("{", "is not JSON"), ("[]", "not a manifest of format 1 .found None"), ('{"format": 9}', "found 9")]
)
def test_what_is_no_manifest_is_refused(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(SourceError, match=said):
        read_manifest(tmp_path)
    with pytest.raises(SourceError, match="cannot be read"):
        read_manifest(tmp_path / "none.json")
