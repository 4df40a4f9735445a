"""A cross-encoder is exported at first use, agrees with its model, and is made once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nlp_retrieval import CrossEncoderReranker
from nlp_retrieval.core.files.model_files import ModelFiles
from nlp_retrieval.encoders import backends
from nlp_retrieval.errors import ConfigurationError, ModelError
from nlp_retrieval.rerankers import pair_models
from nlp_retrieval.rerankers.pair_models import Pair, TorchPairs, onnx_pairs

from .tiny_models import TinyOnnx, save_bert

PAIRS: list[Pair] = [
    ("who wrote the novel", "the novel that kubrick filmed"),
    ("red fox", "a red fox, a blue whale"),
    ("red fox", ""),
    ("köln", "東京 shining"),
]


def test_an_export_in_float32_gives_the_logits_of_the_model(tmp_path: Path, own_cache: Path) -> None:
    labels = 2
    folder = save_bert(tmp_path / "bert", labels=labels)
    wanted = TorchPairs(folder, None, "cpu").logits(PAIRS)
    assert np.ptp(wanted, axis=0).min() > 0.01
    np.testing.assert_allclose(onnx_pairs(ModelFiles.of(folder), "float32", None).logits(PAIRS), wanted, atol=1e-4)


def test_where_a_folder_has_no_export_one_of_8_bits_is_made_once(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import onnx

    folder = save_bert(tmp_path / "bert")
    wanted = TorchPairs(folder, None, "cpu").logits(PAIRS)
    found = onnx_pairs(ModelFiles.of(folder), "auto", None).logits(PAIRS)
    assert np.abs(found - wanted).max() < 0.15 * np.ptp(wanted)
    graphs = [onnx.load(str(file)).graph for file in (own_cache / "nlp-retrieval" / "models" / "onnx").glob("*/model.onnx")]
    kinds = sorted(any(node.op_type == "MatMulInteger" for node in graph.node) for graph in graphs)
    assert kinds == [False, True]
    monkeypatch.setattr(pair_models, "write_graph", None)
    monkeypatch.setattr(backends, "write_quantized", None)
    np.testing.assert_array_equal(onnx_pairs(ModelFiles.of(folder), "int8", None).logits(PAIRS), found)


def test_what_cannot_be_exported_is_told(tmp_path: Path, own_cache: Path) -> None:
    with pytest.raises(ConfigurationError, match="precision='int8' needs backend='onnx'"):
        CrossEncoderReranker("any", precision="int8")
    alone = TinyOnnx().save(tmp_path / "alone")
    assert onnx_pairs(ModelFiles.of(alone), "auto", None).logits(PAIRS).shape == (4, 2)
    with pytest.raises(ModelError, match="is not a model for sequence classification"):
        onnx_pairs(ModelFiles.of(alone), "int8", None)
    causal = save_bert(tmp_path / "causal")
    config = json.loads((causal / "config.json").read_text())
    (causal / "config.json").write_text(json.dumps(config | {"architectures": ["BertForCausalLM"]}))
    with pytest.raises(ModelError, match=r"is not a model for sequence classification, .* pass backend='torch'"):
        onnx_pairs(ModelFiles.of(causal), "auto", None)
