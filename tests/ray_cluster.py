"""A Ray cluster of several nodes on this machine; what its workers import is found as this process finds it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nlp_retrieval.core.processes import threads_of


@contextmanager
def ray_cluster(cores_of_head: int, n_nodes: int) -> Iterator[Any]:
    """A head, and nodes of one core beside it; the environment is afterwards what it was."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    kept = dict(os.environ)
    own = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    own["RAY_memory_monitor_refresh_ms"] = "0"  # or workers are killed for the memory that other tests hold
    os.environ |= threads_of(1) | own
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": cores_of_head, "include_dashboard": False})
    for _ in range(n_nodes):
        nodes.add_node(num_cpus=1)
    nodes.wait_for_nodes()
    yield nodes
    nodes.shutdown()
    os.environ.clear()
    os.environ |= kept
