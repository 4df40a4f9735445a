"""Rows become results: the last step of a search, for the final k only.

Each result has its own item, including metadata: changing one changes no other.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
from pydantic import JsonValue

from nlp_retrieval.core.candidates import CandidateBatch
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import RetrievalResult, SearchableItem

_NESTED = (dict, list)


def to_results(batch: CandidateBatch, items: ItemTable) -> list[list[RetrievalResult]]:
    """Return one list of results per list of candidates."""
    with no_collection():
        found = _own(items.items(batch.rows))
        made = list(map(RetrievalResult.trusted, found, batch.scores.tolist(), _signals(batch)))
    return [made[begin:end] for begin, end in pairwise(batch.offsets.tolist())]


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the garbage collector from scanning the whole heap repeatedly while thousands of long-lived objects are created."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _own(items: list[SearchableItem]) -> list[SearchableItem]:
    """The same items, with a copy for each repetition."""
    met: set[int] = set()
    for place, item in enumerate(items):
        if id(item) in met:
            metadata = item.metadata.copy()
            for key, value in metadata.items():
                if isinstance(value, _NESTED):
                    metadata[key] = _copied(value)
            items[place] = SearchableItem.trusted(item.item_id, item.content, metadata)
        else:
            met.add(id(item))
    return items


def _copied(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


def _signals(batch: CandidateBatch) -> Iterator[dict[str, float]]:
    keys = tuple(batch.signals)
    if not keys:
        return iter([{} for _ in batch.rows])
    columns = [column.tolist() for column in batch.signals.values()]
    if all(np.isfinite(column).all() for column in batch.signals.values()):
        return (dict(zip(keys, values, strict=True)) for values in zip(*columns, strict=True))
    return (
        {key: value for key, value in zip(keys, values, strict=True) if value == value}  # noqa: PLR0124 -- only NaN differs
        for values in zip(*columns, strict=True)
    )
