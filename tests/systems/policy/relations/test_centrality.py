"""Centrality against networkx."""

from __future__ import annotations

import networkx
import numpy as np
import pytest

from nlp_retrieval.systems.policy.hop import graph as room
from nlp_retrieval.systems.policy.hop.graph import NODE_CLASSES, betweenness_of, centrality_of, classes_of
from nlp_retrieval.systems.policy.hop.relation import Relation, Relations

N_ROWS = 40


def drawn(seed: int, kinds: tuple[str, ...] = ("FOLLOWS", "SUPPORTS", "CAUSES")) -> Relations:
    draw = np.random.default_rng(seed)
    ends = draw.integers(0, N_ROWS - 5, (70, 2))  # the last rows have none
    return Relations.of(
        [
            Relation(int(one), int(other), kinds[number % len(kinds)], round(float(draw.random()) * 0.9 + 0.1, 3))
            for number, (one, other) in enumerate(ends.tolist())
            if one != other
        ]
    )


@pytest.mark.parametrize("seed", range(4))
def test_each_measure_is_that_of_networkx(seed: int) -> None:
    relations = drawn(seed)
    directed = networkx.DiGraph()
    for number in range(len(relations)):
        one = relations.at(number)
        pairs = [(one.source, one.target), (one.target, one.source)]
        for source, target in pairs[: 2 if one.type == "SUPPORTS" else 1]:
            before = directed.get_edge_data(source, target, {"weight": 0.0})["weight"]
            directed.add_edge(source, target, weight=before + one.confidence)
    graph = directed.to_undirected()
    graph.add_edges_from((target, source) for source, target in directed.edges)
    found = centrality_of(relations, N_ROWS)
    expected = (
        dict(graph.degree()),
        networkx.pagerank(directed, 0.85, tol=1e-12, max_iter=1000),
        networkx.betweenness_centrality(graph, normalized=False),
    )
    for column, values in zip(found.T, expected, strict=True):
        largest = max(values.values())
        assert {row: float(column[row]) for row in values} == pytest.approx(
            {row: v / largest for row, v in values.items()}, abs=2e-5
        )
        assert not column[[row for row in range(N_ROWS) if row not in values]].any()


def test_betweenness_by_a_sample_is_near_the_exact_one_and_the_same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    path = np.arange(N_ROWS - 1)
    offsets, neighbours = room._undirected(path, path + 1, N_ROWS)
    exact = betweenness_of(offsets, neighbours)
    monkeypatch.setattr(room, "_EXACT_UP_TO", 10)
    monkeypatch.setattr(room, "_SAMPLE", 20)
    sampled = betweenness_of(offsets, neighbours)
    assert sampled.tolist() == betweenness_of(offsets, neighbours).tolist() != exact.tolist()
    assert np.corrcoef(exact, sampled)[0, 1] > 0.9


def test_classes_follow_from_what_is_high() -> None:
    values = np.zeros((42, 3), np.float32)
    values[:40] = 0.1
    values[0] = (0.9, 0.1, 0.9)
    values[1] = (0.1, 0.9, 0.1)
    values[2] = (0.1, 0.1, 0.9)
    values[3] = (0.9, 0.1, 0.1)
    names = [NODE_CLASSES[number] for number in classes_of(values)]
    assert names[:4] == ["CORE_HUB", "AUTHORITY", "CONNECTOR", "PERIPHERAL"]
    assert set(names[4:]) == {"PERIPHERAL"}


def test_without_relations_nothing_is_central() -> None:
    found = centrality_of(Relations.of([]), 3)
    assert found.tolist() == [[0, 0, 0]] * 3
    assert classes_of(found).tolist() == [0, 0, 0]
