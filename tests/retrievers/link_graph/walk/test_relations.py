"""A link that says what a query asks for counts more than other links of the passage that the query names."""

from __future__ import annotations

import pytest

from nlp_retrieval import SearchableItem
from nlp_retrieval.retrievers.link_graph.relations import asked_relations, relation_evidence
from nlp_retrieval.retrievers.link_graph.tables import stem_of
from nlp_retrieval.text.surfaces import Surface


def test_a_word_that_asks_is_answered_by_how_sentences_say_it() -> None:
    for query, named, said in (
        ("Who directed Heat?", "Heat", "directed"),
        ("When was the director of Heat born?", "Heat", "directed"),
        ("Where did Ada's husband die?", "Ada", "married"),  # in no list
    ):
        start = query.index(named)
        asked = asked_relations(query, [(start, start + len(named))])
        assert stem_of(said) in asked
        assert stem_of(named.lower()) not in asked


def test_the_relation_counts_by_its_distance_within_the_sentence() -> None:
    for content, expected in {
        "A film directed by Ada Mill.": 0.9,
        "Directed and written by Ada Mill.": 0.7,
        "Ada Mill directed it.": 0.5,
        "It was directed at night. Ada Mill stars.": 0.0,
        "directed " + "x " * 9 + "Ada Mill": 0.0,
    }.items():
        item = SearchableItem(item_id="1", content=content, metadata={"title": "Heat"})
        found = relation_evidence(frozenset({"direct"}), {0: item}, [(0, 1, [Surface(("ada", "mill"))])], 2)
        assert found.tolist() == pytest.approx([0.0, expected])
