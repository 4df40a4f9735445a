"""Links between passages of which a file says that they name the same entity."""

from __future__ import annotations

from pathlib import Path

import pytest
from retrievers.link_graph.changing import segments_of

from nlp_retrieval import Bm25Retriever, LinkGraphRetriever, Searcher
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.retrievers.link_graph.graph import open_graph
from nlp_retrieval.systems.hipporag.shared_knowledge import SharedKnowledge
from systems.hipporag.stored_knowledge import openie_file, passage

ITEMS = [
    passage("a", ("Erik Hort", "was born in", "Montebello")),
    passage("b", ("montebello", "is part of", "Rockland County")),
    passage("c", ("Oslo", "borders", "Rockland County")),
    passage("d", ("Oslo", "lies near", "ERIK HORT"), ("Oslo", "lies near", "Montebello")),
]


def searcher(knowledge: str) -> Searcher:
    return Searcher([LinkGraphRetriever([Bm25Retriever()], links=[SharedKnowledge(knowledge)])])


def links_of(path: Path) -> dict[tuple[str, str], float]:
    ids = open_generation(path).items.ids()
    (links,) = open_graph(segments_of(path)).links().values()
    columns = (links.sources.tolist(), links.targets.tolist(), links.weights.tolist())
    return {(ids[one], ids[other]): weight for one, other, weight in zip(*columns, strict=True)}


EXPECTED = {("a", "b"): 1 / 3, ("a", "d"): 1 / 2 + 1 / 3, ("b", "c"): 1 / 2, ("b", "d"): 1 / 3, ("c", "d"): 1 / 2}


def test_a_shared_entity_links_by_one_over_the_passages_that_name_it(tmp_path: Path) -> None:
    searcher(openie_file(tmp_path / "openie.json", ITEMS)).index(ITEMS, tmp_path / "index")
    assert links_of(tmp_path / "index") == pytest.approx(EXPECTED)


def test_what_joins_has_the_links_of_an_index_built_at_once(tmp_path: Path) -> None:
    index = searcher(openie_file(tmp_path / "openie.json", ITEMS))
    index.index(ITEMS[:3], tmp_path / "index")
    index.add(ITEMS[3:], auto_compact=False)
    touching = {pair: weight for pair, weight in EXPECTED.items() if "d" in pair}
    assert {pair: weight for pair, weight in links_of(tmp_path / "index").items() if "d" in pair} == pytest.approx(touching)
    index.compact()
    assert links_of(tmp_path / "index") == pytest.approx(EXPECTED)
