"""The items of an index: memory-mapped Arrow streams, one per segment, written once and read by row.

Rows count through all files; a deleted item keeps its row until segments are joined, and no look-up, filter or search finds it.
A file may come from a stranger: it is never compressed, so it takes no more memory than disk, and Arrow checks each batch
before its values are read.
"""

from __future__ import annotations

import hashlib
import json
import struct
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows
from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.context import add_note
from nlp_retrieval.core.files.columns import CURE, damaged
from nlp_retrieval.core.files.opening import explain_file_limit
from nlp_retrieval.core.filters import Where, conditions_of, parse_filter
from nlp_retrieval.core.index.masks import check_filter, mask_of
from nlp_retrieval.core.models import SearchableItem, join_title
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.core.progress_bars import progress
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.core.unicode import normalize
from nlp_retrieval.errors import IndexDamagedError, ItemError, QueryError

# Writing the items of an index into one Arrow file, once.


ITEMS_FILE = "items.arrow"
PREFIX = "metadata."
TYPES: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int": pa.int64(),
    "float": pa.float64(),
    "str": pa.string(),
    "strings": pa.list_(pa.string()),
    "json": pa.string(),
}
"""Column types by the kind of their values."""

WITHOUT_TEXT = b"without_text"
"""Metadata key of the file: the rows of items that have neither a letter nor a digit, as a JSON list."""

_SPOOL_FILE = "spool.arrows"
_BATCH = 8192
_BATCH_CHARACTERS = 64 * 2**20
_EXACT_IN_FLOAT = 2**53


def _kind(value: Any) -> str:
    """The column type that stores a metadata value exactly."""
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


def joint_kind(one: str | None, other: str) -> str:
    """The column type that stores values of both types exactly."""
    if one is None or one == other:
        return other
    return "float" if {one, other} == {"int", "float"} else "json"


class ItemsDigest:
    """The fingerprint of a corpus: SHA-256 over ids, content and metadata, in order."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, item: SearchableItem, metadata: str) -> None:
        """Add the next item, with its metadata as canonical JSON."""
        line = canonical_json([item.item_id, item.content])
        try:
            self._digest.update(f"{line}{_same_numbers(item, metadata)}\n".encode())
        except UnicodeEncodeError as error:
            raise ItemError(
                f"item {item.item_id!r} holds a lone surrogate ({error.object[error.start]!r}), which is not valid "
                "Unicode text; decode the source with errors='replace'"
            ) from None

    def passing(self, items: Iterable[SearchableItem]) -> Iterator[SearchableItem]:
        """Yield the items and add each."""
        for item in items:
            composed = _with_composed_keys(item)
            self.add(composed, _metadata_json(composed))
            yield item

    def hexdigest(self) -> str:
        """Return the fingerprint of the items so far."""
        return self._digest.hexdigest()


def write_items(items: Iterable[SearchableItem], folder: Path) -> tuple[int, str]:
    """Write items into an empty folder; return their number and their fingerprint.

    Raises:
        ItemError: an empty or repeated id, text that is not valid Unicode, an object that is not an item, or no items at all.
    """
    kinds: dict[str, str] = {}
    digest = ItemsDigest()
    hashes: list[NDArray[np.int64]] = []
    spool = folder / _SPOOL_FILE
    schema = pa.schema([("item_id", pa.string()), ("content", pa.string()), ("metadata", pa.string())])
    n_items = 0
    without_text: list[int] = []
    with (
        pa.OSFile(str(spool), "wb") as sink,
        pa.ipc.new_stream(sink, schema) as writer,
        progress("reading items", None) as advance,
    ):
        for batch in _batches(items):
            columns: tuple[list[str], list[str], list[str]] = ([], [], [])
            for item in batch:
                _check_item(item, n_items + len(columns[0]))
                item = _with_composed_keys(item)  # noqa: PLW2901 -- the same item
                metadata = _metadata_json(item)
                digest.add(item, metadata)
                if has_no_words(item.content) and has_no_words(item.title):
                    without_text.append(n_items + len(columns[0]))
                for key, value in item.metadata.items():
                    kinds[key] = joint_kind(kinds.get(key), _kind(value))
                for column, value in zip(columns, (item.item_id, item.content, metadata), strict=True):
                    column.append(value)
            hashes.append(np.fromiter(map(hash, columns[0]), np.int64, len(batch)))
            writer.write_batch(pa.record_batch([pa.array(column, pa.string()) for column in columns], schema=schema))
            n_items += len(batch)
            advance(len(batch))
    if n_items == 0:
        raise ItemError("the corpus is empty: the loader gave no items; check its path and its filters")
    _check_unique(np.concatenate(hashes), spool)
    _type_columns(spool, folder / ITEMS_FILE, kinds, without_text)
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
    """Find duplicate ids by their hashes, in 8 bytes per item; the ids are read only if two hashes are equal."""
    if len(np.unique(hashes)) == len(hashes):
        return
    seen: dict[str, int] = {}
    with pa.memory_map(str(spool)) as source, pa.ipc.open_stream(source) as reader:
        ids = (item_id for batch in reader for item_id in batch.column(0).to_pylist())
        for row, item_id in enumerate(ids):
            if (first := seen.setdefault(item_id, row)) != row:
                raise ItemError(
                    f"duplicate item id {item_id!r}: items {first + 1} and {row + 1} (counted from 1) both have it; ids are "
                    "identities, so make them unique or leave one out"
                )


def _with_composed_keys(item: SearchableItem) -> SearchableItem:
    """The item with the keys of its metadata in normal form C, in which filters name them."""
    if all(map(str.isascii, item.metadata)):
        return item
    metadata = {normalize("NFC", key): value for key, value in item.metadata.items()}
    if len(metadata) < len(item.metadata):
        raise ItemError(f"item {item.item_id!r:.80}: two of its metadata keys are one in Unicode's normal form C; rename one")
    return SearchableItem.trusted(item.item_id, item.content, metadata)


def _metadata_json(item: SearchableItem) -> str:
    try:
        return canonical_json(item.metadata)
    except (TypeError, ValueError, RecursionError) as error:
        raise ItemError(f"item {item.item_id!r:.80}: its metadata cannot be stored as JSON: {error}") from None


def _same_numbers(item: SearchableItem, metadata: str) -> str:
    """Metadata as text with 3.0 written as 3, because a column of both returns only one form of equal numbers."""
    whole = {key: int(value) for key, value in item.metadata.items() if isinstance(value, float) and value.is_integer()}
    return canonical_json({**item.metadata, **whole}) if whole else metadata


def _type_columns(spool: Path, target: Path, kinds: dict[str, str], without_text: list[int]) -> None:
    keys = sorted(kinds)
    fields = [pa.field("item_id", pa.string()), pa.field("content", pa.string())]
    fields += [pa.field(PREFIX + key, TYPES[kinds[key]], metadata={"kind": kinds[key]}) for key in keys]
    schema = pa.schema(fields, metadata={WITHOUT_TEXT: json.dumps(without_text)})
    with (
        pa.OSFile(str(spool), "rb") as source,
        pa.ipc.open_stream(source) as reader,
        pa.OSFile(str(target), "wb") as sink,
        pa.ipc.new_stream(sink, schema) as writer,
    ):
        for batch in reader:
            metadata = [json.loads(text) for text in batch.column("metadata").to_pylist()]
            columns = [batch.column("item_id"), batch.column("content")]
            for key in keys:
                values = [_stored(row[key], kinds[key]) if key in row else None for row in metadata]
                columns.append(pa.array(values, TYPES[kinds[key]]))
            writer.write_batch(pa.record_batch(columns, schema=schema))


def _stored(value: Any, kind: str) -> Any:
    if kind == "json":
        return json.dumps(value, ensure_ascii=False)
    return float(value) if kind == "float" else value


_STREAMED = 1024
_FEW = 64  # below this many rows, single values are cheaper than a take per column
_MANY = 10_000  # above this many ids, one pass over all ids is cheaper than a look-up in every batch
_MASKS_KEPT = 8
_COMPRESSION = 3
"""The field of a record batch's message that names its compression, in Arrow's format."""


class _ItemFile:
    """One opened file: its batches, and its metadata keys with their kinds, in the order of the columns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._explained():
            schema, batches = _stream(pa.memory_map(str(path)))
            kinds = [(name.removeprefix(PREFIX), schema.field(name).metadata[b"kind"].decode()) for name in schema.names[2:]]
            types = [pa.string(), pa.string(), *(TYPES[kind] for _, kind in kinds)]
            if schema.types != types:
                raise ValueError("its columns are of other types")
            self.kinds = dict(kinds)
            self.keys = [(key, kind == "json") for key, kind in kinds]
            self._batches = list(batches)
            without_text = np.array(json.loads(schema.metadata[WITHOUT_TEXT]), np.int64).reshape(-1)
        self._checked: set[int] = set()
        self.lengths = [len(batch) for batch in self._batches]
        if len(without_text) and not 0 <= without_text.min() <= without_text.max() < sum(self.lengths):
            raise damaged(path, "its list of items without text names rows that it does not have")
        self.without_text: Rows = without_text

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            with explain_file_limit(self.path):
                yield
        except (
            pa.ArrowException,
            OSError,
            TypeError,
            LookupError,
            ValueError,
            ArithmeticError,
            RecursionError,
            struct.error,
        ) as error:
            raise IndexDamagedError(f"{self.path} is not an items file ({str(error)[:200]}); {CURE}") from error

    def batch(self, number: int) -> pa.RecordBatch:
        """Return a mapped batch, checked before its first use."""
        if number not in self._checked:
            self._check(self._batches[number])
            self._checked.add(number)
        return self._batches[number]

    def _check(self, batch: pa.RecordBatch) -> None:
        """Check a batch: damaged offsets would lead outside its memory."""
        with self._explained():
            batch.validate(full=True)
            if batch.column(0).null_count or batch.column(1).null_count:
                raise ValueError("an item has no id or no content")
            for number, (_, is_json) in enumerate(self.keys, start=2):
                for text in batch.column(number).to_pylist() if is_json else ():
                    json.loads("null" if text is None else text)

    def mapped(self) -> Iterator[pa.RecordBatch]:
        """Yield all batches."""
        return map(self.batch, range(len(self._batches)))

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield all batches, read instead of mapped, so that reading all of them does not fill memory."""
        with self._explained(), pa.OSFile(str(self.path), "rb") as source:
            _, batches = _stream(source)
            for batch in batches:
                self._check(batch)
                yield batch

    def titles_of(self, batch: pa.RecordBatch) -> list[str]:
        """The titles of a batch of this file; empty if there is none."""
        titles = [metadata.get("title") for metadata in self._metadata_of(batch, {"title"})]
        return [title if isinstance(title, str) else "" for title in titles]

    def texts_of(self, batch: pa.RecordBatch) -> list[str]:
        """The texts of a batch of this file."""
        contents = batch.column(1).to_pylist()
        return [join_title(title, content) for title, content in zip(self.titles_of(batch), contents, strict=True)]

    def items_of(self, batch: pa.RecordBatch, keys: Collection[str] | None) -> Iterator[SearchableItem]:
        """The items of a batch of this file, with these keys of their metadata; None for all."""
        for start in range(0, len(batch), _STREAMED):
            part = batch.slice(start, _STREAMED)
            metadata = self._metadata_of(part, keys)
            yield from map(SearchableItem.trusted, part.column(0).to_pylist(), part.column(1).to_pylist(), metadata)

    def _metadata_of(self, batch: pa.RecordBatch, keys: Collection[str] | None) -> list[dict[str, Any]]:
        wanted = [number for number, (key, _) in enumerate(self.keys) if keys is None or key in keys]
        columns = [batch.column(number + 2).to_pylist() for number in wanted]
        return _metadata_of([self.keys[number] for number in wanted], columns, len(batch))

    def columns(self, key: str, kind: str) -> Iterator[tuple[str, pa.Array]]:
        """The metadata of a key in each batch, with its kind; all null, of the given kind, if this file has none."""
        position = next((position for position, (known, _) in enumerate(self.keys) if known == key), None)
        if position is None:
            return ((kind, pa.nulls(length, TYPES[kind])) for length in self.lengths)
        return ((self.kinds[key], batch.column(position + 2)) for batch in self.mapped())


def _stream(source: pa.NativeFile) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema and the batches of an Arrow stream; one that is compressed, so that it could fill the memory, is an error."""
    reader = pa.MessageReader.open_stream(source)
    first = next(reader, None)
    if first is None or first.type != "schema":
        raise ValueError("it does not begin with a schema")
    schema = pa.ipc.read_schema(first)

    def batches() -> Iterator[pa.RecordBatch]:
        for message in reader:
            if message.type != "record batch" or _is_compressed(message.metadata):
                raise ValueError("it is compressed, or holds other things than batches")
            batch = pa.ipc.read_record_batch(message, schema)
            batch.validate()  # that it has room for its rows
            yield batch

    return schema, batches()


def _is_compressed(message: pa.Buffer) -> bool:
    data = memoryview(message)
    (root,) = struct.unpack_from("<I", data)
    header = _field(data, root, 2)
    return _field(data, header + struct.unpack_from("<I", data, header)[0], _COMPRESSION) != 0


def _field(data: memoryview, table: int, number: int) -> int:
    """The position of a field in a table of FlatBuffers; 0 if it is left out."""
    fields = table - struct.unpack_from("<i", data, table)[0]
    if 4 + 2 * number >= struct.unpack_from("<H", data, fields)[0]:
        return 0
    (offset,) = struct.unpack_from("<H", data, fields + 4 + 2 * number)
    return table + offset if offset else 0


class ItemTable:
    """The items of an opened index: rows in, texts and items out.

    Args:
        paths: an ``items.arrow``, or several in the order of their rows.

    Raises:
        IndexDamagedError: a path is not such a file.

    Examples:
        >>> report = Searcher(["bm25"]).index(items, "index")
        >>> from nlp_retrieval.core import open_generation
        >>> table = open_generation("index").items
        >>> len(table), next(table.texts(2))
        (3, ['Blue whale. It eats tons of Krill a day.', 'Krill. Small animals of the Southern Ocean.'])
        >>> table.items(np.array([2]))[0].title
        'Arctic fox'
    """

    def __init__(self, paths: Path | Sequence[Path]) -> None:
        self._files = [_ItemFile(path) for path in ([paths] if isinstance(paths, Path) else paths)]
        self._batches = [(file, number) for file in self._files for number in range(len(file.lengths))]
        self._starts = [0, *accumulate(file.lengths[number] for file, number in self._batches)]
        self._kinds: dict[str, str] = {}
        for file in self._files:
            for key, kind in file.kinds.items():
                self._kinds[key] = joint_kind(self._kinds.get(key), kind)
        self.live: Mask | None = None
        """``[rows]``, the items that are not deleted; None if none is deleted."""
        self._masks: OrderedDict[str, Mask] = OrderedDict()
        self._keeping = Lock()

    def delete(self, rows: Rows) -> None:
        """Find the items of these rows no more; called once, before any search."""
        self.live = np.ones(len(self), np.bool_)
        self.live[rows] = False
        self.live.flags.writeable = False

    @cached_property
    def findable(self) -> Mask | None:
        """``[rows]``, the items that are not deleted and have a letter or a digit; None if that is true of all."""
        findable = np.ones(len(self), np.bool_) if self.live is None else self.live.copy()
        first = 0
        for file in self._files:
            findable[first + file.without_text] = False
            first += sum(file.lengths)
        findable.flags.writeable = False
        return None if findable.all() else findable

    def __len__(self) -> int:
        """Return how many rows there are, including those of deleted items."""
        return self._starts[-1]

    @property
    def kinds(self) -> dict[str, str]:
        """Return the kinds of the metadata values by key: bool, int, float, str, strings, or json for all others."""
        return dict(self._kinds)

    def ids(self) -> list[str]:
        """All item ids, by row; empty for a deleted item."""
        return self._without_deleted([item_id for file in self._files for b in file.mapped() for item_id in b[0].to_pylist()])

    def titles(self) -> list[str]:
        """All titles, by row; empty if there is none, and for a deleted item."""
        return self._without_deleted([title for file in self._files for b in file.mapped() for title in file.titles_of(b)])

    def _without_deleted(self, values: list[str]) -> list[str]:
        if self.live is not None:
            for row in np.flatnonzero(~self.live).tolist():
                values[row] = ""
        return values

    def rows_of(self, item_ids: Sequence[str]) -> Rows:
        """Return the rows of items by their ids.

        Raises:
            QueryError: there is no item with that id.
        """
        rows = self.find(item_ids)
        if (rows < 0).any():
            raise QueryError(f"no item of this index has the id {item_ids[int(np.flatnonzero(rows < 0)[0])]!r}")
        return rows

    def find(self, item_ids: Sequence[str]) -> Rows:
        """Return the rows of items by their ids, -1 for an id that no item has."""
        places = {item_id: position for position, item_id in enumerate(dict.fromkeys(item_ids))}
        # as bytes: an id from a command line or JSON may be invalid Unicode, and then no item has it
        wanted = pa.array([item_id.encode("utf-8", "surrogatepass") for item_id in places], pa.binary())
        rows = np.full(len(places), -1, np.int64)
        for start, (file, number) in zip(self._starts, self._batches, strict=False):
            ids = file.batch(number)[0]
            kept = None if self.live is None else np.flatnonzero(self.live[start : start + len(ids)])
            ids = ids if kept is None else ids.take(pa.array(kept))
            if len(places) > _MANY:
                pairs = [(places[item_id], row) for row, item_id in enumerate(ids.to_pylist()) if item_id in places]
                here, positions = np.array(pairs, np.int64).reshape(-1, 2).T
            else:
                matches = pc.index_in(wanted, value_set=ids.cast(pa.binary()))
                here = np.flatnonzero(matches.is_valid().to_numpy(zero_copy_only=False))
                positions = matches.drop_null().to_numpy()
            rows[here] = start + (positions if kept is None else kept[positions])
        return rows[[places[item_id] for item_id in item_ids]] if item_ids else rows

    def mask(self, where: Where | None) -> Mask | None:
        """Return which items may be found: ``[rows]``, or None for all; masks of the last few filters are cached.

        Args:
            where: see :mod:`nlp_retrieval.core.filters`; None for all items that are not deleted.

        Raises:
            QueryError: it is not a filter, or does not match the metadata of these items.
        """
        if where is None:
            return self.live
        wanted = parse_filter(where)
        key = repr(wanted)
        with self._keeping:
            mask = self._masks.get(key)
        if mask is None:
            check_filter(wanted, self._kinds)
            kinds = {condition.key: self._kinds[condition.key] for condition in conditions_of(wanted)}
            columns = {
                name: (kind, [column for file in self._files for column in file.columns(name, kind)])
                for name, kind in kinds.items()
            }
            mask = mask_of(wanted, columns)
            mask = mask if self.live is None else mask & self.live
            mask.flags.writeable = False
        with self._keeping:
            self._masks[key] = mask
            self._masks.move_to_end(key)
            while len(self._masks) > _MASKS_KEPT:
                self._masks.popitem(last=False)
        return mask

    def allowed(self, where: Where | None) -> Mask | None:
        """Return the :meth:`mask` of a user's filter; if no item meets it, the search has a note that says so."""
        mask = self.mask(where)
        if where is not None and mask is not None and not mask.any():
            add_note("no item of this index meets the filter; nothing is found", stacklevel=4)
        return mask

    def texts(self, batch_size: int) -> Iterator[list[str]]:
        """Yield the texts (title, then content) of all rows in order, ``batch_size`` at a time, including deleted items.

        They are read, not mapped, so that reading all of them does not fill the memory of the process.
        """
        pending: list[str] = []
        for file in self._files:
            for batch in file.read():
                for start in range(0, len(batch), batch_size):
                    pending += file.texts_of(batch.slice(start, batch_size))
                    while len(pending) >= batch_size:
                        yield pending[:batch_size]
                        pending = pending[batch_size:]
        if pending:
            yield pending

    def stream(self, keys: Collection[str] | None = None) -> Iterator[SearchableItem]:
        """Yield the items of all rows in order, read as in :meth:`texts`, including deleted ones.

        Args:
            keys: the metadata to read ("title" is one of them); by default all of it.
        """
        for file in self._files:
            for batch in file.read():
                yield from file.items_of(batch, keys)

    def stream_live(self, first_row: int = 0) -> Iterator[SearchableItem]:
        """Yield the items that are not deleted, in order, starting at a row where a file begins."""
        start = 0
        for file in self._files:
            for batch in file.read():
                if start >= first_row:
                    items = file.items_of(batch, None)
                    live = None if self.live is None else self.live[start : start + len(batch)].tolist()
                    yield from items if live is None else (item for item, is_live in zip(items, live, strict=True) if is_live)
                start += len(batch)

    def items(self, rows: Rows) -> list[SearchableItem]:
        """Return the items in these rows, in this order; equal rows give the same object."""
        wanted, inverse = np.unique(rows, return_inverse=True)
        items_of_rows: list[SearchableItem] = []
        for file, batch, local in self._spread(wanted):
            columns = [_values(batch.column(number), local) for number in range(2 + len(file.keys))]
            metadata = _metadata_of(file.keys, columns[2:], len(local))
            items_of_rows += map(SearchableItem.trusted, columns[0], columns[1], metadata)
        return [items_of_rows[position] for position in inverse.tolist()]

    def _spread(self, sorted_rows: Rows) -> Iterator[tuple[_ItemFile, pa.RecordBatch, NDArray[np.int64]]]:
        begin = 0
        while begin < len(sorted_rows):
            position = bisect_right(self._starts, int(sorted_rows[begin])) - 1
            end = int(np.searchsorted(sorted_rows, self._starts[position + 1]))
            file, number = self._batches[position]
            yield file, file.batch(number), sorted_rows[begin:end] - self._starts[position]
            begin = end


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
