"""Learned sparse encoding by sentence-transformers' ``SparseEncoder``: SPLADE models, also with queries that are looked up."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from nlp_retrieval.core.candidates import offsets_of
from nlp_retrieval.core.components.trust_rules import MODEL_RULES, may_set, runs_code
from nlp_retrieval.core.queries import check_queries
from nlp_retrieval.encoders.backends import TorchPrecision, queries_at_once, require_device, resolved_precision
from nlp_retrieval.encoders.base import BaseSparseEncoder, TermWeights
from nlp_retrieval.encoders.models import (
    ModelHolder,
    architectures_of,
    as_model_error,
    loading,
    longer_than_read,
    require_words,
    setting_of,
    turn_of,
)
from nlp_retrieval.errors import ModelError

if TYPE_CHECKING:
    from pathlib import Path

    import torch
    from sentence_transformers import SparseEncoder

Task = Literal["encode_query", "encode_document"]


class SpladeEncoder(ModelHolder["SparseEncoder"], BaseSparseEncoder):
    """Weights of a vocabulary's terms, by a masked language model (SPLADE: Formal et al., SIGIR 2021 and 2022).

    Any model that sentence-transformers opens as a ``SparseEncoder``, also one that looks queries up in a table (Geng et al.,
    2024, https://arxiv.org/abs/2411.04403), and masked language models with SPLADE's pooling
    (https://arxiv.org/abs/2107.05720, https://arxiv.org/abs/2109.10086).

    Args:
        model: a hub name, or a local folder.
        precision: of the arithmetic; ``auto`` is bfloat16 on CPUs with AMX and on GPUs that have it, else float32.
        max_length: tokens that are read of a text; by default the model's own limit.
        batch_size: texts encoded at once. A passage of 256 tokens takes 30 MB with a vocabulary of 30,000.
        device: ``cpu``, ``cuda``, ...; by default the best there is.
        revision: commit, tag or branch on the hub.
        trust_remote_code: run Python code that comes with the model. Off: a model that needs it does not load.

    Examples:
        >>> SpladeRetriever(SpladeEncoder("naver/splade-cocondenser-ensembledistil", max_length=128))
        SpladeRetriever(encoder=SpladeEncoder(max_length=128))
    """

    name = "splade"
    manifest_may_set = may_set("precision", "max_length", "batch_size", **MODEL_RULES, trust_remote_code=runs_code)
    search_only = frozenset({"batch_size", "device"})

    def __init__(
        self,
        model: str = "naver/splade-cocondenser-ensembledistil",
        precision: TorchPrecision = "float32",
        max_length: Annotated[int, Field(ge=1)] | None = None,
        batch_size: Annotated[int, Field(ge=1)] = 16,
        device: str | None = None,
        revision: str | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        self.model = model
        self.precision: TorchPrecision = precision
        self.max_length = max_length
        self.batch_size = batch_size
        self.device = device
        self.revision = revision
        self.trust_remote_code = trust_remote_code

    @cached_property
    def dimension(self) -> int:
        return int(self._encoded(["a"], "encode_document").shape[1])  # the library may say that of the layer below

    def encode_queries(self, queries: list[str]) -> TermWeights:
        return self._encode(check_queries(queries), "encode_query")

    def encode_passages(self, passages: list[str]) -> TermWeights:
        return self._encode(check_queries(passages, "passage", "passages"), "encode_document")

    def cut_passages(self, passages: list[str]) -> int:
        model = self.open_model()
        return longer_than_read(model, self.model, check_queries(passages, "passage", "passages"), model.max_seq_length)

    def _encode(self, texts: list[str], task: Task) -> TermWeights:
        not_blank = [number for number, text in enumerate(texts) if text.strip()]
        counts = np.zeros(len(texts), np.int64)
        if not not_blank:
            return TermWeights(offsets_of(counts), np.zeros(0, np.int32), np.zeros(0, np.float32))
        encoded = self._encoded([texts[number] for number in not_blank], task)
        rows, terms = encoded.indices().numpy()
        weights = encoded.values().float().numpy()
        positive = weights != 0  # weights after a cut may be 0
        counts[not_blank] = np.bincount(rows[positive], minlength=len(not_blank))
        return TermWeights(offsets_of(counts), terms[positive].astype(np.int32), weights[positive])

    def _encoded(self, texts: list[str], task: Task) -> torch.Tensor:
        """A sparse tensor ``[texts, dimension]``."""
        model, at_once = self.open_model(), self.batch_size
        if task == "encode_query":
            at_once = queries_at_once(at_once, self.precision, self.device)
        with turn_of(model), as_model_error(self.model):
            encoded: torch.Tensor = getattr(model, task)(
                texts,
                batch_size=at_once,
                show_progress_bar=False,
                convert_to_tensor=True,
                convert_to_sparse_tensor=True,
                save_to_cpu=True,
            )
        return encoded.coalesce()

    def load_model(self) -> SparseEncoder:
        folder = self.files.folder
        with loading(self.model, folder, "sparse encoder"):
            import torch
            from sentence_transformers import SparseEncoder

            require_device(self.device)
            _require_sparse(self.model, folder)
            model = SparseEncoder(
                str(folder),
                device=self.device,
                trust_remote_code=self.trust_remote_code,
                model_kwargs={"dtype": getattr(torch, resolved_precision(self.precision, self.device))},
                local_files_only=True,
            )
            require_words(model)
        if self.max_length is not None:
            model.max_seq_length = self.max_length
        return model


def _require_sparse(model: str, folder: Path) -> None:
    """Refuse a model of another kind: the library would add random weights to it, different ones each time."""
    kind = setting_of(folder / "config_sentence_transformers.json", "model_type")
    architectures = architectures_of(folder)
    masked = any(name.endswith("ForMaskedLM") for name in architectures) and not (folder / "modules.json").exists()
    if kind != "SparseEncoder" and not masked:
        raise ModelError(
            f"{model} ({folder}) is not a learned sparse model (found: {json.dumps(kind or architectures)[:200]}); pass a "
            "SparseEncoder of sentence-transformers, or a masked language model trained as SPLADE"
        )
