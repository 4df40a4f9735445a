"""The strongest chain of links from where a walk restarts to a node: the single path that carries most of the walk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.graph.store.link_graph import WeightedGraph


@dataclass(frozen=True)
class LinkChain:
    """A path over links.

    Args:
        rows: the nodes, from the restart to the end; at least one.
        strength: the share of walks that restart at the first node and take just this path.
    """

    rows: list[int]
    strength: float


def strongest_chains(
    graph: WeightedGraph, restart_rows: Rows, restart_shares: Scores, targets: Rows, damping: float, longest: int = 4
) -> list[LinkChain | None]:
    """Find the strongest chain to each target, by dynamic programming over the number of links.

    Of equally strong chains the shorter is taken, and of equally long ones that whose last row but one is lower, and so on
    back to the first.

    Args:
        graph: what the walk follows.
        restart_rows: where it restarts, ascending.
        restart_shares: how often, sums to 1.
        targets: nodes to explain.
        damping: probability of following a link.
        longest: at most this many links.

    Returns:
        Per target a chain, or None where none of at most ``longest`` links leads there.
    """
    some = restart_shares > 0
    layers = [_Layer(restart_rows[some], restart_shares[some], np.zeros(0, np.int64))]
    strongest = np.zeros(graph.graph.n_nodes)
    strongest[layers[0].rows] = layers[0].strengths
    for _ in range(longest):
        last = layers[-1]
        owner, neighbours, probabilities = graph.steps(last.rows)
        strengths = last.strengths[owner] * damping * probabilities
        raising = np.flatnonzero(strengths > strongest[neighbours])
        raising = raising[np.lexsort((owner[raising], -strengths[raising], neighbours[raising]))]
        raising = raising[np.diff(neighbours[raising], prepend=-1) > 0]  # of each node its strongest
        layers.append(_Layer(neighbours[raising], strengths[raising], owner[raising]))
        strongest[layers[-1].rows] = layers[-1].strengths
    return [_traced(layers, target) for target in targets.tolist()]


@dataclass(frozen=True)
class _Layer:
    """The nodes to which a chain of so many links is stronger than every shorter one.

    Args:
        rows: ascending.
        strengths: of those chains.
        before: where in the layer before this one each chain comes from; empty in the first layer.
    """

    rows: Rows
    strengths: Scores
    before: Rows


def _traced(layers: list[_Layer], target: int) -> LinkChain | None:
    """The chain of the last layer that holds a node, which is its strongest."""
    for number in range(len(layers) - 1, -1, -1):
        place = int(np.searchsorted(layers[number].rows, target))
        if place < len(layers[number].rows) and layers[number].rows[place] == target:
            strength, rows = float(layers[number].strengths[place]), [target]
            for later in range(number, 0, -1):
                place = int(layers[later].before[place])
                rows.append(int(layers[later - 1].rows[place]))
            return LinkChain(rows[::-1], strength)
    return None
