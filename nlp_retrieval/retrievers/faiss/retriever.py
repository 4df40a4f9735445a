"""Dense retrieval: an encoder, and a FAISS index over its vectors (Douze et al., 2024, https://arxiv.org/abs/2401.08281).

Vectors go to disk as they are encoded, so that indexing holds a batch of them in memory and not the corpus. The same vectors
give the same files on any number of threads and any CPU of an architecture, and every score depends only on the query and the
row, to the bit (:func:`~nlp_retrieval.retrievers.faiss.exact.products_of`). The flat index is the file of the vectors itself,
memory-mapped and searched exactly (:mod:`nlp_retrieval.retrievers.faiss.exact`). Items that join an index of any type are
stored flat: they are too few to train on, and comparing them all is cheap.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from nlp_retrieval.core.candidates import Hits, Mask, Rows, Scores, offsets_of
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.registry import ByName, resolve_components
from nlp_retrieval.core.components.trust_rules import may_set, reads_model
from nlp_retrieval.core.context import stage
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.search.joining import MergeRule
from nlp_retrieval.encoders.base import BaseEncoder, Vectors
from nlp_retrieval.encoders.sentence_transformer import SentenceTransformerEncoder
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.retrievers.faiss.build import build_ann_index, has_outgrown, join_codes, join_vectors
from nlp_retrieval.retrievers.faiss.exact import products_of
from nlp_retrieval.retrievers.faiss.index import (
    VECTORS_FILE,
    VectorIndex,
    dimension_of,
    open_index,
    open_segments,
)
from nlp_retrieval.retrievers.faiss.types import FORMER, IVFPQ, SQ8, Auto, FaissIndexType, from_flat
from nlp_retrieval.retrievers.vectors import VectorRetriever, encoded_queries, write_vectors

_MODEL = "sentence-transformers/all-MiniLM-L6-v2"


class FaissRetriever(VectorRetriever):
    """Dense retrieval with FAISS: inner product over an encoder's vectors.

    The score of an item is the inner product of its vector, or its decoded vector, with the query's: the same to the bit for
    a query alone and in a batch, on any number of threads and any CPU of an architecture. flat and sq8 find the same items
    everywhere; which items hnsw and ivfpq compare depends on FAISS's arithmetic on the CPU, and may differ where two are
    equal within rounding. The vectors of a model, however, depend on the CPU, and on which texts are encoded together.

    After updates, a flat index gives the same hits and scores, to the bit, as an index built at once; compacted, it has the
    same files. With the other types, added items are searched exactly, in addition to the index of the earlier ones, until all
    segments are joined. Deleted items stay in the index but are not found: an hnsw search still walks through them. Compacting
    builds a new hnsw graph over the same vectors, and ``auto`` decides again by the number of items. sq8 and ivfpq store no
    whole vectors: earlier items keep their codes, and so their scores, to the bit; added ones get codes from the quantiser (and
    the lists) trained on the first items, so scores differ from those of an index built at once by no more than quantisation
    loses. An index that has grown to four times the size it was trained at is encoded and trained again.

    Args:
        encoder: a model's hub name, a local folder, or an encoder.
        index: the index type: ``flat`` is exact, ``hnsw`` a graph, ``ivfpq`` inverted lists with product quantisation, ``sq8``
            exact order over 8-bit vectors, ``auto`` flat below 200,000 items and hnsw above. With parameters:
            ``IVFPQ(nlist=256)``, or ``{name: ivfpq, nlist: 256}``.
        merge: how sub-queries of one query are merged: ``alternate``, ``max``, ``rrf`` or ``round_robin``.

    Parameters after ``merge`` are those of all types side by side, as earlier releases wrote them into YAML and manifests.

    Examples:
        >>> FaissRetriever("sentence-transformers/all-MiniLM-L6-v2", index="flat")
        FaissRetriever(index=Flat())
        >>> Searcher(["bm25", FaissRetriever(SentenceTransformerEncoder("intfloat/e5-small-v2", query_prompt="query: "))])
        Searcher(retrievers=[Bm25Retriever(), FaissRetriever(encoder=SentenceTransformerEncoder(model='intfloat/e5-small-v2',
        query_prompt='query: '))], fusion=ReciprocalRankFusion())
    """

    name = "faiss"
    manifest_may_set = may_set("index", *FORMER, "merge", encoder=reads_model)
    search_only = frozenset({"ef_search", "nprobe", "merge"})
    former = frozenset(FORMER)

    def __init__(
        self,
        encoder: str | BaseEncoder = _MODEL,
        index: FaissIndexType | ByName = "auto",
        merge: MergeRule = "alternate",
        *,
        index_type: Literal["auto", "flat", "hnsw", "ivfpq", "sq8"] | None = None,
        hnsw_m: Annotated[int, Field(ge=2, le=256)] | None = None,
        ef_construction: Annotated[int, Field(ge=1)] | None = None,
        ef_search: Annotated[int, Field(ge=1)] | None = None,
        nlist: Annotated[int, Field(ge=1)] | None = None,
        nprobe: Annotated[int, Field(ge=1)] | None = None,
        pq_bytes: Annotated[int, Field(ge=1)] | None = None,
        train_size: Annotated[int, Field(ge=256)] | None = None,
        seed: int | None = None,
    ) -> None:
        self.encoder = SentenceTransformerEncoder(encoder) if isinstance(encoder, str) else encoder
        self.merge = merge
        values = (index_type, hnsw_m, ef_construction, ef_search, nlist, nprobe, pq_bytes, train_size, seed)
        former = {key: value for key, value in zip(FORMER, values, strict=True) if value is not None}
        if former and index != "auto":
            raise ConfigurationError(
                f"FaissRetriever: {', '.join(former)} and index both describe the index type; pass index alone"
            )
        chosen_type = Auto() if index == "auto" else resolve_components(self, FaissRetriever, index=index)["index"]
        flat = FORMER | former if former else chosen_type.flat
        self._type = from_flat(flat)
        self.index_type: str = flat["index_type"]
        self._searching = {key: flat[key] for key in ("ef_search", "nprobe")}
        # a name and its encoder are the same configuration; index types are stored in their flat form
        if "index" in self._arguments:
            self._arguments = {"encoder": self.encoder, **flat, "merge": merge}
        else:  # a subclass with parameters of its own
            self._arguments["encoder"] = self.encoder

    def __repr__(self) -> str:
        if "index_type" not in self._arguments:
            return super().__repr__()
        shown = {"encoder": self.encoder, "index": self._type, "merge": self.merge}
        usual = {"encoder": SentenceTransformerEncoder(_MODEL), "index": Auto(), "merge": "alternate"}
        arguments = ", ".join(f"{key}={value!r}" for key, value in shown.items() if value != usual[key])
        return f"{type(self).__name__}({arguments})"

    def index_identity(self) -> Config:
        identity = super().index_identity()
        if self.index_type == "auto":
            return identity
        type_keys = self._type.index_identity().keys() - {"name", "format"}
        keep = {"name", "format", "encoder", "index_type"} | {self._type.flat_names.get(key, key) for key in type_keys}
        return {key: value for key, value in identity.items() if key in keep}

    def build(self, items: ItemTable, folder: Path) -> None:
        write_vectors(self, items, folder / VECTORS_FILE, None)
        build_ann_index(folder, self._type.chosen(len(items)))

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        del everything
        write_vectors(self, items, folder / VECTORS_FILE, dimension_of(segments[0]))

    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        whole_index = segments[0].first_row == 0
        if whole_index and isinstance(self._type, IVFPQ | SQ8):
            if has_outgrown(segments[0], len(items)):
                self.build(items, folder)
            else:
                join_codes(segments, folder)
            return
        join_vectors(segments, folder)
        if whole_index:
            build_ann_index(folder, self._type.chosen(len(items)))

    def load(self, folder: Path) -> None:
        self._index: VectorIndex = open_index(folder)

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        self._index = open_segments(segments)

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        with stage(f"{self.name}.encode"):
            vectors = self.encode(queries)
        return _drop_zero_vectors(self.search_vectors(vectors, k, allowed), vectors)

    @property
    def dimension(self) -> int:
        """Return how many numbers a vector has; of an opened retriever."""
        return self._index.dimension

    def encode(self, queries: list[str]) -> Vectors:
        return encoded_queries(self, queries)

    def search_vectors(self, vectors: Vectors, k: int, allowed: Mask | None) -> Hits:
        """Search for queries that :meth:`encode` encoded, as :meth:`search_batch` does."""
        return self._index.search(vectors, k, allowed, self._searching)

    def vectors_of(self, rows: Rows) -> Vectors:
        """Return the vectors of items, ``[rows, dimension]``, decoded for sq8 and ivfpq."""
        return self._index.vectors_of(rows)

    def similarities(self, vector: Vectors, rows: Rows) -> Scores:
        """Return the inner products of one query's vector and the vectors of items, ``[rows]``: the scores of a search."""
        owner = np.zeros(len(rows), np.int64)
        return products_of(vector[None], self.vectors_of, owner, rows).astype(np.float64)


def _drop_zero_vectors(hits: Hits, vectors: Vectors) -> Hits:
    """The hits of queries that have a vector: a zero vector, from an encoder that knows no word of a query, finds nothing."""
    speaks = vectors.any(axis=1)
    if speaks.all():
        return hits
    counts = np.diff(hits.offsets)
    kept = np.repeat(speaks, counts)
    signals = {key: column[kept] for key, column in hits.signals.items()}
    return Hits(offsets_of(counts * speaks), hits.rows[kept], hits.scores[kept], signals)
