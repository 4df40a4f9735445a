"""Segments, of which an index consists after updates, and what a retriever has to do for them.

A segment never changes. It holds the items of one indexing run; deleted items stay in it, but are left out of all results,
until segments are joined. Rows count through all segments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nlp_retrieval.core.candidates import Mask
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.errors import SourceError


@dataclass(frozen=True)
class SegmentFolder:
    """A segment of a retriever.

    Args:
        folder: folder of its files, whose checksums have been compared.
        first_row: row of its first item in the index.
        end_row: the row after its last.
        live: ``[end_row - first_row]``, which of its items are not deleted; None for all.
    """

    folder: Path
    first_row: int
    end_row: int
    live: Mask | None = None

    def __len__(self) -> int:
        """Return how many rows it has."""
        return self.end_row - self.first_row

    @property
    def rows(self) -> slice:
        """Its rows in the index."""
        return slice(self.first_row, self.end_row)


@dataclass(frozen=True)
class Builder:
    """A retriever, from the index's point of view.

    Args:
        name: the names of its folders begin with it.
        identity: what determines the content of its index, apart from the items.
        config: all its parameters.
        build: writes the index of these items into an empty folder.
        extend: writes the index of items that join an index; see :meth:`BaseRetriever.extend`.
        join: joins several segments into one; see :meth:`BaseRetriever.join`.
        identified: returns the identity anew; what it names (a file, say) may be another one by then.
        settle: called with the index directory after every write to it; see :meth:`BaseRetriever.settle`.
        require: raises where what segments keep elsewhere is missing; see :meth:`BaseRetriever.require_segments`.
    """

    name: str
    identity: Config
    config: Config
    build: Callable[[ItemTable, Path], None]
    extend: Callable[[ItemTable, Path, Sequence[SegmentFolder], ItemTable], None]
    join: Callable[[Sequence[SegmentFolder], ItemTable, Path], None]
    identified: Callable[[], Config]
    settle: Callable[[Path], None] = lambda _: None
    require: Callable[[Sequence[SegmentFolder]], None] = lambda _: None

    def require_unchanged(self) -> None:
        """Raise where what an index is known by (a file of knowledge, say) was another one when it was begun than it is now.

        Raises:
            SourceError: nobody knows what the index holds.
        """
        now = self.identified()
        if now != self.identity:
            changed = sorted(key for key in self.identity | now if self.identity.get(key) != now.get(key))
            raise SourceError(
                f"{self.name}: what {' and '.join(changed)} names changed while the index was written, so that nobody knows "
                "what it holds; do it again when nobody writes there"
            )
