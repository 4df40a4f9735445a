"""Rows become results: the last step of a search, for the final k only."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import isnan

import numpy as np

from nlp_retrieval.core.candidates import CandidateBatch
from nlp_retrieval.core.items import ItemTable
from nlp_retrieval.core.models import RetrievalResult


def to_results(batch: CandidateBatch, items: ItemTable) -> list[list[RetrievalResult]]:
    """Return one list of results per list of candidates."""
    made = list(map(RetrievalResult.trusted, items.items(batch.rows), batch.scores.tolist(), _signals(batch)))
    bounds = batch.offsets.tolist()
    return [made[begin:end] for begin, end in pairwise(bounds)]


def _signals(batch: CandidateBatch) -> Iterator[dict[str, float]]:
    keys = tuple(batch.signals)
    if not keys:
        return iter([{} for _ in batch.rows])
    columns = [column.tolist() for column in batch.signals.values()]
    if all(np.isfinite(column).all() for column in batch.signals.values()):
        return (dict(zip(keys, values, strict=True)) for values in zip(*columns, strict=True))
    return (
        {key: value for key, value in zip(keys, values, strict=True) if not isnan(value)}
        for values in zip(*columns, strict=True)
    )
