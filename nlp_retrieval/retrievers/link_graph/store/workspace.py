"""Memory for walks over a graph, kept with the graph from one walk to the next."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nlp_retrieval.core.candidates import Rows, Scores

__all__ = ["Workspace"]


class Workspace(NamedTuple):
    """Memory of a local walk, written in place.

    Args:
        waiting: ``[nodes]``, mass that waits; all 0 between walks.
        kept: ``[nodes]``, mass that stays; all 0 between walks.
        noted: ``[2 * nodes]``, nodes that a step reached.
        ready: ``[nodes]``, nodes that are next.
    """

    waiting: Scores
    kept: Scores
    noted: Rows
    ready: Rows

    @classmethod
    def of(cls, n_nodes: int) -> Workspace:
        """Return a workspace for a graph with this many nodes."""
        return cls(np.zeros(n_nodes), np.zeros(n_nodes), np.empty(2 * n_nodes, np.int64), np.empty(n_nodes, np.int64))
