"""Retrieval in Milvus: vectors of an encoder, or Milvus's own BM25; on a server, a cluster, or Milvus Lite in a folder.

A URL is ``http://host:19530`` or ``https://...``, with the name of a database behind a slash, or ``env:NAME``, the name of an
environment variable that holds it. A token comes from the environment alone.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

import numpy as np
from pydantic import Field

from nlp_retrieval.core.candidates import Hits, Mask, MergeRule, Rows, Scores
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.trust_rules import given, may_set, reads_model
from nlp_retrieval.core.files.atomic import sync_tree
from nlp_retrieval.core.files.columns import read_blocks
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.processes import forked, inherited
from nlp_retrieval.core.progress_bars import tracked
from nlp_retrieval.core.queries import has_only_stop_words
from nlp_retrieval.encoders.base import BaseEncoder, Vectors
from nlp_retrieval.encoders.sentence_transformer import as_encoder
from nlp_retrieval.errors import ConfigurationError, DependencyError, IndexDamagedError, IndexWriteError, ServerError, install
from nlp_retrieval.loaders.database import hide_secrets, resolve, scrub
from nlp_retrieval.retrievers.servers.embedded import prepare_folder
from nlp_retrieval.retrievers.servers.retriever import MISSING, ServerRecord, ServerVectorRetriever, padded
from nlp_retrieval.retrievers.vectors import Matrix, search_past_ties, warn_of_cut, write_vectors
from nlp_retrieval.text.printing import printable

if TYPE_CHECKING:
    from pymilvus import MilvusClient

_UNDIVIDED = {"MILVUS_LITE_MEMTABLE_MEMORY_LIMIT_BYTES": str(2**30), "MILVUS_LITE_WAL_SIZE_LIMIT_BYTES": str(2**31)}
"""Settings that keep a collection of up to a gigabyte in one piece: Milvus Lite weighs words piece by piece."""


def _import_driver() -> None:
    """Import pymilvus, without the settings of a file ``.env`` that it would look for, and without its log of our errors."""
    for name, value in _UNDIVIDED.items():
        os.environ.setdefault(name, value)
    disabled = "PYTHON_DOTENV_DISABLED"
    before = os.environ.get(disabled, "")
    os.environ[disabled] = "1"
    try:
        import pymilvus  # noqa: F401
    except ImportError as error:
        raise DependencyError(f"Milvus needs its driver: {install('milvus')} ({error})") from error
    finally:
        os.environ[disabled] = before  # empty is as good as none
    for name in ("pymilvus", "milvus_lite"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a wrong port or address; its message quotes a part of the URL
        return False


class Milvus:
    """A client of one server, or of Milvus Lite in a folder until this process ends, which several threads share."""

    def __init__(self, url: str | None, token: str | None, folder: Path | None, timeout: float) -> None:
        _import_driver()
        self.process = os.getpid()
        self.timeout = timeout
        self.shown = f"Milvus Lite in {folder}" if url is None else hide_secrets(url)
        self.data = None if folder is None else folder / "milvus.db"
        self._url = str(self.data) if url is None else resolve(url)
        self._token = "" if token is None else resolve(token)
        self._cure = f"check that the server runs, the URL, the token, and timeout={timeout:g}"
        if self.data is not None:
            if inherited("milvus_lite"):
                raise forked("Milvus Lite")
            self._cure = "it is of one process: another one may use it (pass url=env:NAME of a server), or its data is damaged"
            prepare_folder(self.data.parent, self.data)
        elif not _is_url(self._url):
            raise ConfigurationError(f"{self.shown}: not the URL of a Milvus server; write http://host:19530 or https://host")
        with self._explaining():
            from pymilvus import MilvusClient

            self._client = MilvusClient(self._url, token=self._token, timeout=timeout, dedicated=True)
            self.lite = "lite" in self._client.get_server_version(timeout=timeout)

    @contextmanager
    def asking(self) -> Iterator[MilvusClient]:
        """Lend the client for requests."""
        with self._explaining():
            yield self._client

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Turn the driver's errors into ones with advice, and without secrets."""
        from grpc import RpcError
        from pymilvus.exceptions import MilvusException

        try:
            yield
        except (RpcError, MilvusException) as error:
            reason = printable(" ".join(scrub(error, self._url).split()))
            for secret in filter(None, (self._token, *self._token.split(":"))):
                reason = reason.replace(secret, "***")
            message = f"{self.shown}: {reason[:400]}; "
            if getattr(error, "code", None) in (4, 100):
                raise IndexDamagedError(f"{message}a collection of the index was dropped; {MISSING}") from None
            if any(words in reason.lower() for words in _FULL):
                raise IndexWriteError(f"{message}the server has no room; free some disk or memory there") from None
            raise ServerError(message + self._cure) from None


_FULL = ("no space left", "memory quota", "insufficient memory", "disk full")

# Searching one collection: filters before the cut, ties by row, and k rows whenever k match.
#
# A filter is sent as the numbers of the allowed rows, or of the others, whichever are fewer. The columns of the index
# directory decide which rows are allowed, as for every engine, so no text of a user is ever part of an expression.

_VECTORS, _WORDS = "embedding", "words"
_FILE = "vectors.npy"
_AT_ONCE = 4096
_QUERIES_AT_ONCE = 64
_MOST_HITS = 16_384
"""Longest list that a server returns."""
_MOST_BYTES = 65_535
"""Most bytes of a text in Milvus."""
_LIMIT = f"the {_MOST_BYTES:,} bytes of a text that Milvus holds"
_ROUNDING = 1e-6
"""Tolerance of scores, as a share of those above 1."""
_INDEXES = {"flat": "FLAT", "hnsw": "HNSW", "ivf": "IVF_FLAT", "diskann": "DISKANN", "rabitq": "IVF_RABITQ"}


class MilvusRetriever(ServerVectorRetriever[Milvus]):
    """Retrieval with Milvus: by the inner product over an encoder's vectors, or by BM25; on a server, or embedded.

    The index directory keeps the name of a collection, but no URL or token; a missing collection is an error. Without a URL,
    Milvus Lite runs in the folder ``.milvus`` of the index directory: in one process at a time, and open to all users of the
    machine while it runs, so it is for development.
    For BM25 the server holds the texts, at most 65,535 bytes of each (a warning counts longer ones), but never ids and
    metadata.

    The server applies filters and leaves out deleted items before a list is cut, so that k items are found whenever k match.
    BM25 is Milvus's own, of 16,384 items at most; each segment has its own weights of words until segments are joined.

    Args:
        encoder: a model's hub name, a local folder, or an encoder; not used by ``bm25``.
        mode: ``dense`` or ``bm25``.
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
        timeout: seconds that one request of a search may take, and for which a server that is away is tried again.
        merge: how sub-queries of one query are merged: ``alternate``, ``max``, ``rrf`` or ``round_robin``.

    Examples:
        >>> Searcher([MilvusRetriever(mode="bm25", url="env:MILVUS_URL", token="env:MILVUS_TOKEN")])
        Searcher(retrievers=[MilvusRetriever(encoder=SentenceTransformerEncoder(), mode='bm25', url='env:MILVUS_URL',
        token='***')])
    """

    name = "milvus"
    manifest_may_set = may_set(
        *("mode", "index_type", "hnsw_m", "ef_construction", "nlist", "ef_search", "nprobe", "analyzer", "k1", "b"),
        *("timeout", "merge"),
        encoder=reads_model,
        url=given("ask the server"),
        token=given("send the token in"),
    )
    search_only = frozenset({"url", "token", "ef_search", "nprobe", "timeout", "merge"})
    folder = ".milvus"

    def __init__(
        self,
        encoder: str | BaseEncoder = "sentence-transformers/all-MiniLM-L6-v2",
        mode: Literal["dense", "bm25"] = "dense",
        url: str | None = None,
        token: str | None = None,
        index_type: Literal["flat", "hnsw", "ivf", "diskann", "rabitq"] = "flat",
        hnsw_m: Annotated[int, Field(ge=2, le=2048)] = 16,
        ef_construction: Annotated[int, Field(ge=4, le=32_768)] = 200,
        nlist: Annotated[int, Field(ge=1, le=65_536)] | None = None,
        ef_search: Annotated[int, Field(ge=1, le=32_768)] = 100,
        nprobe: Annotated[int, Field(ge=1, le=65_536)] = 32,
        analyzer: Literal["standard", "english", "chinese"] = "standard",
        k1: Annotated[float, Field(gt=0, le=3)] = 1.2,
        b: Annotated[float, Field(ge=0, le=1)] = 0.75,
        timeout: Annotated[float, Field(gt=0, le=86_400)] = 60.0,
        merge: MergeRule = "alternate",
    ) -> None:
        super().__init__(url)
        if token is not None and not token.startswith("env:"):
            self._arguments["token"] = None
            raise ConfigurationError(f"{self.name}: token has to name an environment variable that holds it: env:NAME")
        self.encoder = as_encoder(encoder)
        self.mode = mode
        self.token = token
        self.index_type = index_type
        self.hnsw_m = hnsw_m
        self.ef_construction = ef_construction
        self.nlist = nlist
        self.ef_search = ef_search
        self.nprobe = nprobe
        self.analyzer = analyzer
        self.k1 = k1
        self.b = b
        self.timeout = timeout
        self.merge = merge
        self._arguments["encoder"] = self.encoder  # a name and its encoder are the same configuration

    def index_identity(self) -> Config:
        if self.mode == "dense":
            return super().index_identity()
        of_words = {"mode", "analyzer", "k1", "b"}
        return {"name": self.name, "format": self.format_version} | {key: self._arguments[key] for key in of_words}

    def ignored(self, query: str) -> str | None:
        """Return the reason why a query of stop words is ignored, and how to index them; None for other queries."""
        if self.mode != "bm25" or self.analyzer == "standard" or not has_only_stop_words(query):
            return None
        return f"stop words alone, which analyzer={self.analyzer!r} leaves out, and an index with analyzer=standard keeps"

    def connect(self, folder: Path | None) -> Milvus:
        return Milvus(self.url, self.token, folder, self.timeout)

    def rows_of(self, server: Milvus, table: str) -> int | None:
        with server.asking() as client:
            if not client.has_collection(table, timeout=server.timeout):
                return None
            client.load_collection(table)
            counted = client.query(table, output_fields=["count(*)"], consistency_level="Strong", timeout=server.timeout)
        return int(counted[0]["count(*)"])

    def drop_unnamed(self, server: Milvus, prefix: str, named: set[str]) -> None:
        with server.asking() as client:
            for name in client.list_collections(timeout=server.timeout):
                if name.startswith(prefix) and name not in named:
                    client.drop_collection(name)

    # building

    def build(self, items: ItemTable, folder: Path) -> None:
        self._encode_into(items, folder, None, self.index_type)

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        del everything
        self._encode_into(items, folder, self.records(segments)[0][1].dimension, "flat")

    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        server, records = self.server_of(folder.parent), self.records(segments)

        def vectors() -> Iterator[Vectors]:
            for segment, record in records:
                rows = np.arange(len(segment)) if segment.live is None else np.flatnonzero(segment.live)
                for first in range(0, len(rows), _AT_ONCE):
                    yield self.stored_vectors(server, record, rows[first : first + _AT_ONCE])

        dimension = records[0][1].dimension
        index_type = self.index_type if segments[0].first_row == 0 else "flat"
        self._make(items, folder, vectors() if dimension else None, dimension, index_type)

    def _encode_into(self, items: ItemTable, folder: Path, dimension: int | None, index_type: str) -> None:
        """Encode items, if vectors are searched, and create their collection."""
        if self.mode == "bm25":
            self._make(items, folder, None, 0, "flat")
            return
        path = folder / _FILE
        dimension = write_vectors(self, items, path, dimension)
        self._make(items, folder, read_blocks(path, _AT_ONCE), dimension, index_type)
        path.unlink()

    def _make(self, items: ItemTable, folder: Path, vectors: Iterable[Vectors] | None, dimension: int, index_type: str) -> None:
        """Create and fill the collection of a segment, and write its record."""
        server, name = self.server_of(folder.parent), self.new_name(folder.parent)
        with server.asking() as client:
            schema, indexes = self._layout(dimension, index_type, len(items), nested=server.lite)
            client.create_collection(name, schema=schema, consistency_level="Strong")
            for batch in self._batches(items, vectors, dimension):
                client.insert(name, batch)
            client.flush(name)
            client.create_index(name, indexes)
            client.load_collection(name)
        if server.data is not None:
            sync_tree(server.data)  # Milvus Lite writes files and does not sync them
        ServerRecord(table=name, rows=len(items), kind=index_type, dimension=dimension).write(folder)

    def _layout(self, dimension: int, index_type: str, n_items: int, *, nested: bool) -> tuple[Any, Any]:
        """The fields of a collection, and the indexes of those that are searched; Milvus Lite reads nested settings alone."""
        from pymilvus import DataType, Function, FunctionType, MilvusClient

        schema, indexes = MilvusClient.create_schema(auto_id=False), MilvusClient.prepare_index_params()
        schema.add_field("row", DataType.INT64, is_primary=True)
        if dimension:
            clusters = {"nlist": self.nlist or min(65_536, 4 * math.ceil(math.sqrt(n_items)))}
            graph = {"M": self.hnsw_m, "efConstruction": self.ef_construction}
            params: dict[str, Any] = {"hnsw": graph, "ivf": clusters, "rabitq": clusters}.get(index_type, {})
            params = {"params": params} if nested else params
            schema.add_field(_VECTORS, DataType.FLOAT_VECTOR, dim=dimension)
            indexes.add_index(_VECTORS, index_type=_INDEXES[index_type], metric_type="IP", params=params)
        else:
            analyzer = {"enable_analyzer": True, "analyzer_params": {"type": self.analyzer}}
            schema.add_field("text", DataType.VARCHAR, max_length=_MOST_BYTES, **analyzer)
            schema.add_field(_WORDS, DataType.SPARSE_FLOAT_VECTOR)
            schema.add_function(Function("bm25", FunctionType.BM25, input_field_names=["text"], output_field_names=[_WORDS]))
            weights: dict[str, Any] = {"bm25_k1": self.k1, "bm25_b": self.b}
            weights = {"params": weights} if nested else weights
            indexes.add_index(_WORDS, index_type="SPARSE_INVERTED_INDEX", metric_type="BM25", params=weights)
        return schema, indexes

    def _batches(self, items: ItemTable, vectors: Iterable[Vectors] | None, dimension: int) -> Iterator[list[dict[str, Any]]]:
        """The rows of a segment, in batches that no server refuses as too large."""
        has_texts = self.mode == "bm25"
        at_once = min(_AT_ONCE, 2**25 // (4 * dimension + (_MOST_BYTES if has_texts else 1)))
        each_vector = repeat(None) if vectors is None else chain.from_iterable(vectors)
        texts = chain.from_iterable(tracked("milvus: writing", items.texts(at_once), len(items)))
        batch: list[dict[str, Any]] = []
        n_cut = 0
        for row, (vector, text) in enumerate(zip(each_vector, texts, strict=False)):
            batch.append({"row": row} | ({} if vector is None else {_VECTORS: vector}))
            if has_texts:
                batch[-1]["text"] = kept = text.encode("utf-8", "replace")[:_MOST_BYTES].decode("utf-8", "ignore")
                n_cut += len(kept) < len(text)
            if len(batch) == at_once or row == len(items) - 1:
                yield batch
                batch = []
        cure = "index smaller chunks, as the loader 'chunker' makes them"
        warn_of_cut(self.name, n_cut, len(items), "texts for BM25", _LIMIT, cure)

    # searching

    def encode(self, queries: list[str]) -> Vectors:
        if self.mode == "bm25":
            raise ConfigurationError(f"{self.name}: mode='bm25' keeps no vectors; use mode='dense'")
        return super().encode(queries)

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        return self.search_tables(queries, k, allowed) if self.mode == "bm25" else super().search_batch(queries, k, allowed)

    def search_tables(self, queries: Any, k: int, allowed: Mask | None) -> Hits:
        n_segments = len(self._records)  # of each, k rows that differ only by rounding may be the best
        hits = super().search_tables(queries, k * n_segments, allowed)
        return Hits.from_lists([_best(*hits.of(number), k) for number in range(len(queries))])

    def search_table(self, record: ServerRecord, queries: Any, k: int, allowed: Mask | None) -> Hits:
        n_found = record.rows if allowed is None else int(np.count_nonzero(allowed))
        field = _VECTORS if isinstance(queries, np.ndarray) else _WORDS
        condition = _condition_of(allowed)

        def search(numbers: Rows, depth: int) -> Matrix:
            parts = [numbers[first : first + _QUERIES_AT_ONCE] for first in range(0, len(numbers), _QUERIES_AT_ONCE)]
            asked = [[queries[number] for number in part.tolist()] for part in parts]
            lists = chain.from_iterable(self._asked(record, field, part, depth, condition) for part in asked)
            rows, scores = padded(Hits.from_lists(list(lists)), depth)
            return rows, np.take_along_axis(scores, _first_of_level(scores), axis=1)

        hits = search_past_ties(search, len(queries), k, n_found, past_the_cut=1)
        if field == _WORDS or (record.kind == "flat" and k <= _MOST_HITS):
            return hits
        short = np.flatnonzero(np.diff(hits.offsets) < k).tolist()  # the index leaves some out, or a server's lists are shorter
        full = {number: self._compared(record, queries[number], k, allowed) for number in short}
        return hits.with_lists(full)

    def _asked(
        self, record: ServerRecord, field: str, queries: list[Any], depth: int, condition: str
    ) -> list[tuple[Rows, Scores]]:
        """Rows and scores of each query, best first; at most as many as a server returns."""
        wide = max(self.ef_search, depth)
        params = {"hnsw": {"ef": wide}, "diskann": {"search_list": wide}, "ivf": {"nprobe": self.nprobe}}
        params["rabitq"] = params["ivf"]
        with self._server.asking() as client:
            answers = client.search(
                record.table,
                data=queries,
                anns_field=field,
                limit=min(depth, _MOST_HITS),
                filter=condition,
                search_params={"params": params.get(record.kind, {}) if field == _VECTORS else {}},
                consistency_level="Strong",
                timeout=self.timeout,
            )
        lists = [(np.array(hits.ids, np.int64), np.array(hits.distances, np.float64)) for hits in answers]
        # Milvus Lite returns negative scores for BM25
        return lists if field == _VECTORS else [(rows, np.abs(scores)) for rows, scores in lists]

    def _compared(self, record: ServerRecord, query: Vectors, k: int, allowed: Mask | None) -> tuple[Rows, Scores]:
        """The best k of all allowed rows."""
        rows = np.arange(record.rows) if allowed is None else np.flatnonzero(allowed)
        blocks = [rows[first : first + _AT_ONCE] for first in range(0, len(rows), _AT_ONCE)]
        scores = [self.stored_vectors(self._server, record, block) @ query for block in blocks]
        return _best(rows, np.concatenate(scores).astype(np.float64), k)

    def stored_vectors(self, server: Milvus, record: ServerRecord, rows: Rows) -> Vectors:
        vectors = np.empty((len(rows), record.dimension), np.float32)
        at_once = max(1, min(_AT_ONCE, 2**23 // (4 * record.dimension)))
        for first in range(0, len(rows), at_once):
            wanted = rows[first : first + at_once].tolist()
            query = {"filter": f"row in {wanted}", "output_fields": ["row", _VECTORS], "consistency_level": "Strong"}
            with server.asking() as client:
                by_row = {hit["row"]: hit[_VECTORS] for hit in client.query(record.table, timeout=server.timeout, **query)}
            if len(by_row) != len(wanted):
                raise IndexDamagedError(f"{server.shown}: vectors of the index are not in {record.table} any more; {MISSING}")
            vectors[first : first + at_once] = [by_row[row] for row in wanted]
        return vectors


def _condition_of(allowed: Mask | None) -> str:
    """An expression that is true for the allowed rows, ``[rows of the collection]``; empty for all."""
    if allowed is None:
        return ""
    word, rows = "in", np.flatnonzero(allowed)
    if 2 * len(rows) > len(allowed):
        word, rows = "not in", np.flatnonzero(~allowed)
    return f"row {word} [{','.join(map(str, rows.tolist()))}]"


def _first_of_level(scores: Scores) -> Rows:
    """The place of each score in its list, best first; scores that differ only by rounding share the first of their places."""
    apart = -np.diff(scores, prepend=np.inf) > _ROUNDING * np.maximum(1.0, np.abs(scores))
    places: Rows = np.maximum.accumulate(np.where(apart, np.arange(scores.shape[-1]), 0), axis=-1)
    return places


def _best(rows: Rows, scores: Scores, k: int) -> tuple[Rows, Scores]:
    """The k best of some rows and their scores, best first; the lowest rows if scores differ only by rounding."""
    order = np.argsort(-scores, kind="stable")
    rows, scores = rows[order], scores[order]
    scores = scores[_first_of_level(scores)]
    best = np.lexsort((rows, -scores))[:k]
    return rows[best], scores[best]
