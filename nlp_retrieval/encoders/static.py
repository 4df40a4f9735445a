"""Static embeddings: a vector for each token, looked up and averaged, without a network; read from a folder of model2vec."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nlp_retrieval.core.components.trust_rules import MODEL_RULES, may_set
from nlp_retrieval.core.queries import check_queries
from nlp_retrieval.encoders.base import BaseEncoder, Vectors
from nlp_retrieval.encoders.models import ModelFolder, ModelHolder, as_model_error, find_model, turn_of
from nlp_retrieval.errors import DependencyError, ModelError, first_line, install

if TYPE_CHECKING:
    from model2vec import StaticModel


class StaticEncoder(ModelHolder["StaticModel"], BaseEncoder):
    """Static embeddings: the mean of a text's token vectors, scaled to length 1 (model2vec: Tulkens and van Dongen, 2024).

    No network is run, so a text costs little more than its tokens; word order and context are lost. Texts of any length are
    read whole. A text without a known token gets a vector of zeros, which finds nothing.

    Args:
        model: a hub name, or a folder with ``model.safetensors``, ``tokenizer.json`` and ``config.json``.
        revision: commit, tag or branch on the hub.

    Examples:
        >>> Searcher([FaissRetriever(StaticEncoder("minishlab/potion-base-8M"))])
        Searcher(retrievers=[FaissRetriever(encoder=StaticEncoder(model='minishlab/potion-base-8M'))])
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
        if importlib.util.find_spec("model2vec") is None:
            raise DependencyError(f"static embeddings need model2vec: {install('static')}")
        return find_model(self.model, self.revision, local_only=self.local_only)

    def load_model(self) -> StaticModel:
        folder = self.files.folder
        from model2vec import StaticModel

        try:
            model = StaticModel.from_pretrained(folder, normalize=True, max_length=None)
        except Exception as error:
            reason = first_line(error)
            raise ModelError(
                f"{self.model} ({folder}) does not load as static embeddings: {reason}; name a folder that model2vec saved"
            ) from error
        model.embedding = np.array(model.embedding, np.float32)  # private memory, and means without rounding to 16 bits
        return model

    def _encode(self, texts: list[str]) -> Vectors:
        model = self.open_model()
        if not texts:
            return np.zeros((0, model.dim), np.float32)
        with turn_of(model), as_model_error(self.model):
            vectors: Vectors = model.encode(texts, use_multiprocessing=False)
        return vectors
