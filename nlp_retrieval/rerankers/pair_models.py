"""Models that read a query and a passage together, run by torch or by onnxruntime.

Both run no code that comes with a model, and return raw logits: an activation would only flatten the best scores into ties.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.files.model_files import ModelFiles
from nlp_retrieval.core.files.opening import expanded, read_json_file
from nlp_retrieval.encoders.backends import (
    GRAPH_FILE,
    OF_TOKENS,
    TOKENIZER_FILE,
    ExportPrecision,
    exported,
    open_session,
    over_texts,
    require_device,
    require_onnx_extra,
    write_graph,
)
from nlp_retrieval.encoders.models import (
    ModelFolder,
    as_model_error,
    find_model,
    loading,
    require_dense_extra,
    require_words,
    turn_of,
)
from nlp_retrieval.errors import ModelError, first_line

if TYPE_CHECKING:
    import torch

Logits = NDArray[np.float32]
Pair = tuple[str, str]

_ONNX_FILES = ("model.onnx", "onnx/model.onnx")
_CLASSIFIER = "ForSequenceClassification"
_HEADS = (_CLASSIFIER, "ForCausalLM")
_NO_LIMIT = 1_000_000
_USUAL_LIMIT = 512


class PairModel(Protocol):
    """An open model."""

    def logits(self, pairs: list[Pair]) -> Logits:
        """Return ``[pairs, labels]``."""


class TorchPairs:
    """A cross-encoder of the sentence-transformers library.

    Args:
        folder: folder of the model.
        max_length: tokens that are read of a pair; None for the model's own limit.
        device: ``cpu``, ``cuda``, ...; None for the best there is.
        attention: the implementation; None for the fastest.

    Raises:
        DependencyError: sentence-transformers is not installed.
        ModelError: the folder holds no cross-encoder.
        ConfigurationError: there is no such device.

    Examples:
        >>> pairs = TorchPairs(Path("models/cross-encoder"), max_length=256, device=None)  # doctest: +SKIP
    """

    def __init__(self, folder: Path, max_length: int | None, device: str | None, attention: str | None = None) -> None:
        require_dense_extra()
        _require_head(folder)
        require_device(device)
        with loading(folder.name, folder, "cross-encoder"):
            import torch
            from sentence_transformers import CrossEncoder

            self._model = CrossEncoder(
                str(folder),
                device=device,
                max_length=max_length,
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={"dtype": torch.float32, "attn_implementation": attention},
                activation_fn=torch.nn.Identity(),
            )
            require_words(self._model)
        self._name = str(folder)
        turn_of(self._model)

    def logits(self, pairs: list[Pair]) -> Logits:
        with turn_of(self._model), as_model_error(self._name):
            predicted: NDArray[Any] = self._model.predict(pairs, batch_size=max(len(pairs), 1), show_progress_bar=False)
        return predicted.reshape(len(pairs), -1).astype(np.float32, copy=False)


class OnnxPairs:
    """A cross-encoder as ``tokenizer.json`` and ``model.onnx`` (in the same folder, or in a folder ``onnx``), on the CPU.

    Each pair is run by itself, on one thread, with as many at once as there are cores: the weights are often dynamically
    quantised, and then padding and the other pairs of a batch would change a pair's score.
    """

    def __init__(self, folder: Path, max_length: int | None) -> None:
        require_onnx_extra()
        from tokenizers import Tokenizer

        file = onnx_file(folder)
        if file is None or not (folder / "tokenizer.json").is_file():
            missing = "tokenizer.json" if file else " or ".join(_ONNX_FILES)
            raise ModelError(f"{folder} has no {missing}; export the model, or pass backend='torch'")
        try:
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            self._session = open_session(file)
        except Exception as error:
            raise ModelError(f"{folder} does not load with onnxruntime: {first_line(error)}") from error
        self._name = str(folder)
        self._inputs = [wanted.name for wanted in self._session.get_inputs()]
        unknown = set(self._inputs) - set(OF_TOKENS)
        if unknown:
            raise ModelError(
                f"{file} needs the inputs {', '.join(self._inputs)}; those of a text model are {', '.join(OF_TOKENS)}"
            )
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length or _own_limit(folder, self._tokenizer.truncation))

    def logits(self, pairs: list[Pair]) -> Logits:
        logits_of: dict[int, Logits] = {}

        def score(rows: range) -> None:
            for row in rows:
                feed = {name: np.array([getattr(encoded[row], OF_TOKENS[name])], np.int64) for name in self._inputs}
                logits_of[row] = np.asarray(self._session.run(None, feed)[0], np.float32).reshape(1, -1)

        with as_model_error(self._name):
            encoded = self._tokenizer.encode_batch(pairs)
            over_texts(len(pairs), score)
        return np.concatenate([logits_of[row] for row in range(len(pairs))]) if logits_of else np.zeros((0, 1), np.float32)


def find_pair_model(model: str, backend: str, revision: str | None, *, local_only: bool = False) -> ModelFolder:
    """Find a model's files: in a local folder, in the hub's cache, or on the hub.

    Raises:
        DependencyError: the library that runs it is not installed.
        ModelError: it was not found, or has no files for this backend.

    Examples:
        >>> Path("model").mkdir()
        >>> _ = Path("model/config.json").write_text("{}")
        >>> find_pair_model("./model", "torch", None).path.name
        'model'
    """
    (require_onnx_extra if backend == "onnx" else require_dense_extra)()
    folder = expanded(model)
    if not local_only and folder.is_dir() and onnx_file(folder):
        if backend == "onnx":
            return ModelFolder(folder, f"folder {folder.resolve()}")
        if not (folder / "config.json").is_file():
            raise ModelError(f"{model} holds only an ONNX export; pass backend='onnx'")
    return find_model(model, revision, local_only=local_only)


def onnx_file(folder: Path) -> Path | None:
    """The ONNX export in a model's folder, or None."""
    return next((folder / name for name in _ONNX_FILES if (folder / name).is_file()), None)


def _require_head(folder: Path) -> None:
    """Refuse a model without a scoring head: the library would add a random one, another at every load."""
    model_type = _setting(folder / "config_sentence_transformers.json", "model_type")
    heads = _setting(folder / "config.json", "architectures")
    if model_type == "CrossEncoder" or (model_type is None and heads is None):
        return
    if not isinstance(heads, list) or not any(str(head).endswith(_HEADS) for head in heads):
        head = ", ".join(map(str, heads)) if isinstance(heads, list) else model_type
        raise ModelError(f"{folder} is not a cross-encoder but {head}, without a scoring head; pass a model that has one")


def _own_limit(folder: Path, truncation: dict[str, Any] | None) -> int:
    named = [
        truncation and truncation["max_length"],
        _setting(folder / "tokenizer_config.json", "model_max_length"),
        _setting(folder / "config.json", "max_position_embeddings"),
    ]
    return next((int(limit) for limit in named if isinstance(limit, int) and limit < _NO_LIMIT), _USUAL_LIMIT)


def _setting(file: Path, key: str) -> object:
    try:
        settings = read_json_file(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ModelError(f"{file} cannot be read: {first_line(error)}") from None
    return settings.get(key) if isinstance(settings, dict) else None


# Exporting a cross-encoder as one ONNX graph with 8-bit weights, checked against the model.

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

_APART = 0.3
"""Largest difference allowed between the logits of an export and its model, as a share of their spread over the probes: a model
of ``nlp-retrieval evidence train-verifier`` is .17 apart, and as good (AUC .957 and .960 on FEVER)."""
_ALWAYS_ALIKE = 0.02


def onnx_pairs(files: ModelFiles, max_length: int | None) -> OnnxPairs:
    """Open a cross-encoder by onnxruntime: the export in its folder, or one of 8 bits, made at first use and kept in the cache.

    Raises:
        DependencyError: a package is missing that exports or runs graphs.
        ModelError: the model cannot be exported, or its export gives other scores.

    Examples:
        >>> files = ModelFiles.of(Path("models/cross-encoder"))  # doctest: +SKIP
        >>> pairs = onnx_pairs(files, max_length=256)  # doctest: +SKIP
    """
    if onnx_file(files.folder) is not None:
        return OnnxPairs(files.folder, max_length)

    def write(folder: Path) -> Logits:
        for name in _BESIDE:
            if (files.folder / name).is_file():
                shutil.copyfile(files.folder / name, folder / name)
        return _export(files.folder, folder)

    def by_graph(folder: Path) -> Logits:
        return OnnxPairs(folder, None).logits(_PROBES)

    return OnnxPairs(exported(files, "pairs", "int8", write, by_graph, _require_agreement), max_length)


def _export(source: Path, folder: Path) -> Logits:
    """Write graph and tokenizer of a model, and return what the model itself gives for the probes."""
    heads = _setting(source / "config.json", "architectures")
    if not isinstance(heads, list) or not any(str(head).endswith(_CLASSIFIER) for head in heads):
        raise ModelError(
            f"{source} is not a model for sequence classification, the only kind that can be exported; pass backend='torch'"
        )
    exact = TorchPairs(source, None, "cpu", "eager")
    import torch

    tokenizer, model = exact._model.tokenizer, exact._model.model
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ModelError(f"{source} has no tokenizer.json, which onnxruntime's pairs need; pass backend='torch'")

    def compute(features: dict[str, torch.Tensor]) -> torch.Tensor:
        logits: torch.Tensor = model(**features).logits
        return logits

    with torch.autocast("cpu", enabled=False), torch.inference_mode():  # in whose precision the caller may compute
        features = tokenizer(*map(list, zip(*_PROBES[:2], strict=True)), padding=True, return_tensors="pt")
        write_graph(model, compute, features, folder / GRAPH_FILE, "logits")
        backend.no_padding()
        backend.no_truncation()
        (folder / TOKENIZER_FILE).write_text(backend.to_str(), "utf-8")
        return exact.logits(_PROBES)


def _require_agreement(expected: Logits, actual: Logits, precision: ExportPrecision) -> None:
    spread = float(np.ptp(expected, axis=0).max())
    apart = float(np.abs(expected - actual).max()) if expected.shape == actual.shape else float("inf")
    allowed = _APART * max(spread, _ALWAYS_ALIKE)
    if not apart <= allowed:
        raise ModelError(
            f"the {precision} export does not match its model: a probe's logits are {apart:.4f} apart, where {allowed:.4f} is "
            f"allowed (they spread over {spread:.3f}); pass backend='torch'"
        )
