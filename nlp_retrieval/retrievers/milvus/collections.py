"""The collections of segments: created and filled before any record names them, and checked against their records.

A collection holds, for every row of a segment, its number, its id's part of the checksum of the ids, and the data to search: a
vector, or the text that Milvus's own BM25 needs, or both. Ids, titles and metadata stay in the index directory.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.context import warn_of_cut
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.progress_bars import tracked
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import ConfigurationError, EngineError, IndexDamagedError
from nlp_retrieval.retrievers.milvus.client import EMBEDDED, MilvusConnections, MilvusLiteServer, is_not_loaded, let_go
from nlp_retrieval.retrievers.servers.retriever import ServerRecord, inode_of, place_of, row_sum, stored_id

if TYPE_CHECKING:
    from pymilvus import MilvusClient


# ``milvus.json``, the only file in the folder of a segment of an index whose data lives in Milvus; and names of collections.
#
# A collection is never renamed, and its name is used only once. The name contains the index directory, so that the writer of
# a directory finds its own collections that no folder names any more, and no others:
#
# ``nlpr_<token>_<directory>_<path>_<random>``
#     the token is random and stays with the directory; the directory is its inode, which a move keeps and a copy does not.
#
# A collection belongs to a directory if it was created in this same directory, and at this path or for this token. So a
# copied directory never drops what the original uses, and a moved one keeps its own.


IndexType = Literal["flat", "hnsw", "ivf", "diskann", "rabitq"]

_COLLECTION = r"nlpr_([0-9a-f]{12})_([0-9a-f]{12})_([0-9a-f]{12})_[0-9a-f]{16}"


class CollectionRecord(ServerRecord):
    """A collection of a segment.

    Args:
        format: of this record.
        server: the version of the server that it was built on.
        database: its name there; empty for the default one.
        collection: its name, never used again.
        dimension: of the vectors; 0 without.
        words: whether it holds texts for BM25.
        index_type: of the vectors.
        sample: checksum of the ids of rows evenly spread over a large collection, or of all rows of a small one.
        content: checksum of vectors and texts.
    """

    file: ClassVar[str] = "milvus.json"

    format: Literal[1] = 1
    server: str = Field(max_length=100)
    database: str = Field(max_length=255)
    collection: str = Field(pattern=f"^{_COLLECTION}$")
    dimension: int = Field(ge=0, le=32_768)
    words: bool
    index_type: IndexType
    sample: str = Field(pattern=r"^-?\d{1,30}$")
    content: str = Field(pattern=r"^-?\d{1,30}$")

    @property
    def shown(self) -> str:
        """Return its name in messages."""
        return f"collection {self.collection!r}"


def new_name(directory: Path, token: str) -> str:
    """A name for a collection of an index directory."""
    return f"nlpr_{token[:12]}_{_inode(directory)}_{_digest(place_of(directory))}_{secrets.token_hex(8)}"


def orphans(directory: Path, names: list[str], *, embedded: bool) -> list[str]:
    """The collections of a server that are an index directory's own, and that none of its folders names.

    Args:
        directory: of the index.
        names: of all collections.
        embedded: whether the server, with all its collections, belongs to the directory.
    """
    records = CollectionRecord.named(directory)
    named, tokens = {record.collection for record in records}, {record.token[:12] for record in records}
    inode, path_digest = _inode(directory), _digest(place_of(directory))
    orphaned = []
    for name in names:
        match = re.fullmatch(_COLLECTION, name)
        if (
            match
            and name not in named
            and (embedded or (match[2] == inode and (match[3] == path_digest or match[1] in tokens)))
        ):
            orphaned.append(name)
    return orphaned


def _inode(directory: Path) -> str:
    return _digest(f"{socket.gethostname()}:{inode_of(directory)}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


# Creating collections: their fields and indexes, and the requirements on a server.


VECTORS, WORDS = "embedding", "words"
"""The fields that are searched."""

MOST_BYTES = 65_535
"""Most bytes of a text in Milvus."""

_ON_LITE = ("flat", "hnsw", "ivf")
_OLDEST, _RABITQ_SINCE = ((2, 5), ""), ((2, 6), "index_type='rabitq'")


@dataclass(frozen=True)
class Making:
    """Settings for creating collections.

    Args:
        index_type: of the vectors.
        params: for building that index.
        analyzer: for the texts; None if there are none.
        bm25: ``bm25_k1`` and ``bm25_b``.
        consistency: default consistency of other clients' reads.
    """

    index_type: IndexType
    params: dict[str, int]
    analyzer: str | None
    bm25: dict[str, float]
    consistency: str


def require_abilities(connections: MilvusConnections, making: Making) -> None:
    """Raise an error if a server cannot create such a collection, before anything is encoded.

    Raises:
        ServerError: it is too old, or cannot be reached.
        ConfigurationError: Milvus Lite lacks a feature of servers.
    """
    connections.require(*(_RABITQ_SINCE if making.index_type == "rabitq" else _OLDEST))
    if connections.lite and making.index_type not in _ON_LITE:
        raise ConfigurationError(
            f"Milvus Lite has no index_type={making.index_type!r}; use {', '.join(_ON_LITE)}, or pass url=... of a server"
        )
    if connections.lite and making.analyzer not in (None, "standard"):
        raise ConfigurationError(
            f"Milvus Lite has no analyzer={making.analyzer!r}; use 'standard', or pass url=... of a server"
        )


def schema_of(directory: Path, dimension: int, analyzer: str | None) -> Any:
    """The fields of a collection.

    Args:
        directory: of the index, for its description.
        dimension: of the vectors; 0 without.
        analyzer: of the texts; None without.
    """
    from pymilvus import DataType, Function, FunctionType, MilvusClient

    schema = MilvusClient.create_schema(auto_id=False, description=f"nlp_retrieval: {directory}"[:1000])
    schema.add_field("row", DataType.INT64, is_primary=True)
    schema.add_field("id_sum", DataType.INT64)
    if dimension:
        schema.add_field(VECTORS, DataType.FLOAT_VECTOR, dim=dimension)
    if analyzer is not None:
        schema.add_field(
            "text", DataType.VARCHAR, max_length=MOST_BYTES, enable_analyzer=True, analyzer_params={"type": analyzer}
        )
        schema.add_field(WORDS, DataType.SPARSE_FLOAT_VECTOR)
        bm25 = Function(name="bm25", function_type=FunctionType.BM25, input_field_names=["text"], output_field_names=[WORDS])
        schema.add_function(bm25)
    return schema


def index_params_of(dimension: int, making: Making, *, lite: bool) -> Any:
    """Return the indexes of the searched fields; ``lite`` for Milvus Lite."""
    from pymilvus import MilvusClient

    kinds = {"flat": "FLAT", "hnsw": "HNSW", "ivf": "IVF_FLAT", "diskann": "DISKANN", "rabitq": "IVF_RABITQ"}
    params = MilvusClient.prepare_index_params()

    def given(settings: Mapping[str, float]) -> Mapping[str, Any]:
        return {"params": settings} if lite else settings  # Milvus Lite reads no other settings

    if dimension:
        params.add_index(VECTORS, index_type=kinds[making.index_type], metric_type="IP", params=given(making.params))
    if making.analyzer is not None:
        params.add_index(WORDS, index_type="SPARSE_INVERTED_INDEX", metric_type="BM25", params=given(making.bm25))
    return params


CHECKED_WHOLE = 10_000
"""Largest collection whose rows are all read when it is opened; in larger ones the ids of some rows are checked."""

_MOST_DIMENSIONS = 32_768
_SAMPLED = 1000
_LIMIT = f"the {MOST_BYTES:,} bytes of a text that Milvus holds"
_SENT, _READ = 8 * 2**20, 8 * 2**20
_MOST_ROWS = 4096
_MOST_TEXTS = 2**26 // MOST_BYTES
"""Rows whose texts are requested at once: a server sends 100 MiB at most, and Milvus Lite 256, however long they are."""
_CURE = "index again with replace=True, or correct the url"


def make_collection(
    connections: MilvusConnections,
    directory: Path,
    items: ItemTable,
    vectors: Iterable[Vectors] | None,
    dimension: int,
    making: Making,
) -> CollectionRecord:
    """Create the collection of a segment; it is published by the manifest that names its record.

    Args:
        connections: to the server.
        directory: of the index.
        items: of the segment.
        vectors: of all items, in blocks; None if only words are searched.
        dimension: of the vectors; 0 without.
        making: settings of the collection.

    Raises:
        ServerError, IndexWriteError: it failed; nothing of it is used.
        EngineError: the server holds other rows than were sent.
    """
    if dimension > _MOST_DIMENSIONS:
        raise ConfigurationError(
            f"Milvus holds vectors of at most {_MOST_DIMENSIONS:,} dimensions, and the encoder's have {dimension:,}"
        )
    token = CollectionRecord.token_of(directory)
    name = new_name(directory, token)

    def make(client: MilvusClient) -> CollectionRecord:
        level = making.consistency.title()
        client.create_collection(
            name, schema=schema_of(directory, dimension, making.analyzer), consistency_level=level, retry_times=0
        )
        ids = content = 0
        for batch, its_sum in _batches(items, vectors, with_text=making.analyzer is not None):
            connections.patiently(partial(client.insert, name, batch, retry_times=0, retry_on_rate_limit=False))
            ids, content = ids + sum(row["id_sum"] for row in batch), content + its_sum
        client.flush(name, retry_times=0)
        client.create_index(name, index_params_of(dimension, making, lite=connections.lite), retry_times=0)
        client.load_collection(name, retry_times=0)
        return CollectionRecord(
            token=token,
            rows=len(items),
            ids=str(ids),
            server=connections.version[:100],
            database=connections.database,
            collection=name,
            dimension=dimension,
            words=making.analyzer is not None,
            index_type=making.index_type,
            sample=str(sum(_id_sum(row, item_id) for row, item_id in _sampled(items.ids()))),
            content=str(content),
        )

    record = connections.write(make)
    if connections.embedded is not None:
        connections.embedded.sync(name)
    try:
        check_collection(connections, record)
    except IndexDamagedError as error:
        raise EngineError(f"the server does not hold what was sent: {error}") from error
    return record


def check_collection(connections: MilvusConnections, record: CollectionRecord, *, whole: bool = False) -> None:
    """Compare a collection with its record.

    Args:
        connections: to the server.
        record: of the segment.
        whole: read all of it, even if it is large.

    Raises:
        IndexDamagedError: it is missing or holds something else.
        ServerError: the server cannot be asked.
    """
    connections.read(lambda client: _check(connections, client, record, whole=whole or record.rows <= CHECKED_WHOLE))


def stored_vectors(connections: MilvusConnections, client: MilvusClient, record: CollectionRecord, rows: Rows) -> Vectors:
    """Return the vectors of some rows of a collection, ``[rows, dimension]``.

    Args:
        connections: to the server.
        client: of the server.
        record: of the collection.
        rows: ascending, each once.

    Raises:
        IndexDamagedError: a row is missing.
    """
    vectors = np.empty((len(rows), record.dimension), np.float32)
    for first in range(0, len(rows), at_once := _rows_at_once(record.dimension)):
        wanted = rows[first : first + at_once]
        listed = _query(client, record, f"row in {wanted.tolist()}", [VECTORS])
        if sorted(hit["row"] for hit in listed) != wanted.tolist():
            raise IndexDamagedError(
                f"{connections.shown}: vectors of the index are not in the {record.shown} any more; {_CURE}"
            )
        for hit in listed:
            vectors[first + np.searchsorted(wanted, hit["row"])] = hit[VECTORS]
    return vectors


def loaded(client: MilvusClient, record: CollectionRecord, work: Any) -> Any:
    """Use a collection, which is loaded first if the server has not done so since its start."""
    from pymilvus.exceptions import MilvusException

    try:
        return work()
    except MilvusException as error:
        if not is_not_loaded(error):
            raise
        let_go(error)
        client.load_collection(record.collection, retry_times=0)
        return work()


def _check(connections: MilvusConnections, client: MilvusClient, record: CollectionRecord, *, whole: bool) -> None:
    if not client.has_collection(record.collection, retry_times=0):
        raise IndexDamagedError(
            f"{connections.shown}: there is no {record.shown}, which the index needs (it was built on Milvus {record.server}, "
            f"database {record.database or 'default'!r}); {_CURE}"
        )
    described = client.describe_collection(record.collection, retry_times=0)
    fields = {field["name"]: field["params"].get("dim") for field in described["fields"]}
    wanted = {"row", "id_sum"} | ({VECTORS} if record.dimension else set()) | ({"text", WORDS} if record.words else set())
    if {*fields} != wanted or (record.dimension and int(fields[VECTORS] or 0) != record.dimension):
        raise IndexDamagedError(f"{connections.shown}: {record.shown} has other fields than the index; {_CURE}")
    client.load_collection(record.collection, retry_times=0)
    answer = _query(client, record, "", ["count(*)"])
    rows = int(answer[0]["count(*)"])
    if rows != record.rows:
        raise IndexDamagedError(
            f"{connections.shown}: {record.shown} holds {rows:,} rows, and not the {record.rows:,} of the index: it was "
            f"changed; {_CURE}"
        )
    same = _is_complete(client, record) if whole else _has_sample(client, record)
    if not same:
        raise IndexDamagedError(
            f"{connections.shown}: {record.shown} holds other rows, and not the {record.rows:,} of the index: it was changed; "
            f"{_CURE}"
        )


def _is_complete(client: MilvusClient, record: CollectionRecord) -> bool:
    fields = ["id_sum", *([VECTORS] if record.dimension else []), *(["text"] if record.words else [])]
    ids = content = 0
    at_once = _rows_at_once(record.dimension)
    if record.words:
        at_once = min(at_once, _MOST_TEXTS)
    for first in range(0, record.rows, at_once):
        end = min(first + at_once, record.rows)
        listed = _query(client, record, f"row >= {first} and row < {end}", fields)
        if {hit["row"] for hit in listed} != {*range(first, end)}:
            return False
        ids += sum(hit["id_sum"] for hit in listed)
        content += sum(_content_sum(hit["row"], hit.get(VECTORS), hit.get("text")) for hit in listed)
    return (str(ids), str(content)) == (record.ids, record.content)


def _has_sample(client: MilvusClient, record: CollectionRecord) -> bool:
    rows = [row for row, _ in _sampled(range(record.rows))]
    listed = _query(client, record, f"row in {rows}", ["id_sum"])
    return str(sum(hit["id_sum"] for hit in listed)) == record.sample


def _query(client: MilvusClient, record: CollectionRecord, expression: str, fields: list[str]) -> list[dict[str, Any]]:
    """Rows of a collection in its present state."""

    def query() -> list[dict[str, Any]]:
        return [
            *client.query(
                record.collection,
                filter=expression,
                output_fields=fields if fields == ["count(*)"] else ["row", *fields],
                consistency_level="Strong",
                retry_times=0,
            )
        ]

    rows: list[dict[str, Any]] = loaded(client, record, query)
    return rows


def _sampled(ids: Any) -> Iterator[tuple[int, Any]]:
    """Rows evenly spread, and their ids."""
    step = max(1, len(ids) // _SAMPLED)
    return ((row, ids[row]) for row in range(0, len(ids), step))


def _id_sum(row: int, item_id: str) -> int:
    return row_sum(row, stored_id(item_id).encode())


def _content_sum(row: int, vector: Any, text: str | None) -> int:
    body = b"" if vector is None else np.asarray(vector, "<f4").tobytes()
    return row_sum(row, body + (text or "").encode())


def _rows_at_once(dimension: int) -> int:
    return max(1, min(_MOST_ROWS, _READ // (4 * max(dimension, 1))))


def _batches(
    items: ItemTable, vectors: Iterable[Vectors] | None, *, with_text: bool
) -> Iterator[tuple[list[dict[str, Any]], int]]:
    """The rows of a segment in batches of a few megabytes, each with the checksum of its content."""
    texts = chain.from_iterable(items.texts(1000)) if with_text else repeat(None)
    n_cut = 0
    each = repeat(None) if vectors is None else chain.from_iterable(vectors)
    batch: list[dict[str, Any]] = []
    size = content = 0
    ids = items.ids()
    parts = tracked("milvus: writing", (ids[first : first + 1000] for first in range(0, len(ids), 1000)), len(ids))
    for row, (item_id, vector, text) in enumerate(zip(chain.from_iterable(parts), each, texts, strict=False)):
        entry: dict[str, Any] = {"row": row, "id_sum": _id_sum(row, item_id)}
        if vector is not None:
            entry[VECTORS] = vector
            size += 4 * len(vector)
        if text is not None:
            entry["text"] = kept = cut_to_bytes(text)
            n_cut += len(kept) < len(text)
            size += len(text)
        content += _content_sum(row, vector, entry.get("text"))
        batch.append(entry)
        if size >= _SENT or len(batch) == _MOST_ROWS:
            yield batch, content
            batch, size, content = [], 0, 0
    if batch:
        yield batch, content
    warn_of_cut("milvus", n_cut, len(ids), _LIMIT, "index smaller chunks, as the loader 'chunker' makes them", "texts for BM25")


def cut_to_bytes(text: str) -> str:
    """A text as Milvus can hold it: at most 65,535 bytes."""
    body = text.encode("utf-8", "replace")
    return text if len(body) <= MOST_BYTES else body[:MOST_BYTES].decode("utf-8", "ignore")


# Reading whole collections of an index, and comparing them with its records.


_MOST_SECONDS = 3600.0
"""Time limit of one request."""


def verify_collections(directory: Path, url: str | None = None, token: str | None = None) -> list[str]:
    """Compare every row of every collection that the manifest of an index names with the checksums in the records.

    Args:
        directory: of the index.
        url: of the server; None for the embedded one.
        token: ``env:NAME``, for the server.

    Returns:
        One message per damaged collection; empty if there is none, or no collection at all.

    Raises:
        IndexDamagedError: the manifest, or the record of a collection, is damaged.
        ConfigurationError: the collections are on another server, and no URL is given.
        ServerError: the server cannot be asked.
    """
    records = CollectionRecord.of_index(directory)
    if not records:
        return []
    server_folder = directory.absolute() / EMBEDDED
    if url is None and not server_folder.is_dir():
        raise ConfigurationError(
            f"{directory}: {len(records)} collections of this index are on a server (database "
            f"{records[0].database or 'default'!r}), which was not asked; pass its URL with --url env:NAME"
        )
    server = MilvusLiteServer(server_folder) if url is None else None
    connections = MilvusConnections(url, token, server, timeout=_MOST_SECONDS, retries=1)
    damaged = []
    try:
        for record in records:
            try:
                check_collection(connections, record, whole=True)
            except IndexDamagedError as error:
                damaged.append(str(error))
    finally:
        connections.close()
        if server is not None:
            server.close()
    return damaged
