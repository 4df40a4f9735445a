"""What an index is made of after updates: segments that never change, and what a retriever has to do for them.

A segment holds the items of one indexing run; deleted items stay in it and are left out of every answer until segments are
joined. Rows count through all segments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nlp_retrieval.core.candidates import Mask
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
