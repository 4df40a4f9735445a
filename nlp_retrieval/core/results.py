"""Rows become results: the last step of a search, for the final k only."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import numpy as np

from nlp_retrieval.core.candidates import CandidateBatch
from nlp_retrieval.core.items import ItemTable
from nlp_retrieval.core.models import RetrievalResult


def to_results(batch: CandidateBatch, items: ItemTable) -> list[list[RetrievalResult]]:
    """Return one list of results per list of candidates."""
    with no_collection():
        made = list(map(RetrievalResult.trusted, items.items(batch.rows), batch.scores.tolist(), _signals(batch)))
    return [made[begin:end] for begin, end in pairwise(batch.offsets.tolist())]


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the cycle collector from walking the whole heap again and again while thousands of objects are made to stay."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


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
