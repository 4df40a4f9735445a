"""Exporting a model of sentence-transformers: the whole of it, pooling included, as one ONNX graph, checked against the model.

8-bit weights have a scale for each column, and use 7 of the 8 bits: without VNNI an x86 CPU adds pairs of products in 16 bits,
and full ones overflow there. So one graph serves every CPU, and an index made on one can be searched on another. Activations
are turned to 8 bits as they come. Measured on MiniLM, the bit less costs nothing (docs/ENCODERS.md).
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.model_files import ModelFiles
from nlp_retrieval.encoders.backends.model import (
    GRAPH_FILE,
    OF_TOKENS,
    SETTINGS_FILE,
    TOKENIZER_FILE,
    OnnxModel,
    require_onnx_extra,
)
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.encoders.made_models import kept_model
from nlp_retrieval.errors import ModelError, first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import torch
    from sentence_transformers import SentenceTransformer

ExportPrecision = Literal["float32", "int8"]

_FORMAT = 1
_OPSET = 17
PROBES = (
    "A red fox jumps over the lazy dog.",
    "who",
    "Köln liegt am Rhein; 東京 is in Japan, and İstanbul is not Kyiv 🦊!",
    "  Spaces, TABS\tand lines\n\nstay as they were.  ",
    "In 1996 the novel was filmed twice: once by a man who had read it, and once by a man who had not. " * 4,
)
"""What an export and its model must agree about: scripts, case, spaces, short and long texts."""
_AGREES = {"float32": 0.9999, "int8": 0.9}
"""The lowest cosine between the vectors of an export and of its model."""


def exported(files: ModelFiles, precision: ExportPrecision, load: Callable[[], SentenceTransformer]) -> Path:
    """Return the folder of an export in the cache; make it where there is none.

    Args:
        files: of the model.
        precision: of the weights.
        load: loads the model in float32, on the CPU.

    Raises:
        DependencyError: a package is missing that exports or runs graphs.
        ModelError: the model cannot be exported, or its export gives other vectors.
    """
    require_onnx_extra()
    identity: Config = {"format": _FORMAT, "model": files.fingerprint, "precision": precision}
    identity["trust_remote_code"] = files.trust_remote_code

    def write(folder: Path) -> None:
        require_onnx_extra("onnx")
        if precision == "float32":
            with files.unchanged():  # or what is kept under their fingerprint would be of others
                model = load()
            _export(model, folder)
        else:
            _quantize(exported(files, "float32", load), folder)

    return kept_model("onnx", identity, write)


def _export(model: SentenceTransformer, folder: Path) -> None:
    """Write graph, tokenizer and settings of a model, and compare what they give with what the model gives."""
    tokenizer = getattr(model.tokenizer, "backend_tokenizer", None)
    if tokenizer is None:
        raise ModelError("the model has no tokenizer.json, which the ONNX backend reads; pass backend='torch'")
    if not all(getattr(module, "include_prompt", True) for module in model):
        raise ModelError("the model leaves prompts out of its vectors, which an exported graph cannot; pass backend='torch'")
    features = model.tokenizer(list(PROBES[:2]), padding=True, return_tensors="pt")
    if "attention_mask" not in features:
        raise ModelError("the model's tokenizer gives no attention mask; pass backend='torch'")

    def compute(read: dict[str, torch.Tensor]) -> torch.Tensor:
        found: torch.Tensor = model(read)["sentence_embedding"]
        return found

    write_graph(model, compute, features, folder / GRAPH_FILE, "vectors")
    (folder / TOKENIZER_FILE).write_text(tokenizer.to_str(), "utf-8")
    wanted: Vectors = model.encode(list(PROBES), prompt="", show_progress_bar=False, convert_to_numpy=True)
    settings: dict[str, Any] = {
        "prompts": dict(model.prompts),
        "default_prompt": model.prompts.get(model.default_prompt_name or "") or "",
        "dimension": int(wanted.shape[1]),
        "max_seq_length": model.max_seq_length,
    }
    (folder / SETTINGS_FILE).write_text(json.dumps(settings, ensure_ascii=False), "utf-8")
    require_agreement(wanted, OnnxModel(folder).encode(PROBES), "float32")


def write_graph(
    model: torch.nn.Module,
    compute: Callable[[dict[str, torch.Tensor]], torch.Tensor],
    features: Mapping[str, Any],
    file: Path,
    output: str,
) -> None:
    """Write what a model computes as an ONNX graph.

    Args:
        model: whose weights the graph holds.
        compute: what it computes of tensors ``[texts, tokens]`` by name; returns ``[texts, ...]``.
        features: what a tokenizer gives of two texts, by name; what is no tensor of tokens is left out.
        file: to write.
        output: what the graph calls what is returned.

    Raises:
        ModelError: the exporter cannot.
    """
    import torch

    read: dict[str, torch.Tensor] = {name: features[name] for name in OF_TOKENS if name in features}

    class Whole(torch.nn.Module):
        def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
            return compute(dict(zip(read, tensors, strict=True)))

    whole = Whole()
    whole.model = model
    with warnings.catch_warnings():  # of the exporter, to its own developers
        warnings.simplefilter("ignore")
        try:
            torch.onnx.export(
                whole.eval(),
                tuple(read.values()),
                str(file),
                input_names=list(read),
                output_names=[output],
                dynamic_axes={name: {0: "texts", 1: "tokens"} for name in read} | {output: {0: "texts"}},
                opset_version=_OPSET,
                dynamo=False,
            )
        except Exception as error:
            raise ModelError(f"the model cannot be exported to ONNX ({first_line(error)}); pass backend='torch'") from error


def write_quantized(whole: Path, file: Path) -> None:
    """Write a graph again, with 8-bit weights.

    Args:
        whole: the graph in float32.
        file: to write.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    graph = onnx.load_model_from_string(whole.read_bytes())
    onnx.helper.set_model_props(graph, {"onnx.quant.pre_process": "onnxruntime.quant"})  # or it advises to, at every model
    quantize_dynamic(
        graph,
        str(file),
        op_types_to_quantize=["MatMul"],
        per_channel=True,
        reduce_range=True,
        weight_type=QuantType.QInt8,
        extra_options={"MatMulConstBOnly": True},
    )


def _quantize(whole: Path, folder: Path) -> None:
    """Write an export again, with 8-bit weights, and compare what it gives with what the export gives."""
    write_quantized(whole / GRAPH_FILE, folder / GRAPH_FILE)
    for name in (TOKENIZER_FILE, SETTINGS_FILE):
        (folder / name).write_bytes((whole / name).read_bytes())
    require_agreement(OnnxModel(whole).encode(PROBES), OnnxModel(folder).encode(PROBES), "int8")


def require_agreement(wanted: Vectors, found: Vectors, precision: ExportPrecision) -> None:
    """Compare the vectors of an export with those that it should give.

    Args:
        wanted: ``[vectors, dimension]``, of texts or of their tokens.
        found: as ``wanted``.
        precision: of the export's weights.

    Raises:
        ModelError: a pair of vectors points apart.
    """
    lengths = np.linalg.norm(wanted, axis=1) * np.linalg.norm(found, axis=1)
    lowest = float(((wanted * found).sum(axis=1) / np.where(lengths > 0, lengths, 1)).min())
    if not lowest >= _AGREES[precision]:
        cure = "pass precision='float32'" if precision == "int8" else "pass backend='torch'"
        raise ModelError(
            f"the {precision} export does not match its model: a probe's vectors have the cosine {lowest:.4f}, and at least "
            f"{_AGREES[precision]} is needed; {cure}"
        )
