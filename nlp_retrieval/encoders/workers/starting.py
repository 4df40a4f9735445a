"""Choosing a pool to encode with: processes of this machine, or a Ray cluster; and the limits of workers."""

from __future__ import annotations

from typing import cast

from nlp_retrieval.core.components.component import Component, with_held
from nlp_retrieval.core.context import Workers, search_context
from nlp_retrieval.encoders.workers.pool import WorkerPool
from nlp_retrieval.encoders.workers.processes import local_pool


def pool_at_hand() -> WorkerPool | None:
    """Return the workers of the current call, started with its first blocks; None if it encodes in this process.

    Raises:
        DependencyError: a Ray cluster is wanted, and ray is not installed.
        WorkerError: there is no such cluster, or it cannot be used.
    """
    workers = search_context().workers
    return None if workers is None else cast("WorkerPool", workers.pool(_started))


def names_gpu(component: Component) -> bool:
    """Return whether a component or a part of it is set to compute on another device than a CPU, which workers do not have."""
    devices = [getattr(part, "device", None) for part in with_held(component)]
    return any(device is not None and not str(device).startswith("cpu") for device in devices)


def _started(wanted: Workers) -> WorkerPool:
    if wanted.ray is None:
        return local_pool(wanted.n or 1)
    from nlp_retrieval.encoders.workers.cluster import cluster_pool

    return cluster_pool(wanted.ray, wanted.n)
