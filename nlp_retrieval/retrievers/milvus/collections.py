"""The collections of segments: created and filled before any record names them, and checked against their records.

A collection holds, for every row of a segment, its number, its id's part of the checksum of the ids, and the data to search: a
vector, or the text that Milvus's own BM25 needs, or both. Ids, titles and metadata stay in the index directory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.context import warn_of_cut
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.progress_bars import tracked
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import ConfigurationError, EngineError, IndexDamagedError
from nlp_retrieval.retrievers.milvus.client import MilvusConnections, is_not_loaded, let_go
from nlp_retrieval.retrievers.milvus.making import MOST_BYTES, VECTORS, WORDS, Making, index_params_of, schema_of
from nlp_retrieval.retrievers.milvus.record import CollectionRecord, new_name
from nlp_retrieval.retrievers.servers.checksums import row_sum, stored_id

if TYPE_CHECKING:
    from pymilvus import MilvusClient

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
    found = np.empty((len(rows), record.dimension), np.float32)
    for first in range(0, len(rows), at_once := _rows_at_once(record.dimension)):
        wanted = rows[first : first + at_once]
        listed = _query(client, record, f"row in {wanted.tolist()}", [VECTORS])
        if sorted(hit["row"] for hit in listed) != wanted.tolist():
            raise IndexDamagedError(
                f"{connections.shown}: vectors of the index are not in the {record.shown} any more; {_CURE}"
            )
        for hit in listed:
            found[first + np.searchsorted(wanted, hit["row"])] = hit[VECTORS]
    return found


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
    found = _query(client, record, "", ["count(*)"])
    rows = int(found[0]["count(*)"])
    if rows != record.rows:
        raise IndexDamagedError(
            f"{connections.shown}: {record.shown} holds {rows:,} rows, and not the {record.rows:,} of the index: it was "
            f"changed; {_CURE}"
        )
    same = _is_whole(client, record) if whole else _has_sample(client, record)
    if not same:
        raise IndexDamagedError(
            f"{connections.shown}: {record.shown} holds other rows, and not the {record.rows:,} of the index: it was changed; "
            f"{_CURE}"
        )


def _is_whole(client: MilvusClient, record: CollectionRecord) -> bool:
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

    found: list[dict[str, Any]] = loaded(client, record, query)
    return found


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
    whole = chain.from_iterable(items.texts(1000)) if with_text else repeat(None)
    n_cut = 0
    each = repeat(None) if vectors is None else chain.from_iterable(vectors)
    batch: list[dict[str, Any]] = []
    size = content = 0
    ids = items.ids()
    parts = tracked("milvus: writing", (ids[first : first + 1000] for first in range(0, len(ids), 1000)), len(ids))
    for row, (item_id, vector, text) in enumerate(zip(chain.from_iterable(parts), each, whole, strict=False)):
        made: dict[str, Any] = {"row": row, "id_sum": _id_sum(row, item_id)}
        if vector is not None:
            made[VECTORS] = vector
            size += 4 * len(vector)
        if text is not None:
            made["text"] = kept = cut_to_bytes(text)
            n_cut += len(kept) < len(text)
            size += len(text)
        content += _content_sum(row, vector, made.get("text"))
        batch.append(made)
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
