"""What an index is made of after updates: segments that never change, and what a retriever has to do for them.

A segment holds the items of one indexing run; deleted items stay in it and are left out of every answer until segments are
joined. Rows count through all segments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from nlp_retrieval.core.candidates import Hits, Mask, offsets_of
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.index.items import ItemTable


@dataclass(frozen=True)
class SegmentFolder:
    """What one run of a retriever wrote.

    Args:
        folder: its files, whose checksums were compared.
        first_row: of its items in the index.
        end_row: the row behind its last.
        live: ``[end_row - first_row]``, which of its items are there; None: all.
    """

    folder: Path
    first_row: int
    end_row: int
    live: Mask | None = None

    def __len__(self) -> int:
        """How many rows it has."""
        return self.end_row - self.first_row

    @property
    def rows(self) -> slice:
        """Its rows in the index."""
        return slice(self.first_row, self.end_row)


@dataclass(frozen=True)
class Builder:
    """A retriever, as the store sees it.

    Args:
        name: begins the names of its folders.
        identity: what decides the content of its index, apart from the items.
        config: all of its parameters.
        build: writes the index of these items into an empty folder.
        extend: writes the index of items that join an index; see :meth:`BaseRetriever.extend`.
        join: writes one index of what several segments hold; see :meth:`BaseRetriever.join`.
    """

    name: str
    identity: Config
    config: Config
    build: Callable[[ItemTable, Path], None]
    extend: Callable[[ItemTable, Path, Sequence[SegmentFolder], ItemTable], None]
    join: Callable[[Sequence[SegmentFolder], ItemTable, Path], None]


SearchPart = Callable[[int, Mask | None], Hits]
"""Searches one part of an index for a batch of queries: at most so many hits per query, and which of its rows may be found."""


def search_parts(parts: Sequence[tuple[slice, SearchPart]], n_queries: int, k: int, allowed: Mask | None) -> Hits:
    """Search the parts of an index one after another, and join their lists by score; ties go to the lowest rows.

    Args:
        parts: their rows in the index, one behind the other, and what searches them; rows count from 0 in each.
        n_queries: of the batch.
        k: at most this many hits per query.
        allowed: over all rows, or None.
    """
    found: list[Hits] = []
    for rows, search in parts:
        part = None if allowed is None else allowed[rows]
        if part is None or part.any():
            hits = search(min(k, rows.stop - rows.start), part)
            found.append(replace(hits, rows=hits.rows + rows.start))
    return joined_hits(found, n_queries, k)


def joined_hits(found: Sequence[Hits], n_queries: int, k: int) -> Hits:
    """Join lists over different rows, query by query: the best k by score, ties by row.

    Args:
        found: each with a list per query.
        n_queries: how many.
        k: length of the joined lists.
    """
    if len(found) == 1:
        return found[0]
    owner = np.concatenate([np.zeros(0, np.int64), *(np.repeat(np.arange(n_queries), np.diff(hits.offsets)) for hits in found)])
    keys = list(dict.fromkeys(key for hits in found for key in hits.signals))
    nothing = [np.full(len(hits.rows), np.nan) for hits in found]
    columns = [
        np.concatenate([np.zeros(0), *parts])
        for parts in (
            [hits.scores for hits in found],
            *([hits.signals.get(key, none) for hits, none in zip(found, nothing, strict=True)] for key in keys),
        )
    ]
    rows = np.concatenate([np.zeros(0, np.int64), *(hits.rows for hits in found)])
    order = np.lexsort((rows, -columns[0], owner))
    owner = owner[order]
    begins = offsets_of(np.bincount(owner, minlength=n_queries))
    kept = order[np.arange(len(owner)) - begins[owner] < k]
    counts = np.minimum(np.diff(begins), k)
    scores, *signals = (column[kept] for column in columns)
    return Hits(offsets_of(counts), rows[kept], scores, dict(zip(keys, signals, strict=True)))
