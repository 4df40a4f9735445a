"""Encoding without a network: the mean of vectors that tokens have once and for all."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nlp_retrieval.core.components.trust_rules import MODEL_RULES, may_set
from nlp_retrieval.core.queries import check_queries
from nlp_retrieval.encoders.base import LONGEST_VECTOR, BaseEncoder, Vectors
from nlp_retrieval.encoders.model_folder import ModelFolder, find_model
from nlp_retrieval.encoders.model_turns import blamed_on, turn_of
from nlp_retrieval.encoders.shared_models import ModelHolder
from nlp_retrieval.encoders.static.vocabulary import check_vocabulary
from nlp_retrieval.errors import DependencyError, ModelError, first_line, install

if TYPE_CHECKING:
    from model2vec import StaticModel


class StaticEncoder(ModelHolder["StaticModel"], BaseEncoder):
    """Static embeddings: the mean of a text's token vectors, scaled to length 1 (model2vec: Tulkens and van Dongen, 2024).

    No network is run, so a text costs little more than its tokens; word order and context are lost. Any folder or hub model of
    model2vec will do (``minishlab/potion-base-8M``), and what :func:`distill_static` makes of another encoder and a corpus. The
    whole of a text is read, however long. A text without a known token gets a vector of zeros, which finds nothing.

    Args:
        model: a hub name, or a folder with ``model.safetensors``, ``tokenizer.json`` and ``config.json``.
        revision: commit, tag or branch on the hub.
    """

    name = "static"
    manifest_may_set = may_set(model=MODEL_RULES["model"], revision=MODEL_RULES["revision"])

    def __init__(self, model: str | Path, revision: str | None = None) -> None:
        self.model = str(model)
        self.revision = revision

    def encode_queries(self, queries: list[str]) -> Vectors:
        return self._encode(check_queries(queries))

    def encode_passages(self, passages: list[str]) -> Vectors:
        return self._encode(check_queries(passages, "passage", "passages"))

    def find_model(self) -> ModelFolder:
        require_static_extra()
        return find_model(self.model, self.revision, local_only=self.local_only)

    def load_model(self) -> StaticModel:
        require_static_extra()
        from model2vec import StaticModel

        folder = self.files.folder
        try:
            model = StaticModel.from_pretrained(folder, normalize=True, max_length=None)
        except Exception as error:
            reason = first_line(error)
            raise ModelError(
                f"{self.model} ({folder}) does not load as static embeddings: {reason}; name a folder of model2vec, or one "
                "that nlp-retrieval distill made"
            ) from error
        if model.embedding.ndim != 2 or model.embedding.dtype.kind not in "fi":
            raise ModelError(f"{self.model} ({folder}) holds no table of vectors, but {model.embedding.dtype}")
        _check_table(model, f"{self.model} ({folder})")
        check_vocabulary(model.config, model.tokens, folder)
        model.embedding = np.array(model.embedding, np.float32)  # memory of its own, and means without rounding to 16 bits
        return model

    def _encode(self, texts: list[str]) -> Vectors:
        model = self.open_model()
        if not texts:
            return np.zeros((0, model.dim), np.float32)
        with turn_of(model), blamed_on(self.model):
            vectors: Vectors = model.encode(texts, use_multiprocessing=False)
        return vectors


def _check_table(model: StaticModel, where: str) -> None:
    """Refuse a table that does not hold a vector for each number of a token, or vectors whose mean overflows."""
    table, weights = model.embedding, model.weights
    n_tokens = max(model.tokenizer.get_vocab().values()) + 1
    rows = np.arange(n_tokens) if model.token_mapping is None else model.token_mapping
    sound = rows.ndim == 1 and rows.dtype.kind in "iu" and len(rows) >= n_tokens
    if not sound or not ((rows >= 0) & (rows < len(table))).all():
        raise ModelError(f"{where} has no vector for some tokens; put the files back that belong together, or distil again")
    if weights is not None and (weights.ndim != 1 or weights.dtype.kind != "f" or len(weights) < len(rows)):
        raise ModelError(f"{where} has no weight for some tokens; put the files back that belong together, or distil again")
    lengths = np.sqrt(np.einsum("ij,ij->i", table, table, dtype=np.float64))[rows]
    if weights is not None:
        lengths = lengths * np.abs(weights[: len(rows)].astype(np.float64))
    if not (lengths <= LONGEST_VECTOR).all():
        raise ModelError(f"{where} holds NaN or infinity, or vectors longer than {LONGEST_VECTOR:g}; distil it again")


def require_static_extra() -> None:
    """Raise :class:`DependencyError` unless model2vec is installed."""
    if importlib.util.find_spec("model2vec") is None:
        raise DependencyError(f"static embeddings need model2vec: {install('static')}")
