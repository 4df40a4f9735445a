"""The strongest chain of links from where a walk restarts to a node: the single path that carries most of the walk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.graph.link_graph import WeightedGraph


@dataclass(frozen=True)
class Chain:
    """A path over links.

    Args:
        rows: the nodes, from the restart to the end; at least one.
        strength: the share of walks that restart at the first node and take just this path.
    """

    rows: list[int]
    strength: float


def strongest_chains(
    graph: WeightedGraph, restart_rows: Rows, restart_shares: Scores, targets: Rows, damping: float, longest: int = 4
) -> list[Chain | None]:
    """Find the strongest chain to each target, by dynamic programming over the number of links.

    Of equally strong chains the shorter is taken, and then the one over lower rows.

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
    best: dict[int, tuple[float, int]] = {
        row: (share, -1) for row, share in zip(restart_rows.tolist(), restart_shares.tolist(), strict=True) if share > 0
    }
    frontier = np.array(sorted(best), np.int64)
    for _ in range(longest):
        if len(frontier) == 0 or damping == 0:
            break
        owner, neighbours, probabilities = graph.steps(frontier)
        strengths = np.array([best[row][0] for row in frontier.tolist()])[owner] * damping * probabilities
        order = np.lexsort((frontier[owner], -strengths, neighbours))
        neighbours, owner, strengths = neighbours[order], owner[order], strengths[order]
        first = np.flatnonzero(np.diff(neighbours, prepend=-1))
        raised = []
        for row, source, strength in zip(
            neighbours[first].tolist(), frontier[owner[first]].tolist(), strengths[first].tolist(), strict=True
        ):
            if strength > best.get(row, (0.0, -1))[0]:
                raised.append((row, strength, source))
        for row, strength, source in raised:
            best[row] = (strength, source)
        frontier = np.array([row for row, _, _ in raised], np.int64)
    return [_traced(best, target) for target in targets.tolist()]


def _traced(best: dict[int, tuple[float, int]], target: int) -> Chain | None:
    if target not in best:
        return None
    rows = [target]
    while best[rows[-1]][1] >= 0:
        rows.append(best[rows[-1]][1])
    return Chain(rows[::-1], best[target][0])
