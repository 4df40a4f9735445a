"""Reranking by a model that reads the query and a passage together: the slowest method, and the most exact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nlp_retrieval.core.components.trust_rules import MODEL_RULES, may_set
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.search.reranker import BaseReranker, Blend
from nlp_retrieval.encoders.models import ModelFolder, ModelHolder
from nlp_retrieval.errors import ConfigurationError, ModelError
from nlp_retrieval.rerankers.pair_models import PairModel, TorchPairs, find_pair_model, onnx_pairs


class CrossEncoderReranker(ModelHolder[PairModel], BaseReranker):
    """Scores a query and a passage by a cross-encoder (Nogueira and Cho, 2019, https://arxiv.org/abs/1901.04085).

    The score is the model's logit, without an activation; for a model with two logits ("not relevant", "relevant") the
    second minus the first. The model is opened at first use, in float32, and shared by all rerankers with equal settings.

    Args:
        model: a hub name, or a local folder. With ``backend="onnx"`` a folder with tokenizer.json and model.onnx is enough.
        backend: ``torch`` runs the model by sentence-transformers, in float32; ``onnx`` by onnxruntime on the CPU: the export
            in its folder, which needs no torch, or one with 8-bit weights that is created at first use and kept in the cache.
        max_length: tokens that are read of a pair, query and passage together; by default the model's own limit.
        batch_size: pairs that torch reads at once; batches hold passages of similar length.
        blend: use of the incoming ranking: ``replace`` it, fuse with it by ``rank`` or by ``score``.
        device: torch device: ``cpu``, ``cuda``, ...; by default the best there is.
        revision: commit, tag or branch on the hub.

    Examples:
        >>> Searcher(["bm25"], reranker=CrossEncoderReranker("cross-encoder/ms-marco-MiniLM-L6-v2", batch_size=16), depth=50)
        Searcher(retrievers=[Bm25Retriever()], reranker=CrossEncoderReranker(batch_size=16), depth=50)
    """

    name = "cross_encoder"
    manifest_may_set = may_set("backend", "max_length", "batch_size", "blend", **MODEL_RULES)
    search_only = frozenset({"batch_size", "device"})
    apart_from_model = frozenset({"batch_size", "blend"})

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

    def find_model(self) -> ModelFolder:
        return find_pair_model(self.model, self.backend, self.revision, local_only=self.local_only)

    def score_pairs(self, queries: list[str], items: list[SearchableItem]) -> Mapping[str, NDArray[np.floating]]:
        logits = self.open_model().logits([(query, item.text) for query, item in zip(queries, items, strict=True)])
        labels = logits.shape[1]
        if labels not in {1, 2}:
            raise ModelError(f"{self.model} gives {labels} logits per pair; a model that scores relevance gives one or two")
        if not np.isfinite(logits).all():
            raise ModelError(f"{self.model} gives NaN or infinity for {int((~np.isfinite(logits)).any(axis=1).sum())} pairs")
        return {"score": logits[:, -1] - logits[:, 0] if labels == 2 else logits[:, 0]}

    def load_model(self) -> PairModel:
        if self.backend == "onnx":
            return onnx_pairs(self.files, self.max_length)
        return TorchPairs(self.files.folder, self.max_length, self.device)
