"""Exporting a cross-encoder as one ONNX graph, in float32 or with 8-bit weights, checked against the model.

The weights are converted like those of encoders (:mod:`nlp_retrieval.encoders.backends`).
"""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nlp_retrieval.core.files.model_files import ModelFiles
from nlp_retrieval.encoders.backends import (
    GRAPH_FILE,
    TOKENIZER_FILE,
    ExportPrecision,
    require_onnx_extra,
    write_graph,
    write_quantized,
)
from nlp_retrieval.encoders.made_models import kept_model
from nlp_retrieval.encoders.model_folder import require_dense_extra
from nlp_retrieval.errors import ConfigurationError, ModelError, first_line
from nlp_retrieval.rerankers.pair_models import Logits, OnnxPairs, Pair, has_classifier, onnx_file

if TYPE_CHECKING:
    import torch

__all__ = ["PairPrecision", "onnx_pairs", "require_precision"]

PairPrecision = Literal["auto", "float32", "int8"]
"""Precision of the weights of an exported cross-encoder."""

_FORMAT = 1
_BESIDE = ("config.json", "tokenizer_config.json")
"""Files of a model with its greatest length of a pair, and the meaning of its outputs."""

_PROBES: list[Pair] = [
    ("who wrote the novel that kubrick filmed", "The novel was written by Stephen King in 1977, and filmed three years later."),
    ("who wrote the novel that kubrick filmed", "The Danube is 2,850 km long and flows through Vienna."),
    ("Köln", "Köln liegt am Rhein; 東京 is in Japan."),
    ("The tram carried 2.4 million passengers.", "It carried no passengers in that year. " * 5),
    ("red", ""),
    ("a red fox", "A red fox jumps over the lazy dog."),
]
"""Probes for comparing an export with its model."""

_APART = {"float32": 1e-3, "int8": 0.15}
"""Largest difference allowed between the logits of an export and its model, as a share of their spread over the probes."""
_ALWAYS_ALIKE = 0.02


def require_precision(backend: str, precision: PairPrecision) -> None:
    """Raise :class:`ConfigurationError` unless a backend computes in a precision."""
    if backend == "torch" and precision == "int8":
        raise ConfigurationError("precision='int8' needs backend='onnx': by torch, pairs are read in float32")


def onnx_pairs(files: ModelFiles, precision: PairPrecision, max_length: int | None) -> OnnxPairs:
    """Open a cross-encoder by onnxruntime: the export in its folder, or one that is created and kept in the cache.

    Args:
        files: of the model.
        precision: of the weights; ``auto`` uses the export in the folder as it is, or one of 8 bits if there is none.
        max_length: tokens that are read of a pair; None for the model's own limit.

    Raises:
        DependencyError: a package is missing that exports or runs graphs.
        ModelError: the model cannot be exported, or its export gives other scores.
        ConfigurationError: ``max_length`` is beyond the model's limit.
    """
    if precision == "auto" and onnx_file(files.folder) is not None:
        return OnnxPairs(files.folder, max_length)
    return OnnxPairs(_exported(files, "int8" if precision == "auto" else precision), max_length)


def _exported(files: ModelFiles, precision: ExportPrecision) -> Path:
    identity = {"format": _FORMAT, "kind": "pairs", "model": files.fingerprint, "precision": precision}

    def write(folder: Path) -> None:
        require_onnx_extra("onnx")
        if precision == "float32":
            require_dense_extra()
            import torch

            # or the cache would hold, under their fingerprint, an export of other files, or in the precision of another
            # computation
            with files.unchanged(), torch.autocast("cpu", enabled=False):
                _export(files.folder, folder)
            return
        whole = _exported(files, "float32")
        write_quantized(whole / GRAPH_FILE, folder / GRAPH_FILE)
        for name in (TOKENIZER_FILE, *_BESIDE):
            if (whole / name).is_file():
                shutil.copyfile(whole / name, folder / name)
        _require_agreement(OnnxPairs(whole, None).logits(_PROBES), OnnxPairs(folder, None).logits(_PROBES), "int8")

    return kept_model("onnx", identity, write)


def _export(source: Path, folder: Path) -> None:
    """Write graph and tokenizer of a model, and compare the export's scores with the model's."""
    if not has_classifier(source):
        raise ModelError(
            f"{source} is no model for sequence classification, which is what can be exported; pass backend='torch'"
        )
    model, tokenizer = _opened(source)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ModelError(f"{source} has no tokenizer.json, which onnxruntime's pairs need; pass backend='torch'")
    features = tokenizer(*map(list, zip(*_PROBES[:2], strict=True)), padding=True, return_tensors="pt")

    def compute(read: dict[str, torch.Tensor]) -> torch.Tensor:
        found: torch.Tensor = model(**read).logits
        return found

    write_graph(model, compute, features, folder / GRAPH_FILE, "logits")
    backend.no_padding()
    backend.no_truncation()
    (folder / TOKENIZER_FILE).write_text(backend.to_str(), "utf-8")
    for name in _BESIDE:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)
    _require_agreement(_by_torch(model, tokenizer), OnnxPairs(folder, None).logits(_PROBES), "float32")


def _opened(source: Path) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=True, trust_remote_code=False)
            model = AutoModelForSequenceClassification.from_pretrained(
                source, dtype=torch.float32, attn_implementation="eager", local_files_only=True, trust_remote_code=False
            )
    except Exception as error:
        raise ModelError(f"{source} does not load as a cross-encoder to export: {first_line(error)}") from error
    return model.eval(), tokenizer


def _by_torch(model: Any, tokenizer: Any) -> Logits:
    import torch

    with torch.inference_mode():
        read = [tokenizer([query], [text], truncation=True, return_tensors="pt") for query, text in _PROBES]
        rows = [model(**features).logits.numpy() for features in read]
    return np.concatenate(rows).astype(np.float32, copy=False)


def _require_agreement(wanted: Logits, found: Logits, precision: ExportPrecision) -> None:
    spread = float(np.ptp(wanted, axis=0).max())
    apart = float(np.abs(wanted - found).max()) if wanted.shape == found.shape else float("inf")
    allowed = max(_APART[precision] * spread, _ALWAYS_ALIKE * _APART[precision])
    if not apart <= allowed:
        cure = "pass precision='float32'" if precision == "int8" else "pass backend='torch'"
        raise ModelError(
            f"the {precision} export does not match its model: a probe's logits are {apart:.4f} apart, where {allowed:.4f} is "
            f"allowed (they spread over {spread:.3f}); {cure}"
        )
