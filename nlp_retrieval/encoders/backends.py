"""Backends of sentence-transformers models: torch, or onnxruntime with graphs that are exported here."""

from __future__ import annotations

import importlib.util
import json
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.model_files import ModelFiles
from nlp_retrieval.core.files.opening import read_json_file
from nlp_retrieval.core.processes import in_threads, usable_cores
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.encoders.models import MADE_FILE, as_model_error, kept_model, require_dense_extra
from nlp_retrieval.errors import ConfigurationError, DependencyError, ModelError, first_line, install

if TYPE_CHECKING:
    import onnxruntime
    import torch
    from sentence_transformers import MultiVectorEncoder, SentenceTransformer

TorchPrecision = Literal["auto", "float32", "bfloat16", "float16"]
Precision = Literal["auto", "float32", "bfloat16", "float16", "int8"]
ExportPrecision = Literal["float32", "int8"]
Backend = Literal["torch", "onnx", "auto"]


def check_choice(backend: Backend, precision: Precision, device: str | None) -> None:
    """Refuse combinations that do not work."""
    if backend == "torch" and precision == "int8":
        raise ConfigurationError("precision='int8' is for backend='onnx': torch's own 8 bits lose too much")
    if backend == "onnx" and precision in ("bfloat16", "float16"):
        raise ConfigurationError(f"precision={precision!r} is for backend='torch'; backend='onnx' takes int8 and float32")
    if (backend == "onnx" or precision == "int8") and device not in (None, "cpu"):
        raise ConfigurationError(f"device={device!r}: backend='onnx' runs on the CPU; leave it out, or pass backend='torch'")


def resolved_precision(precision: str, device: str | None) -> str:
    """Return the precision that ``auto`` means with torch on this machine."""
    if precision != "auto":
        return precision
    require_dense_extra()
    import torch

    if device != "cpu" and torch.cuda.is_available():
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    return "bfloat16" if torch.cpu.get_capabilities().get("amx_bf16", False) else "float32"


def queries_at_once(batch_size: int, precision: str, device: str | None) -> int:
    """Return how many queries torch may encode together: in less than float32 one, whose vector would depend on the others."""
    return batch_size if resolved_precision(precision, device) == "float32" else 1


def require_device(device: str | None) -> None:
    """Raise :class:`ConfigurationError` unless torch has a device of this name here.

    Examples:
        >>> require_device(None)  # any device
    """
    if device is None:
        return
    require_dense_extra()
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigurationError(
            f"there is no device {device!r} here ({first_line(error)}); leave device out for the best, or name cpu, cuda or mps"
        ) from None


def on_cpu(device: str | None) -> bool:
    """Return whether torch computes on the CPU here."""
    require_dense_extra()
    import torch

    return device == "cpu" or (device is None and not torch.cuda.is_available() and not torch.backends.mps.is_available())


# Running an exported model: one text at a time on each thread, so that its vector does not depend on the others.

GRAPH_FILE, TOKENIZER_FILE, SETTINGS_FILE = "model.onnx", "tokenizer.json", "settings.json"
OF_TOKENS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
"""Inputs that a graph may have, by the tokenizer's names for them."""
_NO_LIMIT = 1_000_000
_AT_LEAST = 4  # texts per thread


class OnnxModel:
    """An exported model, open; safe in several threads."""

    def __init__(self, folder: Path, max_length: int | None = None) -> None:
        from tokenizers import Tokenizer

        try:
            settings: dict[str, Any] = read_json_file(folder / SETTINGS_FILE)
            self.prompts: dict[str, str] = settings["prompts"]
            self.default_prompt: str = settings["default_prompt"]
            self.dimension: int = settings["dimension"]
            self.max_seq_length: int | None = max_length or settings["max_seq_length"]
            self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
            self._session = open_session(folder / GRAPH_FILE)
        except Exception as error:
            raise ModelError(f"{folder} does not load with onnxruntime: {first_line(error)}") from error
        self._name = str(folder)
        self._inputs = [wanted.name for wanted in self._session.get_inputs()]
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        if self.max_seq_length is not None and self.max_seq_length < _NO_LIMIT:
            self._tokenizer.enable_truncation(self.max_seq_length)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return ``[texts, dimension]``, as the model returns them."""
        vectors = np.zeros((len(texts), self.dimension), np.float32)

        def fill(rows: range) -> None:
            for row in rows:
                encoded = self._tokenizer.encode(texts[row])
                feed = {name: np.array([getattr(encoded, OF_TOKENS[name])], np.int64) for name in self._inputs}
                vectors[row] = self._session.run(None, feed)[0][0]

        with as_model_error(self._name):
            over_texts(len(texts), fill)
        return vectors

    def longer(self, texts: Sequence[str]) -> int:
        """Return how many texts have more tokens than the model reads."""
        with as_model_error(self._name):
            return sum(bool(self._tokenizer.encode(text).overflowing) for text in texts)


def open_session(file: Path) -> onnxruntime.InferenceSession:
    """Open a graph, to run in the calling thread, without threads of its own, which spin."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    graph = file.read_bytes()  # not by its path, which could be mapped and overwritten
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def over_texts(n_texts: int, work: Callable[[range], None]) -> None:
    """Process texts on all usable cores; a few in the calling thread."""
    size = _AT_LEAST if usable_cores() > 1 and n_texts >= 2 * _AT_LEAST else max(1, n_texts)
    in_threads(work, [range(first, min(first + size, n_texts)) for first in range(0, n_texts, size)])


def require_onnx_extra(*also: str) -> None:
    """Raise :class:`DependencyError` unless onnxruntime, tokenizers and the packages named are installed."""
    for package in ("onnxruntime", "tokenizers", *also):
        if importlib.util.find_spec(package) is None:
            raise DependencyError(f"backend='onnx' needs {package}: {install('onnx')}")


# Exporting a whole sentence-transformers model, including pooling, as one ONNX graph, checked against the model.
#
# 8-bit weights have a scale for each column, and use 7 of the 8 bits: without VNNI an x86 CPU adds pairs of products in 16
# bits, where full ones overflow. So one graph serves every CPU.

_FORMAT = 1
_OPSET = 17
PROBES = (
    "A red fox jumps over the lazy dog.",
    "who",
    "Köln liegt am Rhein; 東京 is in Japan, and İstanbul is not Kyiv 🦊!",
    "  Spaces, TABS\tand lines\n\nstay as they were.  ",
    "In 1996 the novel was filmed twice: once by a man who had read it, and once by a man who had not. " * 4,
)
_AGREES = {"float32": 0.9999, "int8": 0.9}
"""Lowest cosine allowed between a vector of an export and that of its model."""


def exported(
    files: ModelFiles,
    kind: str,
    precision: ExportPrecision,
    write: Callable[[Path], Vectors],
    by_graph: Callable[[Path], Vectors],
    check: Callable[[Vectors, Vectors, ExportPrecision], None] | None = None,
) -> Path:
    """Return the folder of an export in the cache; create it if necessary."""
    require_onnx_extra()

    def make(folder: Path) -> None:
        require_onnx_extra("onnx")
        if precision == "float32":
            expected = write(folder)
        else:
            whole = exported(files, kind, "float32", write, by_graph, check)
            for file in whole.iterdir():
                if file.name == GRAPH_FILE:
                    write_quantized(file, folder / GRAPH_FILE)
                elif file.name != MADE_FILE:
                    shutil.copyfile(file, folder / file.name)
            expected = by_graph(whole)
        (check or _require_agreement)(expected, by_graph(folder), precision)

    identity: Config = {"format": _FORMAT, "kind": kind, "model": files.fingerprint, "precision": precision}
    return kept_model("onnx", identity | {"trust_remote_code": files.trust_remote_code}, make)


def exported_encoder(files: ModelFiles, precision: ExportPrecision, load: Callable[[], SentenceTransformer]) -> Path:
    """Return the folder of a whole encoder as a graph."""
    return exported(
        files, "texts", precision, lambda folder: _export(load(), folder), lambda folder: OnnxModel(folder).encode(PROBES)
    )


def _export(model: SentenceTransformer, folder: Path) -> Vectors:
    """Write graph, tokenizer and settings of a model, and return the model's own vectors of the probes."""
    tokenizer = getattr(model.tokenizer, "backend_tokenizer", None)
    if tokenizer is None:
        raise ModelError("the model has no tokenizer.json, which the ONNX backend reads; pass backend='torch'")
    if not all(getattr(module, "include_prompt", True) for module in model):
        raise ModelError("the model leaves prompts out of its vectors, which an exported graph cannot; pass backend='torch'")

    features = model.tokenizer(list(PROBES[:2]), padding=True, return_tensors="pt")
    write_graph(model, lambda tensors: model(tensors)["sentence_embedding"], features, folder / GRAPH_FILE, "vectors")
    (folder / TOKENIZER_FILE).write_text(tokenizer.to_str(), "utf-8")
    wanted: Vectors = model.encode(list(PROBES), prompt="", show_progress_bar=False, convert_to_numpy=True)
    settings = {
        "prompts": dict(model.prompts),
        "default_prompt": model.prompts.get(model.default_prompt_name or "") or "",
        "dimension": int(wanted.shape[1]),
        "max_seq_length": model.max_seq_length,
    }
    (folder / SETTINGS_FILE).write_text(json.dumps(settings, ensure_ascii=False), "utf-8")
    return wanted


def write_graph(
    model: torch.nn.Module,
    compute: Callable[[dict[str, torch.Tensor]], torch.Tensor],
    features: Mapping[str, Any],
    file: Path,
    output: str,
) -> None:
    """Write a model's computation as an ONNX graph."""
    import torch

    features_read: dict[str, torch.Tensor] = {name: features[name] for name in OF_TOKENS if name in features}

    class Whole(torch.nn.Module):
        def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
            return compute(dict(zip(features_read, tensors, strict=True)))

    module = Whole()
    module.model = model
    with warnings.catch_warnings():  # to the exporter's own developers
        warnings.simplefilter("ignore")
        try:
            torch.onnx.export(
                module.eval(),
                tuple(features_read.values()),
                str(file),
                input_names=list(features_read),
                output_names=[output],
                dynamic_axes={name: {0: "texts", 1: "tokens"} for name in features_read} | {output: {0: "texts"}},
                opset_version=_OPSET,
                dynamo=False,
            )
        except Exception as error:
            raise ModelError(f"the model cannot be exported to ONNX ({first_line(error)}); pass backend='torch'") from error


def write_quantized(source: Path, file: Path) -> None:
    """Write a graph again, with 8-bit weights."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    graph = onnx.load_model_from_string(source.read_bytes())
    onnx.helper.set_model_props(graph, {"onnx.quant.pre_process": "onnxruntime.quant"})  # or it advises this for every model
    quantize_dynamic(
        graph,
        str(file),
        op_types_to_quantize=["MatMul"],
        per_channel=True,
        reduce_range=True,
        weight_type=QuantType.QInt8,
        extra_options={"MatMulConstBOnly": True},
    )


def _require_agreement(expected: Vectors, actual: Vectors, precision: ExportPrecision) -> None:
    lengths = np.linalg.norm(expected, axis=1) * np.linalg.norm(actual, axis=1)
    lowest = float(((expected * actual).sum(axis=1) / np.where(lengths > 0, lengths, 1)).min())
    if not lowest >= _AGREES[precision]:
        cure = "pass precision='float32'" if precision == "int8" else "pass backend='torch'"
        raise ModelError(f"the {precision} export does not match its model: the cosine of a probe is {lowest:.4f}; {cure}")


# Exporting the transformer of a multi-vector model; the library still handles prompts, mask tokens and projection.


def compute_by_graph(model: MultiVectorEncoder, files: ModelFiles, precision: ExportPrecision) -> None:
    """Let onnxruntime compute a model's transformer, by an export that is created if necessary."""
    import torch

    def write(folder: Path) -> Vectors:
        expected = _encode_probes(model)
        features = model.preprocess(list(PROBES[:2]), task="document")
        write_graph(model[0], lambda tensors: model[0](tensors)["token_embeddings"], features, folder / GRAPH_FILE, "tokens")
        return expected

    with torch.autocast("cpu", enabled=False):  # in whose precision the caller may compute
        folder = exported(files, "tokens", precision, write, lambda folder: _encode_probes(model, folder / GRAPH_FILE))
    _run(model, folder / GRAPH_FILE)
    for parameter in model[0].parameters():
        parameter.data = parameter.data.new_empty(0)


def _run(model: MultiVectorEncoder, file: Path) -> None:
    """Replace a model's transformer by a graph."""
    import torch

    session = open_session(file)
    names = [wanted.name for wanted in session.get_inputs()]

    def forward(features: dict[str, Any], **_: Any) -> dict[str, Any]:
        n_texts, width = features["input_ids"].shape
        inputs = {name: features[name].numpy() for name in names}
        counts = (features["attention_mask"].bool() | features.get("query_expansion_positions", False)).numpy()
        spans = [_span(row) for row in counts]
        outputs: dict[int, Vectors] = {}

        def fill(rows: range) -> None:
            for row in rows:
                feed = {name: values[row : row + 1, spans[row]] for name, values in inputs.items()}
                outputs[row] = session.run(None, feed)[0][0]

        over_texts(n_texts, fill)
        tokens = np.zeros((n_texts, width, outputs[0].shape[1]), np.float32)
        for row, vectors in outputs.items():
            tokens[row, spans[row]] = vectors
        return features | {"token_embeddings": torch.from_numpy(tokens)}

    model[0].forward = forward


def _span(counts: np.ndarray[Any, Any]) -> slice:
    """The tokens from the first that counts to the last; one token of a text that has none."""
    places = np.flatnonzero(counts)
    return slice(int(places[0]), int(places[-1]) + 1) if len(places) else slice(0, 1)


def _encode_probes(model: MultiVectorEncoder, file: Path | None = None) -> Vectors:
    """The vectors of all tokens of the probes, as queries and as passages, by the model or by its graph."""
    if file is not None:
        _run(model, file)
    try:
        of_tasks = (model.encode_query, model.encode_document)
        encoded = [encode(list(PROBES), batch_size=1, show_progress_bar=False) for encode in of_tasks]
    finally:
        vars(model[0]).pop("forward", None)
    return np.concatenate([tokens for texts in encoded for tokens in texts])
