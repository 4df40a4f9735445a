"""Exporting a multi-vector model: its transformer as one ONNX graph, checked against the model.

Prompts, mask tokens, projection and what is left out of a passage stay with the library, so that there is one account of what
a checkpoint wants; the graph takes the place of the transformer's weights. Weights are turned to 8 bits as those of other
encoders are (:mod:`nlp_retrieval.encoders.backends.export`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.model_files import ModelFiles
from nlp_retrieval.encoders.backends.export import PROBES, ExportPrecision, require_agreement, write_graph, write_quantized
from nlp_retrieval.encoders.backends.model import GRAPH_FILE, in_threads, open_session, require_onnx_extra
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.encoders.made_models import kept_model
from nlp_retrieval.errors import ModelError, first_line

if TYPE_CHECKING:
    import torch
    from sentence_transformers import MultiVectorEncoder

_FORMAT = 1


def compute_by_graph(model: MultiVectorEncoder, files: ModelFiles, precision: ExportPrecision) -> None:
    """Have onnxruntime compute what a model's transformer does, by an export that is made where there is none.

    Texts are computed one by one, in threads and without what fills up a batch, so a text's vectors do not depend on the
    others; the mask tokens that fill up a query count.

    Args:
        model: in float32, on the CPU; its transformer's weights are gone afterwards.
        files: its files.
        precision: of the export's weights.

    Raises:
        DependencyError: a package is missing that exports or runs graphs.
        ModelError: the model cannot be exported, or its export gives other vectors.
    """
    require_onnx_extra()
    _run(model, _exported(model, files, precision) / GRAPH_FILE)
    for parameter in model[0].parameters():
        parameter.data = parameter.data.new_empty(0)


def _exported(model: MultiVectorEncoder, files: ModelFiles, precision: ExportPrecision) -> Path:
    identity: Config = {"format": _FORMAT, "kind": "tokens", "model": files.fingerprint, "precision": precision}
    identity["trust_remote_code"] = files.trust_remote_code

    def write(folder: Path) -> None:
        import torch

        require_onnx_extra("onnx")
        with torch.autocast("cpu", enabled=False):  # in whose precision the caller may compute
            if precision == "float32":
                wanted = _probed(model)
                _export(model, folder / GRAPH_FILE)
            else:
                whole = _exported(model, files, "float32") / GRAPH_FILE
                wanted = _probed(model, whole)
                write_quantized(whole, folder / GRAPH_FILE)
            require_agreement(wanted, _probed(model, folder / GRAPH_FILE), precision)

    return kept_model("onnx", identity, write)


def _export(model: MultiVectorEncoder, file: Path) -> None:
    def compute(tensors: dict[str, torch.Tensor]) -> torch.Tensor:
        found: torch.Tensor = model[0](tensors)["token_embeddings"]
        return found

    write_graph(model[0], compute, model.preprocess(list(PROBES[:2]), task="document"), file, "tokens")


def _run(model: MultiVectorEncoder, file: Path) -> None:
    """Put a graph in the place of what a model's transformer computes."""
    import torch

    session = open_session(file)
    names = [wanted.name for wanted in session.get_inputs()]

    def forward(features: dict[str, Any], **_: Any) -> dict[str, Any]:
        n_texts, width = features["input_ids"].shape
        read = {name: features[name].numpy() for name in names}
        found: dict[int, Vectors] = {}
        counts = features["attention_mask"].bool() | features.get("query_expansion_positions", False)
        spans = [_span(row) for row in counts.numpy()]

        def fill(rows: range) -> None:
            for row in rows:
                feed = {name: values[row : row + 1, spans[row]] for name, values in read.items()}
                try:
                    found[row] = session.run(None, feed)[0][0]
                except Exception as error:
                    n_tokens = spans[row].stop - spans[row].start
                    raise ModelError(
                        f"the exported model fails at a text of {n_tokens} tokens: {first_line(error)}; "
                        "set max_length to what the model can read"
                    ) from error

        in_threads(n_texts, fill)
        tokens = np.zeros((n_texts, width, found[0].shape[1]), np.float32)
        for row, vectors in found.items():
            tokens[row, spans[row]] = vectors
        return features | {"token_embeddings": torch.from_numpy(tokens)}

    model[0].forward = forward


def _span(counts: np.ndarray[Any, Any]) -> slice:
    """From the first token that counts to the last; one token of a text that has none."""
    places = np.flatnonzero(counts)
    return slice(int(places[0]), int(places[-1]) + 1) if len(places) else slice(0, 1)


def _probed(model: MultiVectorEncoder, file: Path | None = None) -> Vectors:
    """The vectors of all tokens of the probes, as queries and as passages, by the model or by a graph in its place."""
    if file is not None:
        _run(model, file)
    try:
        of_tasks = (model.encode_query, model.encode_document)
        found = [encode(list(PROBES), batch_size=1, show_progress_bar=False) for encode in of_tasks]
    finally:
        vars(model[0]).pop("forward", None)
    return np.concatenate([tokens for texts in found for tokens in texts])
