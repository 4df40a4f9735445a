"""Dense retrieval: an encoder, and a FAISS index over its vectors (Douze et al., 2024, https://arxiv.org/abs/2401.08281).

Vectors go to disk as they are encoded, so that indexing holds a batch of them in memory and not the corpus. The flat index is
the file of the vectors itself, memory-mapped and searched exactly (:mod:`nlp_retrieval.retrievers.faiss.exact`). Items that
join an index of any type are stored flat: they are too few to train on, and comparing them all is cheap.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nlp_retrieval.core.candidates import Hits, Mask, MergeRule, Rows, Scores, offsets_of
from nlp_retrieval.core.components.component import parameters_of
from nlp_retrieval.core.components.registry import ByName, resolve_components
from nlp_retrieval.core.components.trust_rules import may_set, reads_model
from nlp_retrieval.core.context import stage
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.encoders.base import BaseEncoder, Vectors
from nlp_retrieval.encoders.sentence_transformer import SentenceTransformerEncoder, as_encoder
from nlp_retrieval.retrievers.faiss.build import build_ann_index, has_outgrown, join_codes, join_vectors
from nlp_retrieval.retrievers.faiss.exact import products_of
from nlp_retrieval.retrievers.faiss.index import VECTORS_FILE, VectorIndex, dimension_of, open_segments
from nlp_retrieval.retrievers.faiss.types import IVFPQ, SQ8, Auto, FaissIndexType
from nlp_retrieval.retrievers.vectors import VectorRetriever, write_vectors

_MODEL = "sentence-transformers/all-MiniLM-L6-v2"


class FaissRetriever(VectorRetriever):
    """Dense retrieval with FAISS: inner product over an encoder's vectors.

    The score of an item is the inner product of its vector, or its decoded vector, with the query's: the same to the bit for
    a query alone and in a batch, so that equal vectors tie. Which items hnsw and ivfpq compare depends on FAISS.

    After updates, a flat index gives the same hits and scores, to the bit, as an index built at once. With the other types,
    added items are searched exactly, in addition to the index of the earlier ones, until all segments are joined. Deleted items
    stay in the index but are not found. Compacting builds a new hnsw graph over the same vectors, and ``auto`` decides again by
    the number of items. sq8 and ivfpq store no whole vectors: earlier items keep their codes, and added ones get codes from the
    quantiser (and the lists) trained on the first items. An index that has grown to four times the size it was trained at is
    encoded and trained again.

    Args:
        encoder: a model's hub name, a local folder, or an encoder.
        index: the index type: ``flat`` is exact, ``hnsw`` a graph, ``ivfpq`` inverted lists with product quantisation, ``sq8``
            exact order over 8-bit vectors, ``auto`` flat below 200,000 items and hnsw above. With parameters:
            ``IVFPQ(nlist=256)``, or ``{name: ivfpq, nlist: 256}``.
        merge: how sub-queries of one query are merged: ``alternate``, ``max``, ``rrf`` or ``round_robin``.

    Examples:
        >>> FaissRetriever("sentence-transformers/all-MiniLM-L6-v2", index="flat")
        FaissRetriever(index=Flat())
        >>> Searcher(["bm25", FaissRetriever(SentenceTransformerEncoder("intfloat/e5-small-v2", query_prompt="query: "))])
        Searcher(retrievers=[Bm25Retriever(), FaissRetriever(encoder=SentenceTransformerEncoder(model='intfloat/e5-small-v2',
        query_prompt='query: '))], fusion=ReciprocalRankFusion())
    """

    name = "faiss"
    format_version = 2
    manifest_may_set = may_set("index", "merge", encoder=reads_model)
    search_only = frozenset({"merge"})

    def __init__(
        self, encoder: str | BaseEncoder = _MODEL, index: FaissIndexType | ByName = "auto", merge: MergeRule = "alternate"
    ) -> None:
        self.encoder = as_encoder(encoder)
        self.index_type: FaissIndexType = (
            Auto() if index == "auto" else resolve_components(self, FaissRetriever, index=index)["index"]
        )
        self.merge = merge
        resolved = {"encoder": self.encoder, "index": self.index_type}  # a name and its component are the same configuration
        self._arguments |= {key: value for key, value in resolved.items() if key in self._arguments}

    def __repr__(self) -> str:
        usual = {key: parameter.default for key, parameter in parameters_of(type(self)).items()}
        usual |= {"encoder": SentenceTransformerEncoder(_MODEL), "index": Auto()}
        changed = (f"{key}={value!r}" for key, value in self._arguments.items() if value != usual[key])
        return f"{type(self).__name__}({', '.join(changed)})"

    def build(self, items: ItemTable, folder: Path) -> None:
        write_vectors(self, items, folder / VECTORS_FILE, None)
        build_ann_index(folder, self.index_type.chosen(len(items)))

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        del everything
        write_vectors(self, items, folder / VECTORS_FILE, dimension_of(segments[0]))

    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        if segments[0].first_row > 0 or not isinstance(self.index_type, IVFPQ | SQ8):
            join_vectors(segments, folder)
            if segments[0].first_row == 0:
                build_ann_index(folder, self.index_type.chosen(len(items)))
        elif has_outgrown(segments[0], len(items)):
            self.build(items, folder)
        else:
            join_codes(segments, folder)

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        self._index: VectorIndex = open_segments(segments, self.index_type)

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        with stage(f"{self.name}.encode"):
            vectors = self.encode(queries)
        return _drop_zero_vectors(self.search_vectors(vectors, k, allowed), vectors)

    @property
    def dimension(self) -> int:
        """Return how many numbers a vector has; of an opened retriever."""
        return self._index.dimension

    def search_vectors(self, vectors: Vectors, k: int, allowed: Mask | None) -> Hits:
        """Search for queries that :meth:`encode` encoded, as :meth:`search_batch` does."""
        return self._index.search(vectors, k, allowed)

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
