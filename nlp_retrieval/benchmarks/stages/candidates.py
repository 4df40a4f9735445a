"""Candidates as an entry of a store: without their retriever's label, which belongs to the searcher, and without repeats."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.benchmarks.stages.store import Entry
from nlp_retrieval.core.candidates import CandidateBatch, Scores
from nlp_retrieval.core.components.component import Config

_SCORES, _RANKS = "scores", "ranks"


def packed(batch: CandidateBatch, label: str, about: Config) -> Entry | None:
    """Create an entry of candidates; None if a signal does not begin with the label, so it could not be reused under another.

    Args:
        batch: a retriever's output.
        label: its label there.
        about: more about it.
    """
    signals: list[list[str]] = []
    columns: dict[str, NDArray[np.float64]] = {}
    for key, column in batch.signals.items():
        rest = key.removeprefix(label)
        if rest == key or rest[:1] not in {".", "["}:
            return None
        if np.array_equal(column, batch.scores):
            signals.append([rest, _SCORES])
        elif np.array_equal(column, batch.ranks):
            signals.append([rest, _RANKS])
        else:
            signals.append([rest, name := f"signal{len(columns)}"])
            columns[name] = column.astype(np.float64, copy=False)
    small = np.int32 if batch.rows.max(initial=0) <= np.iinfo(np.int32).max else np.int64
    arrays: dict[str, NDArray[Any]] = {
        "offsets": batch.offsets.astype(np.int64, copy=False),
        "rows": batch.rows.astype(small),
        "scores": batch.scores.astype(np.float64, copy=False),
    }
    if batch.subquery.any():
        arrays["subquery"] = batch.subquery.astype(np.int32, copy=False)
    return Entry({"signals": signals} | about, arrays | columns)


def unpacked(entry: Entry, label: str) -> CandidateBatch:
    """Return the candidates of an entry under a label."""
    arrays = entry.arrays
    scores: Scores = arrays["scores"]
    rows = arrays["rows"].astype(np.int64)
    subquery = arrays.get("subquery", np.zeros(len(rows), np.int32))
    batch = CandidateBatch(arrays["offsets"], rows, scores, subquery)
    derived = {_SCORES: scores, _RANKS: batch.ranks.astype(np.float64)}
    signals = {f"{label}{rest}": derived[name] if name in derived else arrays[name] for rest, name in entry.about["signals"]}
    return CandidateBatch(batch.offsets, rows, scores, subquery, signals)
