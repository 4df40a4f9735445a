"""Sources and indexes that the tests of this folder share."""

from __future__ import annotations

import json
from pathlib import Path

from nlp_retrieval import Bm25Retriever, Searcher
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex

LAKE = "https://lakes.example/freezing"
LAKE_TEXT = "The lake in the valley freezes over in January.\n\nIt thaws in March, when the fishers return."
TOWN = "https://towns.example/history"
TOWN_TEXT = "The town was founded in 1453 by salt traders. Its bridge burned down in 1712."


def lexical(project: Path, name: str = "index") -> EvidenceIndex:
    """An index that needs no model."""
    return EvidenceIndex(project, Searcher([Bm25Retriever()]), name)


def two_sources(project: Path) -> EvidenceIndex:
    """An index of two sources, built."""
    index = lexical(project)
    index.add_document(LAKE_TEXT, LAKE, "Lakes", "B", "2026-01-19")
    index.add_document(TOWN_TEXT, TOWN, "Towns", "D", "2026-02-01")
    index.build_index()
    return index


def told(index: EvidenceIndex) -> dict[str, object]:
    """What ``index_metadata.json`` says."""
    return json.loads(index.metadata_path.read_text("utf-8"))
