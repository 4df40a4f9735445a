"""The strongest chain of links from the restarts of a walk to a node: the single path that most walks take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.retrievers.link_graph.store.link_graph import WeightedGraph


@dataclass(frozen=True)
class LinkChain:
    """A path over links.

    Args:
        rows: the nodes, from the restart to the end; at least one.
        strength: the share of walks that restart at the first node and take exactly this path.
    """

    rows: list[int]
    strength: float


def strongest_chains(
    graph: WeightedGraph, restart_rows: Rows, restart_shares: Scores, targets: Rows, damping: float, longest: int = 4
) -> list[LinkChain | None]:
    """Find the strongest chain to each target, by dynamic programming over the number of links.

    Of equally strong chains the shorter wins; of equally long ones the one with the lower last row but one, and so on back to
    the first.

    Args:
        graph: the links that the walk follows.
        restart_rows: the nodes where it restarts, ascending.
        restart_shares: share of the restarts at each; they sum to 1.
        targets: nodes to explain.
        damping: probability of following a link.
        longest: the most links that a chain may have.

    Returns:
        Per target a chain, or None if none of at most ``longest`` links reaches it.
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
        raising = raising[np.diff(neighbours[raising], prepend=-1) > 0]  # the strongest per node
        layers.append(_Layer(neighbours[raising], strengths[raising], owner[raising]))
        strongest[layers[-1].rows] = layers[-1].strengths
    return [_traced(layers, target) for target in targets.tolist()]


@dataclass(frozen=True)
class _Layer:
    """The nodes to which a chain of this layer's length is stronger than every shorter one.

    Args:
        rows: ascending.
        strengths: those of the chains.
        before: position in the previous layer from which each chain comes; empty in the first layer.
    """

    rows: Rows
    strengths: Scores
    before: Rows


def _traced(layers: list[_Layer], target: int) -> LinkChain | None:
    """The chain from the last layer that contains the target, which is its strongest."""
    for number in range(len(layers) - 1, -1, -1):
        position = int(np.searchsorted(layers[number].rows, target))
        if position < len(layers[number].rows) and layers[number].rows[position] == target:
            strength, rows = float(layers[number].strengths[position]), [target]
            for later in range(number, 0, -1):
                position = int(layers[later].before[position])
                rows.append(int(layers[later - 1].rows[position]))
            return LinkChain(rows[::-1], strength)
    return None
