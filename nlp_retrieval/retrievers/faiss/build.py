"""Writing vector indexes: from the vectors of a build, and from segments that are joined.

Vectors are read from disk in blocks; besides a block, memory holds the index itself, and a sample for training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.files.columns import Stream, damaged, mapped, read_blocks
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.progress_bars import progress
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import IndexWriteError
from nlp_retrieval.retrievers.faiss.index import ANN_FILE, SHAPE_FILE, VECTORS_FILE, dimension_of, read_ann, whole_vectors
from nlp_retrieval.retrievers.faiss.types import IVFPQ, SQ8, FaissIndexType, faiss

_AT_ONCE = 16_384
_OUTGROWN = 4


def build_ann_index(folder: Path, index_type: FaissIndexType) -> None:
    """Replace the vectors in a folder by an index; if it is flat, they stay as they are."""
    path = folder / VECTORS_FILE
    shape = mapped(path, np.float32, (None, None)).shape
    index = index_type.empty(*shape)
    if index is None:
        return
    if isinstance(index_type, IVFPQ | SQ8):
        index.train(_sample(path, shape, index_type))
    _make_room(index, shape[0])
    with progress(f"faiss: building {index_type.name}", shape[0]) as advance:
        for block in read_blocks(path, _AT_ONCE):
            index.add(block)
            advance(len(block))
    path.unlink()
    _write(index, folder, np.array(shape))


def has_outgrown(segment: SegmentFolder, n_items: int) -> bool:
    """Return whether an index of codes has grown too large for the quantiser that was trained for it."""
    return n_items > _OUTGROWN * int(mapped(segment.folder / SHAPE_FILE, np.int64, (2,))[0])


def join_vectors(segments: Sequence[SegmentFolder], folder: Path) -> None:
    """Write the vectors of items that are not deleted as the ``vectors.npy`` of a build; the segments store whole vectors."""
    with Stream(folder / VECTORS_FILE, np.float32, dimension_of(segments[0])) as stream:
        for segment in segments:
            for block in _live_vectors(segment):
                stream.write(block)


def join_codes(segments: Sequence[SegmentFolder], folder: Path) -> None:
    """Write an index of codes, without deleted items, with the quantiser of the first segment."""
    first = segments[0]
    index = read_ann(first.folder, len(first))
    if first.live is not None:
        index.remove_ids(faiss.IDSelectorBitmap(np.packbits(~first.live, bitorder="little")))
        if isinstance(index, faiss.IndexIVF):  # other indexes number the rest from 0 themselves
            _renumber(index.invlists, np.cumsum(first.live) - 1)
    for segment in segments[1:]:
        for block in _live_vectors(segment):
            index.add(block)
    _write(index, folder, mapped(first.folder / SHAPE_FILE, np.int64, (2,)))


def _live_vectors(segment: SegmentFolder) -> Iterator[Vectors]:
    """Yield the vectors of a segment's items that are not deleted, in order, in blocks; the segment stores whole vectors."""
    first = 0
    for block in _blocks(segment):
        yield block if segment.live is None else block[segment.live[first : first + len(block)]]
        first += len(block)


def _blocks(segment: SegmentFolder) -> Iterator[Vectors]:
    if not (segment.folder / ANN_FILE).exists():
        mapped(segment.folder / VECTORS_FILE, np.float32, (len(segment), None))
        yield from read_blocks(segment.folder / VECTORS_FILE, _AT_ONCE)
        return
    index = read_ann(segment.folder, len(segment))
    vectors = whole_vectors(index)
    if vectors is None:
        raise damaged(segment.folder / ANN_FILE, "it holds codes instead of vectors")
    for first in range(0, index.ntotal, _AT_ONCE):  # the vectors are the memory of the index, which must live as long
        yield vectors[first : first + _AT_ONCE]


def _renumber(lists: Any, numbers: Rows) -> None:
    for number in range(lists.nlist):
        size = lists.list_size(number)
        if size:
            ids = faiss.rev_swig_ptr(lists.get_ids(number), size)
            ids[:] = numbers[ids]


def _sample(path: Path, shape: tuple[int, ...], settings: IVFPQ | SQ8) -> Vectors:
    """A sample of vectors for training, in the order of their rows."""
    count = min(settings.train_size, shape[0])
    chosen = np.zeros(shape[0], np.bool_)
    chosen[np.random.default_rng(settings.seed).choice(shape[0], count, replace=False)] = True
    sample, first, filled = np.empty((count, shape[1]), np.float32), 0, 0
    for block in read_blocks(path, _AT_ONCE):
        part = block[chosen[first : first + len(block)]]
        sample[filled : filled + len(part)] = part
        first, filled = first + len(block), filled + len(part)
    return sample


def _make_room(index: Any, n_items: int) -> None:
    """Let an index allocate the memory for its vectors at once; growing would hold them twice."""
    flat = faiss.downcast_index(index.storage) if isinstance(index, faiss.IndexHNSW) else index
    if isinstance(flat, faiss.IndexFlatCodes):
        flat.codes.resize(n_items * flat.code_size)
        flat.codes.resize(0)


def _write(index: Any, folder: Path, shape: Rows) -> None:
    """Write an index, and the shape of the vectors that it was made of."""
    try:
        faiss.write_index(index, str(folder / ANN_FILE))
    except RuntimeError as error:
        raise IndexWriteError(f"FAISS cannot write {folder / ANN_FILE}: {error}; is the disk full?") from error
    np.save(folder / SHAPE_FILE, shape.astype(np.int64), allow_pickle=False)
