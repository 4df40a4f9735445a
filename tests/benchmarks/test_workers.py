"""A sweep whose stages several processes compute finds what one process finds, whatever becomes of the processes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from failing_bm25 import UnluckyBm25, register
from hashed_words import HashedWords, InMemory
from static_models import save_static

from benchmarks.small_benchmark import TEXTS, TITLES, benchmarker
from nlp_retrieval import (
    Bm25Retriever,
    CrossEncoderReranker,
    FaissRetriever,
    OverlapReranker,
    Searcher,
    StaticEncoder,
    write_run_files,
)
from nlp_retrieval.benchmarks import shared_stages as shared_room
from nlp_retrieval.benchmarks.distributed import StageTask, why_local
from nlp_retrieval.benchmarks.results import BenchmarkRun
from nlp_retrieval.core.components.registry import registered
from nlp_retrieval.errors import WorkerError
from nlp_retrieval.processors.rules import ClauseSplit
from nlp_retrieval.reports.view import timing_note


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_static(tmp_path_factory.mktemp("models") / "static", TEXTS)


@pytest.fixture
def unlucky(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The unlucky retriever can be found by its name, here and in workers."""
    monkeypatch.syspath_prepend(register(tmp_path / "registered"))
    registered.cache_clear()
    yield
    registered.cache_clear()


def sweep(model: Path) -> dict[str, Searcher]:
    """Retrievers that share an encoder, sub-queries apart, and two rerankers over several pools."""

    def dense() -> FaissRetriever:
        return FaissRetriever(StaticEncoder(str(model)))

    overlap, entities = OverlapReranker(blend="rank"), OverlapReranker(entity_weight=1.0)
    return {
        "bm25": Searcher([Bm25Retriever()]),
        "dense": Searcher([dense()]),
        "clauses": Searcher([dense()], processor=ClauseSplit(), scope="per_subquery", depth=5),
        "hybrid": Searcher([Bm25Retriever(k1=1.6), dense()], reranker=overlap, depth=12),
        "deeper": Searcher([Bm25Retriever(k1=1.6), dense()], reranker=overlap, depth=20),
        "entities": Searcher([Bm25Retriever()], reranker=entities, depth=12),
        "cascade": Searcher(
            [Bm25Retriever(k1=1.6), dense()], reranker=[overlap, entities % 9], depth={"bm25": 12, "faiss": 12}
        ),
        "backwards": Searcher([Bm25Retriever()], reranker=[entities, overlap % 7], depth={"bm25": 30}),
        "nested": Searcher([Searcher([Bm25Retriever(), dense()]), Bm25Retriever(k1=1.6)], depth=9),
    }


def ran(folder: Path, searchers: dict[str, Searcher], **changed: object) -> tuple[BenchmarkRun, dict[str, bytes]]:
    """A run of a sweep, and its files that are compared byte by byte."""
    arguments = {"searchers": searchers, "stage_folder": folder / "stages", "latency_queries": 6} | changed
    run = benchmarker(folder.parent / "index", **arguments).run()
    write_run_files(run, folder / "run")
    files = [folder / "run" / "results.json", *(folder / "run" / "trec").glob("*")]
    return run, {path.name: path.read_bytes() for path in files}


def test_workers_change_no_byte_of_the_results(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_room, "_PAIRS_AT_ONCE", 64)
    _, alone = ran(tmp_path / "alone", sweep(model))
    run, spread = ran(tmp_path / "spread", sweep(model), workers=2)
    assert alone == spread
    searched_by = run.report.manifest["searched_by"]
    assert searched_by["here"] == {}
    assert searched_by["stages"] >= 10


def test_latency_is_timed_here_and_throughput_is_not_told(model: Path, tmp_path: Path) -> None:
    run, _ = ran(tmp_path / "spread", sweep(model), workers=2)
    costs = [result.cost for result in run.report.configurations]
    assert all(cost.latency_ms > 0 and cost.queries_per_second is None for cost in costs)
    note = timing_note(run.report)
    assert note.startswith("All configurations searched all queries by several workers at once")
    assert os.uname().nodename in note
    later, _ = ran(tmp_path / "spread", sweep(model))
    assert all(result.cost.queries_per_second is None for result in later.report.configurations)
    told = json.loads((tmp_path / "spread" / "run" / "costs.json").read_text())
    assert '"queries_per_second": null' in json.dumps(told)


@pytest.mark.filterwarnings("ignore:.*gold items do not meet the filter")
@pytest.mark.soak
def test_each_query_finds_by_its_own_filter_in_workers_too(tmp_path: Path) -> None:
    searchers = {"bm25": Searcher([Bm25Retriever()]), "overlap": Searcher([Bm25Retriever()], reranker=OverlapReranker())}
    filtered = {"where_from": {"page": "hops"}, "loader": Paged(TEXTS, TITLES)}
    _, alone = ran(tmp_path / "alone", searchers, **filtered)
    run, spread = ran(tmp_path / "spread", searchers, workers=2, **filtered)
    assert alone == spread
    assert run.report.manifest["searched_by"]["stages"] > 3


class Paged(InMemory):
    """Items with a number that queries may be held to."""

    name = "paged"

    def stream(self):  # type: ignore[no-untyped-def]
        for row, item in enumerate(super().stream()):
            yield item.model_copy(update={"metadata": item.metadata | {"page": 2 + row % 3}})


def test_what_no_other_process_can_make_is_searched_here_and_the_manifest_says_so(tmp_path: Path) -> None:
    searchers = {"own": Searcher([FaissRetriever(HashedWords())]), "bm25": Searcher([Bm25Retriever()])}
    _, alone = ran(tmp_path / "alone", searchers)
    run, spread = ran(tmp_path / "spread", searchers, workers=2)
    assert alone == spread
    searched_by = run.report.manifest["searched_by"]
    assert list(searched_by["here"]) == ["candidates of faiss"]
    assert searched_by["here"]["candidates of faiss"] == "no package registers HashedWords among nlp_retrieval.encoders"
    assert searched_by["stages"] == 1


def test_scores_that_a_searcher_among_retrievers_needs_too_are_computed_here(tmp_path: Path) -> None:
    overlap, entities = OverlapReranker(), OverlapReranker(entity_weight=1.0)
    searchers = {
        "nested": (Bm25Retriever() % 9 >> overlap) + Bm25Retriever(k1=1.6),
        "plain": Bm25Retriever() % 12 >> overlap,
        "entities": Bm25Retriever() % 12 >> entities,
    }
    _, alone = ran(tmp_path / "alone", searchers)
    run, spread = ran(tmp_path / "spread", searchers, workers=2)
    assert alone == spread
    assert sorted(run.report.manifest["searched_by"]["here"]) == ["candidates of searcher", "scores of overlap"]


@pytest.mark.parametrize("device", [None, "cpu", "cuda"])
def test_what_names_a_gpu_is_computed_here(device: str | None) -> None:
    wanted = "it names a GPU, which workers do not have" if device == "cuda" else ""
    assert why_local(CrossEncoderReranker("any", device=device)) == wanted


def test_a_stage_that_a_worker_fails_at_is_computed_here(unlucky: None, tmp_path: Path) -> None:
    searchers = {
        "unlucky": Searcher([UnluckyBm25("raises", str(tmp_path / "log"), home=os.getpid())]),
        "bm25": Searcher([Bm25Retriever()]),
    }
    run, spread = ran(tmp_path / "spread", searchers, workers=2)
    _, alone = ran(tmp_path / "alone", searchers)
    assert alone == spread
    here = run.report.manifest["searched_by"]["here"]
    assert here == {"candidates of failing_bm25": "RuntimeError: the terms are gone"}


def test_a_sweep_goes_on_after_a_lost_worker(unlucky: None, tmp_path: Path) -> None:
    searchers = {
        "unlucky": Searcher([UnluckyBm25("killed", str(tmp_path / "log"), home=os.getpid())]),
        "bm25": Searcher([Bm25Retriever()]),
    }
    with pytest.raises(WorkerError, match="the same call goes on from what was done"):
        ran(tmp_path / "spread", searchers, workers=2)
    _, spread = ran(tmp_path / "spread", searchers, workers=2)
    _, alone = ran(tmp_path / "alone", searchers)
    assert alone == spread


def test_a_sweep_that_is_known_starts_no_worker(tmp_path: Path) -> None:
    searchers = {"bm25": Searcher([Bm25Retriever()])}
    ran(tmp_path / "spread", searchers)
    run, _ = ran(tmp_path / "spread", searchers, workers=2)
    assert run.report.manifest["searched_by"] == {"workers": 2, "ray": None, "stages": 0, "here": {}}
    assert run.report.configurations[0].cost.queries_per_second > 0


@pytest.fixture
def task(tmp_path: Path) -> StageTask:
    """What workers are asked to do over a small index, with a store that they see."""
    searcher = Searcher([Bm25Retriever()])
    searcher.index(InMemory(TEXTS, TITLES), tmp_path / "index")
    (tmp_path / "stages").mkdir()
    (tmp_path / "stages" / "token").touch()
    return StageTask(str(tmp_path / "index"), str(tmp_path / "stages"), "token")


def test_a_node_that_does_not_see_the_index_or_the_results_is_told_apart(task: StageTask) -> None:
    facts = task.facts()
    assert task.facts() == facts
    assert replace(task, token="another").facts() != facts
    assert replace(task, index="/none").facts()["index at /none"] == "none"


def test_a_stage_of_another_key_is_not_computed(task: StageTask) -> None:
    stage = {"group": "candidates", "key": "0" * 64, "component": {"name": "bm25"}, "where": None, "label": "bm25"}
    undone = task.do([stage | {"queries": [["river"]], "depth": 3}])
    assert undone == {0: "the index or a model of bm25 is another one there"}
    assert list((Path(task.stages) / "candidates").glob("*")) == []
