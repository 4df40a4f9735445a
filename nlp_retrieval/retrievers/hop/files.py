"""The files of a hop index: the relations of a segment's passages, and a vector of each passage, from which they are found."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.files.column_streams import Stream, read_blocks
from nlp_retrieval.core.files.columns import damaged, mapped
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.index.segments import SegmentFolder
from nlp_retrieval.core.progress import tracked
from nlp_retrieval.encoders.base import BaseEncoder, Vectors
from nlp_retrieval.encoders.passages import write_passages
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.graph.relations.finding import RelationSettings, find_relations
from nlp_retrieval.graph.relations.tables import RelationTables
from nlp_retrieval.graph.store.added_links import live_of
from nlp_retrieval.retrievers.faiss.exact import Stack

_VECTORS = "vectors.npy"
_BATCH = 1024


def build_files(items: ItemTable, folder: Path, encoder: BaseEncoder, settings: RelationSettings) -> None:
    """Write the first segment of an index.

    Args:
        items: all items.
        folder: an empty folder.
        encoder: of passages; their likeness is that of their vectors.
        settings: how relations are found.
    """
    _encode(items, folder / _VECTORS, encoder, None)
    _relate(items, folder, settings)


def extend_files(
    items: ItemTable,
    folder: Path,
    segments: Sequence[SegmentFolder],
    everything: ItemTable,
    encoder: BaseEncoder,
    settings: RelationSettings,
) -> None:
    """Write the segment of items that join an index: their relations to one another and to those before them.

    Args:
        items: those that join.
        folder: an empty folder.
        segments: the segments before it.
        everything: the items of all segments and those that join.
        encoder: of passages.
        settings: how relations are found.
    """
    _encode(items, folder / _VECTORS, encoder, _dimension(segments[0]))
    before = RelationTables.of_segments(segments)
    first_row = len(everything) - len(items)
    live = np.ones(len(everything), bool) if everything.live is None else everything.live.copy()
    live[:first_row] &= live_of(segments)
    stack = Stack(*(_open(segment) for segment in segments), mapped(folder / _VECTORS, np.float32, (len(items), None)))
    find_relations(everything, first_row, before, stack.at, settings, live).write(folder)


def join_files(segments: Sequence[SegmentFolder], items: ItemTable, folder: Path, settings: RelationSettings) -> None:
    """Write adjacent segments as one, without deleted passages and without encoding anything again.

    Args:
        segments: at least one. Where the first of the index is among them, relations are found anew.
        items: those of the segments that are not deleted.
        folder: an empty folder.
        settings: how relations are found.
    """
    with Stream(folder / _VECTORS, np.float32, _dimension(segments[0])) as stream:
        for segment in segments:
            first = 0
            for block in read_blocks(segment.folder / _VECTORS, _BATCH):
                stream.write(block if segment.live is None else block[segment.live[first : first + len(block)]])
                first += len(block)
    if segments[0].first_row == 0:
        _relate(items, folder, settings)
    else:
        RelationTables.of_segments(segments).renumbered(segments[0].first_row, live_of(segments)).write(folder)


def check_vectors(segments: Sequence[SegmentFolder]) -> None:
    """Make sure that what will be read when items join is what was written; a search needs no vectors.

    Raises:
        IndexDamagedError: a file is missing or cut off, or holds another number of vectors or another dimension.
    """
    if len({_dimension(segment) for segment in segments}) != 1:
        raise damaged(segments[-1].folder / _VECTORS, "its vectors have another dimension than those of the segment before")


def rows_in(folder: Path) -> int:
    """How many passages a segment has."""
    return len(mapped(folder / _VECTORS, np.float32, (None, None)))


def _open(segment: SegmentFolder) -> Vectors:
    vectors: Vectors = mapped(segment.folder / _VECTORS, np.float32, (len(segment), None))
    if not vectors.shape[1]:
        raise damaged(segment.folder / _VECTORS, "it holds vectors of dimension 0")
    return vectors


def _dimension(segment: SegmentFolder) -> int:
    return int(_open(segment).shape[1])


def _relate(items: ItemTable, folder: Path, settings: RelationSettings) -> None:
    vectors = mapped(folder / _VECTORS, np.float32, (len(items), None))
    at: Callable[[Rows], Vectors] = vectors.__getitem__
    find_relations(items, 0, None, at, settings, np.ones(len(items), bool)).write(folder)


def _encode(items: ItemTable, path: Path, encoder: BaseEncoder, dimension: int | None) -> None:
    batches: Iterator[list[str]] = tracked("hop: encoding", items.texts(_BATCH), len(items))
    n_cut = write_passages(encoder, batches, len(items), path, dimension).n_cut
    if n_cut:
        warnings.warn(
            f"hop: {n_cut:,} of {len(items):,} passages are longer than the encoder reads; the likeness of passages is that of "
            "what it reads (index smaller chunks, or raise max_length where the model can read more)",
            RetrievalWarning,
            stacklevel=3,
        )
