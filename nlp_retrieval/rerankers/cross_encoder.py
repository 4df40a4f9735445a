"""Reranking by a model that reads the query and a passage together: slow, and the most exact there is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Annotated, Literal
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nlp_retrieval.core.component import Config, canonical_json
from nlp_retrieval.core.forks import Lock
from nlp_retrieval.core.model_files import ModelFiles
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.reranker import BaseReranker, Blend
from nlp_retrieval.encoders.model_folder import ModelFolder
from nlp_retrieval.errors import ConfigurationError, ModelError
from nlp_retrieval.rerankers.pair_models import Logits, OnnxPairs, PairModel, TorchPairs, find_pair_model

_loaded: WeakValueDictionary[str, PairModel] = WeakValueDictionary()
_loading = Lock()


class CrossEncoderReranker(BaseReranker):
    """Scores a query and a passage by a cross-encoder (Nogueira and Cho, 2019, https://arxiv.org/abs/1901.04085).

    The score is the model's logit, without an activation; of a model with two logits ("not relevant", "relevant") the
    second less the first. The model is opened at first use, in float32, and shared by all rerankers of equal settings. Its
    files are read for their fingerprint when that is first asked for; if they change between that and opening, using the
    reranker is an error.

    Args:
        model: a hub name, or a local folder. With ``backend="onnx"`` a folder with tokenizer.json and model.onnx will do.
        backend: ``torch`` runs the model by sentence-transformers; ``onnx`` runs the export in its folder by onnxruntime
            on the CPU, and needs no torch.
        max_length: tokens that are read of a pair, query and passage together; by default the model's own limit.
        batch_size: pairs that torch reads at once; batches are made of passages of like length.
        blend: what becomes of the incoming ranking: ``replace`` it, fuse with it by ``rank`` or by ``score``.
        device: of torch: ``cpu``, ``cuda``, ...; by default the best there is.
        revision: commit, tag or branch on the hub.
    """

    name = "cross_encoder"
    search_only = frozenset({"batch_size", "device"})

    def __init__(
        self,
        model: str = "cross-encoder/ms-marco-MiniLM-L6-v2",
        backend: Literal["torch", "onnx"] = "torch",
        max_length: Annotated[int, Field(ge=8)] | None = None,
        batch_size: Annotated[int, Field(ge=1)] = 32,
        blend: Blend = "replace",
        device: str | None = None,
        revision: str | None = None,
    ) -> None:
        if backend == "onnx" and device not in {None, "cpu"}:
            raise ConfigurationError(f"CrossEncoderReranker: device={device!r}: backend='onnx' runs on the CPU; leave it out")
        self.model = model
        self.backend = backend
        self.max_length = max_length
        self.batch_size = batch_size
        self.blend: Blend = blend
        self.device = device
        self.revision = revision
        self._found: ModelFolder | None = None
        self._files: ModelFiles | None = None
        self._shared: PairModel | None = None

    @property
    def folder(self) -> ModelFolder:
        """Where the model's files are, and where they come from."""
        if self._found is None:
            self._found = find_pair_model(self.model, self.backend, self.revision, local_only=self.local_only)
        return self._found

    @property
    def files(self) -> ModelFiles:
        """The model's files, as they were when they were first asked for."""
        if self._files is None:
            with _loading:  # threads that ask at once are told one name
                self._files = self._files or ModelFiles.of(self.folder.path)
        return self._files

    def model_fingerprint(self) -> str:
        """A checksum of the model's files."""
        return self.files.fingerprint

    def index_identity(self) -> Config:
        # the files decide, not the path or the revision by which they were found
        found = {key: value for key, value in super().index_identity().items() if key != "revision"}
        return found | {"model": PurePath(self.model).name, "model_fingerprint": self.model_fingerprint()}

    def provenance(self) -> dict[str, str]:
        return {self.model: self.folder.source}

    def score_pairs(self, queries: list[str], items: list[SearchableItem]) -> Mapping[str, NDArray[np.floating]]:
        logits = self._open().logits([(query, item.text) for query, item in zip(queries, items, strict=True)])
        return {"score": self._relevance(logits)}

    def cut_off(self, queries: list[str], items: list[SearchableItem]) -> dict[str, tuple[int, int]]:
        pairs = [(query, item.text) for query, item in zip(queries, items, strict=True)]
        return {"pairs": (self._open().cut(pairs), len(pairs))}

    def _relevance(self, logits: Logits) -> NDArray[np.floating]:
        labels = logits.shape[1]
        if labels not in {1, 2}:
            raise ModelError(f"{self.model} gives {labels} logits a pair; one that scores relevance gives one or two")
        if not np.isfinite(logits).all():
            raise ModelError(f"{self.model} gives NaN or infinity for {int((~np.isfinite(logits)).any(axis=1).sum())} pairs")
        return logits[:, -1] - logits[:, 0] if labels == 2 else logits[:, 0]

    def _open(self) -> PairModel:
        if self._shared is None:
            key = canonical_json([self.model_fingerprint(), self.backend, self.max_length, self.device])
            with _loading:
                shared = _loaded.get(key)
                if shared is None:
                    with self.files.unchanged():
                        shared = self._load()
                self._shared = _loaded[key] = shared
        return self._shared

    def _load(self) -> PairModel:
        folder = self.files.folder
        if self.backend == "onnx":
            return OnnxPairs(folder, self.max_length)
        return TorchPairs(folder, self.max_length, self.device)
