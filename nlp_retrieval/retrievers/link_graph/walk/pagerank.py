"""Personalized PageRank: the share of time that a walk which keeps returning to the restart nodes spends at each node.

The walk follows a link with probability ``damping`` and restarts otherwise, or where no link leads on (Page et al. 1999,
The PageRank Citation Ranking; Haveliwala 2002, Topic-Sensitive PageRank). Let x solve ``x = (1 - d) s + d P' x``, in
which mass at dangling nodes is lost; the walk's distribution is x divided by its sum. Both algorithms here approach x
from below, so the mass that is still missing bounds the error.

``pagerank`` passes over the whole graph until the error is within a tolerance; ``local_pagerank`` reads only links near the
restart nodes. Both run in numpy or in a numba kernel, which ``auto`` compiles once numpy has taken as long as compiling would.
For ``local_pagerank`` the two give the same bits, for ``pagerank`` they agree within the tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nlp_retrieval.core.backend import Backend, CompiledLoops
from nlp_retrieval.core.candidates import Rows, Scores, offsets_of
from nlp_retrieval.errors import ConfigurationError, EngineError
from nlp_retrieval.retrievers.link_graph.store.link_graph import WeightedGraph
from nlp_retrieval.retrievers.link_graph.store.workspace import Workspace

_loops = CompiledLoops(compiling_seconds=1.5)


@dataclass(frozen=True)
class Restarts:
    """Restarts of each query's walk.

    Args:
        offsets: ``[queries + 1]``; query i owns ``offsets[i]:offsets[i + 1]`` of the columns.
        rows: nodes; the weights of a node that a query names twice add up.
        weights: finite, at least 0; scaled to sum to 1 per query. A query without any weight above 0 has no walk.
    """

    offsets: Rows
    rows: Rows
    weights: Scores

    def checked(self, n_nodes: int) -> Iterator[tuple[Rows, Scores]]:
        """Yield each query's nodes, ascending, and their shares, which are above 0 and sum to 1.

        Raises:
            EngineError: columns of unequal length, a row out of range, or a weight that is not finite or below 0.
        """
        if len(self.rows) != len(self.weights) or self.offsets[0] != 0 or self.offsets[-1] != len(self.rows):
            lengths = f"{len(self.rows)} rows, {len(self.weights)} weights, offsets up to {self.offsets[-1]}"
            raise EngineError(f"restarts of unequal length: {lengths}")
        wrong = np.flatnonzero(~(np.isfinite(self.weights) & (self.weights >= 0)))
        if len(wrong):
            weight = f"the weight {self.weights[wrong[0]]} at row {self.rows[wrong[0]]}"
            raise EngineError(f"restarts hold {weight}; weights are finite and not below 0")
        if len(self.rows) and (self.rows.min() < 0 or self.rows.max() >= n_nodes):
            raise EngineError(f"restarts name rows {self.rows.min()}..{self.rows.max()}; the graph has 0..{n_nodes - 1}")
        return self._shares()

    def _shares(self) -> Iterator[tuple[Rows, Scores]]:
        for begin, end in pairwise(self.offsets.tolist()):
            weights = self.weights[begin:end].astype(np.float64)
            rows, place = np.unique(self.rows[begin:end], return_inverse=True)
            shares = np.bincount(place, weights / (weights.max(initial=0.0) or 1.0), len(rows))
            some = shares > 0
            yield rows[some], shares[some] / (shares.sum() or 1.0)


@dataclass(frozen=True)
class LocalRanks:
    """Result of forward push per query: the nodes near its restarts, with ranks that are never too high.

    Let x be the solution before it is divided by its sum (see the module), p the part of it that was found, and e a bound on
    the mass that was not followed to its end: ``p <= x`` at every node, and ``sum(x) <= sum(p) + e``. The ranks are
    ``p / (sum(p) + e)``, so no rank exceeds the exact one, ``x / sum(x)``, and 1 minus the sum of the ranks is their L1
    distance to the exact ones. (Divided by ``sum(p)`` alone they would sum to 1, and be up to twice as far away.)

    Args:
        offsets: ``[queries + 1]``; query i owns ``offsets[i]:offsets[i + 1]`` of rows and ranks.
        rows: nodes, ascending per query.
        ranks: above 0; those of a query sum to ``1 - errors``, or to 0 where it has no restarts.
        errors: ``[queries]``, the L1 distance to the exact ranks, including those of nodes that are not listed; up to
            the rounding of the graph's sums, about 1e-7.
        work: ``[queries]``, number of stored links read.
    """

    offsets: Rows
    rows: Rows
    ranks: Scores
    errors: Scores
    work: Rows


def pagerank(
    graph: WeightedGraph, restarts: Restarts, damping: float, tolerance: float = 1e-6, backend: Backend = "auto"
) -> Scores:
    """Compute Personalized PageRank by passes over the whole graph (Gauss-Seidel), one query after another.

    Args:
        graph: the links that the walk follows.
        restarts: of the walk.
        damping: probability of following a link, at least 0 and below 1.
        tolerance: no row of the result is further than this from the exact distribution, in L1.
        backend: ``"auto"``, ``"numpy"`` or ``"numba"``, see the module.

    Returns:
        ``[queries, nodes]``; rows sum to 1, or are 0 for a query without restarts.

    Raises:
        ConfigurationError: a setting out of range.
        EngineError: restarts that cannot be used.
        DependencyError: numba is asked for and not installed.
    """
    _check(damping, "tolerance", tolerance)
    nodes, pulls = graph.graph, graph.pulls
    ranks = np.zeros((len(restarts.offsets) - 1, nodes.n_nodes))
    restart = np.zeros(nodes.n_nodes)
    sweep = _sweep_by_kernel if _loops.chosen(backend) else _sweep_by_numpy
    # a sweep gains at least what a step of power iteration does: the factor damping
    at_most = math.ceil(math.log(tolerance * (1 - damping) / 2) / math.log(damping)) if damping > 0 else 0
    for query, (rows, shares) in enumerate(restarts.checked(nodes.n_nodes)):
        if len(rows) == 0:
            continue
        row = ranks[query]
        restart[rows] = (1 - damping) * shares
        row[:] = restart
        for _ in range(at_most):
            sweep(graph, restart, damping, row)
            missing = 1 - row.sum() - damping / (1 - damping) * row[pulls.dangling].sum()
            if 2 * missing <= tolerance * row.sum():
                break
        np.divide(row, row.sum(), out=row)
        restart[rows] = 0.0
    return ranks


def local_pagerank(
    graph: WeightedGraph, restarts: Restarts, damping: float, epsilon: float = 1e-6, backend: Backend = "auto"
) -> LocalRanks:
    """Compute Personalized PageRank near the restart nodes by forward push, with a bound on its error.

    Mass waits at nodes; a node where more than ``epsilon`` per stored link waits keeps ``1 - damping`` of it and sends the rest
    on, until there is no such node (Andersen, Chung, Lang, FOCS 2006, Local Graph Partitioning using PageRank Vectors). So at
    most ``1 / (epsilon (1 - damping))`` stored links are read per query, whatever the size of the graph. At the end, nodes
    where more than epsilon still waits also keep the share ``1 - damping`` of it.

    Args:
        graph: the links that the walk follows.
        restarts: of the walk.
        damping: probability of following a link, at least 0 and below 1.
        epsilon: above 0; smaller is closer and takes longer.
        backend: ``"auto"``, ``"numpy"`` or ``"numba"``, see the module.

    Raises:
        ConfigurationError: a setting out of range.
        EngineError: restarts that cannot be used.
        DependencyError: numba is asked for and not installed.
    """
    _check(damping, "epsilon", epsilon)
    step = _step_by_kernel if _loops.chosen(backend) else _step_by_numpy
    with graph.workspace() as workspace:
        push = _Push(graph, workspace, damping, epsilon, step)
        ranked = [push.run(rows, shares) for rows, shares in restarts.checked(graph.graph.n_nodes)]
    return LocalRanks(
        offsets_of([len(rows) for rows, _, _, _ in ranked]),
        np.concatenate([np.zeros(0, np.int64), *(rows for rows, _, _, _ in ranked)]),
        np.concatenate([np.zeros(0), *(ranks for _, ranks, _, _ in ranked)]),
        np.array([error for _, _, error, _ in ranked], np.float64),
        np.array([work for _, _, _, work in ranked], np.int64),
    )


class _Push:
    """Forward push for one query after another; between queries only the nodes that were touched are cleared.

    Args:
        graph: the links that the walk follows.
        workspace: memory that it writes to.
        damping: probability of following a link.
        epsilon: the most mass per stored link that may still wait at the end.
        step: does one round.
    """

    def __init__(self, graph: WeightedGraph, workspace: Workspace, damping: float, epsilon: float, step: _Step) -> None:
        self.graph, self.damping, self.epsilon, self._step = graph, damping, epsilon, step
        self.waiting, self._kept, self.noted, self.ready = workspace

    def run(self, rows: Rows, shares: Scores) -> tuple[Rows, Scores, float, int]:
        """Return the nodes found, their ranks, the error and the work of one query."""
        if len(rows) == 0:
            return rows, shares, 0.0, 0
        offsets, damping = self.graph.graph.offsets, self.damping
        self.waiting[rows] = shares
        above, touched = [rows], [rows]
        left, work = 1.0, 0
        nodes = rows[shares > self.epsilon * np.maximum(offsets[rows + 1] - offsets[rows], 1)]
        while damping > 0 and len(nodes):
            mass = self.waiting[nodes]
            self.waiting[nodes] = 0.0
            self._kept[nodes] += (1 - damping) * mass
            carried = self.graph.per_weight(nodes, damping * mass)
            left -= float((1 - damping) * mass.sum() + damping * mass[carried == 0].sum())
            work += int((offsets[nodes + 1] - offsets[nodes]).sum())
            raised, reached, nodes = self._step(self, nodes, carried)
            above.append(raised)
            touched.append(reached)
        listed = np.sort(np.concatenate(above))  # several times faster than np.unique
        listed = listed[np.diff(listed, prepend=-1) > 0]
        late = (1 - damping) * self.waiting[listed]
        kept = self._kept[listed] + late
        missing = max(left - float(late.sum()), 0.0)
        reach = float(kept.sum()) + missing
        for nodes in touched:
            self.waiting[nodes] = 0.0
        self._kept[listed] = 0.0
        return listed, kept / reach, missing / reach, work


_Step = Callable[[_Push, Rows, Scores], tuple[Rows, Rows, Rows]]
"""Lets mass leave some nodes; returns the nodes that now have more than epsilon, those reached, and those to push next."""


def _step_by_numpy(push: _Push, nodes: Rows, carried: Scores) -> tuple[Rows, Rows, Rows]:
    with _loops.in_numpy():
        reached, received = push.graph.spread(nodes, carried)
        np.add.at(push.waiting, reached, received)
        above = reached[push.waiting[reached] > push.epsilon]
        numbers = np.arange(len(above))
        push.noted[above] = numbers  # of equal nodes the last remains
        above = above[push.noted[above] == numbers]
        offsets = push.graph.graph.offsets
        ready = np.sort(above[push.waiting[above] > push.epsilon * (offsets[above + 1] - offsets[above])])
        return above, reached, ready


def _step_by_kernel(push: _Push, nodes: Rows, carried: Scores) -> tuple[Rows, Rows, Rows]:
    from nlp_retrieval.retrievers.link_graph.walk.kernel import spread

    graph = push.graph.graph
    n_above, n_reached, n_ready = spread(
        graph.offsets, graph.neighbours, graph.weights, graph.types, push.graph.type_weights, nodes, carried, push.epsilon,
        push.waiting, push.noted, push.ready,
    )  # fmt: skip
    reached = push.noted[len(push.noted) - n_reached :].copy()
    return push.noted[:n_above].copy(), reached, np.sort(push.ready[:n_ready])


def _sweep_by_numpy(graph: WeightedGraph, restart: Scores, damping: float, ranks: Scores) -> None:
    with _loops.in_numpy():
        for nodes, part, begins in graph.pulls.blocks:
            received = ranks[graph.graph.neighbours[part].astype(np.int64)]
            received *= graph.pulls.probabilities[part]
            ranks[nodes] = restart[nodes] + damping * np.add.reduceat(received, begins)


def _sweep_by_kernel(graph: WeightedGraph, restart: Scores, damping: float, ranks: Scores) -> None:
    from nlp_retrieval.retrievers.link_graph.walk.kernel import sweep

    sweep(graph.graph.offsets, graph.graph.neighbours, graph.pulls.probabilities, restart, damping, ranks)


def _check(damping: float, name: str, value: float) -> None:
    if not 0 <= damping < 1:
        raise ConfigurationError(f"damping={damping}; it is the probability of following a link: at least 0 and below 1")
    if not 0 < value < math.inf:
        raise ConfigurationError(f"{name}={value}; it must be finite and above 0")
