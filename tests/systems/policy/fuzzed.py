"""Targets that read the configuration of a study, and the files of relations between passages."""

from __future__ import annotations

import numpy as np
from fuzz.inputs import N_PASSAGES, a_file, segment
from fuzz.settings import REFUSED

from nlp_retrieval.errors import IndexDamagedError, QueryError
from nlp_retrieval.systems.policy.config import StudyConfig
from nlp_retrieval.systems.policy.hop.relation import RelationTables

COLUMNS = ("sources", "targets", "types", "confidences", "families", "versions", "new", "gone")
RELATIONS = (*(f"{name}.npy" for name in COLUMNS), "relation_names.json")


def studies(data: bytes) -> bool:
    """The configuration of a study."""
    try:
        read = StudyConfig.read(a_file("study.yaml", data))
    except (*REFUSED, QueryError):
        return False
    assert isinstance(read.keywords, bool)
    return True


def relations(data: bytes) -> bool:
    """Relations between passages: what opens leads from one passage to another that is there."""
    opened = segment("relations", RELATIONS, data)
    try:
        found = RelationTables.of_segments([opened])
    except IndexDamagedError:
        return False
    ends = np.concatenate([found.relations.sources, found.relations.targets])
    assert ((ends >= 0) & (ends < N_PASSAGES)).all()
    assert len(found.versions) == len(found.new) == len(found.gone) == N_PASSAGES
    return True


OF_POLICY = [studies, relations]
