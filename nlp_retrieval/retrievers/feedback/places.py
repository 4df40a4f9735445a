"""What each passage is about and where it stands: its subject, and its neighbours in its document.

Subject, document and position are metadata. A passage without a document stands alone. Neighbours are the passages next to
one another in the order of their positions; one that was deleted is nobody's neighbour.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows
from nlp_retrieval.core.files.columns import check_numbers, damaged, mapped
from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.index.segments import SegmentFolder
from nlp_retrieval.core.progress_bars import progress
from nlp_retrieval.retrievers.link_graph.store.hashed_rows import hash_of

_STEP = 1024
_NAMES, _SUBJECTS, _DOCUMENTS, _POSITIONS = "subjects.json", "subjects.npy", "documents.npy", "positions.npy"


def write_places(items: ItemTable, folder: Path, subject: str | None, document: str, position: str) -> None:
    """Write the places of all items into an existing folder, as four files.

    Args:
        items: streamed once.
        folder: where to.
        subject: the metadata field that says what a passage is about; None for none.
        document: the field that says which document it belongs to.
        position: the field with its position there, a number.
    """
    subjects = np.full(len(items), -1, np.int64)
    documents = np.zeros(len(items), np.int64)
    positions = np.zeros(len(items), np.float64)
    names: dict[str, int] = {}
    fields = {document, position} | ({subject} if subject else set())
    with progress("reading places", len(items)) as advance:
        for row, item in enumerate(items.stream(fields)):
            named = item.metadata.get(subject) if subject else None
            if isinstance(named, str) and named.strip():
                subjects[row] = names.setdefault(named, len(names))
            place = item.metadata.get(position)
            held = item.metadata.get(document)
            if held is not None and isinstance(place, int | float) and math.isfinite(place):
                documents[row] = (hash_of(json.dumps(held, sort_keys=True)) >> 1) or 1
                positions[row] = place
            if row % _STEP == _STEP - 1:
                advance(_STEP)
    (folder / _NAMES).write_text(json.dumps(list(names), ensure_ascii=False), "utf-8")
    for name, column in ((_SUBJECTS, subjects), (_DOCUMENTS, documents), (_POSITIONS, positions)):
        np.save(folder / name, column, allow_pickle=False)


@dataclass(frozen=True, eq=False)
class PassagePlaces:
    """The places of all passages of an index.

    Args:
        names: of the subjects, each once.
        subjects: ``[passages]``, the number of each passage's subject; -1 where it has none.
        ordered: rows of the passages that have a document, document by document, in order of position.
        documents: ``[ordered]``, equal for passages of one document.
        place: ``[passages]``, where each stands in ``ordered``; -1 where it does not.
    """

    names: tuple[str, ...]
    subjects: Rows
    ordered: Rows
    documents: NDArray[np.int64]
    place: Rows

    @classmethod
    def open_all(cls, segments: Sequence[SegmentFolder], live: Mask) -> PassagePlaces:
        """Open what :func:`write_places` wrote for all segments.

        Args:
            segments: of the index.
            live: ``[passages]``, which are not deleted.

        Raises:
            IndexDamagedError: a file is missing, cut off, or not such a file.
        """
        known: dict[str, int] = {}
        subjects, documents, positions = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
        for segment in segments:
            shape = (len(segment),)
            names = _names_in(segment.folder / _NAMES)
            numbers = mapped(segment.folder / _SUBJECTS, np.int64, shape)
            check_numbers(segment.folder / _SUBJECTS, np.maximum(numbers, 0), max(len(names), 1))
            global_numbers = np.array([known.setdefault(name, len(known)) for name in names] or [-1], np.int64)
            subjects.append(np.where(numbers < 0, -1, global_numbers[np.maximum(numbers, 0)]))
            documents.append(mapped(segment.folder / _DOCUMENTS, np.int64, shape))
            positions.append(mapped(segment.folder / _POSITIONS, np.float64, shape))
        document = np.concatenate(documents)
        rows = np.flatnonzero(live & (document != 0))
        ordered = rows[np.lexsort((rows, np.concatenate(positions)[rows], document[rows]))]
        place = np.full(len(document), -1, np.int64)
        place[ordered] = np.arange(len(ordered))
        return cls(tuple(known), np.concatenate(subjects), ordered, document[ordered], place)

    def neighbours(self, rows: Rows, distance: int) -> Rows:
        """Return the passage so many places further on in the same document, ``[rows]``; -1 where there is none.

        Args:
            rows: of passages.
            distance: 1 for the next, -1 for the one before.
        """
        found = np.full(len(rows), -1, np.int64)
        place = self.place[rows]
        target = place + distance
        inside = np.flatnonzero((place >= 0) & (target >= 0) & (target < len(self.ordered)))
        same = inside[self.documents[place[inside]] == self.documents[target[inside]]]
        found[same] = self.ordered[target[same]]
        return found


def _names_in(path: Path) -> list[str]:
    try:
        names = read_json_file(path)
    except (OSError, ValueError) as error:
        raise damaged(path, str(error)) from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise damaged(path, "it is no list of names")
    return names
