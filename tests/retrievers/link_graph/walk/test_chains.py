"""The strongest chain is that of a search through all paths, and its strength the product along it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.retrievers.link_graph.graph import WeightedGraph
from nlp_retrieval.retrievers.link_graph.walk import LinkChain, Restarts, strongest_chains
from retrievers.link_graph import corpora

Ways = dict[str, tuple[float, float]]


def graph_of(n_nodes: int, kinds: dict[str, list[tuple[int, int, float]]], ways: Ways | None = None) -> WeightedGraph:
    """A graph of (source, target, weight) by kind; walked along at 1 and against at 0 where nothing else is said."""
    return corpora.graph_of(n_nodes, kinds).weighted(ways or dict.fromkeys(kinds, (1.0, 0.0)))


def chains(graph: WeightedGraph, restarts: dict[int, float], damping: float = 0.5, longest: int = 4) -> list[LinkChain | None]:
    """The chain to every node."""
    rows = sorted(restarts)
    shares = np.array([restarts[row] for row in rows], np.float64)
    targets = np.arange(graph.graph.n_nodes)
    return strongest_chains(graph, Restarts(np.array(rows, np.int64), shares), targets, damping, longest)


def all_paths(
    graph: WeightedGraph, restarts: dict[int, float], damping: float, longest: int
) -> Iterator[tuple[float, list[int]]]:
    """Every walk of at most so many links, with its strength."""
    steps: list[dict[int, float]] = []
    for node in range(graph.graph.n_nodes):
        _, neighbours, probabilities = graph.steps(np.array([node]))
        best: dict[int, float] = {}  # links of several kinds between two nodes are several ways
        for neighbour, probability in zip(neighbours.tolist(), probabilities.tolist(), strict=True):
            best[neighbour] = max(best.get(neighbour, 0.0), probability)
        steps.append(best)
    paths = [(share, [row]) for row, share in restarts.items() if share > 0]
    for length in range(longest + 1):
        yield from paths
        if length < longest:
            paths = [
                (strength * damping * probability, [*path, neighbour])
                for strength, path in paths
                for neighbour, probability in steps[path[-1]].items()
                if damping > 0
            ]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[WeightedGraph, dict[int, float]]:
    n_nodes = draw(st.integers(1, 7))
    rows = st.integers(0, n_nodes - 1)
    triples = st.lists(st.tuples(rows, rows, st.sampled_from([0.01, 0.5, 1.0, 3.0])), max_size=12)
    kinds = {kind: draw(triples) for kind in ("titles", "entities")}
    weights = st.sampled_from([0.0, 0.1, 1.0])
    graph = graph_of(n_nodes, kinds, {kind: (draw(weights), draw(weights)) for kind in kinds})
    restarts = draw(st.dictionaries(rows, st.sampled_from([0.0, 0.001, 0.3, 0.6]), min_size=1, max_size=3))
    return graph, restarts


@given(case=graphs(), damping=st.sampled_from([0.0, 0.3, 0.9]), longest=st.integers(0, 4))
def test_the_strongest_chain_is_that_of_all_paths(
    case: tuple[WeightedGraph, dict[int, float]], damping: float, longest: int
) -> None:
    graph, restarts = case
    paths: dict[int, list[tuple[float, list[int]]]] = {}
    for strength, path in all_paths(graph, restarts, damping, longest):
        paths.setdefault(path[-1], []).append((strength, path))
    for node, chain in enumerate(chains(graph, restarts, damping, longest)):
        if chain is None:
            assert node not in paths
            continue
        best = max(strength for strength, _ in paths[node])
        assert chain.strength == pytest.approx(best, rel=1e-12)
        assert chain.rows in [path for strength, path in paths[node] if strength == pytest.approx(best, rel=1e-12)]
