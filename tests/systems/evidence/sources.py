"""A small project with sources that agree, disagree, and repeat one another."""

from __future__ import annotations

from pathlib import Path

from nlp_retrieval import Bm25Retriever, Searcher
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex

BRIDGE = (
    "The Long Bridge was opened in 1932. It carries rail, road and foot traffic across the inner harbour.\n\n"
    "Its architect was Ada Winter. About 160,000 vehicles cross it every day."
)
FERRY = "Ferries crossed the inner harbour before the Long Bridge was opened in 1932. They were slow, and often late in winter."
WIRE = "PORT ALDER (Reuters) - Repairs of the Long Bridge will cost 40 million crowns, the harbour office said on Monday."
TOLL = "The toll for cars on the Long Bridge was abolished in 1988. Lorries pay to this day."
BEETLES = "Beetles of the genus Onthophagus roll no dung. They dig their tunnels under it and feed there."

SOURCES = [
    (BRIDGE, "https://harbour.example.org/bridge", "The Long Bridge", "A", "2026-01-02T00:00:00Z"),
    (FERRY, "https://ferries.example.com/history", "Ferries", "B", "2026-01-03T00:00:00Z"),
    (WIRE, "https://daily.example.net/repairs", "Repairs", "B", "2026-01-04T00:00:00Z"),
    (f"Evening post. {WIRE}", "https://evening.example.edu/repairs", "Repairs to cost 40 million", "B", "2026-01-04T00:00:00Z"),
    (TOLL, "https://forum.example.io/toll", "Toll", "D", "2026-01-05T00:00:00Z"),
    (BEETLES, "https://beetles.example.info/dung", "Dung beetles", "B", "2026-01-06T00:00:00Z"),
]


def project(folder: Path) -> EvidenceIndex:
    """An index of these sources, built."""
    index = EvidenceIndex(folder, Searcher([Bm25Retriever()]))
    for source in SOURCES:
        index.add_document(*source)
    index.build_index()
    return index
