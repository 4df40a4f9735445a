"""``nlp-retrieval evidence train-verifier`` and ``calibrate``: from judged pairs to a verifier."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rerankers.tiny_models import save_bert
from typer.testing import CliRunner

from nlp_retrieval.systems.evidence.commands.app import app
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier

TEXTS = {"support": "the novel that red wrote", "contradict": "the film that red wrote", "neutral": "shining"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [
        {"claim": "red novel", "passage": text, "label": label, "family": f"{label}-{number}"}
        for label, text in TEXTS.items()
        for number in range(12)
    ]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_a_verifier_is_calibrated(folder: Path) -> None:
    fitted = str(folder / "fitted.json")
    done = CliRunner().invoke(app, ["calibrate", str(folder / "pairs.jsonl"), "-o", fitted])
    assert done.exit_code == 0, done.output
    assert "AUC" in done.stdout
    support, neutral = LexicalVerifier(fitted).judge(["red novel"] * 2, [TEXTS["support"], TEXTS["neutral"]])
    assert support.support > neutral.support


def test_a_verifier_is_trained(folder: Path) -> None:
    pytest.importorskip("accelerate")
    base, model = str(save_bert(folder / "base")), folder / "model"
    words = [str(folder / "pairs.jsonl"), "-o", str(model), "--base", base, "--epochs", "1", "--device", "cpu"]
    done = CliRunner().invoke(app, ["train-verifier", *words])
    assert done.exit_code == 0, done.output
    assert "33 pairs, 3 held out" in done.stdout
    assert done.stdout.splitlines()[-1] == f"model: {model}"
    assert (model / "config.json").is_file()
