"""What speaks for a candidate is what loops over sets say."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.retrievers.link_graph.graph import LinkGraph, WeightedGraph
from nlp_retrieval.retrievers.link_graph.walk import coverage_evidence, links_among
from retrievers.link_graph import corpora


def graph_of(n_nodes: int, kinds: dict[str, list[tuple[int, int]]]) -> LinkGraph:
    return corpora.graph_of(n_nodes, {kind: [(*pair, 1.0) for pair in pairs] for kind, pairs in kinds.items()})


def open_ways(n_nodes: int, kinds: dict[str, list[tuple[int, int]]]) -> WeightedGraph:
    return graph_of(n_nodes, kinds).weighted(dict.fromkeys(kinds, (1.0, 1.0)))


@st.composite
def linked_candidates(draw: st.DrawFn) -> tuple[int, dict[str, list[tuple[int, int]]], list[int]]:
    n_nodes = draw(st.integers(1, 9))
    rows = st.integers(0, n_nodes - 1)
    kinds = {kind: draw(st.lists(st.tuples(rows, rows), max_size=15)) for kind in draw(st.sets(st.sampled_from("ab")))}
    return n_nodes, kinds, draw(st.lists(rows, unique=True))


def plain_pairs(kinds: dict[str, list[tuple[int, int]]], candidates: list[int]) -> set[tuple[int, int]]:
    linked = {pair for pairs in kinds.values() for one, other in pairs for pair in ((one, other), (other, one)) if one != other}
    places = {row: place for place, row in enumerate(candidates)}
    return {(places[one], places[other]) for one, other in linked if one in places and other in places}


def pointing(kinds: dict[str, list[tuple[int, int]]], candidates: list[int]) -> set[tuple[int, int]]:
    """The pairs that a link of the directed kind, a, leads along."""
    places = {row: place for place, row in enumerate(candidates)}
    ends = {(one, other) for one, other in kinds.get("a", []) if one != other}
    return {(places[one], places[other]) for one, other in ends if one in places and other in places}


@given(case=linked_candidates())
def test_linked_candidates_are_those_of_a_set_in_both_orders_and_once(
    case: tuple[int, dict[str, list[tuple[int, int]]], list[int]],
) -> None:
    n_nodes, kinds, candidates = case
    pairs = links_among(open_ways(n_nodes, kinds), np.array(candidates, np.int64), {"b"})
    found = list(zip(pairs.ones.tolist(), pairs.others.tolist(), strict=True))
    assert found == sorted(plain_pairs(kinds, candidates))
    assert set(itertools.compress(found, pairs.points)) == pointing(kinds, candidates)
    assert {(other, one) for one, other in itertools.compress(found, pairs.pointed)} == pointing(kinds, candidates)


@given(case=linked_candidates(), data=st.data())
def test_coverage_chains_and_complement_are_those_of_sets(
    case: tuple[int, dict[str, list[tuple[int, int]]], list[int]], data: st.DataObject
) -> None:
    n_nodes, kinds, candidates = case
    information = data.draw(st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5]), max_size=5))
    terms = [data.draw(st.sets(st.integers(0, len(information) - 1))) if information else set() for _ in candidates]
    covered = np.array([[term in has for term in range(len(information))] for has in terms], bool)
    covered = covered.reshape(len(candidates), len(information))
    first = data.draw(st.integers(0, len(candidates) - 1)) if candidates else 0
    pairs = links_among(open_ways(n_nodes, kinds), np.array(candidates, np.int64), {"b"})
    found = coverage_evidence(covered, np.array(information, np.float64), pairs, first)

    def share(has: set[int]) -> float:
        return sum(information[term] for term in has)

    linked: dict[int, list[int]] = {place: [] for place in range(max(1, len(candidates)))}
    for one, other in plain_pairs(kinds, candidates):
        linked[one].append(other)
    assert found["coverage"].tolist() == pytest.approx([share(has) for has in terms])
    assert found["chain"].tolist() == pytest.approx(
        [max(share(has | terms[other]) for other in [place, *linked[place]]) for place, has in enumerate(terms)]
    )
    mentioning = {place for pair in pointing(kinds, candidates) for place in pair}
    assert pairs.apart(len(candidates)) == pytest.approx(1 - len(mentioning) / max(len(candidates), 1))
    others = len(mentioning) / max(len(candidates), 1)
    assert found["complement"].tolist() == pytest.approx(
        [share(has - terms[first]) * (1.0 if place in linked[first] else others) for place, has in enumerate(terms)]
    )
    for kind, ends in (("chain_along", (0, 1)), ("chain_against", (1, 0))):
        expected = [share(has) for has in terms]
        for pair in pointing(kinds, candidates):
            mine, theirs = (pair[end] for end in ends)
            expected[mine] = max(expected[mine], share(terms[mine] | terms[theirs]))
        assert found[kind].tolist() == pytest.approx(expected)
