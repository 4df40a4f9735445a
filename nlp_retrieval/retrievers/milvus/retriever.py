"""Retrieval in Milvus: vectors of an encoder, Milvus's own BM25, or both.

Vectors are encoded into a file first, so that a killed build is resumed; then they are sent, indexed and compared.
:mod:`nlp_retrieval.retrievers.servers.retriever` describes the data on the server.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import Field

from nlp_retrieval.core.candidates import Hits, Mask, Matrix, Rows, Scores, joined_hits, search_past_ties, top_k
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.trust_rules import given, may_set, reads_model
from nlp_retrieval.core.context import stage
from nlp_retrieval.core.files.columns import read_blocks
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.queries import has_only_stop_words
from nlp_retrieval.core.search.joining import MergeRule, reciprocal_ranks
from nlp_retrieval.encoders.base import BaseEncoder, Vectors
from nlp_retrieval.encoders.sentence_transformer import SentenceTransformerEncoder
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.loaders.database import hide_secrets
from nlp_retrieval.retrievers.milvus.client import EMBEDDED, MilvusConnections, MilvusLiteServer
from nlp_retrieval.retrievers.milvus.collections import (
    VECTORS,
    WORDS,
    CollectionRecord,
    IndexType,
    Making,
    check_collection,
    loaded,
    make_collection,
    orphans,
    require_abilities,
    stored_vectors,
)
from nlp_retrieval.retrievers.servers.retriever import ServerRetriever
from nlp_retrieval.retrievers.vectors import VectorRetriever, encoded_queries, write_vectors

if TYPE_CHECKING:
    from pymilvus import MilvusClient


# Searching one collection: filters before the cut, ties by row, and k rows whenever k match.
#
# A filter is sent as the numbers of the allowed rows, or of the others, whichever are fewer. The columns of the index
# directory decide which rows are allowed, as for every engine, so no text of a user is ever part of an expression.


MOST_AT_ONCE = 16_384
"""Longest list that a server returns at once."""

ROUNDING = 1e-6
"""Tolerance of scores, as a share of those above 1."""

_COMPARED_AT_ONCE = 16_384


@dataclass(frozen=True)
class Search:
    """Search of one collection.

    Args:
        connections: to the server.
        client: of the server.
        record: of the collection.
        params: of a search for a number of rows.
        consistency: requested of the server.
    """

    connections: MilvusConnections
    client: MilvusClient
    record: CollectionRecord
    params: Callable[[int], dict[str, int]]
    consistency: str

    def nearest(self, vectors: Any, k: int, allowed: Mask | None) -> Hits:
        """Search for vectors, ``[queries, dimension]``, by the inner product.

        An approximate index may return fewer than k rows; then all allowed rows are compared.
        """
        hits = self._hits(VECTORS, vectors, k, allowed)
        short = np.flatnonzero(np.diff(hits.offsets) < k)
        if self.record.index_type == "flat" or len(short) == 0:
            return hits
        lists = [(hits.rows[a:b], hits.scores[a:b]) for a, b in pairwise(hits.offsets.tolist())]
        for number, exact in zip(short.tolist(), self._compared(vectors[short], k, allowed), strict=True):
            lists[number] = exact
        return Hits.from_lists(lists)

    def matching(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        """Search for words by BM25; rows that share no word with a query are not found."""
        return self._hits(WORDS, queries, k, allowed)

    def _hits(self, field: str, queries: Any, k: int, allowed: Mask | None) -> Hits:
        n_found = self.record.rows if allowed is None else int(np.count_nonzero(allowed))

        def search(numbers: Rows, depth: int) -> Matrix:
            rows, scores = np.full((len(numbers), depth), -1, np.int64), np.zeros((len(numbers), depth))
            vectors = [queries[number] for number in numbers.tolist()]
            pages = [self._page(field, vectors, depth, allowed)] if depth <= MOST_AT_ONCE else []
            lists = pages[0] if pages else [self._paged(field, query, depth, allowed) for query in vectors]
            for position, (some, their) in enumerate(lists):
                rows[position, : len(some)], scores[position, : len(some)] = some, their
            return rows, np.take_along_axis(scores, first_of_level(scores), axis=1)

        return search_past_ties(search, len(queries), k, n_found, past_the_cut=1)

    def _paged(self, field: str, query: Any, depth: int, allowed: Mask | None) -> tuple[Rows, Any]:
        """A list longer than a server's limit: each page leaves out the rows found before."""
        remaining = np.ones(self.record.rows, np.bool_) if allowed is None else allowed.copy()
        pages: list[tuple[Rows, Any]] = []
        missing = depth
        while missing > 0 and remaining.any():
            ((rows, scores),) = self._page(field, [query], min(missing, MOST_AT_ONCE), None if remaining.all() else remaining)
            if len(rows) == 0:
                break
            pages.append((rows, scores))
            remaining[rows] = False
            missing -= len(rows)
        if not pages:
            return np.zeros(0, np.int64), np.zeros(0)
        rows, scores = (np.concatenate(columns) for columns in zip(*pages, strict=True))
        return rows, scores

    def _page(self, field: str, queries: list[Any], depth: int, allowed: Mask | None) -> list[tuple[Rows, Any]]:
        expression, values = condition_of(allowed, templates=not self.connections.lite)
        metric = "IP" if field == VECTORS else "BM25"

        def search() -> Any:
            return self.client.search(
                self.record.collection,
                data=queries,
                anns_field=field,
                limit=depth,
                filter=expression,
                filter_params=values,
                search_params={"metric_type": metric, "params": self.params(depth) if field == VECTORS else {}},
                consistency_level=self.consistency.title(),
                retry_times=0,
            )

        lists = []
        for hits in loaded(self.client, self.record, search):
            rows, scores = np.array(hits.ids, np.int64), np.array(hits.distances, np.float64)
            lists.append((rows, np.abs(scores) if field == WORDS else scores))  # Milvus Lite returns negative scores for BM25
        return lists

    def _compared(self, vectors: Any, k: int, allowed: Mask | None) -> list[tuple[Rows, Any]]:
        """The best k per query of all allowed rows."""
        rows = np.arange(self.record.rows) if allowed is None else np.flatnonzero(allowed)
        wide, scores = vectors.astype(np.float64), np.empty((len(vectors), len(rows)), np.float32)
        for first in range(0, len(rows), _COMPARED_AT_ONCE):
            some = rows[first : first + _COMPARED_AT_ONCE]
            block = stored_vectors(self.connections, self.client, self.record, some)
            scores[:, first : first + len(some)] = wide @ block.T.astype(np.float64)
        return [best_levelled(rows, its.astype(np.float64), k) for its in scores]


def first_of_level(scores: Scores) -> Rows:
    """The place of each score in its list, best first; scores that differ only by rounding share the first of their places.

    A server rounds the products of equal vectors differently.

    Args:
        scores: ``[..., length]``.
    """
    apart = -np.diff(scores, prepend=np.inf) > ROUNDING * np.maximum(1.0, np.abs(scores))
    places: Rows = np.maximum.accumulate(np.where(apart, np.arange(scores.shape[-1]), 0), axis=-1)
    return places


def best_levelled(rows: Rows, scores: Scores, k: int) -> tuple[Rows, Scores]:
    """The k best of some rows and their scores, best first; the lowest rows if scores differ only by rounding."""
    order = np.argsort(-scores, kind="stable")
    rows, scores = rows[order], scores[order]
    scores = scores[first_of_level(scores)]
    best = np.lexsort((rows, -scores))[:k]
    return rows[best], scores[best]


def condition_of(allowed: Mask | None, *, templates: bool) -> tuple[str, dict[str, list[int]]]:
    """An expression that is true for the allowed rows, and its values.

    Args:
        allowed: ``[rows of the collection]``; None for all.
        templates: whether the server accepts values separately from an expression, so that it need not parse them.
    """
    if allowed is None:
        return "", {}
    word, rows = "in", np.flatnonzero(allowed)
    if 2 * len(rows) > len(allowed):
        word, rows = "not in", np.flatnonzero(~allowed)
    if templates:
        return f"row {word} {{rows}}", {"rows": rows.tolist()}
    return f"row {word} [{','.join(map(str, rows.tolist()))}]", {}


T = TypeVar("T")

_VECTORS = "vectors.npy"
_AT_ONCE = 4096
_DEPTH = 100


class MilvusRetriever(ServerRetriever[CollectionRecord, MilvusConnections], VectorRetriever):
    """Retrieval with Milvus: by the inner product over an encoder's vectors, by BM25, or by both; on a server, or embedded.

    The index directory keeps the name of a collection and a record of its content, but no URL or token. A missing or changed
    collection is an error. Without a URL, Milvus Lite runs in the folder ``.milvus`` of the index directory while it is used.
    For BM25 the server holds the texts, at most 65,535 bytes of each (a warning counts longer ones), but never ids and
    metadata.

    The server applies filters and leaves out deleted items before a list is cut, so that k items are found whenever k match.
    BM25 is Milvus's own; each segment has its own weights of words until segments are joined. ``both`` fuses the two lists,
    each of at least 100, by reciprocal ranks (Cormack, Clarke and Buettcher, 2009).

    Args:
        encoder: a model's hub name, a local folder, or an encoder; not used by ``bm25``.
        mode: ``dense``, ``bm25`` or ``both``.
        url: ``env:NAME``, an environment variable with the URL of a server, or that URL (``http://host:19530``, ``https://...``;
            the name of a database may follow a slash). None: Milvus Lite.
        token: ``env:NAME``, an environment variable with ``user:password`` or the key of a managed server.
        index_type: of the vectors: ``flat`` compares all; ``hnsw`` and ``ivf`` are approximate, as are ``diskann`` and
            ``rabitq``, on servers only. Items that join an index are compared exactly until segments are joined.
        hnsw_m: hnsw: links per node.
        ef_construction: hnsw: width of the build's search for them.
        nlist: ivf, rabitq: clusters; None for four times the square root of the number of items.
        ef_search: hnsw, diskann: width of a search.
        nprobe: ivf, rabitq: number of clusters that a search compares.
        analyzer: bm25: splits texts into words; ``english`` and ``chinese`` only on servers.
        k1: bm25: saturation of term frequency; with a lower value, repetitions of a word stop counting sooner.
        b: bm25: penalty for long texts.
        consistency: the state that a search waits for; the collections of an index never change.
        timeout: seconds that one request of a search may take.
        retries: most retries of a request if the server is away or asks for patience.
        merge: how sub-queries of one query are merged: ``alternate``, ``max``, ``rrf`` or ``round_robin``.

    Examples:
        >>> Searcher([MilvusRetriever(mode="both", url="env:MILVUS_URL", token="env:MILVUS_TOKEN")])
        Searcher(retrievers=[MilvusRetriever(encoder=SentenceTransformerEncoder(), mode='both', url='env:MILVUS_URL',
        token='***')])
    """

    name = "milvus"
    manifest_may_set = may_set(
        *("mode", "index_type", "hnsw_m", "ef_construction", "nlist", "ef_search", "nprobe", "analyzer", "k1", "b"),
        *("consistency", "timeout", "retries", "merge"),
        encoder=reads_model,
        url=given("ask the server"),
        token=given("send the token in"),
    )
    search_only = frozenset({"url", "token", "ef_search", "nprobe", "consistency", "timeout", "retries", "merge"})
    record = CollectionRecord
    at_once = 64

    def __init__(
        self,
        encoder: str | BaseEncoder = "sentence-transformers/all-MiniLM-L6-v2",
        mode: Literal["dense", "bm25", "both"] = "dense",
        url: str | None = None,
        token: str | None = None,
        index_type: IndexType = "flat",
        hnsw_m: Annotated[int, Field(ge=2, le=2048)] = 16,
        ef_construction: Annotated[int, Field(ge=4, le=32_768)] = 200,
        nlist: Annotated[int, Field(ge=1, le=65_536)] | None = None,
        ef_search: Annotated[int, Field(ge=1, le=32_768)] = 100,
        nprobe: Annotated[int, Field(ge=1, le=65_536)] = 32,
        analyzer: Literal["standard", "english", "chinese"] = "standard",
        k1: Annotated[float, Field(gt=0, le=3)] = 1.2,
        b: Annotated[float, Field(ge=0, le=1)] = 0.75,
        consistency: Literal["strong", "bounded", "session", "eventually"] = "strong",
        timeout: Annotated[float, Field(gt=0, le=86_400)] = 60.0,
        retries: Annotated[int, Field(ge=0, le=10)] = 2,
        merge: MergeRule = "alternate",
    ) -> None:
        super().__init__(url, url if url is None or url.startswith("env:") else hide_secrets(url))
        if token is not None and not token.startswith("env:"):
            self._arguments["token"] = None
            raise ConfigurationError(f"{self.name}: token has to name an environment variable that holds it: env:NAME")
        self.encoder = SentenceTransformerEncoder(encoder) if isinstance(encoder, str) else encoder
        self.mode = mode
        self.token = token
        self.index_type: IndexType = index_type
        self.hnsw_m = hnsw_m
        self.ef_construction = ef_construction
        self.nlist = nlist
        self.ef_search = ef_search
        self.nprobe = nprobe
        self.analyzer = analyzer
        self.k1 = k1
        self.b = b
        self.consistency = consistency
        self.timeout = timeout
        self.retries = retries
        self.merge = merge
        self._arguments["encoder"] = self.encoder  # a name and its encoder are the same configuration

    def index_identity(self) -> Config:
        if self.mode != "bm25":
            return super().index_identity()
        of_words = {"mode", "analyzer", "k1", "b"}
        return {"name": self.name, "format": self.format_version} | {key: self._arguments[key] for key in of_words}

    def ignored(self, query: str) -> str | None:
        """Return the reason why a query of stop words is ignored, and how to index them; None for other queries."""
        if self.mode != "bm25" or self.analyzer == "standard" or not has_only_stop_words(query):
            return None
        return f"stop words alone, which analyzer={self.analyzer!r} leaves out, and an index with analyzer=standard keeps"

    # building

    def build(self, items: ItemTable, folder: Path) -> None:
        self._encode_into(items, folder, None, self._collection_settings(len(items)))

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        del everything
        self.require_segments(segments)
        self._encode_into(items, folder, self.record.read(segments[0].folder).dimension, self._collection_settings(None))

    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        connections = self.pool_of(folder.parent)
        records = self.records(segments)

        def vectors() -> Any:
            for segment, record in records:
                rows = np.arange(len(segment)) if segment.live is None else np.flatnonzero(segment.live)
                for first in range(0, len(rows), _AT_ONCE):
                    some = rows[first : first + _AT_ONCE]
                    yield connections.read(partial(stored_vectors, connections, record=record, rows=some))

        dimension = records[0][1].dimension
        making = self._collection_settings(len(items) if segments[0].first_row == 0 else None)
        self._make(items, folder, vectors() if dimension else None, dimension, making)

    def _collection_settings(self, n_items: int | None) -> Making:
        """Return the settings for a collection of this size; None for one that joins others, and is compared exactly."""
        index_type: IndexType = "flat" if n_items is None or self.mode == "bm25" else self.index_type
        clusters = self.nlist or min(65_536, 4 * math.ceil(math.sqrt(n_items or 1)))
        params = {"ivf": {"nlist": clusters}, "rabitq": {"nlist": clusters}}
        params["hnsw"] = {"M": self.hnsw_m, "efConstruction": self.ef_construction}
        analyzer = None if self.mode == "dense" else self.analyzer
        bm25 = {"bm25_k1": self.k1, "bm25_b": self.b}
        return Making(index_type, params.get(index_type, {}), analyzer, bm25, self.consistency)

    def _encode_into(self, items: ItemTable, folder: Path, dimension: int | None, making: Making) -> None:
        """Encode items, if vectors are searched, and create their collection."""
        require_abilities(self.pool_of(folder.parent), making)
        if self.mode == "bm25":
            self._make(items, folder, None, 0, making)
            return
        path = folder / _VECTORS
        dimension = write_vectors(self, items, path, dimension)
        self._make(items, folder, read_blocks(path, _AT_ONCE), dimension, making)
        path.unlink()

    def _make(self, items: ItemTable, folder: Path, vectors: Any, dimension: int, making: Making) -> None:
        connections = self.pool_of(folder.parent)
        make_collection(connections, folder.parent.absolute(), items, vectors, dimension, making).write(folder)

    def settle(self, directory: Path) -> None:
        embedded = self.url is None
        if embedded and not (directory / EMBEDDED).exists():
            return
        connections = self.pool_of(directory)

        def drop(client: MilvusClient) -> None:
            for name in orphans(directory, client.list_collections(retry_times=0), embedded=embedded):
                client.drop_collection(name, retry_times=0)

        connections.write(drop)

    # searching

    def connect(self, directory: Path | None) -> MilvusConnections:
        embedded = None if directory is None else MilvusLiteServer(directory / EMBEDDED)
        return MilvusConnections(self.url, self.token, embedded, timeout=self.timeout, retries=self.retries)

    def check(self, connections: MilvusConnections, record: CollectionRecord) -> None:
        check_collection(connections, record)

    def reading(self, work: Callable[[MilvusClient], T]) -> T:
        return self._server.read(work)

    @property
    def dimension(self) -> int:
        return self._records[0][1].dimension

    def encode(self, queries: list[str]) -> Vectors:
        if self.mode == "bm25":
            raise ConfigurationError(f"{self.name}: mode='bm25' keeps no vectors; use mode='dense' or 'both'")
        return encoded_queries(self, queries)

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        if self.mode == "bm25" or not queries:
            return self.search_prepared(queries, k, allowed)
        with stage(f"{self.name}.encode"):
            vectors = self.encode(queries)
        if self.mode == "dense":
            return self.search_prepared(vectors, k, allowed)
        depth = max(k, _DEPTH)
        return _fused(self.search_prepared(vectors, depth, allowed), self.search_prepared(queries, depth, allowed), k)

    def search_vectors(self, vectors: Vectors, k: int, allowed: Mask | None) -> Hits:
        return self.search_prepared(vectors, k, allowed)

    def search_table(
        self, connection: MilvusClient, record: CollectionRecord, queries: Any, k: int, allowed: Mask | None
    ) -> Hits:
        search = Search(self._server, connection, record, self._params_of(record), self.consistency)
        if isinstance(queries, np.ndarray):
            return search.nearest(queries, k, allowed)
        return search.matching(queries, k, allowed)

    def joined(self, parts: list[Hits], n_queries: int, k: int) -> Hits:
        if len(parts) == 1:
            return parts[0]
        hits = joined_hits(parts, n_queries, len(parts) * k)
        return Hits.from_lists([best_levelled(hits.rows[a:b], hits.scores[a:b], k) for a, b in pairwise(hits.offsets.tolist())])

    def vectors_of(self, rows: Rows) -> Vectors:
        distinct, places = np.unique(rows, return_inverse=True)
        stored = np.empty((len(distinct), self.dimension), np.float32)
        for segment, record in self._records:
            part = slice(*np.searchsorted(distinct, [segment.first_row, segment.end_row]).tolist())
            if part.stop > part.start:
                wanted = distinct[part] - segment.first_row
                stored[part] = self.reading(partial(stored_vectors, self._server, record=record, rows=wanted))
        vectors: Vectors = stored[places]
        return vectors

    def _params_of(self, record: CollectionRecord) -> Callable[[int], dict[str, int]]:
        """The parameters of a search for this many rows."""
        params: dict[str, Callable[[int], dict[str, int]]] = {
            "hnsw": lambda depth: {"ef": max(self.ef_search, depth)},
            "diskann": lambda depth: {"search_list": max(self.ef_search, depth)},
            "ivf": lambda _: {"nprobe": self.nprobe},
            "rabitq": lambda _: {"nprobe": self.nprobe},
        }
        return params.get(record.index_type, lambda _: {})


def _fused(dense: Hits, words: Hits, k: int) -> Hits:
    """The best k of two lists per query, by the sum of their reciprocal ranks; equal scores share a rank."""
    lists = []
    for ends in zip(pairwise(dense.offsets.tolist()), pairwise(words.offsets.tolist()), strict=True):
        row_lists, shares = [], []
        for hits, (first, end) in zip((dense, words), ends, strict=True):
            row_lists.append(hits.rows[first:end])
            shares.append(reciprocal_ranks(1 + first_of_level(hits.scores[first:end])))
        rows, places = np.unique(np.concatenate(row_lists), return_inverse=True)
        scores: Scores = np.bincount(places, np.concatenate(shares), len(rows)).astype(np.float64)
        lists.append(top_k(rows, scores, k))
    return Hits.from_lists(lists)
