"""Relations as columns: what is refused, what comes back from disk, and what damage is noticed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.errors import EngineError, IndexDamagedError
from nlp_retrieval.systems.policy.hop.relation import Nodes, Relation, Relations, RelationTables


def column(kind: type[np.generic], *values: float) -> np.ndarray:
    return np.array(values, kind)


def tables() -> RelationTables:
    relations = Relations.of(
        [
            Relation(2, 0, "TEMPORAL_FOLLOWS", 0.5, (0, 4), (3, 7), 0.25, 1),
            Relation(1, 0, "FOLLOWS", 1.0),
            Relation(0, 2, "CAUSES", 0.3),
        ]
    )
    nodes = Nodes(
        column(np.int64, 0, 2), column(np.int32, 0, 1), column(np.float32, np.nan, 0.4), column(np.float32, 0.5, np.nan),
        column(np.uint64, 7, 7),
    )  # fmt: skip
    families = column(np.uint64, 7, 0, 7)
    return RelationTables(relations, families, families, column(np.uint64, 7), nodes, np.full((3, 3), 0.5, np.float32))


def test_of_relations_of_one_type_between_the_same_passages_the_surest_stays() -> None:
    found = Relations.of([Relation(1, 0, "CAUSES", 0.3), Relation(1, 0, "CAUSES", 0.6), Relation(1, 0, "SUPPORTS", 0.1)])
    assert [(found.at(n).type, found.at(n).confidence) for n in range(2)] == [
        ("SUPPORTS", pytest.approx(0.1)), ("CAUSES", pytest.approx(0.6)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("relation", "message"),
    [
        (Relation(1, 5, "CAUSES", 0.3), "its target is row 5; expected 0..2"),
        (Relation(-1, 0, "CAUSES", 0.3), "its source is row -1"),
        (Relation(1, 1, "CAUSES", 0.3), "leads from row 1 to itself"),
        (Relation(1, 0, "CAUSES", 1.5), "confidence 1.5"),
        (Relation(1, 0, "CAUSES", float("nan")), "confidence nan"),
    ],
)
def test_relations_to_no_passage_and_of_no_confidence_are_refused(relation: Relation, message: str) -> None:
    with pytest.raises(EngineError, match=message):
        Relations.of([relation]).checked(3)


def test_what_was_written_comes_back(tmp_path: Path) -> None:
    tables().write(tmp_path)
    opened = RelationTables.open(SegmentFolder(tmp_path, 0, 3))
    assert [repr(opened.relations.at(n)) for n in range(3)] == [repr(tables().relations.at(n)) for n in range(3)]
    assert opened.nodes.over(3)[0].tolist() == [0, -1, 1]
    np.testing.assert_array_equal(opened.nodes.over(3)[1], np.array([np.nan, np.nan, 0.4], np.float32))


def test_relations_of_deleted_passages_vanish_and_rows_are_counted_anew(tmp_path: Path) -> None:
    tables().write(tmp_path)
    live = np.array([True, False, True])
    segment = SegmentFolder(tmp_path, 0, 3, live)
    joined = RelationTables.of_segments([segment])
    assert [(joined.relations.at(n).source, joined.relations.at(n).target) for n in range(len(joined.relations))] == [
        (0, 2),
        (2, 0),
    ]
    shrunk = joined.renumbered(0, live)
    assert [(shrunk.relations.at(n).source, shrunk.relations.at(n).target) for n in range(2)] == [(0, 1), (1, 0)]
    assert (shrunk.nodes.rows.tolist(), shrunk.families.tolist(), len(shrunk.centrality)) == ([0, 1], [7, 7], 2)


DAMAGES = {
    "relation_targets.npy": [np.array([9, 0, 0]), np.array([0, 1, 0]), np.array([0, -1, 0]), np.zeros(2, np.int64)],
    "relation_types.npy": [np.full(3, 9, np.uint8), np.zeros(3, np.int64)],
    "relation_confidences.npy": [np.array([0, 0, 2], np.float32), np.array([0, np.nan, 0], np.float32)],
    "relation_spans.npy": [np.full((3, 4), -1, np.int32), np.array([[5, 2, 0, 0]] * 3, np.int32)],
    "node_rows.npy": [np.array([0, 9])],
    "node_new.npy": [np.array([0, 7], np.float32), np.zeros(3, np.float32)],
    "centrality.npy": [np.zeros((2, 3), np.float32), np.full((3, 3), np.nan, np.float32)],
    "families.npy": [np.zeros(2, np.uint64)],
}


@pytest.mark.parametrize(("name", "number"), [(name, number) for name, of in DAMAGES.items() for number in range(len(of))])
def test_damage_is_an_error_that_names_the_file(name: str, number: int, tmp_path: Path) -> None:
    tables().write(tmp_path)
    np.save(tmp_path / name, DAMAGES[name][number])
    with pytest.raises(IndexDamagedError, match=name.replace("targets", "(targets|sources)")):
        RelationTables.open(SegmentFolder(tmp_path, 0, 3))


def test_a_missing_file_is_damage(tmp_path: Path) -> None:
    replace(tables(), told=np.zeros(0, np.uint64)).write(tmp_path)
    (tmp_path / "told.npy").unlink()
    with pytest.raises(IndexDamagedError, match=r"told\.npy"):
        RelationTables.open(SegmentFolder(tmp_path, 0, 3))
