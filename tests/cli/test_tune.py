"""``nlp-retrieval tune``: what fitted weights bring out of fold, and the weights as a configuration takes them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from linked_pages import questions, wiki

from nlp_retrieval import Bm25Retriever, LinkGraphRetriever, tune
from nlp_retrieval.benchmarks.settings import read_benchmark_config
from nlp_retrieval.retrievers.link_graph.walk import DEFAULT_WEIGHTS

from .commands import run

PAGES = wiki(40, seed=6)
CONFIGURATION = """
corpus: {{loader: jsonl, path: {folder}/corpus.jsonl}}
queries: {{loader: hover, path: {folder}/claims.json}}
k: [5, 2]
index: {folder}/index
searchers:
  words: {{retrievers: [bm25]}}
  walk: {{retrievers: [bm25, {{name: link_graph, seeds: [bm25], pool: 20}}]}}
  deep: {{retrievers: [{{name: link_graph, seeds: [bm25], depth: 3}}], processor: clauses}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus, claims of which most are in families of two, and a configuration."""
    made = tmp_path_factory.mktemp("tune")
    lines = [{"id": item.item_id, "content": item.content, "metadata": item.metadata} for item in PAGES]
    (made / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    claims = [
        {
            "uid": f"c{number}", "claim": text, "label": "SUPPORTED", "num_hops": 2,
            "hpqa_id": f"h{number // 2}" if number < 14 else None,
            "supporting_facts": [[PAGES[(7 * number) % 40].title, 0], [PAGES[(11 * number + 3) % 40].title, 0]],
        }
        for number, text in enumerate(questions(PAGES, 16))
    ]  # fmt: skip
    (made / "claims.json").write_text(json.dumps(claims))
    (made / "sweep.yaml").write_text(CONFIGURATION.format(folder=made))
    return made


def test_the_report_is_that_of_python_and_the_weights_can_go_back_into_the_configuration(folder: Path) -> None:
    done = run("tune", str(folder / "sweep.yaml"), "--folds", "4")
    assert done.returncode == 0, done.stderr
    assert "…" not in done.stdout
    assert "\x1b" not in done.stdout
    settings = read_benchmark_config(folder / "sweep.yaml")
    report = tune(
        LinkGraphRetriever([Bm25Retriever()], pool=20), folder / "index", settings.loaded().queries, settings.loaded().gold,
        (2, 5), folds=4,
    )  # fmt: skip
    assert "walk: 16 queries, 9 groups, 4 folds" in done.stdout
    rows = dict(re.findall(r"(\w+@\d+)\W+(\d\.\d{3})", done.stdout))
    assert list(rows) == [f"{kind}@{k}" for k in (2, 5) for kind in ("recall", "perfect_recall", "ndcg")]
    assert rows == {measure: f"{report.before.means()[measure]:.3f}" for measure in rows}
    pasted = yaml.safe_load(done.stdout.splitlines()[-1])
    assert pasted == {"weights": {kind: pytest.approx(value, abs=5e-4) for kind, value in report.weights.items()}}
    assert LinkGraphRetriever([Bm25Retriever()], weights=pasted["weights"]).weights.keys() == DEFAULT_WEIGHTS.keys()
    assert f"note: {report.unreachable} gold passages" in done.stderr
    gain, low, high = report.gain("ndcg@5")
    assert f"ndcg@5 changes by {gain:+.3f} [{low:+.3f}, {high:+.3f}]" in " ".join(done.stderr.split())


def test_where_no_searcher_has_weights_one_configuration_is_chosen_by_folds(folder: Path) -> None:
    grid = "grid: {searcher: {retrievers: [bm25]}, vary: {retrievers.bm25.k1: [0.5, 1.5]}}\n"
    (folder / "grid.yaml").write_text(CONFIGURATION.format(folder=folder).partition("searchers:")[0] + grid)
    done = run("tune", str(folder / "grid.yaml"), "--folds", "4")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("best by ndcg@5: ")
