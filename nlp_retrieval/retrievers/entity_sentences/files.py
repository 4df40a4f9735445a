"""The files of an entity-sentences index: the sentences, the entities that each names, and a vector of each sentence.

A segment is decided by its own passages alone, so segments that are joined hold what one built at once would.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from nlp_retrieval.core.candidates import Mask
from nlp_retrieval.core.files.column_streams import Stream, read_blocks
from nlp_retrieval.core.files.columns import mapped
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.index.segments import SegmentFolder
from nlp_retrieval.core.notes import ENCODER_LIMIT, warn_of_cut
from nlp_retrieval.core.progress_bars import progress, tracked
from nlp_retrieval.encoders.base import BaseEncoder
from nlp_retrieval.encoders.passages import write_passages
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.retrievers.entity_sentences.graph.named_sentences import NamedSentences
from nlp_retrieval.retrievers.faiss.exact import Stack
from nlp_retrieval.text.entities import EntityFinder
from nlp_retrieval.text.sentence_entities import READ_KEYS, PassageEntities, entities_by_sentence, text_spans

_VECTORS = "sentence_vectors.npy"
_BATCH, _STEP = 1024, 1024


def write_sentences(
    items: ItemTable, folder: Path, finder: EntityFinder, encoder: BaseEncoder, dimension: int | None = None
) -> None:
    """Write one segment.

    Args:
        items: its items, read twice: for the entities, and for the vectors.
        folder: an empty folder.
        finder: finds entities.
        encoder: encodes sentences, each by itself.
        dimension: what the vectors must have; None where any will do.
    """
    sentences = NamedSentences.of(_read(items, finder))
    sentences.write(folder)
    if len(sentences.hashes) == 0:
        warnings.warn(
            "entity_sentences found no entities: its results will be those of its seeds, in the order of their best sentences. "
            "The rules find capitalised words and quoted titles; for other scripts pass a spaCy pipeline (mentions=...)",
            RetrievalWarning,
            stacklevel=3,
        )
    n_sentences = int(sentences.sentences[-1])
    texts = _sentence_texts(items)
    batches = iter(lambda: list(islice(texts, _BATCH)), [])
    tracking = tracked("entity_sentences: encoding sentences", batches, n_sentences)
    n_cut = write_passages(encoder, tracking, n_sentences, folder / _VECTORS, dimension, "sentences").n_cut
    warn_of_cut("entity_sentences", n_cut, n_sentences, *ENCODER_LIMIT, "sentences")


def join_sentences(segments: Sequence[SegmentFolder], folder: Path) -> None:
    """Write adjacent segments as one, without deleted passages and without encoding anything again."""
    opened = [NamedSentences.open(segment.folder, len(segment)) for segment in segments]
    lives = [np.ones(len(segment), bool) if segment.live is None else segment.live for segment in segments]
    parts = [one.only(np.flatnonzero(live)) for one, live in zip(opened, lives, strict=True)]
    NamedSentences.joined(parts).write(folder)
    with Stream(folder / _VECTORS, np.float32, dimension_of(segments[0])) as stream:
        for segment, one, live in zip(segments, opened, lives, strict=True):
            _copy_vectors(segment.folder / _VECTORS, np.repeat(live, np.diff(one.sentences)), stream)


def open_vectors(segments: Sequence[SegmentFolder]) -> Stack:
    """Map the vectors of all sentences of an index.

    Raises:
        IndexDamagedError: a file is missing or cut off, or holds another number of sentences or another dimension.
    """
    dimension = dimension_of(segments[0])
    counts = [int(NamedSentences.open(segment.folder, len(segment)).sentences[-1]) for segment in segments]
    paths = [segment.folder / _VECTORS for segment in segments]
    return Stack(*(mapped(path, np.float32, (count, dimension)) for path, count in zip(paths, counts, strict=True)))


def dimension_of(segment: SegmentFolder) -> int:
    """The dimension of the vectors of a segment."""
    return int(mapped(segment.folder / _VECTORS, np.float32, (None, None)).shape[1])


def _read(items: ItemTable, finder: EntityFinder) -> Iterator[PassageEntities]:
    with progress("finding entities", len(items)) as advance:
        for row, passage in enumerate(entities_by_sentence(items.stream(READ_KEYS), finder)):
            yield passage
            if row % _STEP == _STEP - 1:
                advance(_STEP)


def _sentence_texts(items: ItemTable) -> Iterator[str]:
    """What is encoded: each sentence by itself, and of a passage without sentences its title."""
    for item in items.stream(READ_KEYS):
        yield from [item.content[start:end] for start, end in text_spans(item)] or [item.title]


def _copy_vectors(path: Path, live: Mask, stream: Stream) -> None:
    first = 0
    for block in read_blocks(path, _BATCH):
        stream.write(block[live[first : first + len(block)]])
        first += len(block)
