"""Verification by a model that reads a claim and a passage together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nlp_retrieval.core import MODEL_RULES, READS_FILE, may_set, read_json_file
from nlp_retrieval.encoders import ModelFolder, ModelHolder
from nlp_retrieval.errors import ConfigurationError, ModelError
from nlp_retrieval.rerankers import PairModel, TorchPairs, find_pair_model, onnx_pairs
from nlp_retrieval.systems.evidence.lookups.checks import check
from nlp_retrieval.systems.evidence.verifiers.base import Judgement, Span, nearest_windows
from nlp_retrieval.systems.evidence.verifiers.lexical import CalibratedVerifier, softmax

Meaning = Literal["support", "contradict", "neutral", "not_support"]
_NAMES: dict[str, Meaning] = {
    "support": "support", "supports": "support", "supported": "support", "entailment": "support", "entails": "support",
    "attributable": "support", "consistent": "support", "contradict": "contradict", "contradicts": "contradict",
    "contradiction": "contradict", "contradictory": "contradict", "refute": "contradict", "refutes": "contradict",
    "refuted": "contradict", "neutral": "neutral", "nei": "neutral", "not enough info": "neutral", "noinfo": "neutral",
    "not_enough_info": "neutral", "not_support": "not_support", "not_supported": "not_support", "unsupported": "not_support",
    "not_entailment": "not_support", "inconsistent": "not_support", "hallucinated": "not_support",
}  # fmt: skip
_MOST_CLAIM = 1000
_ALLOWED = ({"support", "contradict", "neutral"}, {"support", "contradict"}, {"support", "not_support"})
_NOTHING = np.full(2, -30.0)
"""Logits of support and contradict without any evidence."""


class PairModelVerifier(ModelHolder[PairModel], CalibratedVerifier):
    """Judges by a cross-encoder for natural language inference or fact checking: any of the hub, or one trained here.

    A passage is read in windows of neighbouring sentences. The evidence for support is that of the window with the most
    support over neutral, and likewise for contradict; the deciding sentence is the one of that window with most words of the
    claim. Models of two labels (supported or not) give no probability of contradict. A claim of more than 1,000 characters is
    not judged, because its end would be cut off.

    Args:
        model: a hub name, or a local folder, such as ``nlp-retrieval evidence train-verifier`` writes.
        labels: the meanings of the model's outputs, in order, of "support", "contradict", "neutral" and "not_support"; by
            default those in its config.json, which given ones may not contradict.
        calibration: a file of ``nlp-retrieval evidence calibrate``; by default the model's probabilities are used
            unchanged.
        backend: ``torch``; or ``onnx`` for the CPU: the export in the model's folder, or one of 8 bits that is made at
            first use and cached.
        window: the longest window, in characters.
        most_windows: the most windows of a passage that are read: those that share most words with the claim.
        batch_size: pairs that are read at once.
        device: torch device; by default the best available.
        revision: commit, tag or branch on the hub.

    Examples:
        >>> PairModelVerifier("cross-encoder/nli-deberta-v3-small", backend="onnx")
        PairModelVerifier(model='cross-encoder/nli-deberta-v3-small', backend='onnx')
    """

    name = "pair_model"
    manifest_may_set = may_set(
        *("labels", "backend", "window", "most_windows", "batch_size"), **MODEL_RULES, calibration=READS_FILE
    )
    search_only = frozenset({"batch_size", "device"})
    apart_from_model = frozenset({"batch_size", "labels", "calibration", "window", "most_windows"})

    def __init__(
        self,
        model: str,
        labels: list[Meaning] | None = None,
        calibration: str | None = None,
        backend: Literal["torch", "onnx"] = "torch",
        window: Annotated[int, Field(ge=50)] = 330,
        most_windows: Annotated[int, Field(ge=1)] = 12,
        batch_size: Annotated[int, Field(ge=1)] = 32,
        device: str | None = None,
        revision: str | None = None,
    ) -> None:
        self.model = model
        self.labels = labels
        self.calibration = calibration
        self.backend = backend
        self.window = window
        self.most_windows = most_windows
        self.batch_size = batch_size
        self.device = device
        self.revision = revision
        self._columns: list[Meaning] | None = None

    def find_model(self) -> ModelFolder:
        return find_pair_model(self.model, self.backend, self.revision, local_only=self.local_only)

    def load_model(self) -> PairModel:
        if self.backend == "onnx":
            return onnx_pairs(self.files, None)
        return TorchPairs(self.files.folder, None, self.device)

    def judge_pairs(self, claims: list[str], passages: list[str]) -> list[Judgement]:
        windows = [
            [] if len(claim) > _MOST_CLAIM else nearest_windows(claim, passage, self.window, self.most_windows)
            for claim, passage in zip(claims, passages, strict=True)
        ]
        pairs = [(claims[n], passages[n][slice(*span)]) for n, spans in enumerate(windows) for span in spans]
        ends = np.cumsum([0, *map(len, windows)])
        evidence = self._evidence(pairs)
        return [
            self._judgement(claims[n], passages[n], spans, evidence[ends[n] : ends[n + 1]]) for n, spans in enumerate(windows)
        ]

    def _judgement(self, claim: str, passage: str, windows: list[Span], evidence: NDArray[np.float64]) -> Judgement:
        """Judge by the most evidence of any window; the deciding sentence is the one of that window nearest to the claim."""
        checked = check(claim, passage)
        best = evidence.max(axis=0) if windows else _NOTHING
        bounded = np.clip(best, _NOTHING, -_NOTHING)  # a model without a label for contradict gives -inf
        signals = {"model_support": float(bounded[0]), "model_contradict": float(bounded[1])} | checked.signals
        if not windows:
            return Judgement(0.0, 0.0, 1.0, (0, 0), signals, was_judged=False)
        window = windows[int(evidence[:, int(best[0] < best[1])].argmax())]
        (sentence,) = nearest_windows(claim, passage[slice(*window)], 1, 1)
        if self.weights is None:
            (probabilities,) = softmax(np.append(best, 0.0)[None])
        else:
            (probabilities,) = self.weights.probabilities([signals])
        support, contradict, neutral = probabilities.tolist()
        return Judgement(support, contradict, neutral, (window[0] + sentence[0], window[0] + sentence[1]), signals)

    def _evidence(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Return ``[pairs, 2]``: logits of support and of contradict, minus that of neutral."""
        model, columns = self.open_model(), self.columns
        order = sorted(range(len(pairs)), key=lambda number: len(pairs[number][1]))
        evidence = np.zeros((len(pairs), 2))
        for first in range(0, len(order), self.batch_size):
            batch = order[first : first + self.batch_size]
            logits = np.asarray(model.logits([pairs[n] for n in batch]), np.float64)
            if logits.shape != (len(batch), len(columns)):
                raise ModelError(f"{self.model} gives {logits.shape[1]} outputs per pair, and its labels are {len(columns)}")
            if n_wrong := int((~np.isfinite(logits)).any(axis=1).sum()):
                raise ModelError(f"{self.model} gives NaN or infinity for {n_wrong} pairs")
            evidence[batch] = _against_neutral(logits, columns)
        return evidence

    @property
    def columns(self) -> list[Meaning]:
        """Return the meanings of the model's outputs, in order: the given ones, else those of its config.json."""
        if self._columns is None:
            declared = _labels_of(self.files.folder / "config.json")
            columns = self.labels or declared
            if declared is not None and columns != declared:
                raise ModelError(f"{self.model}: labels={columns}, and its config.json says {declared}; correct the wrong one")
            if columns is None:
                raise ModelError(
                    f"{self.model}: its config.json does not say what its outputs mean; pass "
                    'labels=["contradict", "neutral", "support"], in the order of the model card'
                )
            if len(set(columns)) != len(columns) or set(columns) not in _ALLOWED:
                raise ConfigurationError(
                    f"{self.model}: labels {columns}; they must be support, contradict and neutral, or support and "
                    "contradict, or support and not_support, each once"
                )
            self._columns = columns
        return self._columns


def _against_neutral(logits: NDArray[np.float64], columns: list[Meaning]) -> NDArray[np.float64]:
    by_label = {label: logits[:, number] for number, label in enumerate(columns)}
    if "not_support" in by_label:
        support = by_label["support"] - by_label["not_support"]
        return np.stack([support, np.full(len(logits), -np.inf)], axis=1)
    neutral = by_label.get("neutral")
    if neutral is None:  # support or contradict: neither is likelier than both together
        neutral = np.logaddexp(by_label["support"], by_label["contradict"]) - np.log(2)
    return np.stack([by_label["support"] - neutral, by_label["contradict"] - neutral], axis=1)


def _labels_of(file: Any) -> list[Meaning] | None:
    """Return the meanings of a model's outputs by its config.json; None if its names are unknown."""
    try:
        settings = read_json_file(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ModelError(f"{file} cannot be read: {(str(error).splitlines() or [''])[0]}") from None
    names = settings.get("id2label") if isinstance(settings, dict) else None
    if not isinstance(names, dict) or not names:
        return None
    meanings = [_NAMES.get(str(names.get(str(number))).strip().lower()) for number in range(len(names))]
    return None if None in meanings else [meaning for meaning in meanings if meaning is not None]
