"""``nlp-retrieval hover optimize``: a program as a file, which the searcher of a configuration then takes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from chat_server import asked, fields, model, server  # noqa: F401
from cli.commands import refused, run

import nlp_retrieval
from nlp_retrieval.benchmarks.settings import read_benchmark_config

DEMO = Path(nlp_retrieval.__file__).parent / "demo"


@pytest.fixture
def sweep(server, tmp_path: Path) -> Path:  # noqa: F811
    """A configuration with a searcher that decomposes, one that hops, and one that does neither."""

    def answer(body):
        text = json.dumps(body)
        if "`phrases` (" in body["messages"][0]["content"]:
            return fields(phrases=[asked(body, "claim")[:40], asked(body, "claim")[40:]])
        if "`query` (" in text and "`context` (" in text:
            return fields(query="the island", summary="an island")
        return json.dumps({"new_instruction": "Find the pages."})

    server.answer = answer
    claims = json.loads((DEMO / "claims.json").read_text())[:12]
    (tmp_path / "claims.json").write_text(json.dumps(claims))
    shutil.copy(DEMO / "corpus.jsonl", tmp_path / "corpus.jsonl")
    lm = {"model": "openai/small", "base_url": server.url, "cache_dir": str(tmp_path / "answers")}
    lm["endpoint"] = {"backoff": 0.001}
    settings = {
        "corpus": {"loader": "beir", "path": str(tmp_path / "corpus.jsonl")},
        "queries": {"loader": "hover", "path": str(tmp_path / "claims.json")},
        "index": str(tmp_path / "index"),
        "output": str(tmp_path / "run"),
        "k": [21],
        "latency_queries": 2,
        "searchers": {
            "plain": {"retrievers": ["bm25"]},
            "phrases": {
                "retrievers": ["bm25"],
                "processor": {"name": "claim_phrases", "lm": lm},
                "scope": "per_subquery",
                "reranker": "overlap",
            },
            "hops": {"name": "multi_hop", "retrievers": ["bm25"], "lm": lm, "hops": 2},
        },
    }
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(settings))
    return tmp_path / "sweep.yaml"


@pytest.mark.parametrize(("searcher", "part"), [pytest.param("phrases", "processor", marks=pytest.mark.soak), ("hops", None)])
def test_the_file_can_go_into_the_configuration(sweep: Path, tmp_path: Path, searcher: str, part: str | None) -> None:
    words = ["--searcher", searcher, "--optimizer", "gepa", "--budget", "14"]
    done = run("hover", "optimize", str(sweep), "--output", str(tmp_path / "best.json"), *words)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2, "nothing but the result on standard output"
    assert lines[0].startswith(f"{searcher}: perfect_recall ")
    assert lines[1] == f"program: {tmp_path / 'best.json'}"
    assert "before: " in done.stderr
    assert "done: " in done.stderr
    assert "INFO" not in done.stderr
    settings = yaml.safe_load(sweep.read_text())
    holder = settings["searchers"][searcher]
    (holder[part] if part else holder)["program"] = str(tmp_path / "best.json")
    sweep.write_text(yaml.safe_dump(settings))
    opened = read_benchmark_config(sweep).searchers[searcher].open(tmp_path / "index")
    assert opened.search(["the island of a king and the house in which his daughter lived"], 21)[0]


def test_a_searcher_that_asks_no_model_or_is_not_there_is_refused(sweep: Path, tmp_path: Path) -> None:
    output = ["--output", str(tmp_path / "best.json")]
    refused(run("hover", "optimize", str(sweep), "-s", "plain", *output), 2, "'plain' does not use a language model")
    refused(run("hover", "optimize", str(sweep), "-s", "phrasse", *output), 2, "did you mean 'phrases'")
