"""A cross-encoder is exported at first use, agrees with its model, and is made once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nlp_retrieval.core.files.model_files import ModelFiles
from nlp_retrieval.encoders import backends
from nlp_retrieval.errors import ModelError
from nlp_retrieval.rerankers import pair_models
from nlp_retrieval.rerankers.pair_models import Pair, TorchPairs, onnx_pairs

from .tiny_models import save_bert

PAIRS: list[Pair] = [
    ("who wrote the novel", "the novel that kubrick filmed"),
    ("red fox", "a red fox, a blue whale"),
    ("red fox", ""),
    ("köln", "東京 shining"),
]


def test_where_a_folder_has_no_export_one_of_8_bits_is_made_once(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import onnx

    folder = save_bert(tmp_path / "bert")
    wanted = TorchPairs(folder, None, "cpu").logits(PAIRS)
    found = onnx_pairs(ModelFiles.of(folder), None).logits(PAIRS)
    assert np.abs(found - wanted).max() < 0.15 * np.ptp(wanted)
    graphs = [onnx.load(str(file)).graph for file in (own_cache / "nlp-retrieval" / "models" / "onnx").glob("*/model.onnx")]
    kinds = sorted(any(node.op_type == "MatMulInteger" for node in graph.node) for graph in graphs)
    assert kinds == [False, True]
    monkeypatch.setattr(pair_models, "write_graph", None)
    monkeypatch.setattr(backends, "write_quantized", None)
    np.testing.assert_array_equal(onnx_pairs(ModelFiles.of(folder), None).logits(PAIRS), found)


def test_what_cannot_be_exported_is_told(tmp_path: Path, own_cache: Path) -> None:
    causal = save_bert(tmp_path / "causal")
    config = json.loads((causal / "config.json").read_text())
    (causal / "config.json").write_text(json.dumps(config | {"architectures": ["BertForCausalLM"]}))
    with pytest.raises(ModelError, match=r"is not a model for sequence classification, .* pass backend='torch'"):
        onnx_pairs(ModelFiles.of(causal), None)
