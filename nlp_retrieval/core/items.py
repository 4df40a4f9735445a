"""The items of an index, as one memory-mapped Arrow file that is read by row.

Metadata is kept in typed columns, one per key, so that filters can work on them; a key whose values have no common
simple type is kept as JSON text. What comes out equals what went in. Writing takes two passes, because a column's type
is known only when all values were seen: the first spools batches beside the file, the second types them. Memory is
bounded by a batch in both.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows
from nlp_retrieval.core.component import canonical_json
from nlp_retrieval.core.filter_masks import check_filter, mask_of
from nlp_retrieval.core.filters import Where, parse_filter
from nlp_retrieval.core.models import SearchableItem, join_title
from nlp_retrieval.core.progress import progress
from nlp_retrieval.errors import IndexDamagedError, ItemError, QueryError

ITEMS_FILE = "items.arrow"
_SPOOL_FILE = "spool.arrows"
_BATCH = 8192
_BATCH_CHARACTERS = 64 * 2**20
_STREAMED = 1024
_FEW = 64  # below this many rows, single values are cheaper than a take per column
_PREFIX = "metadata."
_EXACT_IN_FLOAT = 2**53
_MASKS_KEPT = 8

_TYPES: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int": pa.int64(),
    "float": pa.float64(),
    "str": pa.string(),
    "strings": pa.list_(pa.string()),
    "json": pa.string(),
}


def _kind(value: Any) -> str:
    """The column type that keeps a metadata value exactly."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if abs(value) <= _EXACT_IN_FLOAT else "json"
    if isinstance(value, float):
        return "float"
    if isinstance(value, str):
        return "str"
    if isinstance(value, list) and all(isinstance(inner, str) for inner in value):
        return "strings"
    return "json"


def _joint(one: str | None, other: str) -> str:
    """The column type that keeps values of both types exactly."""
    if one is None or one == other:
        return other
    return "float" if {one, other} == {"int", "float"} else "json"


def write_items(items: Iterable[SearchableItem], folder: Path) -> tuple[int, str]:
    """Write items into an empty folder.

    Args:
        items: in the order that gives them their rows.
        folder: receives ``items.arrow``.

    Returns:
        How many there were, and their fingerprint (SHA-256 over ids, content and metadata, in order).

    Raises:
        ItemError: an id that is empty or taken, text that is not valid Unicode, something that is no item, or no items at all.
    """
    kinds: dict[str, str] = {}
    digest = hashlib.sha256()
    hashes: list[NDArray[np.int64]] = []
    spool = folder / _SPOOL_FILE
    schema = pa.schema([("item_id", pa.string()), ("content", pa.string()), ("metadata", pa.string())])
    n_items = 0
    with (
        pa.OSFile(str(spool), "wb") as sink,
        pa.ipc.new_stream(sink, schema) as writer,
        progress("reading items", None) as advance,
    ):
        for batch in _batches(items):
            columns: tuple[list[str], list[str], list[str]] = ([], [], [])
            for item in batch:
                _check_item(item, n_items + len(columns[0]))
                metadata = _metadata_json(item)
                line = canonical_json([item.item_id, item.content])
                try:
                    digest.update(f"{line}{metadata}\n".encode())
                except UnicodeEncodeError as error:
                    raise ItemError(
                        f"item {item.item_id!r} holds a lone surrogate ({error.object[error.start]!r}), which is no valid "
                        "Unicode text; decode the source with errors='replace'"
                    ) from None
                for key, value in item.metadata.items():
                    kinds[key] = _joint(kinds.get(key), _kind(value))
                for column, value in zip(columns, (item.item_id, item.content, metadata), strict=True):
                    column.append(value)
            hashes.append(np.fromiter(map(hash, columns[0]), np.int64, len(batch)))
            writer.write_batch(pa.record_batch([pa.array(column, pa.string()) for column in columns], schema=schema))
            n_items += len(batch)
            advance(len(batch))
    if n_items == 0:
        raise ItemError("the corpus is empty: the loader gave no items; check its path and its filters")
    _check_unique(np.concatenate(hashes), spool)
    _type_columns(spool, folder / ITEMS_FILE, kinds)
    spool.unlink()
    return n_items, digest.hexdigest()


def _batches(items: Iterable[SearchableItem]) -> Iterator[list[SearchableItem]]:
    batch: list[SearchableItem] = []
    n_characters = 0
    for item in items:
        batch.append(item)
        n_characters += len(item.content) if isinstance(item, SearchableItem) else 0
        if len(batch) == _BATCH or n_characters > _BATCH_CHARACTERS:
            yield batch
            batch, n_characters = [], 0
    if batch:
        yield batch


def _check_item(item: object, position: int) -> None:
    if not isinstance(item, SearchableItem):
        raise ItemError(f"item {position + 1} is a {type(item).__name__}, not a SearchableItem; pass a loader or items")
    if not item.item_id:
        raise ItemError(f"item {position + 1} has an empty id; give every item an id of its own")


def _check_unique(hashes: NDArray[np.int64], spool: Path) -> None:
    """Find duplicate ids by their hashes, in 8 bytes an item; only ids whose hashes meet are compared."""
    order = np.argsort(hashes, kind="stable")
    meets = np.flatnonzero(hashes[order][1:] == hashes[order][:-1])
    if len(meets) == 0:
        return
    suspects = np.unique(np.concatenate([order[meets], order[meets + 1]]))
    seen: dict[str, int] = {}
    with pa.memory_map(str(spool)) as source, pa.ipc.open_stream(source) as reader:
        start = 0
        for batch in reader:
            for row in suspects[(suspects >= start) & (suspects < start + len(batch))]:
                item_id = batch.column(0)[int(row) - start].as_py()
                if item_id in seen:
                    raise ItemError(
                        f"duplicate item id {item_id!r}: items {seen[item_id] + 1} and {row + 1} (counted from 1) both have "
                        "it; ids are identities, so make them unique or leave one out"
                    )
                seen[item_id] = int(row)
            start += len(batch)


def _metadata_json(item: SearchableItem) -> str:
    try:
        return canonical_json(item.metadata)
    except (TypeError, ValueError, RecursionError) as error:
        raise ItemError(f"item {item.item_id!r} has metadata that JSON cannot hold: {error}") from None


def _type_columns(spool: Path, target: Path, kinds: dict[str, str]) -> None:
    keys = sorted(kinds)
    fields = [pa.field("item_id", pa.string()), pa.field("content", pa.string())]
    fields += [pa.field(_PREFIX + key, _TYPES[kinds[key]], metadata={"kind": kinds[key]}) for key in keys]
    schema = pa.schema(fields)
    with (
        pa.OSFile(str(spool), "rb") as source,
        pa.ipc.open_stream(source) as reader,
        pa.OSFile(str(target), "wb") as sink,
        pa.ipc.new_file(sink, schema) as writer,
    ):
        for batch in reader:
            metadata = [json.loads(text) for text in batch.column("metadata").to_pylist()]
            columns = [batch.column("item_id"), batch.column("content")]
            for key in keys:
                values = [_stored(row[key], kinds[key]) if key in row else None for row in metadata]
                columns.append(pa.array(values, _TYPES[kinds[key]]))
            writer.write_batch(pa.record_batch(columns, schema=schema))


def _stored(value: Any, kind: str) -> Any:
    if kind == "json":
        return json.dumps(value, ensure_ascii=False)
    return float(value) if kind == "float" else value


class ItemTable:
    """The items of an opened index: rows in, texts and items out.

    Args:
        path: an ``items.arrow`` whose checksum was compared.

    Raises:
        IndexDamagedError: it is no such file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            reader = pa.ipc.open_file(pa.memory_map(str(path)))
            self._batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
            self._schema = reader.schema
        except (pa.ArrowException, OSError) as error:
            raise IndexDamagedError(f"{path} is no items file ({error}); index again with replace=True") from error
        starts = np.cumsum([0] + [len(batch) for batch in self._batches])
        self._starts: list[int] = starts.tolist()
        self._kinds = {
            name[len(_PREFIX) :]: self._schema.field(name).metadata[b"kind"].decode() for name in self._schema.names[2:]
        }
        self._keys = [(key, kind == "json") for key, kind in self._kinds.items()]
        self._masks: OrderedDict[str, Mask] = OrderedDict()

    def __len__(self) -> int:
        return self._starts[-1]

    def ids(self) -> list[str]:
        """All item ids, by row."""
        return [item_id for batch in self._batches for item_id in batch.column(0).to_pylist()]

    def titles(self) -> list[str]:
        """All titles, by row; empty where there is none."""
        return [title for batch in self._batches for title in self._titles_of(batch)]

    def rows_of(self, item_ids: Sequence[str]) -> Rows:
        """Return the rows of items by their ids.

        Raises:
            QueryError: there is no item of that id.
        """
        wanted = pa.array(item_ids, pa.string())
        rows = np.full(len(item_ids), -1, np.int64)
        for start, batch in zip(self._starts, self._batches, strict=False):
            places = pc.index_in(wanted, value_set=batch.column(0))
            here = places.is_valid().to_numpy(zero_copy_only=False)
            rows[here] = places.drop_null().to_numpy() + start
        if (rows < 0).any():
            raise QueryError(f"no item of this index has the id {item_ids[int(np.flatnonzero(rows < 0)[0])]!r}")
        return rows

    def mask(self, where: Where) -> Mask:
        """Return which items fulfil a filter; the last few are kept.

        Args:
            where: see :mod:`nlp_retrieval.core.filters`.

        Raises:
            QueryError: it is no filter, or none that could be meant of these items.
        """
        wanted = parse_filter(where)
        key = repr(wanted)
        mask = self._masks.get(key)
        if mask is None:
            check_filter(wanted, self._kinds)
            columns = {
                name: (kind, [batch.column(number + 2) for batch in self._batches])
                for number, (name, kind) in enumerate(self._kinds.items())
            }
            mask = mask_of(wanted, columns, len(self))
            mask.flags.writeable = False
        self._masks[key] = mask
        self._masks.move_to_end(key)
        while len(self._masks) > _MASKS_KEPT:
            self._masks.popitem(last=False)
        return mask

    def texts(self, batch_size: int) -> Iterator[list[str]]:
        """Yield the texts (title, then content) of all items in order, ``batch_size`` at a time.

        They are read, not mapped, so that a pass over all of them does not fill the memory of the process with the file.
        """
        pending: list[str] = []
        for batch in self._read():
            for start in range(0, len(batch), batch_size):
                pending += self._texts_of(batch.slice(start, batch_size))
                while len(pending) >= batch_size:
                    yield pending[:batch_size]
                    pending = pending[batch_size:]
        if pending:
            yield pending

    def stream(self, keys: Collection[str] | None = None) -> Iterator[SearchableItem]:
        """Yield all items in order, read as :meth:`texts` are.

        Args:
            keys: the metadata to read ("title" is one of them); by default all of it.
        """
        wanted = [number for number, (key, _) in enumerate(self._keys) if keys is None or key in keys]
        chosen = [self._keys[number] for number in wanted]
        for batch in self._read():
            for start in range(0, len(batch), _STREAMED):
                part = batch.slice(start, _STREAMED)
                metadata = _metadata_of(chosen, [part.column(number + 2).to_pylist() for number in wanted], len(part))
                yield from map(SearchableItem.trusted, part.column(0).to_pylist(), part.column(1).to_pylist(), metadata)

    def _read(self) -> Iterator[pa.RecordBatch]:
        with pa.OSFile(str(self._path), "rb") as source:
            reader = pa.ipc.open_file(source)
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)

    def items(self, rows: Rows) -> list[SearchableItem]:
        """Return the items in these rows, in this order; equal rows give the same object."""
        wanted, inverse = np.unique(rows, return_inverse=True)
        made: list[SearchableItem] = []
        for batch, local in self._spread(wanted):
            columns = [_values(batch.column(number), local) for number in range(2 + len(self._keys))]
            metadata = _metadata_of(self._keys, columns[2:], len(local))
            made += map(SearchableItem.trusted, columns[0], columns[1], metadata)
        return [made[position] for position in inverse.tolist()]

    def _spread(self, sorted_rows: Rows) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
        begin = 0
        while begin < len(sorted_rows):
            number = bisect_right(self._starts, int(sorted_rows[begin])) - 1
            end = int(np.searchsorted(sorted_rows, self._starts[number + 1]))
            yield self._batches[number], sorted_rows[begin:end] - self._starts[number]
            begin = end

    def _titles_of(self, batch: pa.RecordBatch) -> list[str]:
        for number, (key, is_json) in enumerate(self._keys):
            if key == "title":
                values = batch.column(number + 2).to_pylist()
                if is_json:
                    values = [None if value is None else json.loads(value) for value in values]
                return [value if isinstance(value, str) else "" for value in values]
        return [""] * len(batch)

    def _texts_of(self, batch: pa.RecordBatch) -> list[str]:
        contents = batch.column(1).to_pylist()
        return [join_title(title, content) for title, content in zip(self._titles_of(batch), contents, strict=True)]


def _values(column: pa.Array, local: NDArray[np.int64]) -> list[Any]:
    if len(local) <= _FEW:
        return [column[row].as_py() for row in local.tolist()]
    values: list[Any] = column.take(pa.array(local)).to_pylist()
    return values


def _metadata_of(keys: list[tuple[str, bool]], columns: Sequence[list[Any]], n_rows: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{} for _ in range(n_rows)]
    for (key, is_json), column in zip(keys, columns, strict=True):
        for row, value in zip(rows, column, strict=True):
            if value is not None:
                row[key] = json.loads(value) if is_json else value
    return rows
