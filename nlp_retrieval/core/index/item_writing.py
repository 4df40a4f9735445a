"""Writing the items of an index into one Arrow file, once; :mod:`nlp_retrieval.core.index.items` reads it.

Metadata is stored in typed columns, one per key, for filters; a key whose values have no common simple type is stored as
JSON text. Items read equal items written. Writing takes two passes, because a column's type is known only after all
values have been seen: the first writes untyped batches next to the file, the second types them. Memory holds one batch in
both.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.progress_bars import progress
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.errors import ItemError

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
        """Add the next item.

        Args:
            item: the item.
            metadata: its metadata as canonical JSON.

        Raises:
            ItemError: it holds text that is not valid Unicode.
        """
        line = canonical_json([item.item_id, item.content])
        try:
            self._digest.update(f"{line}{_same_numbers(item, metadata)}\n".encode())
        except UnicodeEncodeError as error:
            raise ItemError(
                f"item {item.item_id!r} holds a lone surrogate ({error.object[error.start]!r}), which is not valid "
                "Unicode text; decode the source with errors='replace'"
            ) from None

    def passing(self, items: Iterable[SearchableItem]) -> Iterator[SearchableItem]:
        """Yield the items and add each.

        Raises:
            ItemError: an item cannot be indexed.
        """
        for item in items:
            self.add(item, _metadata_json(item))
            yield item

    def hexdigest(self) -> str:
        """Return the fingerprint of the items so far."""
        return self._digest.hexdigest()


def write_items(items: Iterable[SearchableItem], folder: Path) -> tuple[int, str]:
    """Write items into an empty folder.

    Args:
        items: in the order of their rows.
        folder: receives ``items.arrow``.

    Returns:
        The number of items, and their fingerprint (SHA-256 over ids, content and metadata, in order).

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
    """Find duplicate ids by their hashes, in 8 bytes per item; only ids with equal hashes are compared."""
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
        key = next((key for key, value in item.metadata.items() if not _is_json(value)), "")
        raise ItemError(f"item {item.item_id!r:.80}: its metadata {key!r:.80} is nothing that JSON can hold: {error}") from None


def _is_json(value: object) -> bool:
    try:
        canonical_json(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


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
        pa.ipc.new_file(sink, schema) as writer,
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
