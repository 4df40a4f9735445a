"""Personalized PageRank: the share of time that a walk which keeps returning to the restart nodes spends at each node.

The walk follows a link with probability ``damping`` and restarts otherwise, or where no link leads on (Page et al. 1999,
The PageRank Citation Ranking; Haveliwala 2002, Topic-Sensitive PageRank). Let x solve ``x = (1 - d) s + d P' x``, in
which mass at dangling nodes is lost; the walk's distribution is x divided by its sum. Both algorithms here approach x
from below, so the mass that is still missing bounds the error.

``pagerank`` passes over the whole graph until the error is within a tolerance; ``local_pagerank`` reads only links near the
restart nodes, in numpy or in a numba kernel that gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows, Scores, entries_of
from nlp_retrieval.errors import ConfigurationError, EngineError, nearest
from nlp_retrieval.retrievers.bm25.scoring import Backend, CompiledLoops
from nlp_retrieval.retrievers.link_graph.graph import WeightedGraph, Workspace
from nlp_retrieval.retrievers.link_graph.tables import places_in

_loops = CompiledLoops()


class Restarts(NamedTuple):
    """Restarts of a query's walk.

    Args:
        rows: nodes; the weights of a node that is named twice add up.
        weights: finite, at least 0. Without any above 0 there is no walk.

    Examples:
        >>> Restarts(np.array([0, 1]), np.array([0.5, 0.5])).rows.tolist()
        [0, 1]
    """

    rows: Rows
    weights: Scores

    def shares(self, n_nodes: int) -> tuple[Rows, Scores]:
        """Return the nodes, ascending, and their shares, which are above 0 and sum to 1.

        Raises:
            EngineError: a row out of range, or a weight that is not finite or below 0.
        """
        if not (np.isfinite(self.weights) & (self.weights >= 0)).all():
            raise EngineError("restarts have weights that are not finite, or below 0")
        if len(self.rows) and (self.rows.min() < 0 or self.rows.max() >= n_nodes):
            raise EngineError(f"restarts name rows {self.rows.min()}..{self.rows.max()}; the graph has 0..{n_nodes - 1}")
        rows, positions = np.unique(self.rows, return_inverse=True)
        shares = np.bincount(positions, self.weights / (self.weights.max(initial=0.0) or 1.0), len(rows))
        some = shares > 0
        return rows[some], shares[some] / (shares.sum() or 1.0)


class LocalRanks(NamedTuple):
    """The nodes near the restarts, ascending, with ranks that are never too high.

    If p is the part of x (see the module) that was found, and e a bound on the mass that was not followed to its end, the ranks
    are ``p / (sum(p) + e)``: at most ``x / sum(x)``, so what they lack of a sum of 1 is their L1 distance to the exact ones.
    """

    rows: Rows
    ranks: Scores
    error: float
    """The L1 distance to the exact ranks, up to the rounding of the graph's sums, about 1e-7."""
    work: int
    """Number of stored links read."""


def pagerank(graph: WeightedGraph, restarts: Restarts, damping: float, tolerance: float = 1e-6) -> Scores:
    """Compute Personalized PageRank by passes over the whole graph (Gauss-Seidel).

    Args:
        graph: the links that the walk follows.
        restarts: of the walk.
        damping: probability of following a link, at least 0 and below 1.
        tolerance: largest distance of the result from the exact distribution, in L1; above 0.

    Returns:
        ``[nodes]``; sums to 1, or is 0 without restarts.

    Raises:
        EngineError: restarts that cannot be used.

    Examples:
        >>> from nlp_retrieval.retrievers import LinkGraph, Links, write_link_graph
        >>> Path("graph").mkdir()
        >>> write_link_graph(Path("graph"), 3, {"mentions": Links(np.array([0, 1]), np.array([1, 2]), np.ones(2, np.float32))})
        >>> graph = WeightedGraph(LinkGraph.open(Path("graph")), np.ones(2))
        >>> pagerank(graph, Restarts(np.array([0]), np.ones(1)), damping=0.5).shape
        (3,)
    """
    pulls = graph.pulls
    restart = np.zeros(graph.graph.n_nodes)
    rows, shares = restarts.shares(len(restart))
    if len(rows) == 0:
        return restart
    restart[rows] = (1 - damping) * shares
    ranks: Scores = restart.copy()
    # a sweep gains at least what a step of power iteration does: the factor damping
    at_most = math.ceil(math.log(tolerance * (1 - damping) / 2) / math.log(damping)) if damping > 0 else 0
    for _ in range(at_most):
        for nodes, part, begins in pulls.blocks:
            received = ranks[graph.graph.neighbours[part].astype(np.int64)]
            received *= pulls.probabilities[part]
            ranks[nodes] = restart[nodes] + damping * np.add.reduceat(received, begins)
        missing = 1 - ranks.sum() - damping / (1 - damping) * ranks[pulls.dangling].sum()
        if 2 * missing <= tolerance * ranks.sum():
            break
    ranks /= ranks.sum()
    return ranks


def local_pagerank(
    graph: WeightedGraph, restarts: Restarts, damping: float, epsilon: float = 1e-6, backend: Backend = "auto"
) -> LocalRanks:
    """Compute Personalized PageRank near the restart nodes by forward push, with a bound on its error.

    Mass waits at nodes; a node where more than ``epsilon`` per stored link waits keeps ``1 - damping`` of it and sends the rest
    on, until there is no such node (Andersen, Chung, Lang, FOCS 2006, Local Graph Partitioning using PageRank Vectors). So at
    most ``1 / (epsilon (1 - damping))`` stored links are read, whatever the size of the graph. At the end, nodes where more
    than epsilon still waits also keep the share ``1 - damping`` of it.

    Args:
        graph: the links that the walk follows.
        restarts: of the walk.
        damping: probability of following a link, at least 0 and below 1.
        epsilon: above 0; smaller is closer and takes longer.
        backend: ``"numpy"``, ``"numba"``, or ``"auto"``: numba, once numpy has taken as long as compiling would.

    Raises:
        EngineError: restarts that cannot be used.
        DependencyError: numba is asked for and not installed.

    Examples:
        >>> from nlp_retrieval.retrievers import LinkGraph, Links, write_link_graph
        >>> Path("graph").mkdir()
        >>> write_link_graph(Path("graph"), 3, {"mentions": Links(np.array([0, 1]), np.array([1, 2]), np.ones(2, np.float32))})
        >>> graph = WeightedGraph(LinkGraph.open(Path("graph")), np.ones(2))
        >>> local_pagerank(graph, Restarts(np.array([0]), np.ones(1)), damping=0.5, backend="numpy").rows.tolist()
        [0, 1, 2]
    """
    offsets = graph.graph.offsets
    rows, shares = restarts.shares(graph.graph.n_nodes)
    step = _step_by_kernel if _loops.chosen(backend) else _step_by_numpy
    if len(rows) == 0:
        return LocalRanks(rows, shares, 0.0, 0)
    with graph.workspace() as memory:  # of which only the nodes that were touched are cleared
        memory.waiting[rows] = shares
        above, touched = [rows], [rows]
        remaining, work = 1.0, 0
        nodes = rows[shares > epsilon * np.maximum(offsets[rows + 1] - offsets[rows], 1)]
        while damping > 0 and len(nodes):
            mass = memory.waiting[nodes]
            memory.waiting[nodes] = 0.0
            memory.kept[nodes] += (1 - damping) * mass
            carried = graph.per_weight(nodes, damping * mass)
            remaining -= float((1 - damping) * mass.sum() + damping * mass[carried == 0].sum())
            work += int((offsets[nodes + 1] - offsets[nodes]).sum())
            raised, reached, nodes = step(graph, memory, epsilon, nodes, carried)
            above.append(raised)
            touched.append(reached)
        listed = np.sort(np.concatenate(above))  # several times faster than np.unique
        listed = listed[np.diff(listed, prepend=-1) > 0]
        late = (1 - damping) * memory.waiting[listed]
        masses = memory.kept[listed] + late
        missing = max(remaining - float(late.sum()), 0.0)
        reach = float(masses.sum()) + missing
        for nodes in touched:
            memory.waiting[nodes] = 0.0
        memory.kept[listed] = 0.0
    return LocalRanks(listed, masses / reach, missing / reach, work)


_Stepped = tuple[Rows, Rows, Rows]
"""After mass has left some nodes: those that now have more than epsilon, those reached, and those to push next."""


def _step_by_numpy(graph: WeightedGraph, memory: Workspace, epsilon: float, nodes: Rows, carried: Scores) -> _Stepped:
    with _loops.in_numpy():
        reached, received = graph.spread(nodes, carried)
        np.add.at(memory.waiting, reached, received)
        above = reached[memory.waiting[reached] > epsilon]
        numbers = np.arange(len(above))
        memory.noted[above] = numbers  # of equal nodes the last remains
        above = above[memory.noted[above] == numbers]
        offsets = graph.graph.offsets
        ready = np.sort(above[memory.waiting[above] > epsilon * (offsets[above + 1] - offsets[above])])
        return above, reached, ready


def _step_by_kernel(graph: WeightedGraph, memory: Workspace, epsilon: float, nodes: Rows, carried: Scores) -> _Stepped:
    from nlp_retrieval.retrievers.link_graph.kernel import spread

    links = graph.graph
    n_above, n_reached, n_ready = spread(
        links.offsets, links.neighbours, links.weights, links.types, graph.type_weights, nodes, carried, epsilon,
        memory.waiting, memory.noted, memory.ready,
    )  # fmt: skip
    reached = memory.noted[len(memory.noted) - n_reached :].copy()
    return memory.noted[:n_above].copy(), reached, np.sort(memory.ready[:n_ready])


# The strongest chain of links from the restarts of a walk to a node: the single path that most walks take.


@dataclass(frozen=True)
class LinkChain:
    """A path over links.

    Args:
        rows: the nodes, from the restart to the end; at least one.
        strength: the share of walks that restart at the first node and take exactly this path.

    Examples:
        >>> LinkChain([0, 1, 2], 0.25).rows
        [0, 1, 2]
    """

    rows: list[int]
    strength: float


def strongest_chains(
    graph: WeightedGraph, restarts: Restarts, targets: Rows, damping: float, longest: int = 4
) -> list[LinkChain | None]:
    """Find the strongest chain to each target, by dynamic programming over the number of links.

    Of equally strong chains the shorter wins; of equally long ones the one with the lower last row but one, and so on back to
    the first.

    Args:
        graph: the links that the walk follows.
        restarts: the nodes where it restarts, ascending, and their shares, which sum to 1.
        targets: nodes to explain.
        damping: probability of following a link.
        longest: the most links that a chain may have.

    Returns:
        Per target a chain, or None if none of at most ``longest`` links reaches it.

    Examples:
        >>> from nlp_retrieval.retrievers import LinkGraph, Links, write_link_graph
        >>> Path("graph").mkdir()
        >>> write_link_graph(Path("graph"), 3, {"mentions": Links(np.array([0, 1]), np.array([1, 2]), np.ones(2, np.float32))})
        >>> graph = WeightedGraph(LinkGraph.open(Path("graph")), np.ones(2))
        >>> (chain,) = strongest_chains(graph, Restarts(np.array([0]), np.ones(1)), np.array([2]), damping=0.5)
        >>> chain.rows
        [0, 1, 2]
    """
    some = restarts.weights > 0
    layers = [_Layer(restarts.rows[some], restarts.weights[some], np.zeros(0, np.int64))]
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


class _Layer(NamedTuple):
    """The nodes to which a chain of this layer's length is stronger than every shorter one, and where each comes from."""

    rows: Rows
    strengths: Scores
    before: Rows
    """Positions in the previous layer; empty in the first."""


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


# The evidence for a candidate of a multi-hop search, as columns whose weighted sum is its score.
#
# The walk over the links finds passages near the seeds, but not whether a passage, together with those it is linked to,
# answers the query. ``chain`` tells this: the part of the query's information that a passage covers together with its best
# linked neighbour among the candidates. ``complement`` is the part that it adds to the first candidate. Both are needed if
# one passage alone cannot cover a query, as in multi-hop questions.
#
# The links show whether a query is multi-hop, by the share of the candidates that mention another or are mentioned by one.
# The query's information that the first candidate lacks is evidence for passages linked to it, and for others only by that
# share; the fusion of the seeds (``fused``) counts by the rest of the share.


FLOOR = 1e-7
"""Smaller shares of the walk count as this one."""

DEFAULT_WEIGHTS: dict[str, float] = {
    "pagerank": 0.75,
    "fused": 2.0,
    "similarity": 8.0,
    "titles": 1.3,
    "title_coverage": 1.1,
    "named": 6.3,
    "coverage": -6.0,
    "chain": 6.0,
    "chain_along": 2.8,
    "chain_against": 4.7,
    "complement": 7.5,
    "relation": 4.0,
}
"""The weight of each kind of evidence in the score.

``pagerank`` is the natural logarithm of a share of the walk, ``fused`` the reciprocal rank fusion of the seeds (0 to 1, the
first place with all of them) times the share of candidates that no link with a direction connects, ``similarity`` the encoder's
inner product with the query, ``titles`` the certainty that the query names the passage (0 to 1), ``title_coverage`` the share
of its title's terms in the query, ``named`` the extent to which the passage is about its title (0 to 1, see
:meth:`~nlp_retrieval.retrievers.link_graph.tables.PassageTerms.named`), ``coverage``, ``complement`` and the
chains shares of the query's information (0 to 1): ``chain`` over links of any kind, ``chain_along`` together with a passage
that this one points to, ``chain_against`` together with one that points to it. ``relation`` is how close to a mention of this
passage, in one that the query names, stands what the query asks for (0 to 1, see
:func:`~nlp_retrieval.retrievers.link_graph.relations.relation_evidence`).

They were fitted to 1,018 HotpotQA questions over 31,857 passages with all-MiniLM-L6-v2, and over three haystacks of ten times
as many (``bench/CROWD.md``), the collection counting as much as the three together; then rounded. That was
before links weighed ``complement``. ``fused`` was chosen in addition, with and without relevant links (``python -m
bench.harmless``), and ``relation`` on questions such as "the director of ..." (``bench/MULTIHOP.md``). The
inner products of another encoder are distributed differently, so tune the weights for another encoder.
"""

_LARGEST = 1_000_000


def checked_weights(weights: Mapping[str, float] | None) -> dict[str, float]:
    """Return the weights of all kinds of evidence: those given, and the defaults of the others."""
    for kind, weight in (weights or {}).items():
        if kind not in DEFAULT_WEIGHTS:
            raise ConfigurationError(f"weights: there is no evidence {kind!r}; {nearest(kind, DEFAULT_WEIGHTS)}")
        if not abs(weight) <= _LARGEST:
            raise ConfigurationError(f"weights: {kind}={weight} is not a number from -{_LARGEST:,} to {_LARGEST:,}")
    return DEFAULT_WEIGHTS | dict(weights or {})


class LinkedPairs(NamedTuple):
    """The pairs of linked candidates, as positions among the candidates, each pair once in either order."""

    ones: Rows
    others: Rows
    points: Mask
    pointed: Mask

    def apart(self, n_candidates: int) -> float:
        """Return the share of the candidates that no link with a direction connects to another."""
        return 1.0 - len(np.unique(self.ones[self.points | self.pointed])) / max(n_candidates, 1)


def links_among(weighted: WeightedGraph, rows: Rows, undirected: Collection[str] = ()) -> LinkedPairs:
    """Return the pairs of linked candidates."""
    graph = weighted.graph
    entries, counts = entries_of(graph.offsets, rows)
    neighbours = graph.neighbours[entries]
    order = np.argsort(rows)
    places = places_in(rows[order], neighbours)
    is_open = weighted.type_weights > 0
    is_open |= is_open.reshape(-1, 2)[:, ::-1].ravel()  # types 2 i and 2 i + 1 are one kind, along and against
    types = graph.types[entries]
    inside = (places >= 0) & is_open[types]
    owner = np.repeat(np.arange(len(rows)), counts)[inside]
    pairs, number = np.unique(owner * len(rows) + order[places[inside]], return_inverse=True)
    directed = np.repeat([kind not in undirected for kind in graph.n_links], 2).astype(bool)[types[inside]]
    along = types[inside] % 2 == 0
    points = np.bincount(number[directed & along], minlength=len(pairs)) > 0
    pointed = np.bincount(number[directed & ~along], minlength=len(pairs)) > 0
    return LinkedPairs(*np.divmod(pairs, max(len(rows), 1)), points, pointed)


def coverage_evidence(covered: NDArray[np.bool_], shares: Scores, pairs: LinkedPairs, foremost: int) -> dict[str, Scores]:
    """Compute the kinds of evidence that the query's terms and the links among candidates give."""
    coverage = (covered * shares).sum(axis=1)
    together = (covered[pairs.ones] | covered[pairs.others]) @ shares
    evidence = {"coverage": coverage}
    everywhere = np.ones(len(pairs.ones), bool)
    for kind, counting in (("chain", everywhere), ("chain_along", pairs.points), ("chain_against", pairs.pointed)):
        evidence[kind] = coverage.copy()
        np.maximum.at(evidence[kind], pairs.ones[counting], together[counting])
    complement = (covered & ~covered[foremost]) @ shares if len(covered) else coverage
    unlinked = np.ones(len(covered), bool)
    unlinked[pairs.others[pairs.ones == foremost]] = False
    complement[unlinked] *= 1.0 - pairs.apart(len(covered))
    return evidence | {"complement": complement}
