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
    """Let mass walk one step, in the order of the stored links, and note which nodes received it.

    ``noted`` receives from the front the nodes whose residual rose above epsilon, from the back those above 0; ``ready`` those
    above epsilon for each of their links. Returns the numbers of these three.
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
