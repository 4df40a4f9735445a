"""Why an item was found: chains that begin where a search did, follow links, and show them in sentences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hashed_words import HashedWords
from linked_pages import page, questions, wiki

from nlp_retrieval import Bm25Retriever, FaissRetriever, LinkGraphRetriever, Searcher
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.core.models import Explanation, Step, name_of

BM25 = Bm25Retriever()
ADA = page("d1", "She kept a lighthouse.", "Ada Quill")
TOWER = page("d0", "Built for Ada Quill in 1902.", "Old Tower")
BARE = page("d2", "A ribbon.")


# the words


def test_an_explanation_reads_as_the_chain_with_its_sentences() -> None:
    along = Step(TOWER, ADA, "title_mentions", True, "Built for Ada Quill in 1902.", 10, 19)
    against = Step(ADA, TOWER, "title_mentions", False, "Built for Ada Quill in 1902.", 10, 19)
    bare = Step(ADA, BARE, "same_parent", True)
    assert str(Explanation(BARE, "bm25 ranks it 1 of 3", (along, bare), 0.25)).splitlines() == [
        "Old Tower: bm25 ranks it 1 of 3",
        "Ada Quill: reached from Old Tower by title mentions, because its text says: Built for [Ada Quill] in 1902.",
        "d2: reached from Ada Quill by same parent",
    ]
    assert str(against) == (
        "Old Tower: reached from Ada Quill by title mentions, because this one's text says: Built for [Ada Quill] in 1902."
    )
    assert (name_of(ADA), name_of(BARE)) == ("Ada Quill", "d2")


# through a searcher


def test_chains_begin_at_seeds_or_named_titles_and_follow_links_by_their_probabilities(tmp_path: Path) -> None:
    items = wiki(80, seed=4)
    retriever = LinkGraphRetriever([BM25, FaissRetriever(HashedWords(16))], depth=4, damping=0.6)
    retriever.index(items, tmp_path)
    searcher = Searcher([retriever]).open(tmp_path)
    graph = retriever.open(open_generation(tmp_path))._graph
    row_of = {item.item_id: row for row, item in enumerate(items)}
    n_steps = 0
    for query in questions(items, 12):
        (results,) = searcher.search(query, 30)
        explained = searcher.explain(query, results)
        everything = searcher.search(query, 100)[0]
        restarts = {hit.item.item_id: hit.signals["link_graph.seeds"] for hit in everything}
        assert len(explained) == len(results)
        for hit, told in zip(results, explained, strict=True):
            if not told:  # the walk may go further than a chain that is told
                continue
            one = told["link_graph"]
            assert one.item == hit.item
            assert one.first.title in query or "ranks it" in one.origin
            assert ("names its title" in one.origin) == (one.first.title in query)
            strength = restarts[one.first.item_id]
            assert [step.source for step in one.steps] == [one.first, *(step.target for step in one.steps)][: len(one.steps)]
            assert [*[one.first], *[step.target for step in one.steps]][-1] == hit.item
            for step in one.steps:
                _, neighbours, probabilities = graph.steps(np.array([row_of[step.source.item_id]]))
                there = probabilities[neighbours == row_of[step.target.item_id]]
                assert len(there)
                strength *= 0.6 * there.max()
                shown = step.source if step.along else step.target
                assert step.sentence[step.start : step.end]
                assert step.sentence.strip("…") in shown.text
                n_steps += 1
            assert one.strength == pytest.approx(strength)
    assert n_steps > 30
