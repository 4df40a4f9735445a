"""What the graph found is kept in the table, and comes back as it was found."""

from __future__ import annotations

import numpy as np
import pytest

from nlp_retrieval import SearchableItem
from nlp_retrieval.errors import ItemError
from nlp_retrieval.systems.policy.chunk_tables.rows import ChunkRelation
from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTables
from nlp_retrieval.systems.policy.hop.relation import Relation, Relations
from nlp_retrieval.systems.policy.hop.relation_files import chunk_relations, graph_relations

IDS = ["c", "a", "b", "d"]
FOUND = Relations.of(
    [
        Relation(0, 1, "SUPPORTS", 0.5, (3, 9), (0, 4)),
        Relation(1, 0, "CONTRADICTS", 0.25),
        Relation(2, 3, "TEMPORAL_FOLLOWS", 1.0, (1, 2), (5, 6), 0.75, 3),
    ]
)


def test_relations_that_were_found_come_back_from_the_table(tables: ChunkTables) -> None:
    tables.write([SearchableItem(item_id=item_id, content=item_id) for item_id in sorted(IDS)])
    assert tables.write_relations(chunk_relations(FOUND, IDS, "test")) == 3
    read = list(tables.relations())
    assert {one.metadata["method"] for one in read} == {"test"}
    again = graph_relations(read, {item_id: row for row, item_id in enumerate(IDS)}).checked(len(IDS))
    for name in Relations.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(again, name), getattr(FOUND, name))


def test_evidence_of_others_is_no_span() -> None:
    told = [{"evidence": "words"}, {"evidence": {"source": ["a", 1], "target": [1, 2, 3], "carried": "x"}}, {}]
    relations = [ChunkRelation("a", IDS[number], "CAUSES", 0.5, about) for number, about in zip((0, 2, 3), told, strict=True)]
    made = graph_relations(relations, {item_id: row for row, item_id in enumerate(IDS)})
    assert made.spans.tolist() == [[0, 0, 0, 0]] * 3
    assert np.isnan(made.carried).all()


def test_an_item_that_is_not_here_is_named() -> None:
    with pytest.raises(ItemError, match=r"2 ends of relations are missing items \(the first: 'x', 'y'\)"):
        graph_relations([ChunkRelation("x", "y", "CAUSES", 0.5)], {"a": 0})
