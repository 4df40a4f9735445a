"""The files of a hop index, whether its relations are found or told."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from nlp_retrieval.core import ItemTable, SegmentFolder


class RelationFiles(ABC):
    """Writes the relations of the passages of a segment, and what else joining more of them takes."""

    @abstractmethod
    def build(self, items: ItemTable, folder: Path) -> None:
        """Write the first segment of an index.

        Args:
            items: all items.
            folder: an empty folder.
        """

    @abstractmethod
    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        """Write the segment of items that join an index: their relations to one another and to those before them.

        Args:
            items: those that join.
            folder: an empty folder.
            segments: the segments before it.
            everything: the items of all segments and those that join.
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
        """Return how many passages a segment has."""

    @abstractmethod
    def check(self, segments: Sequence[SegmentFolder]) -> None:
        """Make sure that what a search does not read, and joining does, is what was written.

        Args:
            segments: of an index.

        Raises:
            IndexDamagedError: it is not.
        """

    @abstractmethod
    def require(self, segments: Sequence[SegmentFolder]) -> None:
        """Make sure that what the relations were made of is as it was when the newest segment was written.

        Args:
            segments: of an index.

        Raises:
            SourceError: it cannot be read.
            IndexDamagedError: it is not.
        """
