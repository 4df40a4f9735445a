"""Targets that read the files of segments that graphs of knowledge, sentences and relations keep, and records of servers."""

from __future__ import annotations

import numpy as np

from nlp_retrieval.core.index.segments import SegmentFolder
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.retrievers.feedback import PassagePlaces
from nlp_retrieval.retrievers.milvus.record import CollectionRecord, orphans
from nlp_retrieval.retrievers.postgres.record import TableRecord
from nlp_retrieval.systems.hipporag.engine.knowledge_graph import open_knowledge
from nlp_retrieval.systems.policy.relations.tables import RelationTables

from .inputs import a_folder, parts

COLUMNS = ("known", "entities", "triples", "triple_ends", "texts", "text_offsets", "statement_rows", "statement_triples")
KNOWLEDGE = tuple(f"{name}.npy" for name in (*COLUMNS, *(f"synonym_{end}" for end in ("sources", "targets", "similarities"))))
KNOWLEDGE += ("knowledge_vectors.npy",)
PLACES = ("subjects.json", "subjects.npy", "documents.npy", "positions.npy")
RELATIONS = tuple(
    f"{name}.npy"
    for name in (
        *(f"relation_{name}" for name in ("sources", "targets", "types", "confidences", "spans", "carried", "changed")),
        *(f"node_{name}" for name in ("rows", "versions", "new", "gone", "families")),
        *("families", "editions", "told", "centrality"),
    )
)
N_PASSAGES = 3


def knowledge_tables(data: bytes) -> bool:
    """What passages say: what opens can be walked from every entity."""
    segment = _segment("knowledge", KNOWLEDGE, data)
    try:
        graph = open_knowledge([segment]).weighted(None, passages=True).graph
    except IndexDamagedError:
        return False
    assert ((graph.neighbours >= 0) & (graph.neighbours < graph.n_nodes)).all()
    return True


def relations(data: bytes) -> bool:
    """Relations between passages: what opens leads from one passage to another that is there."""
    segment = _segment("relations", RELATIONS, data)
    try:
        found = RelationTables.of_segments([segment])
    except IndexDamagedError:
        return False
    ends = np.concatenate([found.relations.sources, found.relations.targets])
    assert ((ends >= 0) & (ends < N_PASSAGES)).all()
    versions, new, gone = found.nodes.over(N_PASSAGES)
    assert len(versions) == len(new) == len(gone) == N_PASSAGES
    return True


def places(data: bytes) -> bool:
    """Where passages stand: their neighbours are passages, and the neighbour of a neighbour is oneself."""
    segment = _segment("places", PLACES, data)
    try:
        found = PassagePlaces.open_all([segment], np.ones(N_PASSAGES, bool))
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
    read = 0
    for record in (CollectionRecord, TableRecord):
        folder = a_folder(f"record-{record.file}/items-x", {record.file: data})
        try:
            found = record.read(folder)
        except IndexDamagedError:
            continue
        read += 1
        assert found.rows >= 1
        assert found.dimension >= 0
        int(found.ids)
        assert record.named(folder.parent) == [found]
        if isinstance(found, CollectionRecord):
            assert found.collection not in orphans(folder.parent, [found.collection], embedded=True)
    return read > 0


def _segment(name: str, files: tuple[str, ...], data: bytes) -> SegmentFolder:
    return SegmentFolder(a_folder(name, dict(zip(files, parts(data, len(files)), strict=True))), 0, N_PASSAGES)


OF_PARTS = [knowledge_tables, relations, places, server_records]
