"""Relations that are found: the relations of a segment's passages, and a vector of each passage, from which they are found."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from nlp_retrieval.core import ItemTable, Rows, SegmentFolder, Stream, damaged, mapped, read_blocks, tracked
from nlp_retrieval.encoders import BaseEncoder, Vectors, write_passages
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.retrievers import Stack, live_among, live_of
from nlp_retrieval.systems.policy.hop.files import RelationFiles
from nlp_retrieval.systems.policy.relations.finding import RelationSettings, find_relations
from nlp_retrieval.systems.policy.relations.tables import RelationTables

_VECTORS = "vectors.npy"
_BATCH = 1024


class FoundRelations(RelationFiles):
    """Relations by likeness of vectors, words and places. Joining encodes nothing again; the first segment's are found anew.

    Args:
        encoder: of passages; their likeness is that of their vectors.
        settings: how relations are found.
    """

    def __init__(self, encoder: BaseEncoder, settings: RelationSettings) -> None:
        self.encoder, self.settings = encoder, settings

    def build(self, items: ItemTable, folder: Path) -> None:
        _encode(items, folder / _VECTORS, self.encoder, None)
        self._relate(items, folder)

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        _encode(items, folder / _VECTORS, self.encoder, _dimension(segments[0]))
        before = RelationTables.of_segments(segments)
        first_row = len(everything) - len(items)
        stack = Stack(*(_open(segment) for segment in segments), mapped(folder / _VECTORS, np.float32, (len(items), None)))
        live = live_among(everything, segments)
        find_relations(everything, first_row, before, stack.at, self.settings, live).write(folder)

    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        with Stream(folder / _VECTORS, np.float32, _dimension(segments[0])) as stream:
            for segment in segments:
                first = 0
                for block in read_blocks(segment.folder / _VECTORS, _BATCH):
                    stream.write(block if segment.live is None else block[segment.live[first : first + len(block)]])
                    first += len(block)
        if segments[0].first_row == 0:
            self._relate(items, folder)
        else:
            RelationTables.of_segments(segments).renumbered(segments[0].first_row, live_of(segments)).write(folder)

    def rows_in(self, folder: Path) -> int:
        return len(mapped(folder / _VECTORS, np.float32, (None, None)))

    def check(self, segments: Sequence[SegmentFolder]) -> None:
        if len({_dimension(segment) for segment in segments}) != 1:
            raise damaged(segments[-1].folder / _VECTORS, "its vectors have another dimension than those of the segment before")

    def require(self, segments: Sequence[SegmentFolder]) -> None:
        """Nothing: they are made of the items themselves."""

    def _relate(self, items: ItemTable, folder: Path) -> None:
        vectors = mapped(folder / _VECTORS, np.float32, (len(items), None))
        at: Callable[[Rows], Vectors] = vectors.__getitem__
        find_relations(items, 0, None, at, self.settings, np.ones(len(items), bool)).write(folder)


def _open(segment: SegmentFolder) -> Vectors:
    vectors: Vectors = mapped(segment.folder / _VECTORS, np.float32, (len(segment), None))
    if not vectors.shape[1]:
        raise damaged(segment.folder / _VECTORS, "it holds vectors of dimension 0")
    return vectors


def _dimension(segment: SegmentFolder) -> int:
    return int(_open(segment).shape[1])


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
