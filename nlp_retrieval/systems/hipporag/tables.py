"""Entities and triples of a segment of a knowledge graph: collected from passages, and as flat files.

A phrase is a text's words without case, accents and punctuation, so that "Erik Hort" and "ERIK HORT'S" are one entity. A triple
is the phrases of its three parts. Triples without words in subject or object are dropped.

Entities and triples are stored in the segment where they first occur, with their texts and vectors; later segments, and all
statements, refer to them by hash. So added items encode only new texts, and existing data are never renumbered.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core import (
    ItemTable,
    Mask,
    Rows,
    SegmentFolder,
    check_numbers,
    check_offsets,
    damaged,
    mapped,
    offsets_of,
    tracked,
)
from nlp_retrieval.encoders import Vectors
from nlp_retrieval.retrievers import Hashes, check_rising, hash_of
from nlp_retrieval.systems.hipporag.knowledge import KnowledgeSource, Triple, phrase_of

VECTORS_FILE = "knowledge_vectors.npy"
"""``[entities + triples, dimension]`` float32, in the order of the texts; without any, one of 0 rows."""


@dataclass(frozen=True, eq=False)
class TextColumn:
    """Texts in one column of bytes."""

    data: NDArray[np.uint8]  # UTF-8, one text after another
    offsets: Rows  # [texts + 1]

    @classmethod
    def of(cls, texts: Iterable[str]) -> TextColumn:
        """Build a column."""
        encoded = [text.encode() for text in texts]
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets_of([len(text_bytes) for text_bytes in encoded]))

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.offsets) - 1

    def n_letters(self) -> Rows:
        """Return the number of characters of each text without spaces, ``[texts]``."""
        counted = np.zeros(len(self.data) + 1, np.int64)
        np.cumsum((self.data != ord(" ")) & (self.data & 0xC0 != 0x80), out=counted[1:])  # UTF-8's later bytes
        return counted[self.offsets[1:]] - counted[self.offsets[:-1]]

    def __getitem__(self, number: int) -> str:
        return self.data[self.offsets[number] : self.offsets[number + 1]].tobytes().decode("utf-8", "replace")


@dataclass(frozen=True, eq=False)
class Synonyms:
    """Pairs of entities with similar vectors, each pair once."""

    sources: Hashes
    targets: Hashes
    similarities: NDArray[np.float32]

    @classmethod
    def joined(cls, parts: Sequence[Synonyms]) -> Synonyms:
        """Concatenate several lists."""
        none = np.zeros(0, np.uint64)
        return cls(
            np.concatenate([none, *(part.sources for part in parts)]),
            np.concatenate([none, *(part.targets for part in parts)]),
            np.concatenate([np.zeros(0, np.float32), *(part.similarities for part in parts)]),
        )

    def where(self, kept: Mask) -> Synonyms:
        """Return the pairs that a mask over them keeps."""
        return Synonyms(self.sources[kept], self.targets[kept], self.similarities[kept])


@dataclass(frozen=True, eq=False)
class KnowledgeTables:
    """Tables of one segment, besides its vectors."""

    known: Mask  # [passages], whether the source knows it
    entities: Hashes  # hashes of the entities that first occur here, ascending
    triples: Hashes  # hashes of the triples that first occur here, ascending
    ends: Hashes  # [triples, 2], hashes of their subjects and objects
    texts: TextColumn  # phrases of the entities, then predicates of the triples
    rows: Rows  # per statement its passage, counted from the segment's first, ascending
    stated: Hashes  # per statement the hash of its triple, ascending within a passage
    synonyms: Synonyms  # pairs of which at least one first occurs here

    def write(self, folder: Path) -> None:
        """Write flat files into an existing folder. Equal tables give equal bytes."""
        columns: dict[str, NDArray[np.generic]] = {
            "known": self.known,
            "entities": self.entities,
            "triples": self.triples,
            "triple_ends": self.ends,
            "texts": self.texts.data,
            "text_offsets": self.texts.offsets,
            "statement_rows": self.rows,
            "statement_triples": self.stated,
            "synonym_sources": self.synonyms.sources,
            "synonym_targets": self.synonyms.targets,
            "synonym_similarities": self.synonyms.similarities,
        }
        for name, column in columns.items():
            np.save(folder / f"{name}.npy", column, allow_pickle=False)

    @classmethod
    def open(cls, segment: SegmentFolder) -> KnowledgeTables:
        """Map what :meth:`write` wrote, and check it once."""

        def path(name: str) -> Path:
            return segment.folder / f"{name}.npy"

        known: Mask = mapped(path("known"), np.bool_, (len(segment),))
        entities: Hashes = mapped(path("entities"), np.uint64)
        triples: Hashes = mapped(path("triples"), np.uint64)
        ends: Hashes = mapped(path("triple_ends"), np.uint64, (len(triples), 2))
        n_texts = len(entities) + len(triples)
        texts = TextColumn(mapped(path("texts"), np.uint8), mapped(path("text_offsets"), np.int64, (n_texts + 1,)))
        rows: Rows = mapped(path("statement_rows"), np.int64)
        stated: Hashes = mapped(path("statement_triples"), np.uint64, (len(rows),))
        sources: Hashes = mapped(path("synonym_sources"), np.uint64)
        targets: Hashes = mapped(path("synonym_targets"), np.uint64, (len(sources),))
        cosines: NDArray[np.float32] = mapped(path("synonym_similarities"), np.float32, (len(sources),))
        check_rising(path("entities"), entities)
        check_rising(path("triples"), triples)
        check_offsets(path("text_offsets"), texts.offsets, len(texts.data))
        check_numbers(path("statement_rows"), rows, len(segment))
        if (rows[1:] < rows[:-1]).any():
            raise damaged(path("statement_rows"), "its numbers do not ascend")
        if not ((cosines > 0) & (cosines < 2)).all():
            raise damaged(path("synonym_similarities"), "it holds a number that is not a similarity")
        return cls(known, entities, triples, ends, texts, rows, stated, Synonyms(sources, targets, cosines))


def vectors_in(segment: SegmentFolder, tables: KnowledgeTables) -> Vectors:
    """Map the vectors of a segment, ``[entities + triples, dimension]``."""
    vectors: Vectors = mapped(segment.folder / VECTORS_FILE, np.float32, (len(tables.texts), None))
    return vectors


_ITEMS_AT_ONCE = 256
_BETWEEN = "\x1f"  # never in a phrase


def shown_triple(subject: str, predicate: str, target: str) -> str:
    """Return a triple as a sentence, for encoding and display."""
    return " ".join(part for part in (subject, predicate, target) if part)


@dataclass(frozen=True)
class Collected:
    """Statements of the passages of a segment."""

    known: Mask  # [passages], whether the source knows it
    entities: dict[int, str]  # phrases by hash
    triples: dict[int, Triple]  # triples of phrases by hash
    rows: Rows  # the passage of each statement, ascending; a passage states a triple once
    stated: Hashes  # hash of the triple of each statement


def collected(items: ItemTable, source: KnowledgeSource | None) -> Collected:
    """Look up the statements of items."""
    known = np.zeros(len(items), np.bool_)
    entities: dict[int, str] = {}
    triples: dict[int, Triple] = {}
    rows, stated = array("q"), array("Q")
    row, stream = 0, items.stream()
    for batch in tracked("hipporag: reading knowledge", iter(lambda: list(islice(stream, _ITEMS_AT_ONCE)), []), len(items)):
        for knowledge in source.of(batch) if source is not None else [None] * len(batch):
            known[row] = knowledge is not None
            statements = _distinct(knowledge.triples if knowledge is not None else ())
            for key, triple in sorted(statements.items()):
                triples[key] = triple
                entities |= {hash_of(phrase): phrase for phrase in (triple.subject, triple.object)}
                rows.append(row)
                stated.append(key)
            row += 1
    return Collected(known, entities, triples, np.array(rows, np.int64), np.array(stated, np.uint64))


def _distinct(triples: Sequence[Triple]) -> dict[int, Triple]:
    """Return triples of phrases by their hashes, without those whose subject or object has no words."""
    phrases = [tuple(map(phrase_of, (triple.subject, triple.predicate, triple.object))) for triple in triples]
    return {hash_of(_BETWEEN.join(parts)): Triple(*parts) for parts in phrases if parts[0] and parts[2]}
