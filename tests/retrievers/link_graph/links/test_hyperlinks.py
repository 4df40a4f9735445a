"""Hyperlinks: what the metadata of a passage names."""

from __future__ import annotations

from nlp_retrieval.core.models import SearchableItem
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
