"""Search over the vectors that chunk tables hold, by pgvector: queries are encoded, and nothing that is stored."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from nlp_retrieval.core import (
    BaseRetriever,
    ByName,
    Hits,
    ItemTable,
    Mask,
    MergeRule,
    Rows,
    Scores,
    SegmentFolder,
    damaged,
    may_set,
    read_json_file,
    reads_model,
    resolve_components,
    stage,
    write_output,
)
from nlp_retrieval.encoders import BaseEncoder, Vectors, as_encoder
from nlp_retrieval.errors import ConfigurationError, IndexDamagedError, RetrievalWarning
from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTablesLoader

_FILE = "chunks.json"
_MOST_BYTES = 2**30
_LAST = -1.0
"""Score of a passage without a vector: not above that of any other."""


class ChunkVectorRetriever(BaseRetriever):
    """Dense retrieval over the vectors in the tables of a PostgreSQL with pgvector, of this or another program.

    Vectors are compared where they are, read-only; only queries are encoded. A passage whose vector is NULL comes last, without
    the signal ``transformer``. With ``word_vectors``, the column ``word2vec_embedding`` is compared too, as the signal
    ``word_vectors``; ``MultiSignalReranker`` takes both signals as they come.

    Args:
        source: a ``chunk_tables`` loader, whose chunks are the items to index.
        encoder: of queries: the model that made the vectors of ``column``.
        column: of the chunks, with vectors.
        word_vectors: of queries: what made the vectors of ``word2vec_embedding``; None: they are not compared.
        index_type: ``exact`` compares all passages that pass the filter; ``hnsw`` uses an index of the database, and compares
            all where it has none, or where its pgvector (before 0.8) would filter after the cut.
        merge: merging of sub-queries of one query: ``alternate``, ``max``, ``rrf`` or ``round_robin``.

    Examples:
        >>> ChunkVectorRetriever(ChunkTablesLoader("env:PLANS_URL"), column="hoprag_embedding")  # connects when it is used
        ChunkVectorRetriever(source=ChunkTablesLoader(url='env:PLANS_URL'), encoder=SentenceTransformerEncoder(),
        column='hoprag_embedding')
    """

    name = "chunk_vectors"
    manifest_may_set = may_set("source", "column", "word_vectors", "index_type", "merge", encoder=reads_model)
    search_only = frozenset({"index_type", "merge"})

    def __init__(
        self,
        source: ChunkTablesLoader | ByName,
        encoder: str | BaseEncoder = "sentence-transformers/all-MiniLM-L6-v2",
        column: str = "transformer_embedding",
        word_vectors: BaseEncoder | None = None,
        index_type: Literal["exact", "hnsw"] = "exact",
        merge: MergeRule = "alternate",
    ) -> None:
        tables = resolve_components(self, ChunkVectorRetriever, source=source)["source"]
        if not isinstance(tables, ChunkTablesLoader):
            raise ConfigurationError("chunk_vectors: source has no vectors; use the loader chunk_tables")
        self.source = tables
        self.encoder = as_encoder(encoder)
        self._arguments["encoder"] = self.encoder
        self.column = column
        self.word_vectors = None if word_vectors is None else as_encoder(word_vectors)
        self.index_type = index_type
        self.merge = merge

    def build(self, items: ItemTable, folder: Path) -> None:
        tables = self.source.reader()
        for column in self._columns():
            tables.limits_of(column, approximate=False)
        known = tables.keys_of(items.ids())
        if missing := [item_id for item_id, is_known in zip(items.ids(), known, strict=True) if not is_known]:
            raise ConfigurationError(
                f"chunk_vectors: {len(missing):,} items are not in the tables (the first: {missing[0]!r:.80}); index the "
                "chunks of the same tables (the loader chunk_tables)"
            )
        write_output(folder / _FILE, json.dumps(items.ids()).encode())

    def load(self, folder: Path) -> None:
        try:
            ids = read_json_file(folder / _FILE, max_bytes=_MOST_BYTES)
        except (OSError, ValueError) as error:
            raise damaged(folder / _FILE, str(error)) from None
        if not isinstance(ids, list) or not all(isinstance(item_id, str) for item_id in ids) or len(set(ids)) != len(ids):
            raise damaged(folder / _FILE, "it does not hold distinct ids")
        self._ids: list[str] = ids
        self._rows = {item_id: row for row, item_id in enumerate(ids)}
        self._tables = self.source.reader()
        missing = len(ids) - sum(self._tables.keys_of(ids))
        if missing:
            raise IndexDamagedError(
                f"chunk_vectors: {missing:,} of {len(ids):,} passages are no longer in {self.source!r}; index again with "
                "replace=True"
            )
        for column in self._columns():
            for problem in self._tables.limits_of(column, approximate=self.index_type == "hnsw"):
                warnings.warn(f"chunk_vectors: {problem}", RetrievalWarning, stacklevel=2)

    def require_segments(self, segments: Sequence[SegmentFolder]) -> None:
        """Do nothing: vectors are read when they are compared."""

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        rows = np.arange(len(self._ids)) if allowed is None else np.flatnonzero(allowed)
        with stage(f"{self.name}.encode"):
            vectors = self.encoder.encode_queries(queries)
            words = None if self.word_vectors is None else self.word_vectors.encode_queries(queries)
        whole = self.index_type == "hnsw" and len(rows) == self._tables.n_chunks  # an index serves no list of ids
        with stage(f"{self.name}.search"):
            near = self._compared(vectors, self.column, None if whole else rows, k, exact=self.index_type == "exact")
            lists = [_padded(*pair, rows, k) if len(queries) and k > len(pair[0]) else pair for pair in near]
            signals = {"transformer": np.concatenate([_known(scores) for _, scores in lists] or [np.zeros(0)])}
            if words is not None:
                signals["word_vectors"] = self._signal(words, [pair for pair, _ in lists])
        return replace(Hits.from_lists(lists), signals=signals)

    def _signal(self, vectors: Vectors, lists: list[Rows]) -> Scores:
        """Return the cosines of word vectors with the hits of each query, one after another; NaN where there is no vector."""
        wanted = np.unique(np.concatenate(lists)) if lists else np.zeros(0, np.int64)
        near = self._compared(vectors, "word2vec_embedding", wanted, None, exact=True) if len(wanted) else []
        columns = []
        for rows_of_query, (rows, scores) in zip(lists, near, strict=False):
            cosines = np.full(len(self._ids), np.nan)
            cosines[rows] = scores
            columns.append(cosines[rows_of_query])
        return np.concatenate(columns) if columns else np.zeros(0)

    def _compared(
        self, vectors: Vectors, column: str, rows: Rows | None, k: int | None, *, exact: bool
    ) -> list[tuple[Rows, Scores]]:
        """Return for each query the nearest rows of the index and their cosines; none for a query without a vector."""
        has_vector = np.logical_and(np.isfinite(vectors).all(axis=1), vectors.any(axis=1))
        ids = None if rows is None else [self._ids[row] for row in rows.tolist()]
        near = iter(self._tables.nearest(vectors[has_vector], column, ids, k, exact=exact) if has_vector.any() else [])
        lists = []
        for known in has_vector.tolist():
            if not known:
                lists.append((np.zeros(0, np.int64), np.zeros(0)))
                continue
            similar = next(near)
            pairs = zip(similar.item_ids, similar.similarities, strict=True)
            kept = [(self._rows[item_id], value) for item_id, value in pairs if item_id in self._rows]
            lists.append((np.array([row for row, _ in kept], np.int64), np.array([value for _, value in kept], np.float64)))
        return lists

    def _columns(self) -> list[str]:
        return [self.column, *([] if self.word_vectors is None else ["word2vec_embedding"])]


def _padded(near: Rows, scores: Scores, rows: Rows, k: int) -> tuple[Rows, Scores]:
    """Add passages without a vector after the others."""
    rest = np.setdiff1d(rows, near)[: k - len(near)]
    return np.concatenate([near, rest]), np.concatenate([scores, np.full(len(rest), _LAST)])


def _known(scores: Scores) -> Scores:
    known: Scores = np.where(scores <= _LAST, np.nan, scores)
    return known
