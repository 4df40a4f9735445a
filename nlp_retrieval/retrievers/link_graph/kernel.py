"""The compiled inner loop of local PageRank; importing it needs numba, which compiles it at the first call."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows, Scores


@njit(nogil=True)
def spread(
    offsets: Rows,
    neighbours: NDArray[np.int32],
    weights: NDArray[np.float32],
    types: NDArray[np.uint8],
    type_weights: Scores,
    nodes: Rows,
    carried: Scores,
    epsilon: float,
    residuals: Scores,
    noted: Rows,
    ready: Rows,
) -> tuple[int, int, int]:
    """Let mass walk one step, and note which nodes received it. Additions happen in the order of the stored links.

    Args:
        offsets: of the graph.
        neighbours: of the graph.
        weights: of the graph.
        types: of the graph.
        type_weights: the factor of each type's weights.
        nodes: where the mass is; their residuals are 0.
        carried: per node, mass per unit of link weight.
        epsilon: see :func:`~nlp_retrieval.retrievers.link_graph.walk.local_pagerank`.
        residuals: ``[nodes]``, receives the mass; none is above its node's bound at the start.
        noted: ``[2 * nodes]``, receives nodes: from the front those whose residual rose above epsilon, from the back above 0.
        ready: ``[nodes]``, receives the nodes whose residual rose above their bound.

    Returns:
        The numbers of nodes that rose above epsilon, above 0, and above their bound.
    """
    n_above, n_reached, n_ready = 0, 0, 0
    for position in range(len(nodes)):
        node = nodes[position]
        for entry in range(offsets[node], offsets[node + 1]):
            neighbour = neighbours[entry]
            before = residuals[neighbour]
            after = before + carried[position] * weights[entry] * type_weights[types[entry]]
            if before == 0.0 and after > 0.0:
                n_reached += 1
                noted[len(noted) - n_reached] = neighbour
            residuals[neighbour] = after
            if after > epsilon:
                if before <= epsilon:
                    noted[n_above] = neighbour
                    n_above += 1
                bound = epsilon * (offsets[neighbour + 1] - offsets[neighbour])
                if before <= bound < after:
                    ready[n_ready] = neighbour
                    n_ready += 1
    return n_above, n_reached, n_ready
