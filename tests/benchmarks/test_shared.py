"""A sweep computes each distinct stage once, goes on where it was interrupted, and finds what it finds without stages."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hashed_words import HashedWords, InMemory

from benchmarks.small_benchmark import QUERIES, TEXTS, TITLES, benchmarker
from nlp_retrieval import (
    Bm25Retriever,
    FaissRetriever,
    OverlapReranker,
    ReciprocalRankFusion,
    RetrievalWarning,
    Searcher,
    WeightedSum,
    write_run_files,
)
from nlp_retrieval.benchmarks import stage_store
from nlp_retrieval.benchmarks.shared_stages import SharedStages
from nlp_retrieval.benchmarks.stage_store import StageStore
from nlp_retrieval.core.context import changed_context
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.processors.rules import ClauseSplit

Calls = list[tuple[str, Any]]
QUERY_TEXTS = [query.text for query in QUERIES]


def sweep() -> dict[str, Searcher]:
    """24 configurations: 3 sets of two retrievers, 4 fusions and 2 rerankers, as a user would write them."""
    lexical, tuned, dense = Bm25Retriever, lambda: Bm25Retriever(k1=1.6), lambda: FaissRetriever(HashedWords())
    sets = {"lexical and dense": (lexical, dense), "tuned and dense": (tuned, dense), "two lexical": (lexical, tuned)}
    fusions = {
        "rrf": ReciprocalRankFusion,
        "weighted": lambda: WeightedSum([0.3, 0.7]),
        "sum": WeightedSum,
        "rrf 10": lambda: ReciprocalRankFusion(k=10),
    }
    rerankers = {
        "overlap": lambda: OverlapReranker(blend="rank"),
        "entities": lambda: OverlapReranker(entity_weight=1.0, blend="score"),
    }
    return {
        f"{name}, {fusion}, {reranker}": Searcher([make() for make in made], fusion=fuse(), reranker=rerank(), depth=12)
        for name, made in sets.items()
        for fusion, fuse in fusions.items()
        for reranker, rerank in rerankers.items()
    }


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """What components are really asked to do."""
    made: Calls = []

    def watch(kind: type, name: str) -> None:
        original = getattr(kind, name)

        def watched(self: Any, first: Any, *rest: Any) -> Any:
            made.append((name, (repr(self), list(first), list(rest))))
            return original(self, first, *rest)

        monkeypatch.setattr(kind, name, watched)

    watch(Bm25Retriever, "search_batch")
    watch(FaissRetriever, "search_vectors")
    watch(HashedWords, "encode_queries")
    watch(OverlapReranker, "scored")
    watch(ClauseSplit, "process")
    return made


def over_all(calls: Calls) -> list[tuple[str, Any]]:
    """The calls that were not made to time one query."""
    return [(name, told) for name, told in calls if len(set(map(str, told[1])) if name == "scored" else told[1]) > 1]


def quality(folder: Path) -> dict[str, bytes]:
    """Every file that is compared byte by byte."""
    files = [folder / "results.json", *(folder / "trec").glob("*")]
    return {path.name: path.read_bytes() for path in files}


def run_sweep(index: Path, stages: Path | None, output: Path, **changed: object) -> dict[str, bytes]:
    arguments = {"searchers": sweep(), "latency_queries": 2} | changed
    write_run_files(benchmarker(index, stage_folder=stages, **arguments).run(), output)
    return quality(output)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    Searcher([Bm25Retriever(), FaissRetriever(HashedWords())]).index(InMemory(TEXTS, TITLES), folder)
    return folder


@pytest.fixture(scope="module")
def plain(index: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The sweep without stages."""
    return run_sweep(index, None, tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def finished(index: Path, plain: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stages of a sweep that ran to its end, and found what it finds without."""
    folder = tmp_path_factory.mktemp("stages")
    assert run_sweep(index, folder, folder.with_name("staged-run")) == plain
    return folder


def test_a_sweep_of_24_configurations_computes_each_distinct_stage_once(
    index: Path, plain: dict[str, bytes], tmp_path: Path, calls: Calls
) -> None:
    assert len(sweep()) == 24
    assert run_sweep(index, tmp_path / "stages", tmp_path / "run") == plain
    once = over_all(calls)
    assert Counter(name for name, _ in once if name != "scored") == {
        "search_batch": 2, "search_vectors": 1, "encode_queries": 1,
    }  # fmt: skip
    for reranker in {told[0] for name, told in once if name == "scored"}:
        pairs = [
            (query, item.item_id)
            for name, told in once
            if name == "scored" and told[0] == reranker
            for query, item in zip(told[1], told[2][0], strict=True)
        ]
        assert len(set(pairs)) == len(pairs)


def test_a_second_run_computes_nothing(
    index: Path, plain: dict[str, bytes], finished: Path, tmp_path: Path, calls: Calls
) -> None:
    files = sorted(path.relative_to(finished) for path in finished.rglob("*"))
    assert run_sweep(index, finished, tmp_path / "run") == plain
    assert calls == []
    assert sorted(path.relative_to(finished) for path in finished.rglob("*")) == files


def computed(stages: Path, searcher: Searcher, texts: list[str] = QUERY_TEXTS) -> list[str]:
    """The groups of what a search adds to the stages, one for each entry."""
    before = {*stages.rglob("*.stage")}
    with changed_context(stages=SharedStages(StageStore(stages))):
        assert searcher.search(texts, 5) == searcher.search(texts, 5)
    return sorted(path.relative_to(stages).parts[0] for path in {*stages.rglob("*.stage")} - before)


def a_searcher(**changed: Any) -> Searcher:
    parts = {"k1": 0.9, "depth": 10, "seed": 0, "weight": 0.3, "clauses": 3} | changed
    retrievers = [Bm25Retriever(k1=parts["k1"]), FaissRetriever(HashedWords(seed=parts["seed"]))]
    processor, reranker = ClauseSplit(), OverlapReranker(entity_weight=parts["weight"])
    return Searcher(retrievers, processor, reranker=reranker, depth=parts["depth"])


def test_only_what_another_setting_touches_is_computed_again(index: Path, tmp_path: Path) -> None:
    def added(texts: list[str] = QUERY_TEXTS, **changed: Any) -> list[str]:
        searcher = a_searcher(**changed)
        searcher.index(InMemory(TEXTS, TITLES), index)
        return computed(tmp_path, searcher, texts)

    everything = ["candidates", "candidates", "scores", "subqueries", "vectors"]
    assert added() == everything
    assert added() == []
    assert added(k1=0.8)[:1] == ["candidates"]
    assert added(depth=11)[:2] == ["candidates", "candidates"]
    assert added(weight=0.4) == ["scores"]
    assert {"candidates", "vectors"} <= {*added(seed=1)} <= {"candidates", "vectors", "scores"}
    assert added(QUERY_TEXTS[:-1]) == ["candidates", "candidates", "subqueries"]
    other = a_searcher()
    other.index(InMemory([*TEXTS[1:], "another fox"], TITLES), tmp_path / "index")
    assert computed(tmp_path, other) == ["candidates", "candidates", "scores"]


def test_other_files_of_a_model_and_other_versions_are_other_stages(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dense = Searcher([FaissRetriever(HashedWords())], depth=5).open(index)
    stage = ["candidates", "vectors"]
    assert computed(tmp_path, dense) == stage
    monkeypatch.setattr(HashedWords, "model_fingerprint", lambda self: "retrained")
    assert computed(tmp_path, dense) == stage
    monkeypatch.setattr(stage_store, "describe_environment", lambda: {"versions": {"numpy": "9"}})
    assert computed(tmp_path, dense) == stage


@pytest.mark.soak
def test_a_sweep_that_is_killed_again_and_again_ends_with_the_same_bytes(
    index: Path, plain: dict[str, bytes], tmp_path: Path
) -> None:
    tests = Path(__file__).parents[1]
    script = (
        f"import sys; sys.path[:0] = [{str(tests)!r}]\n"
        "from pathlib import Path\n"
        "from benchmarks.test_shared import run_sweep\n"
        "index, stages, output = map(Path, sys.argv[1:])\n"
        "run_sweep(index, stages, output)\n"
    )
    stages, output = tmp_path / "stages", tmp_path / "run"
    command = [sys.executable, "-W", "ignore", "-c", script, str(index), str(stages), str(output)]
    draw = random.Random(5)
    for wanted in (1, draw.randint(3, 8), draw.randint(9, 14)):
        process = subprocess.Popen(command)
        while process.poll() is None and len(list(stages.rglob("*.stage"))) < wanted:
            time.sleep(0.002)
        time.sleep(draw.random() / 100)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        assert not (output / "results.json").exists()
    subprocess.run(command, check=True, timeout=300)
    assert quality(output) == plain


def test_a_store_that_cannot_be_written_ends_no_sweep(index: Path, plain: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / "stages").write_text("in the way")
    with pytest.warns(RetrievalWarning, match="cannot be kept"):
        assert run_sweep(index, tmp_path / "stages", tmp_path / "run") == plain


def test_latency_is_never_that_of_reading(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = BaseRetriever.candidates

    def slow(self: BaseRetriever, *rest: Any) -> Any:
        time.sleep(0.02)
        return original(self, *rest)

    monkeypatch.setattr(BaseRetriever, "candidates", slow)
    for _ in range(2):
        searchers = {"one": Searcher([Bm25Retriever()]), "two": Searcher([Bm25Retriever(), Bm25Retriever(k1=2.0)])}
        run = benchmarker(index, searchers=searchers, stage_folder=tmp_path).run()
        one, two = (result.cost for result in run.report.configurations)
        assert one.latency_ms >= 20
        assert two.latency_ms >= 40
        assert one.stage_ms["bm25"] >= 20
