"""Encoding by workers of one core each, against one process on one core.

All encode the same blocks of passages with MiniLM in float32, after a block that is not timed; the bytes are compared.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bench.common import Data, Row, aside, at_least, noted, seconds_of
from nlp_retrieval import SentenceTransformerEncoder
from nlp_retrieval.core.processes import limit_cores, threads_of
from nlp_retrieval.encoders.passages import ClusterPool, LocalPool, PassageTask, WorkerPool, encoded_by, encoded_here

BLOCK, PASSAGES = 64, 2048


def measure(data: Data) -> list[Row]:
    """In a process of its own, which keeps to one core."""
    return [Row(**row) for row in aside("bench.cluster", data.root)]


def _measured(data: Data) -> Iterator[Row]:
    limit_cores(1)
    texts = data.texts()[:PASSAGES]
    blocks = [texts[first : first + BLOCK] for first in range(0, len(texts), BLOCK)]
    task = PassageTask(SentenceTransformerEncoder(precision="float32"))
    task.do(blocks[0])
    alone, expected = _timed(encoded_here(task.do, iter(blocks)))
    yield noted(f"{PASSAGES:,} passages by one process, one core", f"{PASSAGES / alone:.1f} passages/s")

    def by(what: str, pool: WorkerPool) -> Row:
        _timed(encoded_by(pool, task, iter(blocks[:1] * 8)))
        seconds, made = _timed(encoded_by(pool, task, iter(blocks)))
        pool.close()
        same = made == expected
        shown = f"{PASSAGES / seconds:.1f} passages/s, {'equal bytes' if same else 'OTHER BYTES'}, {os.cpu_count()} cores"
        row = at_least(f"{what}, against one process", 1.8, alone / seconds, shown)
        return row if same else replace(row, met=False)

    yield by("two workers of this machine", LocalPool(2))
    with _nodes(2) as address:
        yield by("Ray, 2 nodes of one core", ClusterPool(address, 2))


def _timed(encoded: Iterable[tuple[list[str], Any]]) -> tuple[float, str]:
    """Seconds until all is encoded, and the digest of the vectors."""
    digest = hashlib.sha256()
    seconds = seconds_of(lambda: [digest.update(batch.rows.tobytes()) for _, batch in encoded])
    return seconds, digest.hexdigest()


@contextmanager
def _nodes(n_nodes: int) -> Iterator[str]:
    """A cluster of nodes of one core on this machine."""
    paths = os.pathsep.join(filter(None, [str(Path.cwd()), *sys.path]))
    os.environ |= threads_of(1) | {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": paths}
    from ray.cluster_utils import Cluster

    cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    for _ in range(n_nodes - 1):
        cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    yield str(cluster.address)
    cluster.shutdown()


if __name__ == "__main__":
    print(json.dumps([asdict(row) for row in _measured(Data.of(sys.argv[1]))]))
