"""The items of an index: memory-mapped Arrow streams, one per segment, written once and read by row.

A deleted item keeps its row until segments are joined. A file may come from a stranger: it is never compressed, so it takes no
more memory than disk, and Arrow checks each column before its values are read.
"""

from __future__ import annotations

import hashlib
import json
import struct
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import cached_property
from itertools import accumulate, chain, compress, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows
from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.context import add_note
from nlp_retrieval.core.files.columns import CURE
from nlp_retrieval.core.files.opening import explain_file_limit
from nlp_retrieval.core.filters import TIME, Combination, Condition, Filter, Where, instant_of, kind_of, parse_filter, shown
from nlp_retrieval.core.models import SearchableItem, join_title
from nlp_retrieval.core.progress_bars import tracked
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.core.unicode import normalize
from nlp_retrieval.errors import IndexDamagedError, ItemError, QueryError, nearest

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

_COMPARED_AS = {"bool": "truth value", "int": "number", "float": "number", "str": "text", "strings": "text"}
"""What filters compare the values of a kind with; with those of ``json`` anything."""

_FIXED = [pa.field("item_id", pa.string()), pa.field("content", pa.string()), pa.field("has_words", pa.bool_())]
"""The columns before those of the metadata; an item without a letter or a digit has no words."""

_BATCH = 8192
_BATCH_CHARACTERS = 64 * 2**20
_EXACT_IN_FLOAT = 2**53
_MASKS_KEPT = 8


def _kind(value: Any) -> str:
    """The column type that stores a metadata value exactly."""
    if isinstance(value, list):
        return "strings" if all(isinstance(inner, str) for inner in value) else "json"
    if isinstance(value, int) and abs(value) > _EXACT_IN_FLOAT:
        return "json"
    return {bool: "bool", int: "int", float: "float", str: "str"}.get(type(value), "json")


def _joint_kind(known: str | None, other: str) -> str:
    """The column type that stores values of both types exactly."""
    if known is None or known == other:
        return other
    return "float" if {known, other} == {"int", "float"} else "json"


class ItemsDigest:
    """The fingerprint of a corpus: SHA-256 over ids, content and metadata, in order."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, item: SearchableItem) -> tuple[dict[str, Any], str]:
        """Add the next item; return its metadata as it is stored, with keys in the normal form C, and as canonical JSON."""
        metadata = item.metadata
        if not all(map(str.isascii, metadata)):
            metadata = {normalize("NFC", key): value for key, value in metadata.items()}
            if len(metadata) < len(item.metadata):
                raise ItemError(f"item {item.item_id!r:.80}: two of its metadata keys are one in Unicode's normal form C")
        try:
            text = stated = canonical_json(metadata)
        except (TypeError, ValueError, RecursionError) as error:
            raise ItemError(f"item {item.item_id!r:.80}: its metadata cannot be stored as JSON: {error}") from None
        whole = {key: int(value) for key, value in metadata.items() if isinstance(value, float) and value.is_integer()}
        if whole:  # a column of integers and floats gives back floats alone
            stated = canonical_json(metadata | whole)
        try:
            self._digest.update(f"{canonical_json([item.item_id, item.content])}{stated}\n".encode())
        except UnicodeEncodeError:
            raise ItemError(f"item {item.item_id!r:.80} holds half of a surrogate pair, which is not text") from None
        return metadata, text

    def passing(self, items: Iterable[SearchableItem]) -> Iterator[SearchableItem]:
        """Yield the items and add each."""
        for item in items:
            self.add(item)
            yield item

    def hexdigest(self) -> str:
        """Return the fingerprint of the items so far."""
        return self._digest.hexdigest()


def write_items(items: Iterable[SearchableItem], folder: Path) -> tuple[int, str]:
    """Write items into an empty folder; return their number and their fingerprint; ItemError if they cannot be indexed."""
    digest, kinds, n_items, spool = ItemsDigest(), dict[str, str](), 0, folder / "spool.arrows"
    hashes: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    schema = pa.schema([*_FIXED, pa.field("metadata", pa.string())])
    with pa.OSFile(str(spool), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        for batch in tracked("reading items", _batches(items), None):
            rows = []
            for item in batch:
                metadata, text = digest.add(item)
                for key, value in metadata.items():
                    kinds[key] = _joint_kind(kinds.get(key), _kind(value))
                has_words = not (has_no_words(item.content) and has_no_words(item.title))
                rows.append((item.item_id, item.content, has_words, text))
            columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
            writer.write_batch(pa.record_batch(columns, schema=schema))
            hashes.append(np.fromiter((hash(item.item_id) for item in batch), np.int64, len(batch)))
            n_items += len(batch)
    _check_unique(np.concatenate(hashes), spool)
    _write_typed(spool, folder / ITEMS_FILE, kinds)
    spool.unlink()
    return n_items, digest.hexdigest()


def _batches(items: Iterable[SearchableItem]) -> Iterator[list[SearchableItem]]:
    batch: list[SearchableItem] = []
    n_characters = 0
    for number, item in enumerate(items, start=1):
        if not isinstance(item, SearchableItem):
            raise ItemError(f"item {number} is a {type(item).__name__}, not a SearchableItem; pass a loader or items")
        batch.append(item)
        n_characters += len(item.content)
        if len(batch) == _BATCH or n_characters > _BATCH_CHARACTERS:
            yield batch
            batch, n_characters = [], 0
    if batch:
        yield batch


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


def _write_typed(spool: Path, target: Path, kinds: dict[str, str]) -> None:
    """Copy the spooled items into a file with one column for each metadata key."""
    keys = sorted(kinds)
    fields = [pa.field(PREFIX + key, TYPES[kinds[key]], metadata={"kind": kinds[key]}) for key in keys]
    schema = pa.schema([*_FIXED, *fields])
    with (
        pa.OSFile(str(spool), "rb") as source,
        pa.ipc.open_stream(source) as reader,
        pa.OSFile(str(target), "wb") as sink,
        pa.ipc.new_stream(sink, schema) as writer,
    ):
        for batch in reader:
            metadata = [json.loads(text) for text in batch.column("metadata").to_pylist()]
            columns = batch.columns[: len(_FIXED)]
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
_COMPRESSION = 3  # the field of a record batch's message that names its compression, in Arrow's format


class _Part:
    """Some rows of a file, with the kinds of its metadata by key. A column is checked before it is first used."""

    def __init__(self, path: Path, kinds: dict[str, str], batch: pa.RecordBatch) -> None:
        self.path, self.kinds, self.batch = path, kinds, batch
        self._checked: set[int] = set()

    def __len__(self) -> int:
        return len(self.batch)

    def column(self, position: int) -> pa.Array:
        """Return a column: damaged offsets would lead outside its memory."""
        column = self.batch.column(position)
        if position not in self._checked:
            with _explained(self.path):
                column.validate(full=True)
                if position < len(_FIXED) and column.null_count:
                    raise ValueError("an item has no id, no content, or no mark of its words")
                if position >= len(_FIXED) and [*self.kinds.values()][position - len(_FIXED)] == "json":
                    for text in column.drop_null().to_pylist():
                        json.loads(text)
            self._checked.add(position)
        return column

    def values(self, position: int, rows: Rows | None = None) -> list[Any]:
        """The values of a column, in some rows or in all."""
        column = self.column(position)
        if rows is not None and len(rows) <= _FEW:
            return [column[row].as_py() for row in rows.tolist()]
        values: list[Any] = (column if rows is None else column.take(pa.array(rows))).to_pylist()
        return values

    def metadata(self, keys: Collection[str] | None = None, rows: Rows | None = None) -> list[dict[str, Any]]:
        """The metadata with these keys; None for all."""
        entries: list[dict[str, Any]] = [{} for _ in range(len(self) if rows is None else len(rows))]
        for position, (key, kind) in enumerate(self.kinds.items(), start=len(_FIXED)):
            if keys is None or key in keys:
                for entry, value in zip(entries, self.values(position, rows), strict=True):
                    if value is not None:
                        entry[key] = json.loads(value) if kind == "json" else value
        return entries

    def meets(self, condition: Condition) -> Mask:
        """Which rows meet a condition on values of one kind, with the result of ``holds``."""
        nothing: Mask = np.full(len(self), condition.holds(None))
        if condition.key not in self.kinds:
            return nothing
        column, kind = self.column(len(_FIXED) + [*self.kinds].index(condition.key)), self.kinds[condition.key]
        if condition.operator == "exists":
            return nothing ^ np.asarray(column.is_valid(), np.bool_)
        if kind == "strings":
            lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
            met = _texts_that_meet(condition, column.flatten())
            return np.bincount(np.repeat(np.arange(len(self)), lengths)[met], minlength=len(self)) > 0
        return _texts_that_meet(condition, column) if kind == "str" else _numbers_that_meet(condition, kind, column)

    def titles(self) -> list[str]:
        """The titles; empty if there is none."""
        titles = [metadata.get("title") for metadata in self.metadata({"title"})]
        return [title if isinstance(title, str) else "" for title in titles]

    def items(self, keys: Collection[str] | None = None, rows: Rows | None = None) -> Iterator[SearchableItem]:
        """The items, with these keys of their metadata."""
        return map(SearchableItem.trusted, self.values(0, rows), self.values(1, rows), self.metadata(keys, rows))


_ORDERED = {"gt": pc.greater, "gte": pc.greater_equal, "lt": pc.less, "lte": pc.less_equal}


def _texts_that_meet(condition: Condition, texts: pa.Array) -> Mask:
    if not pc.all(pc.string_is_ascii(texts)).as_py():
        encoded = texts.dictionary_encode()
        texts = pa.array([normalize("NFC", text) for text in encoded.dictionary.to_pylist()], pa.string()).take(encoded.indices)
    if condition.operator in ("eq", "in"):
        meets = _filled(pc.is_in(texts, value_set=pa.array(condition.values, pa.string())))
    else:
        meets = _filled(_ORDERED[condition.operator](texts, condition.values[0]))
    if not condition.periods:
        return meets
    instants = _instants(texts)
    is_time, instant = np.asarray(instants.is_valid(), np.bool_), instants.fill_null(0).to_numpy(zero_copy_only=False)
    return np.where(is_time, condition.holds_at(instant), meets)


def _instants(texts: pa.Array) -> pa.Array:
    """``instant_of`` of each text."""
    nothing = pa.scalar(None, pa.string())
    times = pc.if_else(pc.match_substring_regex(texts, f"^{TIME}$"), texts, nothing)
    has_offset = pc.match_substring_regex(times, ":.*[Z+-]")
    try:
        exact = pc.if_else(has_offset, times, nothing).cast(pa.timestamp("us", "UTC"))
        in_utc = pc.if_else(has_offset, nothing, times).cast(pa.timestamp("us"))
    except pa.ArrowInvalid:  # 30 February, nanoseconds
        return pa.array([None if time is None else instant_of(time) for time in times.to_pylist()], pa.int64())
    return pc.coalesce(exact.cast(pa.int64()), in_utc.cast(pa.int64()))


def _numbers_that_meet(condition: Condition, kind: str, values: pa.Array) -> Mask:
    if kind == "bool":
        return _filled(pc.is_in(values, value_set=pa.array(condition.values, pa.bool_())))
    values = values.cast(pa.float64(), safe=False)  # exact: columns of whole numbers have none beyond 2**53
    floats = [(float(Decimal(value)), value) for value in condition.values if not isinstance(value, str)]  # or infinite
    if condition.operator in ("eq", "in"):
        exact = [number for number, value in floats if number == value]
        exact += [0.0, -0.0] if 0.0 in exact else []  # one number, but two to Arrow
        return _filled(pc.is_in(values, value_set=pa.array(exact, pa.float64())))
    ((number, value),) = floats
    operator: str = condition.operator
    if number != value:  # no float is equal to the value, which lies below this one, or above it
        upper, lower = ("gte", "lt") if number > value else ("gt", "lte")
        operator = upper if operator in ("gt", "gte") else lower
    return _filled(_ORDERED[operator](values, number))


def _filled(meets: pa.Array) -> Mask:
    """The mask of a comparison; a missing value meets no condition."""
    mask: Mask = meets.fill_null(False).to_numpy(zero_copy_only=False)
    return mask


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    with explain_file_limit(path):
        try:
            yield
        except Exception as error:  # whatever Arrow and JSON raise for bytes that are not ours
            raise IndexDamagedError(f"{path} is not an items file ({str(error)[:200]}); {CURE}") from error


def _read(path: Path) -> Iterator[_Part]:
    """The batches of a file in short parts, read and not mapped, so that reading all of them does not fill the memory."""
    with _explained(path), pa.OSFile(str(path), "rb") as source:
        for part in _parts(path, source):
            for start in range(0, len(part), _STREAMED):
                yield _Part(path, part.kinds, part.batch.slice(start, _STREAMED))


def _parts(path: Path, source: pa.NativeFile) -> Iterator[_Part]:
    """The batches of an Arrow stream; one that is compressed, so that it could fill the memory, is an error."""
    reader = pa.MessageReader.open_stream(source)
    first = next(reader, None)
    if first is None or first.type != "schema":
        raise ValueError("it does not begin with a schema")
    schema = pa.ipc.read_schema(first)
    fields = list(schema)[len(_FIXED) :]
    kinds = {field.name.removeprefix(PREFIX): field.metadata[b"kind"].decode() for field in fields}
    if schema.types != [field.type for field in _FIXED] + [TYPES[kind] for kind in kinds.values()]:
        raise ValueError("its columns are of other types")
    for message in reader:
        if message.type != "record batch" or _is_compressed(message.metadata):
            raise ValueError("it is compressed, or holds other things than batches")
        batch = pa.ipc.read_record_batch(message, schema)
        batch.validate()  # that it has room for its rows
        yield _Part(path, kinds, batch)


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
    """The items of an ``items.arrow``, or of several in the order of their rows: rows in, texts and items out.

    Examples:
        >>> searcher = Searcher(["bm25"])
        >>> report = searcher.index(items, "index")
        >>> next(searcher.opened.items.texts(2))
        ['Blue whale. It eats tons of Krill a day.', 'Krill. Small animals of the Southern Ocean.']
    """

    def __init__(self, paths: Path | Sequence[Path]) -> None:
        self._paths = [paths] if isinstance(paths, Path) else paths
        self._parts: list[_Part] = []
        for path in self._paths:
            with _explained(path):
                self._parts += _parts(path, pa.memory_map(str(path)))
        self._masks: dict[str, Mask] = {}
        self._starts = [0, *accumulate(map(len, self._parts))]
        self.kinds: dict[str, str] = {}
        """The kinds of the metadata values by key: bool, int, float, str, strings, or json for all others."""
        for part in self._parts:
            for key, kind in part.kinds.items():
                self.kinds[key] = _joint_kind(self.kinds.get(key), kind)
        self.live: Mask | None = None
        """``[rows]``, the items that are not deleted; None if none is deleted."""

    def delete(self, rows: Rows) -> None:
        """Find the items of these rows no more; called once, before any search."""
        self.live = np.ones(len(self), np.bool_)
        self.live[rows] = False
        self.live.flags.writeable = False

    @property
    def deleted(self) -> Rows:
        """The rows of deleted items."""
        return np.zeros(0, np.int64) if self.live is None else np.flatnonzero(~self.live)

    @cached_property
    def findable(self) -> Mask | None:
        """``[rows]``, the items that are not deleted and have a letter or a digit; None if that is true of all."""
        has_words = (part.column(2).to_numpy(zero_copy_only=False) for part in self._parts)
        findable = np.concatenate([np.zeros(0, np.bool_), *has_words])
        if self.live is not None:
            findable &= self.live
        findable.flags.writeable = False
        return None if findable.all() else findable

    def __len__(self) -> int:
        return self._starts[-1]

    def ids(self) -> list[str]:
        """All item ids, by row; empty for a deleted item."""
        return self._without_deleted(part.values(0) for part in self._parts)

    def titles(self) -> list[str]:
        """All titles, by row; empty if there is none, and for a deleted item."""
        return self._without_deleted(part.titles() for part in self._parts)

    def _without_deleted(self, values_of_batches: Iterable[list[str]]) -> list[str]:
        values = list(chain.from_iterable(values_of_batches))
        for row in self.deleted.tolist():
            values[row] = ""
        return values

    def rows_of(self, item_ids: Sequence[str]) -> Rows:
        """Return the rows of items by their ids; QueryError if no item has one."""
        rows = self.find(item_ids)
        if (rows < 0).any():
            raise QueryError(f"no item of this index has the id {item_ids[int(np.flatnonzero(rows < 0)[0])]!r}")
        return rows

    def find(self, item_ids: Sequence[str]) -> Rows:
        """Return the rows of items by their ids, -1 for an id that no item has."""
        places = {item_id: position for position, item_id in enumerate(dict.fromkeys(item_ids))}
        # as bytes: an id from a command line or JSON may be invalid Unicode, and then no item has it
        wanted = pa.array([item_id.encode("utf-8", "surrogatepass") for item_id in places], pa.binary())
        ids = pa.chunked_array([part.column(0).cast(pa.binary()) for part in self._parts], pa.binary())
        positions = pc.index_in(ids, value_set=wanted)
        here = np.flatnonzero(positions.is_valid().to_numpy())
        hits = positions.drop_null().to_numpy()
        is_live = slice(None) if self.live is None else self.live[here]
        rows = np.full(len(places), -1, np.int64)
        rows[hits[is_live]] = here[is_live]
        return rows[[places[item_id] for item_id in item_ids]] if item_ids else rows

    def mask(self, where: Where | None) -> Mask | None:
        """Return which items a filter lets through, ``[rows]``, without deleted ones, or None for all; QueryError for none."""
        if where is None:
            return self.live
        wanted = parse_filter(where)
        mask = self._masks.get(repr(wanted))
        if mask is None:
            mask = self._mask_of(wanted)
            mask = mask if self.live is None else mask & self.live
            mask.flags.writeable = False
            self._masks = dict([*self._masks.items()][1 - _MASKS_KEPT :]) | {repr(wanted): mask}
        return mask

    def _mask_of(self, wanted: Filter) -> Mask:
        if isinstance(wanted, Combination):
            masks = [self._mask_of(part) for part in wanted.parts]
            joined: Mask = (np.logical_or if wanted.operator == "or" else np.logical_and).reduce(masks)
            return ~joined if wanted.operator == "not" else joined
        if wanted.key not in self.kinds:
            has = nearest(wanted.key, self.kinds) if self.kinds else "its items have no metadata"
            if (outer := wanted.key.partition(".")[0]) in self.kinds:
                has = f"a value inside {outer!r} cannot be reached: store it as a metadata key of its own, and index again"
            raise QueryError(
                f"where: no item of this index has the metadata key {wanted.key!r}; {has}. A loader keeps its metadata_fields"
            )
        kind = _COMPARED_AS.get(self.kinds[wanted.key])
        asked = wanted.values if wanted.operator != "exists" else ()
        values, held = [], {kind}
        if kind is None:  # values of several kinds
            values = [metadata.get(wanted.key) for part in self._parts for metadata in part.metadata({wanted.key})]
            single = (scalar for value in values for scalar in (value if isinstance(value, list) else [value]))
            held = {kind_of(scalar) for scalar in single if isinstance(scalar, str | bool | int | float)}
        wrong = [value for value in asked if kind_of(value) not in held]
        if wrong and (kind is not None or len(wrong) == len(asked)):
            has = " or a ".join(sorted(map(str, held))) or "list or an object"
            said = f"where: {wanted.key} is a {has} in this index, and {shown(wrong[0])} is a {kind_of(wrong[0])}"
            raise QueryError(f"{said}; give one of its kind")
        if kind is None:
            return np.fromiter(map(wanted.holds, values), np.bool_, len(self))
        return np.concatenate([part.meets(wanted) for part in self._parts])

    def allowed(self, where: Where | None) -> Mask | None:
        """Return the :meth:`mask` of a user's filter; if no item meets it, the search has a note that says so."""
        mask = self.mask(where)
        if where is not None and mask is not None and not mask.any():
            add_note("no item of this index meets the filter; nothing is found")
        return mask

    def texts(self, batch_size: int) -> Iterator[list[str]]:
        """Yield the texts (title, then content) of all rows in order, ``batch_size`` at a time, including deleted items."""
        parts = (part for path in self._paths for part in _read(path))
        texts = (text for part in parts for text in map(join_title, part.titles(), part.values(1)))
        while batch := list(islice(texts, batch_size)):
            yield batch

    def stream(self, keys: Collection[str] | None = None, first_row: int = 0) -> Iterator[SearchableItem]:
        """Yield the items from a row on, deleted ones too, with these keys of their metadata, without filling the memory."""
        start = 0
        for path in self._paths:
            end = start + sum(len(part) for part in self._parts if part.path == path)
            if end > first_row:
                items = (item for part in _read(path) for item in part.items(keys))
                yield from islice(items, max(0, first_row - start), None)
            start = end

    def stream_live(self, first_row: int = 0) -> Iterator[SearchableItem]:
        """Yield the items that are not deleted, as :meth:`stream` does."""
        items = self.stream(first_row=first_row)
        return items if self.live is None else compress(items, self.live[first_row:].tolist())

    def items(self, rows: Rows) -> list[SearchableItem]:
        """Return the items in these rows, in this order; equal rows give the same object."""
        wanted, inverse = np.unique(rows, return_inverse=True)
        read: list[SearchableItem] = []
        while len(read) < len(wanted):
            position = bisect_right(self._starts, int(wanted[len(read)])) - 1
            end = int(np.searchsorted(wanted, self._starts[position + 1]))
            read += self._parts[position].items(rows=wanted[len(read) : end] - self._starts[position])
        return [read[place] for place in inverse.tolist()]
