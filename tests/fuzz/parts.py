"""Targets that read the files of segments that places of passages keep, and records of servers."""

from __future__ import annotations

import numpy as np

from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.retrievers.feedback import PassagePlaces
from nlp_retrieval.retrievers.servers.retriever import ServerRecord

from .inputs import a_folder, parts

PLACES = ("subjects.json", "subjects.npy", "documents.npy", "positions.npy")
N_PASSAGES = 3


def places(data: bytes) -> bool:
    """Where passages stand: their neighbours are passages, and the neighbour of a neighbour is oneself."""
    opened = segment("places", PLACES, data)
    try:
        found = PassagePlaces.open_all([opened], np.ones(N_PASSAGES, bool))
    except IndexDamagedError:
        return False
    rows = np.arange(N_PASSAGES)
    after = found.neighbours(rows, 1)
    assert ((after >= -1) & (after < N_PASSAGES)).all()
    has = after >= 0
    assert (found.neighbours(after[has], -1) == rows[has]).all()
    assert all(-1 <= number < len(found.names) for number in found.subjects.tolist())
    return True


def server_records(data: bytes) -> bool:
    """What a segment keeps of a server: names that are ours, and numbers in their range."""
    folder = a_folder("record/items-x", {"server.json": data})
    try:
        found = ServerRecord.read(folder)
    except IndexDamagedError:
        return False
    assert found.rows >= 1
    assert found.dimension >= 0
    assert ServerRecord.named(folder.parent) == [found]
    return True


def segment(name: str, files: tuple[str, ...], data: bytes) -> SegmentFolder:
    """A segment with these files, of :data:`N_PASSAGES`."""
    return SegmentFolder(a_folder(name, dict(zip(files, parts(data, len(files)), strict=True))), 0, N_PASSAGES)


OF_PARTS = [places, server_records]
