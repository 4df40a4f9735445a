"""``nlp-retrieval evidence train-verifier`` and ``calibrate``: from judged pairs to a verifier that an audit takes."""

from __future__ import annotations

import json
from pathlib import Path

from cli.commands import refused, run
from rerankers.tiny_models import save_bert

from .world import make_project

TEXTS = {"support": "the novel that red wrote", "contradict": "the film that red wrote", "neutral": "shining"}


def write_pairs(file: Path) -> None:
    rows = [
        {"claim": "red fox", "passage": text, "label": label, "family": f"{label}-{number}"}
        for label, text in TEXTS.items()
        for number in range(12)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_verifier_is_trained_calibrated_and_audits(tmp_path: Path) -> None:
    make_project(tmp_path)
    write_pairs(tmp_path / "pairs.jsonl")
    save_bert(tmp_path / "base")
    refused(
        run(
            "evidence", "train-verifier", "pairs.jsonl", "-o", "model", "--base", "base", "--precision", "bf16", folder=tmp_path
        ),
        2,
        "precision='bf16'",
    )
    trained = run(
        "evidence", "train-verifier", "pairs.jsonl", "-o", "model", "--base", "base", "--device", "cpu", folder=tmp_path
    )
    assert trained.returncode == 0, trained.stderr
    assert trained.stdout.splitlines()[-1] == "model: model"
    assert "33 pairs, 3 held out" in trained.stdout
    verifier = "pair_model:model=model"
    fitted = run("evidence", "calibrate", "pairs.jsonl", "-o", "fitted.json", "--verifier", verifier, folder=tmp_path)
    assert fitted.returncode == 0, fitted.stderr
    done = run(
        "evidence", "audit", "project", "report.md", "--json", "audit.json",
        "--verifier", f"{verifier},calibration=fitted.json", folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "audit.json").read_text())["rows"]
    assert [row["status"] for row in rows][-1] == "SOURCE_NOT_INDEXED"
    assert all(0 <= row["support_score"] <= 1 for row in rows)
