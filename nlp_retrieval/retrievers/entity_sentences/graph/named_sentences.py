"""The sentences of passages and the entities that each names, in flat files.

Every passage has at least one sentence: one without text is a sentence without entities. What a passage's title names, each
of its sentences names, because it is about that.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nlp_retrieval.core.candidates import Rows, entries_of, offsets_of
from nlp_retrieval.core.files.columns import check_offsets, damaged, mapped
from nlp_retrieval.core.index.segments import SegmentFolder
from nlp_retrieval.retrievers.link_graph.store.hashed_rows import Hashes, hash_of
from nlp_retrieval.text.sentence_entities import PassageEntities

_SENTENCES, _NAMES, _HASHES = "sentence_offsets.npy", "name_offsets.npy", "name_hashes.npy"


@dataclass(frozen=True, eq=False)
class NamedSentences:
    """Sentences in the order of their passages, in columns.

    Args:
        sentences: ``[passages + 1]``; passage p has the sentences ``sentences[p]:sentences[p + 1]``.
        names: ``[sentences + 1]``; sentence s names the entities ``hashes[names[s]:names[s + 1]]``.
        hashes: of the entities, ascending within a sentence, each once.
    """

    sentences: Rows
    names: Rows
    hashes: Hashes

    @classmethod
    def of(cls, passages: Iterable[PassageEntities]) -> NamedSentences:
        """Build in memory, with 8 bytes per mention of an entity."""
        n_sentences, n_names, hashes = array("q"), array("q"), array("Q")
        for passage in passages:
            named = [names | passage.about for names in passage.sentences] or [passage.about]
            n_sentences.append(len(named))
            for names in named:
                distinct = sorted(set(map(hash_of, names)))
                hashes.extend(distinct)
                n_names.append(len(distinct))
        return cls(offsets_of(n_sentences), offsets_of(n_names), np.array(hashes, np.uint64))

    def write(self, folder: Path) -> None:
        """Write three files into an existing folder. Equal sentences give equal bytes."""
        for name, column in ((_SENTENCES, self.sentences), (_NAMES, self.names), (_HASHES, self.hashes)):
            np.save(folder / name, column, allow_pickle=False)

    @staticmethod
    def n_passages_in(folder: Path) -> int:
        """How many passages the files in a folder are of.

        Raises:
            IndexDamagedError: there are no such files.
        """
        return len(mapped(folder / _SENTENCES, np.int64)) - 1

    @classmethod
    def open(cls, folder: Path, n_passages: int) -> NamedSentences:
        """Map what :meth:`write` wrote, and check it once.

        Raises:
            IndexDamagedError: a file is missing or cut off, or the files contradict one another.
        """
        sentences: Rows = mapped(folder / _SENTENCES, np.int64, (n_passages + 1,))
        names: Rows = mapped(folder / _NAMES, np.int64)
        hashes: Hashes = mapped(folder / _HASHES, np.uint64)
        check_offsets(folder / _SENTENCES, sentences, len(names) - 1)
        check_offsets(folder / _NAMES, names, len(hashes))
        if (sentences[1:] == sentences[:-1]).any():
            raise damaged(folder / _SENTENCES, "it holds a passage without any sentence")
        return cls(sentences, names, hashes)

    @classmethod
    def open_all(cls, segments: Sequence[SegmentFolder]) -> NamedSentences:
        """Open those of adjacent segments as one; the sentences of deleted passages are there, and name nothing."""
        opened = [(cls.open(segment.folder, len(segment)), segment) for segment in segments]
        if len(opened) == 1 and segments[0].live is None:
            return opened[0][0]
        return cls.joined([one if segment.live is None else one.silenced(segment) for one, segment in opened])

    @classmethod
    def joined(cls, parts: Sequence[NamedSentences]) -> NamedSentences:
        """Put sentences one after another."""
        n_sentences = np.concatenate([np.diff(part.sentences) for part in parts])
        n_names = np.concatenate([np.diff(part.names) for part in parts])
        return cls(offsets_of(n_sentences), offsets_of(n_names), np.concatenate([part.hashes for part in parts]))

    def silenced(self, segment: SegmentFolder) -> NamedSentences:
        """Return the same sentences, those of the segment's deleted passages without entities."""
        live = np.ones(len(segment), bool) if segment.live is None else segment.live
        counts = np.where(np.repeat(live, np.diff(self.sentences)), np.diff(self.names), 0)
        kept, _ = entries_of(self.names, np.flatnonzero(counts))
        return NamedSentences(self.sentences, offsets_of(counts), self.hashes[kept])

    def only(self, passages: Rows) -> NamedSentences:
        """Return the sentences of some passages, ascending."""
        sentences, n_sentences = entries_of(self.sentences, passages)
        names, n_names = entries_of(self.names, sentences)
        return NamedSentences(offsets_of(n_sentences), offsets_of(n_names), self.hashes[names])
