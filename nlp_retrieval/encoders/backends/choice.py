"""Which backend and precision an encoder uses: what was asked for, or the fastest in a trial.

A trial never takes a lower precision than was allowed, and what it found is kept in the cache for this machine and model:
asked again, the answer is the same. An index records it, and is opened with what it records.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, cast, get_args

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.core.files.model_files import ModelFiles
from nlp_retrieval.encoders.backends.export import ExportPrecision
from nlp_retrieval.encoders.base import BaseEncoder
from nlp_retrieval.encoders.made_models import kept_model
from nlp_retrieval.errors import ConfigurationError

TorchPrecision = Literal["auto", "float32", "bfloat16", "float16"]
Precision = Literal["auto", "float32", "bfloat16", "float16", "int8"]
Backend = Literal["torch", "onnx", "auto"]

_USED: tuple[Any, ...] = tuple(one for one in get_args(Precision) if one != "auto")
_FORMAT = 1
_CHOICE_FILE = "choice.json"
_SECONDS = 0.4
"""Of the trial of one backend, apart from opening it."""
_SAMPLE = [
    "The novel was filmed twice, in 1956 and in 1987. " * 8,
    "A glacier is a body of dense ice that moves under its own weight. " * 5,
    "Who wrote the novel that Stanley Kubrick filmed?",
    "A harpsichord is played by means of a keyboard, which plucks its strings. " * 3,
]


@dataclass(frozen=True)
class Chosen:
    """What computes.

    Args:
        backend: ``torch`` or ``onnx``.
        precision: of torch's arithmetic, or of an export's weights.
    """

    backend: Literal["torch", "onnx"]
    precision: Precision

    @property
    def weights(self) -> ExportPrecision:
        """The precision of an export."""
        return cast(ExportPrecision, self.precision)


def check_choice(backend: Backend, precision: Precision, device: str | None) -> None:
    """Refuse what does not go together.

    Raises:
        ConfigurationError: the backend does not compute in this precision, or not on this device.
    """
    if backend == "torch" and precision == "int8":
        raise ConfigurationError("precision='int8' is for backend='onnx': torch's own 8 bits lose too much")
    if backend == "onnx" and precision in ("bfloat16", "float16"):
        raise ConfigurationError(f"precision={precision!r} is for backend='torch'; backend='onnx' takes int8 and float32")
    if (backend == "onnx" or precision == "int8") and device not in (None, "cpu"):
        raise ConfigurationError(f"device={device!r}: backend='onnx' runs on the CPU; leave it out, or pass backend='torch'")


def choose(
    backend: Backend, precision: Precision, device: str | None, files: ModelFiles, encoder_of: Callable[[Chosen], BaseEncoder]
) -> Chosen:
    """Return what is used for a backend and a precision that may both be ``auto``.

    Args:
        backend: as it was asked for.
        precision: as it was asked for.
        device: as it was asked for.
        files: of the model.
        encoder_of: makes the encoder that is tried.

    Raises:
        ModelError, DependencyError: a backend that is tried cannot be used.
    """
    candidates = _candidates(backend, precision, device)
    if len(candidates) == 1:
        return candidates[0]
    tried = [f"{one.backend} {one.precision}" for one in candidates]  # what auto means changes with the processor
    key = {"format": _FORMAT, "model": files.fingerprint, "tried": tried, "device": device, "machine": _machine()}

    def write(folder: Path) -> None:
        seconds = {one: _seconds(encoder_of(one)) for one in candidates}
        fastest = min(candidates, key=lambda one: seconds[one])
        told = {f"{one.backend} {one.precision}": round(seconds[one], 5) for one in candidates}
        chosen = {"backend": fastest.backend, "precision": fastest.precision, "seconds": told}
        (folder / _CHOICE_FILE).write_text(json.dumps(chosen, indent=1), "utf-8")

    told = read_json_file(kept_model("trials", key, write) / _CHOICE_FILE)
    return next(one for one in candidates if (one.backend, one.precision) == (told["backend"], told["precision"]))


def recorded_choice(recorded: Sequence[Config], wanted: Config, precision: Precision) -> Chosen | None:
    """Return what an index says that an encoder was chosen to use; None where it holds none like it.

    Args:
        recorded: the identities of the retrievers in the index.
        wanted: the identity of the encoder, but for backend and precision.
        precision: as it was asked for.
    """
    for one in _mappings(recorded):
        backend, used = one.get("backend"), one.get("precision")
        alike = all(key in one and one[key] == value for key, value in wanted.items())
        if alike and backend in ("torch", "onnx") and used in _USED and precision in ("auto", used):
            return Chosen(cast(Literal["torch", "onnx"], backend), cast(Precision, used))
    return None


def resolved_precision(precision: str, device: str | None) -> str:
    """What ``auto`` means on this machine, by torch."""
    if precision != "auto":
        return precision
    import torch

    if device != "cpu" and torch.cuda.is_available():
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    return "bfloat16" if torch.cpu.get_capabilities().get("amx_bf16", False) else "float32"


def queries_at_once(batch_size: int, precision: str, device: str | None) -> int:
    """Return how many queries torch may encode together: one at a time where it computes in less than float32.

    There, kernels round differently for each shape of a batch: a query in a batch would have another vector than alone, and
    find other passages.
    """
    return batch_size if resolved_precision(precision, device) == "float32" else 1


def require_device(device: str | None) -> None:
    """Raise :class:`ConfigurationError` unless torch has a device of this name here."""
    if device is None:
        return
    import torch

    try:
        wanted = torch.device(device)
    except RuntimeError:
        raise ConfigurationError(f"device={device!r} is none that torch knows; cpu, cuda, cuda:1 and mps are usual") from None
    here = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}
    if wanted.type in here and (wanted.index or 0) >= here[wanted.type]:
        found = ", ".join(f"{kind}:{number}" if kind == "cuda" else kind for kind, n in here.items() for number in range(n))
        raise ConfigurationError(f"there is no device {device!r} here (found: {found}); leave device out for the best")


def _candidates(backend: Backend, precision: Precision, device: str | None) -> list[Chosen]:
    """What may be used: with ``backend="auto"`` also ONNX, on a CPU, in no lower precision than was allowed."""
    by_onnx = Chosen("onnx", "int8" if precision == "auto" else precision)
    if backend == "onnx" or precision == "int8":
        return [by_onnx]
    by_torch = Chosen("torch", cast(Precision, resolved_precision(precision, device)))
    if backend == "torch" or precision in ("bfloat16", "float16") or not _on_cpu(device):
        return [by_torch]
    installed = all(importlib.util.find_spec(package) for package in ("onnxruntime", "tokenizers", "onnx"))
    return [by_torch, by_onnx] if installed else [by_torch]


def _mappings(values: Iterable[Any]) -> Iterator[Config]:
    for value in values:
        if isinstance(value, dict):
            yield value
            yield from _mappings(value.values())
        elif isinstance(value, list):
            yield from _mappings(value)


def _on_cpu(device: str | None) -> bool:
    import torch

    return device == "cpu" or (device is None and not torch.cuda.is_available() and not torch.backends.mps.is_available())


def _seconds(encoder: BaseEncoder) -> float:
    """The best time of several, for a few texts."""
    encoder.encode_passages(_SAMPLE)
    best, ends = float("inf"), time.perf_counter() + _SECONDS
    while True:
        begun = time.perf_counter()
        encoder.encode_passages(_SAMPLE)
        best = min(best, (now := time.perf_counter()) - begun)
        if now > ends:
            return best


def _machine() -> dict[str, str]:
    """What decides which backend is fastest here."""
    import onnxruntime  # its distribution has several names, onnxruntime-gpu among them

    packages = {package: version(package) for package in ("torch", "transformers")}
    packages["onnxruntime"] = onnxruntime.__version__
    return packages | {"cpu": platform.processor() or platform.machine(), "cores": str(os.cpu_count()), "node": platform.node()}
