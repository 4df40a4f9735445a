"""Personalized PageRank: compared with networkx, the local way with the exact one, and the kernel with numpy."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from soaking import mostly_soaked

from nlp_retrieval.retrievers.link_graph.walk import Restarts, local_pagerank, pagerank
from retrievers.link_graph.corpora import graph_of

BACKENDS = ["numpy", "numba"]
WEIGHTS = st.sampled_from([0.0, 0.25, 1.0, 3.0])
DAMPINGS = st.sampled_from([0.0, 0.3, 0.5, 0.85])


def built(n_nodes, kinds, ways):
    """A weighted graph of (source, target, weight) by kind."""
    return graph_of(n_nodes, kinds).weighted(ways)


def restarts_of(query):
    """Restarts of a list of (row, weight)."""
    return Restarts(np.array([row for row, _ in query], np.int64), np.array([weight for _, weight in query], float))


def by_networkx(n_nodes, kinds, ways, restart, damping):
    """One query's ranks, from the links as they were given."""
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(n_nodes))
    for kind, triples in kinds.items():
        for source, target, weight in triples:
            for begin, end, way in ((source, target, ways[kind][0]), (target, source, ways[kind][1])):
                if source != target and way > 0:
                    before = graph.get_edge_data(begin, end, {"weight": 0.0})["weight"]
                    graph.add_edge(begin, end, weight=before + weight * way)
    shares = dict.fromkeys(range(n_nodes), 0.0)
    for row, weight in restart:
        shares[row] += weight
    if not any(shares.values()):
        return [0.0] * n_nodes
    ranks = networkx.pagerank(graph, alpha=damping, personalization=shares, weight="weight", tol=1e-13, max_iter=1000)
    return [ranks[node] for node in range(n_nodes)]


def dense(found, n_nodes):
    ranks = np.zeros(n_nodes)
    ranks[found.rows] = found.ranks
    return ranks


@st.composite
def cases(draw):
    """Nodes, links and ways by kind, and a query; few links, so that there are dangling nodes and islands."""
    n_nodes = draw(st.integers(1, 12))
    rows = st.integers(0, n_nodes - 1)
    triples = st.lists(st.tuples(rows, rows, st.sampled_from([0.25, 0.5, 1.0, 3.0])), max_size=20)
    kinds = {kind: draw(triples) for kind in draw(st.sampled_from([["a"], ["a", "b"], ["a", "b", "c"]]))}
    ways = {kind: draw(st.tuples(WEIGHTS, WEIGHTS)) for kind in kinds}
    return n_nodes, kinds, ways, draw(st.lists(st.tuples(rows, WEIGHTS), max_size=4))


@given(case=cases(), damping=DAMPINGS)
def test_ranks_are_those_of_networkx_within_the_tolerance(case, damping):
    n_nodes, kinds, ways, query = case
    ranks = pagerank(built(n_nodes, kinds, ways), restarts_of(query), damping)
    assert np.abs(ranks - by_networkx(n_nodes, kinds, ways, query, damping)).sum() <= 1e-6 + 1e-9


@pytest.mark.parametrize("backend", mostly_soaked(BACKENDS))
@given(case=cases(), damping=DAMPINGS, epsilon=st.sampled_from([0.3, 0.03, 1e-3, 1e-6]))
def test_local_ranks_are_never_too_high_and_as_far_from_the_exact_ones_as_they_say(backend, case, damping, epsilon):
    n_nodes, kinds, ways, query = case
    graph, restarts = built(n_nodes, kinds, ways), restarts_of(query)
    exact = pagerank(graph, restarts, damping, tolerance=1e-12)
    found = local_pagerank(graph, restarts, damping, epsilon, backend)
    ranks = dense(found, n_nodes)
    assert (ranks <= exact + 1e-6).all()
    assert np.abs(ranks - exact).sum() == pytest.approx(found.error, abs=2e-6)
    assert (found.ranks > 0).all()
    assert (np.diff(found.rows) > 0).all()


@given(case=cases(), damping=DAMPINGS, epsilon=st.sampled_from([0.03, 1e-4]))
def test_the_kernel_gives_the_same_bits_as_numpy_for_local_ranks(case, damping, epsilon):
    n_nodes, kinds, ways, query = case
    graph, restarts = built(n_nodes, kinds, ways), restarts_of(query)
    both = [local_pagerank(graph, restarts, damping, epsilon, backend) for backend in ("numpy", "numba")]
    assert (both[0].rows.tolist(), both[0].ranks.tolist()) == (both[1].rows.tolist(), both[1].ranks.tolist())
    assert both[0][2:] == both[1][2:]
