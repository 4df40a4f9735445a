"""SharedEntities: passages that name the same entity."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.retrievers.link_graph.extractors import LinkSentence, SharedEntities
from nlp_retrieval.text.mentions import mentions_by_rules
from retrievers.link_graph.corpora import approximately, links_of, passage


def test_passages_that_share_an_entity_are_linked_once_from_the_lower_row_to_the_higher() -> None:
    items = [
        passage(None, "Born in Paris to Al Pacino.", "c"),
        passage("Al Pacino", "an actor", "b"),
        passage(None, "a film with Al Pacino, shot in Paris", "a"),
        passage(None, "nothing", "d"),
    ]
    assert links_of(SharedEntities(), items) == approximately({("c", "b"): 1 / 3, ("c", "a"): 1 / 3 + 1 / 2, ("b", "a"): 1 / 3})


WORDS = st.lists(st.sampled_from(["Paris", "Al Pacino", "of", "and", ".", '"', "London", "the", "É", "\n"]), max_size=8).map(
    " ".join
)


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=7), st.integers(2, 6))
def test_weights_are_those_of_counting_by_hand(rows: list[tuple[str, str]], most: int) -> None:
    items = [passage(title, content, str(row)) for row, (title, content) in enumerate(rows)]
    entities = [mentions_by_rules(item.text).entities for item in items]
    expected: dict[tuple[str, str], float] = {}
    for entity in frozenset().union(*entities):
        naming = [item.item_id for item, found in zip(items, entities, strict=True) if entity in found]
        for pair in combinations(naming, 2) if len(naming) <= most else ():
            expected[pair] = expected.get(pair, 0.0) + 1 / len(naming)
    assert links_of(SharedEntities(max_passages=most), items) == approximately(expected)


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import spacy

    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "WORK", "pattern": "a clockwork orange"}])
    folder = tmp_path_factory.mktemp("spacy") / "pipeline"
    nlp.to_disk(folder)
    return folder


def test_a_spacy_pipeline_finds_the_entities_where_one_is_given(pipeline: Path) -> None:
    extractor = SharedEntities(mentions=str(pipeline))
    items = [passage(None, "Paris saw a clockwork orange.", "a"), passage(None, "a clockwork orange", "b"), passage("Paris")]
    assert links_of(extractor, items) == {("a", "b"): 0.5}
    assert extractor.evidence(items[0], items[1]) == LinkSentence("Paris saw a clockwork orange.", 10, 28)
    assert extractor.evidence(items[0], items[2]) is None
