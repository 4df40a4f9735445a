"""Files of a hop index, with relations that are computed or read from a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from nlp_retrieval.core import ItemTable, SegmentFolder


class RelationFiles(ABC):
    """Writes the relations of the passages of a segment, and the data needed to add more passages."""

    @abstractmethod
    def build(self, items: ItemTable, folder: Path) -> None:
        """Write the first segment of an index.

        Args:
            items: all items.
            folder: an empty folder.
        """

    @abstractmethod
    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        """Write the segment of added items: their relations to one another and to earlier items.

        Args:
            items: the added ones.
            folder: an empty folder.
            segments: the segments before it.
            everything: the items of all segments and the added ones.
        """

    @abstractmethod
    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        """Write adjacent segments as one, without deleted passages.

        Args:
            segments: at least one.
            items: those of the segments that are not deleted.
            folder: an empty folder.
        """

    @abstractmethod
    def rows_in(self, folder: Path) -> int:
        """Return the number of passages of a segment."""

    @abstractmethod
    def check(self, segments: Sequence[SegmentFolder]) -> None:
        """Check the files that searches do not read, but additions and merges do.

        Args:
            segments: of an index.

        Raises:
            IndexDamagedError: a file does not hold what was written.
        """

    @abstractmethod
    def require(self, segments: Sequence[SegmentFolder]) -> None:
        """Check that the source of the relations has not changed since the newest segment was written.

        Args:
            segments: of an index.

        Raises:
            SourceError: the source cannot be read.
            IndexDamagedError: it has changed.
        """
