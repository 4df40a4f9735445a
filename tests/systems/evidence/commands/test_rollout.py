"""A roll-out: a project's passages and judged claims become a collection, and one benchmark measures every step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli.commands import run
from colbert_checkpoints import save_bert, save_pylate
from named_models import NAMED

from nlp_retrieval import read_run_folder
from systems.evidence.sources import BRIDGE, SOURCES, project

SWEEP = Path(__file__).parents[4] / "docs" / "rollout.yaml"
JUDGED = [
    {"claim": "The Long Bridge was opened in 1932.", "url": SOURCES[0][1], "quote": BRIDGE[:35]},
    {"claim": "Ada Winter was its architect.", "url": SOURCES[0][1], "quote": "Its architect was Ada Winter."},
    {"claim": "Nobody pays a toll for a car.", "url": SOURCES[4][1]},
    {"claim": "Repairs cost 40 million crowns.", "url": SOURCES[2][1], "family": "repairs"},
    {"claim": "Repairs cost 40 million crowns.", "url": SOURCES[3][1], "family": "repairs"},
]


def world_in(folder: Path) -> Path:
    project(folder / "project").close()
    (folder / "judged.jsonl").write_text("".join(json.dumps(row) + "\n" for row in JUDGED))
    return folder


def measured(folder: Path, searchers: dict[str, Any]) -> Any:
    """Run the sweep of the documents with other searchers, as a user does."""
    (folder / "rollout.yaml").write_text(yaml.safe_dump(yaml.safe_load(SWEEP.read_text()) | {"searchers": searchers}))
    done = run("benchmark", "rollout.yaml", "--no-wandb", folder=folder)
    assert done.returncode == 0, done.stderr
    return read_run_folder(folder / "runs" / "rollout")


def test_every_step_is_a_row_with_recall_cost_and_significance(tmp_path: Path) -> None:
    done = run("evidence", "export", "project", "-o", "collection", "--judged", "judged.jsonl", folder=world_in(tmp_path))
    assert (done.returncode, done.stderr) == (0, "6 passages and 4 claims in collection\n")
    searchers = yaml.safe_load(SWEEP.read_text())["searchers"]
    NAMED["encoder"].save(tmp_path / "encoder", 0)
    save_pylate(save_bert(tmp_path / "bert"), tmp_path / "tokens")
    searchers["2 words and meaning"]["retrievers"]["meaning"] = {"name": "faiss", "encoder": str(tmp_path / "encoder")}
    searchers["3 late interaction"]["retrievers"]["tokens"]["encoder"] = str(tmp_path / "tokens")
    ran = measured(tmp_path, searchers)
    assert [one.name for one in ran.report.configurations] == ["1 words", "2 words and meaning", "3 late interaction"]
    for step in ran.report.configurations:
        assert 0 <= step.measures["recall@5"] <= 1
        assert step.cost.latency_ms > 0
    assert ran.report.configurations[0].measures["recall@5"] == pytest.approx(1)
    judged = {one.system: one for one in ran.report.comparisons[""] if one.measure == "recall@5"}
    assert judged.keys() == {"2 words and meaning", "3 late interaction"}
    assert all(0 < one.p_holm <= 1 and one.families == 4 for one in judged.values())
