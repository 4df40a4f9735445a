"""Configurations that other processes search with give what one process gives, whatever becomes of the processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hashed_words import HashedWords
from ray_cluster import ray_cluster
from static_models import save_static

from benchmarks.small_benchmark import TEXTS, benchmarker
from nlp_retrieval import Bm25Retriever, FaissRetriever, OverlapReranker, Searcher, StaticEncoder, write_run_files
from nlp_retrieval.benchmarks.results import BenchmarkRun
from nlp_retrieval.processors.rules import ClauseSplit

from .test_shared import quality


def ran(folder: Path, searchers: dict[str, Searcher], **changed: object) -> tuple[BenchmarkRun, dict[str, bytes]]:
    """A run of a sweep, and its files that are compared byte by byte."""
    arguments = {"searchers": searchers, "stage_folder": folder / "stages", "latency_queries": 6} | changed
    run = benchmarker(folder.parent / "index", **arguments).run()
    write_run_files(run, folder / "run")
    return run, quality(folder / "run")


def test_workers_change_no_byte_and_what_they_cannot_make_is_searched_here(tmp_path: Path) -> None:
    dense = FaissRetriever(StaticEncoder(str(save_static(tmp_path / "static", TEXTS))))
    overlap, entities = OverlapReranker(blend="rank"), OverlapReranker(entity_weight=1.0)
    searchers = {
        "clauses": Searcher([dense], processor=ClauseSplit(), scope="per_subquery", depth=5),
        "hybrid": Searcher([Bm25Retriever(k1=1.6), dense], reranker=overlap, depth=12),
        "cascade": Searcher([Bm25Retriever(k1=1.6), dense], reranker=[overlap, entities % 9]),
        "nested": Searcher([Searcher([Bm25Retriever(), dense]), Bm25Retriever(k1=1.6)], depth=9),
        "own": Searcher([FaissRetriever(HashedWords())]),
    }
    _, alone = ran(tmp_path / "alone", searchers)
    run, spread = ran(tmp_path / "spread", searchers, workers=2)
    assert alone == spread
    searched_by = run.report.manifest["searched_by"]
    assert list(searched_by["here"]) == ["own"]
    assert "encoder" in searched_by["here"]["own"]
    assert all(result.cost.latency_ms > 0 for result in run.report.configurations)
    assert run.report.manifest["timed_on"] == os.uname().nodename


@pytest.mark.soak
def test_the_nodes_of_a_cluster_change_no_byte(tmp_path: Path) -> None:
    searchers = {
        "bm25": Searcher([Bm25Retriever(k1=1.2)]),
        "overlap": Searcher([Bm25Retriever(), Bm25Retriever(k1=1.2)], reranker=OverlapReranker(), depth=12),
    }
    _, alone = ran(tmp_path / "alone", searchers)
    with ray_cluster(cores_of_head=0, n_nodes=2) as cluster:
        address = cluster.address
        run, spread = ran(tmp_path / "spread", searchers, ray=address)
    assert alone == spread
    assert run.report.manifest["searched_by"] == {"workers": None, "ray": address, "here": {}}
