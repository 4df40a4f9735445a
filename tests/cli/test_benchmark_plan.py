"""``nlp-retrieval benchmark --dry-run`` prints the plan and does nothing; with a grid the plan comes before the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from benchmarks.small_benchmark import collection

from .commands import refused, run


def written(folder: Path, **changed: Any) -> str:
    """A sweep of six configurations by a grid."""
    if not (folder / "data").exists():
        collection(folder / "data")
    settings = {
        "corpus": {"loader": "beir", "path": "data"},
        "queries": {"loader": "beir", "path": "data"},
        "k": [1, 2],
        "latency_queries": 2,
        "index": "index",
        "output": "run",
        "wandb": {"project": "tests", "mode": "offline"},
        "grid": {
            "searcher": {"retrievers": ["bm25"], "depth": 3},
            "vary": {"retrievers.bm25.k1": [0.4, 0.9, 2.0], "reranker": [None, "overlap"]},
        },
    } | changed
    (folder / "sweep.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    return "sweep.yaml"


NAMES = [f"k1={k1:g}, {reranker}" for k1 in (0.4, 0.9, 2.0) for reranker in ("reranker=none", "overlap")]


def files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_a_dry_run_prints_the_plan_and_leaves_nothing(tmp_path: Path) -> None:
    config = written(tmp_path)
    before = files(tmp_path)
    done = run("benchmark", config, "--dry-run", folder=tmp_path, COLUMNS="80")
    told = "Weights & Biases: offline, as requested; runs go to run/wandb, for wandb sync\n"
    assert (done.returncode, done.stderr) == (0, told)
    assert files(tmp_path) == before
    assert done.stdout.startswith("plan: 6 configurations, 20 queries, by ndcg@2, baseline k1=0.4, reranker=none")
    assert "indexes in index: bm25: to build" in done.stdout
    for name in NAMES:
        assert f"  {name}" in done.stdout
    assert "\x1b" not in done.stdout


WRONG: list[tuple[dict[str, Any], int, str]] = [
    ({"grid": {"searcher": {}, "vary": {"fusion.k": [1]}}}, 2, "sweep.yaml: grid.vary.fusion.k: the searcher has no 'fusion'"),
    ({"corpus": {"loader": "beir", "path": "empty.jsonl"}}, 2, "the corpus is empty"),
    ({"wandb": {"mode": "online"}}, 2, "wandb.mode is online, and no API key is configured; run wandb login"),
    ({"output": "begun"}, 1, "begun/trec"),
]


def test_what_is_wrong_is_said_before_anything_is_done(tmp_path: Path, subtests: pytest.Subtests) -> None:
    clean = {"WANDB_API_KEY": "", "HOME": str(tmp_path), "NETRC": str(tmp_path / "netrc")}
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "trec").touch()
    for changed, code, said in WRONG:
        config = written(tmp_path, **changed)
        before = files(tmp_path)
        with subtests.test(said):
            done = run("benchmark", config, folder=tmp_path, **clean)
            refused(done, code, said)
            assert "searching" not in done.stderr
            assert files(tmp_path) == before
