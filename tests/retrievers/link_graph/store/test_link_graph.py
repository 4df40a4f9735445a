"""The graph of links: what is written comes back, merged and both ways, compared with dicts and loops."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.retrievers.link_graph.graph import LinkGraph, write_link_graph
from retrievers.link_graph.corpora import graph_of, links_at, links_from

FILES = ["offsets.npy", "neighbours.npy", "weights.npy", "types.npy", "sums.npy"]


@st.composite
def graphs(draw):
    """How many nodes, and the links by kind, with self links and repeated ones."""
    n_nodes = draw(st.integers(1, 9))
    rows = st.integers(0, n_nodes - 1)
    triples = st.lists(st.tuples(rows, rows, st.sampled_from([0.25, 0.5, 1.0, 3.0])), max_size=25)
    kinds = draw(st.lists(st.sampled_from(["titles", "entities", "ключ", ""]), unique=True, max_size=3))
    return n_nodes, {kind: draw(triples) for kind in kinds}


def merged(triples):
    sums = defaultdict(float)
    for source, target, weight in triples:
        if source != target:
            sums[source, target] += weight
    return sums


@given(case=graphs())
def test_every_link_stands_at_both_ends_with_its_summed_weight_and_no_self_link_does(case):
    n_nodes, kinds = case
    graph = graph_of(n_nodes, kinds)
    assert graph.n_nodes == n_nodes
    assert graph.n_links == {kind: len(merged(triples)) for kind, triples in kinds.items()}
    wanted = defaultdict(list)
    for kind, triples in kinds.items():
        for along in (True, False):
            for (source, target), weight in sorted(merged(triples).items()):
                wanted[source if along else target].append((target if along else source, kind, along, weight))
    for node in range(n_nodes):
        order = sorted(wanted[node], key=lambda link: (list(kinds).index(link[1]), not link[2], link[0]))
        assert links_at(graph, node) == order


@given(case=graphs(), weights=st.lists(st.sampled_from([0.0, 0.5, 1.0, 7.0]), min_size=6, max_size=6))
def test_steps_are_the_weights_of_the_open_ways_divided_by_their_sum(case, weights):
    n_nodes, kinds = case
    graph = graph_of(n_nodes, kinds)
    ways = {kind: (weights[2 * place], weights[2 * place + 1]) for place, kind in enumerate(kinds)}
    nodes = np.array([*range(n_nodes), 0])
    steps = [column.tolist() for column in graph.weighted(ways).steps(nodes)]
    found = defaultdict(list)
    for owner, neighbour, probability in zip(*steps, strict=True):
        found[owner].append((neighbour, probability))
    for place, node in enumerate(nodes.tolist()):
        open_ways = [
            (neighbour, weight * ways[kind][not along])
            for neighbour, kind, along, weight in links_at(graph, node)
            if ways[kind][not along] > 0
        ]
        total = sum(weight for _, weight in open_ways)
        assert [neighbour for neighbour, _ in found[place]] == [neighbour for neighbour, _ in open_ways]
        assert [share for _, share in found[place]] == pytest.approx([weight / total for _, weight in open_ways], rel=1e-6)


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_found_at_opening(tmp_path, name):
    write_link_graph(tmp_path, 3, {"k": links_from([(0, 1, 1.0), (1, 2, 1.0)])})
    column = np.load(tmp_path / name)
    for damage, pickled in ((column[:-1], False), (column.astype(object), True)):
        np.save(tmp_path / name, damage, allow_pickle=pickled)
        with pytest.raises(IndexDamagedError, match=rf"{name} is .*index again with replace=True"):
            LinkGraph.open(tmp_path)
