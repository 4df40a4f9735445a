"""Hyperlinks: what the metadata of a passage names."""

from __future__ import annotations

import pytest

from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.retrievers.link_graph.extractors import LinkSentence
from nlp_retrieval.retrievers.link_graph.mentions import Hyperlinks
from retrievers.link_graph.corpora import links_of, passage


def found(*items: SearchableItem, max_shared: int = 100) -> dict[tuple[str, str], float]:
    return links_of(Hyperlinks(max_shared=max_shared), list(items))


def test_a_name_is_an_id_or_a_title_alone_or_in_a_list() -> None:
    items = [
        passage("Heat", "", "a", links=["b", "Al Pacino", "b", "Al Pacino"]),
        passage("X", "", "b", links="a"),
        passage("Al Pacino", "", "c"),
    ]
    assert found(*items) == {("a", "b"): 1.0, ("a", "c"): 1.0, ("b", "a"): 1.0}


def test_an_id_wins_over_a_title_and_a_title_as_it_stands_over_one_in_another_case() -> None:
    items = [
        passage("Source", "", "s", links=["Heat", "Dust", "dust"]),
        passage("Other", "", "Heat"),
        passage("Heat", "", "x"),
        passage("Dust", "", "d1"),
        passage("DUST", "", "d2"),
    ]
    assert found(*items) == {("s", "Heat"): 1.0, ("s", "d1"): 1.0, ("s", "d2"): 0.5}


def test_titles_are_compared_without_case_accents_and_punctuation_but_with_their_qualifier() -> None:
    items = [
        passage("s", links=["Heat, 1995 film", "He\u0301at (1995 film)"]),
        passage("Heat (1986 film)"),
        passage("Heat (1995 film)"),
        passage("Heat"),
    ]
    assert found(*items) == {("s", "Heat (1995 film)"): 1.0}


def test_a_title_that_several_carry_is_shared_out_and_one_that_may_mean_the_passage_itself_is_not() -> None:
    items = [passage("s", "", links=["Heat", "S"]), passage("Heat", "", "a", links="Heat"), passage("Heat", "", "b", links="b")]
    assert found(*items) == {("s", "a"): 0.5, ("s", "b"): 0.5}


def test_names_that_no_item_has_are_counted_and_the_first_is_shown() -> None:
    items = [passage("a", links=["b", "Nowhere", ""]), passage("b", links="Nobody"), passage("c", links=["a"])]
    with pytest.warns(RetrievalWarning) as caught:
        assert found(*items) == {("a", "b"): 1.0, ("c", "a"): 1.0}
    (warning,) = caught
    assert "3 of 5 links in the metadata 'links' are left out: item 'a', for example, names 'Nowhere'" in str(warning.message)


def test_a_name_that_too_many_items_carry_links_nothing_and_is_shown() -> None:
    items = [passage("s", links=["Heat", "t"]), passage("t"), *(passage("Heat", "", f"h{n}") for n in range(3))]
    with pytest.warns(
        RetrievalWarning,
        match=r"1 mentions of 1 names .*max_shared=2 passages share each; .* item 'h0' \('Heat'\), shared by 3",
    ):
        assert found(*items, max_shared=2) == {("s", "t"): 1.0}


def test_the_evidence_is_the_sentence_that_names_the_target_if_there_is_one() -> None:
    source = passage("Heat", "A film. It stars Al Pacino. Up is not in it.")
    assert Hyperlinks().evidence(source, passage("Al Pacino (actor)")) == LinkSentence("It stars Al Pacino.", 9, 18)
    assert Hyperlinks().evidence(source, passage("Up (2009 film)")) == LinkSentence("Up is not in it.", 0, 2)
    for other in (passage("Robert De Niro"), passage(None, item_id="x"), passage("!!!"), passage("Heat")):
        assert Hyperlinks().evidence(source, other) is None
