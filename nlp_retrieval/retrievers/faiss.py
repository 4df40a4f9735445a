"""Dense retrieval: an encoder, and a FAISS index over its vectors (Douze et al., 2024, https://arxiv.org/abs/2401.08281).

Vectors go to disk as they are encoded, so that indexing holds a batch of them and not the corpus. The flat index is
that file itself, memory-mapped and searched exactly (:mod:`nlp_retrieval.retrievers.exact_search`).
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from nlp_retrieval.core.candidates import Hits, Mask, Rows, Scores
from nlp_retrieval.core.component import Config
from nlp_retrieval.core.items import ItemTable
from nlp_retrieval.core.measure import stage
from nlp_retrieval.core.progress import tracked
from nlp_retrieval.core.retriever import BaseRetriever, MergeRule
from nlp_retrieval.core.stages import current_stages
from nlp_retrieval.encoders.base import BaseEncoder, Vectors, checked_vectors
from nlp_retrieval.encoders.sentence_transformer import SentenceTransformerEncoder
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.retrievers.faiss_index import IndexType, VectorIndex, build_ann_index, open_index

FLAT_BELOW = 200_000
"""Up to this many items ``auto`` searches exactly; above, with an HNSW graph."""

_BATCH = 1024


class FaissRetriever(BaseRetriever):
    """Dense retrieval with FAISS: inner product over an encoder's vectors.

    Args:
        encoder: a model's hub name, a local folder, or an encoder.
        index_type: ``flat`` is exact. ``hnsw`` is a graph (Malkov and Yashunin, 2016), ``ivfpq`` inverted lists with product
            quantisation (Jegou et al., 2011), ``sq8`` exact order over 8-bit vectors, a quarter of the size. ``auto`` is flat
            below 200,000 items and hnsw above.
        hnsw_m: hnsw: links per node.
        ef_construction: hnsw: how widely building looks for them.
        ef_search: hnsw: how widely searching looks; at least k is used.
        nlist: ivfpq: number of lists; by default 4 times the square root of the number of items.
        nprobe: ivfpq: how many lists a search reads.
        pq_bytes: ivfpq: bytes per vector; must divide the dimension.
        train_size: ivfpq and sq8: at most this many vectors are sampled to train on.
        seed: of that sample.
        merge: how sub-queries of one query are merged: ``max``, ``rrf`` or ``round_robin``.
    """

    name = "faiss"
    search_only = frozenset({"ef_search", "nprobe", "merge"})

    def __init__(
        self,
        encoder: str | BaseEncoder = "sentence-transformers/all-MiniLM-L6-v2",
        index_type: Literal["auto", "flat", "hnsw", "ivfpq", "sq8"] = "auto",
        hnsw_m: Annotated[int, Field(ge=2, le=256)] = 32,
        ef_construction: Annotated[int, Field(ge=1)] = 200,
        ef_search: Annotated[int, Field(ge=1)] = 128,
        nlist: Annotated[int, Field(ge=1)] | None = None,
        nprobe: Annotated[int, Field(ge=1)] = 32,
        pq_bytes: Annotated[int, Field(ge=1)] = 48,
        train_size: Annotated[int, Field(ge=256)] = 100_000,
        seed: int = 0,
        merge: MergeRule = "max",
    ) -> None:
        self.encoder = SentenceTransformerEncoder(encoder) if isinstance(encoder, str) else encoder
        self.index_type = index_type
        self.hnsw_m = hnsw_m
        self.ef_construction = ef_construction
        self.ef_search = ef_search
        self.nlist = nlist
        self.nprobe = nprobe
        self.pq_bytes = pq_bytes
        self.train_size = train_size
        self.seed = seed
        self.merge = merge
        self._arguments["encoder"] = self.encoder  # a name and the encoder that it stands for are one configuration

    def index_identity(self) -> Config:
        relevant = {
            "flat": set(),
            "sq8": {"train_size", "seed"},
            "hnsw": {"hnsw_m", "ef_construction"},
            "ivfpq": {"nlist", "pq_bytes", "train_size", "seed"},
        }
        identity = super().index_identity()
        if self.index_type == "auto":
            return identity
        keep = {"name", "format", "encoder", "index_type"} | relevant[self.index_type]
        return {key: value for key, value in identity.items() if key in keep}

    def build(self, items: ItemTable, folder: Path) -> None:
        chosen: IndexType = self._chosen(len(items))
        vectors = self._write_vectors(items, folder / "vectors.npy")
        if chosen != "flat":
            build_ann_index(vectors, chosen, self, folder)
            del vectors
            (folder / "vectors.npy").unlink()

    def load(self, folder: Path) -> None:
        self._index: VectorIndex = open_index(folder)

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        with stage(f"{self.name}.encode"):
            vectors = self.encode(queries)
        return self.search_vectors(vectors, k, allowed)

    def encode(self, queries: list[str]) -> Vectors:
        """Return the vectors of queries, ``[queries, dimension]``; for an opened retriever."""
        if not queries:
            return np.zeros((0, self._index.dimension), np.float32)
        return current_stages().encoded(self.encoder, queries, self._encode)

    def _encode(self, queries: list[str]) -> Vectors:
        slices = [queries[first : first + _BATCH] for first in range(0, len(queries), _BATCH)]
        parts = [
            checked_vectors(self.encoder.encode_queries(part), part, self.encoder, self._index.dimension)
            for part in tracked("faiss: encoding queries", slices, len(queries))
        ]
        return np.concatenate(parts)

    def search_vectors(self, vectors: Vectors, k: int, allowed: Mask | None) -> Hits:
        """Search for what :meth:`encode` gave, as :meth:`search_batch` does."""
        return self._index.search(vectors, k, allowed, {"ef_search": self.ef_search, "nprobe": self.nprobe})

    def vectors_of(self, rows: Rows) -> Vectors:
        """Return the vectors of items, ``[rows, dimension]``; sq8 and ivfpq give what their codes keep of them."""
        return self._index.vectors_of(rows)

    def similarities(self, vector: Vectors, rows: Rows) -> Scores:
        """Return the inner products of one query's vector and the vectors of items, ``[rows]``.

        Each is computed alone, so that it is the same to the last bit whatever is computed beside it.
        """
        products: Scores = np.einsum("ij,j->i", self.vectors_of(rows), vector).astype(np.float64)
        return products

    def _chosen(self, n_items: int) -> IndexType:
        if self.index_type != "auto":
            return self.index_type
        return "flat" if n_items < FLAT_BELOW else "hnsw"

    def _write_vectors(self, items: ItemTable, path: Path) -> Vectors:
        """Encode all items into a ``.npy`` file; returns it memory-mapped.

        It is written as a stream: a map that is written to kills the process where the disk is full.
        """
        dimension: int | None = None
        n_cut = 0
        with path.open("wb") as file:
            for texts in tracked("faiss: encoding", items.texts(_BATCH), len(items)):
                part = checked_vectors(self.encoder.encode_passages(texts), texts, self.encoder, dimension)
                if dimension is None:
                    dimension = part.shape[1]
                    header = np.lib.format.header_data_from_array_1_0(part) | {"shape": (len(items), dimension)}
                    np.lib.format.write_array_header_1_0(file, header)
                file.write(part.data)
                n_cut += self.encoder.cut_passages(texts)
        if n_cut:
            warnings.warn(
                f"{self.name}: {n_cut:,} of {len(items):,} passages are longer than the encoder reads; the rest of each is "
                "left out (where the model can read more, raise max_length; or index smaller chunks)",
                RetrievalWarning,
                stacklevel=2,
            )
        vectors: Vectors = np.load(path, mmap_mode="r", allow_pickle=False)
        return vectors
