"""Token vectors that were encoded once, read back from an exact ColBERT index: many indexes and rerankers, one encoding."""

from __future__ import annotations

import json
import warnings
from functools import cached_property
from pathlib import Path

import numpy as np

from bench.common import Data
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.encoders.colbert import ColbertEncoder
from nlp_retrieval.encoders.token_base import BaseTokenEncoder
from nlp_retrieval.retrievers.colbert.retriever import ColbertRetriever

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
_MOVED = 0.125


def exact_index(data: Data, limit: int | None = None) -> tuple[ColbertRetriever, Path, list[SearchableItem]]:
    """Index the first passages of the wiki collection without compression, where that was not done before.

    Returns:
        The retriever, the index directory, and the passages.
    """
    with data.corpus.open(encoding="utf-8") as lines:
        passages = [json.loads(line) for line in lines][:limit]
    items = [SearchableItem(item_id=p["_id"], content=p["text"], metadata={"title": p["title"]}) for p in passages]
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
        texts: what the rows hold; by default passages are called by their row.
    """

    name = "stored-tokens"

    def __init__(self, encoder: ColbertEncoder, folder: str, copies: int = 1, texts: list[str] | None = None) -> None:
        self.encoder = encoder
        self.folder = folder
        self.copies = copies
        self._arguments.pop("texts", None)  # a part of the index, and no setting
        self._row_of = None if texts is None else {text: row for row, text in enumerate(texts)}
        self._offsets = np.load(Path(folder) / "offsets.npy")
        with (Path(folder) / "tokens.npy").open("rb") as file:
            np.lib.format.read_magic(file)
            self._dimension = int(np.lib.format.read_array_header_1_0(file)[0][1])
            self._begin = file.tell()
        self._queries: dict[str, Vectors] = {}

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    def n_passages(self) -> int:
        """All copies counted."""
        return self.copies * (len(self._offsets) - 1)

    def encode_queries(self, queries: list[str]) -> list[Vectors]:
        new = [query for query in dict.fromkeys(queries) if query not in self._queries]
        if new:
            self._queries.update(zip(new, self.encoder.encode_queries(new), strict=True))
        return [self._queries[query] for query in queries]

    def encode_passages(self, passages: list[str]) -> list[Vectors]:
        rows = map(int, passages) if self._row_of is None else (self._row_of[passage] for passage in passages)
        return [self._tokens(row) for row in rows]

    @cached_property
    def _model_fingerprint(self) -> str:
        return self.encoder.model_fingerprint()

    def model_fingerprint(self) -> str:
        return f"{self.copies} x {self._model_fingerprint}"

    def _tokens(self, number: int) -> Vectors:
        copy, row = divmod(number, len(self._offsets) - 1)
        first, count = int(self._offsets[row]), int(self._offsets[row + 1] - self._offsets[row])
        place = self._begin + 2 * self._dimension * first
        tokens = np.fromfile(Path(self.folder) / "tokens.npy", np.float16, count * self._dimension, offset=place)
        vectors = tokens.astype(np.float32).reshape(count, self._dimension)
        if copy:
            moved = np.random.default_rng(number).standard_normal(vectors.shape, np.float32)
            vectors += _MOVED / np.sqrt(self._dimension) * moved
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors
