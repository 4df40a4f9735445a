"""Relations as columns: what comes back from disk, and what damage is noticed."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.systems.policy.hop.relation import Relation, Relations, RelationTables

RELATIONS = [Relation(0, 2, "CAUSES", 0.3), Relation(1, 0, "LIKES", 1.0), Relation(2, 0, "TEMPORAL_FOLLOWS", 0.5)]


def tables() -> RelationTables:
    shares = np.array([np.nan, 0.4, 1.0])
    numbers = np.array([0, -1, 1], np.int32)
    return RelationTables(Relations.of(RELATIONS), np.array([7, 0, 7], np.uint64), numbers, shares, shares[::-1])


def test_what_was_written_comes_back_and_deleted_passages_lose_their_relations(tmp_path: Path) -> None:
    tables().write(tmp_path)
    opened = RelationTables.open(tmp_path, 3)
    assert list(opened.relations) == RELATIONS
    np.testing.assert_array_equal(opened.new, [np.nan, 0.4, 1.0])
    live = np.array([True, False, True])
    joined = RelationTables.of_segments([SegmentFolder(tmp_path, 0, 3, live)])
    assert list(joined.relations) == [RELATIONS[0], RELATIONS[2]]
    shrunk = joined.among(live)
    assert [(one.source, one.target) for one in shrunk.relations] == [(0, 1), (1, 0)]
    assert (shrunk.families.tolist(), shrunk.versions.tolist()) == ([7, 7], [0, 1])


def test_damage_is_an_error_that_names_the_file(tmp_path: Path, subtests: pytest.Subtests) -> None:
    damages: dict[str, list[object]] = {
        "targets.npy": [np.array([9, 0, 0]), np.array([0, 0, 0]), np.array([0, -1, 0]), np.zeros(2, np.int64)],
        "types.npy": [np.full(3, 9, np.int32)],
        "confidences.npy": [np.array([0.0, 0, 2]), np.array([0, np.nan, 0])],
        "new.npy": [np.array([0, 7.0, 0])],
        "families.npy": [np.zeros(2, np.uint64)],
        "relation_names.json": ["[]", "{"],
    }
    for name, of_file in damages.items():
        for number, damage in enumerate(of_file):
            with subtests.test(name=name, number=number):
                folder = tmp_path / f"{name}-{number}"
                folder.mkdir()
                tables().write(folder)
                (folder / name).unlink()
                if isinstance(damage, str):
                    (folder / name).write_text(damage)
                else:
                    np.save(folder / name, damage)
                with pytest.raises(IndexDamagedError, match=re.escape(name)):
                    RelationTables.open(folder, 3)


def test_of_relations_of_one_type_between_the_same_passages_the_surest_stays() -> None:
    found = list(Relations.of([Relation(1, 0, "CAUSES", 0.3), Relation(1, 0, "CAUSES", 0.6), Relation(1, 0, "SUPPORTS", 0.1)]))
    assert found == [Relation(1, 0, "SUPPORTS", 0.1), Relation(1, 0, "CAUSES", 0.6)]
