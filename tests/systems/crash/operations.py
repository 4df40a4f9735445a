"""All operations of the systems that are interrupted, by name."""

from __future__ import annotations

from pathlib import Path

from crash.index_operations import MADE, engine_operations
from crash.operation import Operation
from hashed_words import HashedWords

from nlp_retrieval import FaissRetriever
from nlp_retrieval.systems.hipporag.retriever import HippoRagRetriever
from nlp_retrieval.systems.policy.hop.retriever import HopRetriever
from systems.evidence.operations import evidence_operations
from systems.policy.operations import study_operations

KNOWLEDGE = str(Path(__file__).parents[1] / "hipporag" / "openie.json")
"""What the items of :func:`crash.index_operations.corpus` say, with the seeds and counts that are used there."""

MADE["knowledge"] = lambda: HippoRagRetriever(HashedWords(), KNOWLEDGE)
MADE["hops"] = lambda: HopRetriever(FaissRetriever(HashedWords()), subject="seed")

_ALL: list[Operation] = [*evidence_operations(), *study_operations()]
_ALL += engine_operations(", every engine of a system", ("bm25", "knowledge", "hops"))
OPERATIONS = {one.name: one for one in _ALL}
