"""A verifier that runs an exported model judges as by its model."""

from __future__ import annotations

from pathlib import Path

import pytest
from rerankers.test_pair_export import PAIRS
from rerankers.tiny_models import save_bert

from nlp_retrieval.systems.evidence.verifiers.pair_model import PairModelVerifier


def test_a_verifier_judges_by_an_export_as_by_its_model(tmp_path: Path, own_cache: Path) -> None:
    folder = str(save_bert(tmp_path / "bert", labels=3))
    labels = ["support", "contradict", "neutral"]
    claims, passages = map(list, zip(*PAIRS, strict=True))
    by_torch = PairModelVerifier(folder, labels).judge(claims, passages)  # type: ignore[arg-type]
    by_onnx = PairModelVerifier(folder, labels, backend="onnx", precision="float32").judge(claims, passages)  # type: ignore[arg-type]
    for one, other in zip(by_torch, by_onnx, strict=True):
        assert one.support == pytest.approx(other.support, abs=1e-4)
        assert one.sentence == other.sentence
