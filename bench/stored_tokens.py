"""Token vectors that were encoded once, read back from an exact ColBERT index: many indexes and rerankers, one encoding."""

from __future__ import annotations

import warnings
from functools import cached_property
from pathlib import Path

import numpy as np

from bench.common import Data
from nlp_retrieval import BeirLoader, ColbertEncoder, ColbertRetriever, SearchableItem
from nlp_retrieval.encoders import BaseTokenEncoder, Vectors

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
_MOVED = 0.125


def exact_index(data: Data) -> tuple[ColbertRetriever, Path, list[SearchableItem]]:
    """Index the passages of the wiki collection without compression, where that was not done before.

    Returns:
        The retriever, the index directory, and the passages.
    """
    items = list(BeirLoader(str(data.corpus)).stream())
    path = data.work / f"colbert-{len(items)}"
    exact = ColbertRetriever(ColbertEncoder(MODEL), bits=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact.index(items, path)
    return exact, path, items


def tokens_folder(path: Path) -> Path:
    """Where an exact index has its tokens."""
    (folder,) = (file.parent for file in path.glob("colbert-*/tokens.npy"))
    return folder


class StoredTokens(BaseTokenEncoder):
    """Gives back the tokens of an exact index; queries are encoded as they were for it.

    Args:
        encoder: what the index was built with.
        folder: of its tokens.
        copies: how often every passage stands there, where passages are called by their row. Each copy has its tokens moved
            at random by an eighth of their length and scaled back, so that no two are equal.
    """

    name = "stored-tokens"

    def __init__(self, encoder: ColbertEncoder, folder: str, copies: int = 1) -> None:
        self.encoder = encoder
        self.folder = folder
        self.copies = copies
        self._offsets = np.load(Path(folder) / "offsets.npy")

    @property
    def dimension(self) -> int:
        return int(self._stored().shape[1])

    def _stored(self) -> Vectors:
        """The tokens, mapped anew each time: what stays mapped would count as memory of the retriever that is measured."""
        stored: Vectors = np.load(Path(self.folder) / "tokens.npy", mmap_mode="r")
        return stored

    @property
    def n_passages(self) -> int:
        """All copies counted."""
        return self.copies * (len(self._offsets) - 1)

    def encode_queries(self, queries: list[str]) -> list[Vectors]:
        return self.encoder.encode_queries(queries)

    def encode_passages(self, passages: list[str]) -> list[Vectors]:
        return [self._tokens(int(passage)) for passage in passages]

    @cached_property
    def _model_fingerprint(self) -> str:
        return self.encoder.model_fingerprint()

    def model_fingerprint(self) -> str:
        return f"{self.copies} x {self._model_fingerprint}"

    def _tokens(self, number: int) -> Vectors:
        copy, row = divmod(number, len(self._offsets) - 1)
        vectors = self._stored()[self._offsets[row] : self._offsets[row + 1]].astype(np.float32)
        if copy:
            moved = np.random.default_rng(number).standard_normal(vectors.shape, np.float32)
            vectors += _MOVED / np.sqrt(self.dimension) * moved
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors
