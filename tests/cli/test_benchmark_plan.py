"""``nlp-retrieval benchmark --dry-run`` prints the plan and does nothing; with a grid the plan comes before the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from .commands import refused, run

PASSAGES = {
    "The Shining (film)": "A horror film by Stanley Kubrick, shot in England after a novel.",
    "Stephen King": "An American author who wrote the novel The Shining.",
    "Köln": "A city on the Rhine with a cathedral.",
    "Rhine": "A river that runs from the Alps to the sea, past a city with a cathedral.",
    "Alps": "A range of mountains where a river begins.",
}
CLAIMS = [
    ("The author of the novel was filmed by Kubrick", ["Stephen King", "The Shining (film)"]),
    ("The city with a cathedral is on a river from the Alps", ["Köln", "Rhine"]),
    ("The river begins in a range of mountains", ["Rhine", "Alps"]),
    ("A horror film was shot after a novel of an American", ["The Shining (film)", "Stephen King"]),
    ("The sea is where the river past the cathedral runs", ["Rhine", "Köln"]),
    ("Mountains and the sea are linked by a river", ["Alps", "Rhine"]),
]


def written(folder: Path, **changed: Any) -> str:
    """A sweep of six configurations by a grid."""
    passages = [{"_id": f"p{n}", "title": title, "text": text} for n, (title, text) in enumerate(PASSAGES.items())]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(passage) + "\n" for passage in passages))
    claims = [
        {"uid": f"c{n}", "claim": claim, "supporting_facts": [[title, 0] for title in titles],
         "label": "SUPPORTED", "num_hops": 2, "hpqa_id": f"h{n}"}
        for n, (claim, titles) in enumerate(CLAIMS)
    ]  # fmt: skip
    (folder / "claims.json").write_text(json.dumps(claims))
    settings = {
        "corpus": {"loader": "beir", "path": "corpus.jsonl"},
        "queries": {"loader": "hover", "path": "claims.json"},
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
    (folder / "sweep.yaml").write_text(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))
    return "sweep.yaml"


NAMES = [f"k1={k1:g}, {reranker}" for k1 in (0.4, 0.9, 2.0) for reranker in ("reranker=none", "overlap")]
GRID = {"searcher": {"retrievers": ["bm25"]}, "vary": {"retrievers.bm25.k1": [0.4, 0.9, 2.0], "reranker": [None, "overlap"]}}


def files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_a_dry_run_prints_the_plan_and_leaves_nothing(tmp_path: Path) -> None:
    config = written(tmp_path)
    before = files(tmp_path)
    done = run("benchmark", config, "--dry-run", folder=tmp_path, COLUMNS="80")
    told = "Weights & Biases: offline, as requested; runs go to run/wandb, for wandb sync\n"
    assert (done.returncode, done.stderr) == (0, told)
    assert files(tmp_path) == before
    assert done.stdout.startswith("plan: 6 configurations, 6 queries, by ndcg@2, baseline k1=0.4, reranker=none")
    assert "indexes in index: bm25: to build" in done.stdout
    for name in NAMES:
        assert f"  {name}" in done.stdout
    assert "\x1b" not in done.stdout


WRONG: list[tuple[dict[str, Any], int, str]] = [
    ({"grid": {"searcher": {}, "vary": {"fusion.k": [1]}}}, 2, "sweep.yaml: grid.vary.fusion.k: the searcher has no 'fusion'"),
    ({"grid": GRID | {"skip": [{"rerankr": "none"}]}}, 2, "sweep.yaml: grid.skip[0]: there is no axis 'rerankr'"),
    ({"baseline": "bm25"}, 2, "there is no searcher 'bm25'"),
    ({"corpus": {"loader": "beir", "path": "nowhere.jsonl"}}, 2, "nowhere.jsonl: no such file"),
    ({"corpus": {"loader": "beir", "path": "empty.jsonl"}}, 2, "the corpus is empty"),
    ({"wandb": {"mode": "online"}}, 2, "wandb.mode is online, and no API key is configured; run wandb login"),
    ({"output": "begun"}, 1, "begun/trec"),
    ({"output": "claims.json/run"}, 1, "a part of the path is a file, not a folder; choose another path"),
]


def test_what_is_wrong_is_said_before_anything_is_done(tmp_path: Path, subtests: pytest.Subtests) -> None:
    clean = {"WANDB_API_KEY": "", "HOME": str(tmp_path), "NETRC": str(tmp_path / "netrc")}
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "trec").touch()
    for changed, code, said in WRONG:
        config = written(tmp_path, **changed)
        before = files(tmp_path)
        for dry in ((), ("--dry-run",)):
            with subtests.test(said, dry=dry):
                done = run("benchmark", config, *dry, folder=tmp_path, **clean)
                refused(done, code, said)
                assert "searching" not in done.stderr
                assert files(tmp_path) == before
