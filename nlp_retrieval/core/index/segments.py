"""The segments of an updated index, and a retriever's tasks for them.

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
        folder: folder of its files; their checksums have been compared.
        first_row: row of its first item in the index.
        end_row: the row after its last.
        live: ``[end_row - first_row]``, the items that are not deleted; None for all.
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
    """A retriever as seen by the index.

    Args:
        name: prefix of the names of its folders.
        identity: all that determines the content of its index, apart from the items.
        config: all its parameters.
        build: writes the index of these items into an empty folder.
        extend: writes the index of items added to an index; see :meth:`BaseRetriever.extend`.
        join: joins several segments into one; see :meth:`BaseRetriever.join`.
        identified: returns the current identity; files that it names may have changed.
        settle: called with the index directory after every write to it; see :meth:`BaseRetriever.settle`.
        require: raises an error if external data of segments is missing; see :meth:`BaseRetriever.require_segments`.
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
        """Raise an error if an index's identity (a knowledge file, say) changed while it was being built.

        Raises:
            SourceError: the content of the index is undetermined.
        """
        now = self.identified()
        if now != self.identity:
            changed = sorted(key for key in self.identity | now if self.identity.get(key) != now.get(key))
            raise SourceError(
                f"{self.name}: what {' and '.join(changed)} names changed while the index was written, so that nobody knows "
                "what it holds; do it again when nobody writes there"
            )
