"""Encoding by workers of one core each, against one process on one core, and against Ray Data by hand.

All encode the same blocks of passages with MiniLM in float32, after a block that is not timed; the bytes are compared. The
time by hand is that of Ray Data's ``map_batches`` over as many actors, its start counted; ours is counted likewise.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bench.common import Data, Row, aside, at_least, at_most, noted, seconds_of
from nlp_retrieval import SentenceTransformerEncoder
from nlp_retrieval.core.processes import limit_cores, threads_of
from nlp_retrieval.encoders.passages import ClusterPool, LocalPool, PassageTask, WorkerPool, encoded_by, encoded_here

BLOCK, PASSAGES = 64, 2048
CORES = os.cpu_count() or 1


class ByHand:
    """An actor of Ray Data."""

    def __init__(self) -> None:
        limit_cores(1)
        self.encoder = SentenceTransformerEncoder(precision="float32")

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return {"row": batch["row"], "vector": self.encoder.encode_passages(list(batch["text"]))}


def measure(data: Data) -> list[Row]:
    """In a process of its own, which keeps to one core."""
    return [Row(**row) for row in aside("bench.cluster", data.root)]


def _measured(data: Data) -> Iterator[Row]:
    limit_cores(1)
    texts = data.texts()[:PASSAGES]
    task = PassageTask(SentenceTransformerEncoder(precision="float32"))
    task.do(texts[:BLOCK])
    digest = hashlib.sha256()
    alone = seconds_of(lambda: _consume(iter(encoded_here(task.do, _blocks(texts))), digest))
    expected = digest.hexdigest()
    yield noted(f"{PASSAGES:,} passages by one process, one core", f"{PASSAGES / alone:.1f} passages/s")

    def by(what: str, pool: WorkerPool) -> Row:
        _consume(iter(encoded_by(pool, task, iter([texts[:BLOCK]] * 8))), hashlib.sha256())
        made = hashlib.sha256()
        seconds = seconds_of(lambda: _consume(iter(encoded_by(pool, task, _blocks(texts))), made))
        pool.close()
        same = made.hexdigest() == expected
        shown = f"{PASSAGES / seconds:.1f} passages/s, {_compared(same)}, {CORES} cores"
        return _missed_unless(same, at_least(f"{what}, against one process", 1.8, alone / seconds, shown))

    yield by("two workers of this machine", LocalPool(2))
    with _Nodes(2) as address:
        yield by("Ray, 2 nodes of one core", ClusterPool(address, 2))
        ours = seconds_of(partial(_from_start, address, 2, task, texts))
        hand, same = _by_hand(address, texts, 2, expected)
        shown = f"{ours:.1f} s, by hand {hand:.1f} s, {_compared(same)}"
        row = at_most("Ray, 2 nodes, their start counted, against Ray Data by hand", 1.1, ours / hand, shown)
        yield _missed_unless(same, row)


def _from_start(address: str, n_nodes: int, task: PassageTask, texts: list[str]) -> None:
    pool = ClusterPool(address, n_nodes)
    _consume(iter(encoded_by(pool, task, _blocks(texts))), hashlib.sha256())
    pool.close()


def _by_hand(address: str, texts: list[str], n_actors: int, expected: str) -> tuple[float, bool]:
    import ray

    ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    items = [{"row": row, "text": text} for row, text in enumerate(texts)]
    # a block for each batch: with as many blocks as actors, one actor may take them all
    rows = ray.data.from_items(items, override_num_blocks=len(texts) // BLOCK)
    made: list[dict[str, Any]] = []

    def run() -> None:
        mapped = rows.map_batches(
            ByHand,
            batch_size=BLOCK,
            num_cpus=1,
            compute=ray.data.ActorPoolStrategy(size=n_actors),
        )
        made.extend(mapped.take_all())

    seconds = seconds_of(run)
    ray.shutdown()
    vectors = np.stack([one["vector"] for one in sorted(made, key=lambda one: int(one["row"]))]).astype(np.float32)
    return seconds, hashlib.sha256(vectors.tobytes()).hexdigest() == expected


class _Nodes:
    """A cluster of nodes of one core on this machine."""

    def __init__(self, n_nodes: int) -> None:
        os.environ |= threads_of(1) | {
            "RAY_USAGE_STATS_ENABLED": "0",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(Path.cwd()), *sys.path])),
        }
        from ray.cluster_utils import Cluster

        self._cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        for _ in range(n_nodes - 1):
            self._cluster.add_node(num_cpus=1)
        self._cluster.wait_for_nodes()

    def __enter__(self) -> str:
        return str(self._cluster.address)

    def __exit__(self, *_: object) -> None:
        self._cluster.shutdown()


def _blocks(texts: list[str]) -> Iterator[list[str]]:
    return (texts[first : first + BLOCK] for first in range(0, len(texts), BLOCK))


def _consume(encoded: Iterator[tuple[list[str], Any]], digest: Any) -> None:
    for _, batch in encoded:
        digest.update(batch.rows.tobytes())


def _missed_unless(same: bool, row: Row) -> Row:
    """A row of other bytes is missed, however fast they were."""
    return row if same else replace(row, met=False)


def _compared(same: bool) -> str:
    return "equal bytes" if same else "OTHER BYTES"


if __name__ == "__main__":
    named = import_module("bench.cluster")  # workers import what is in it by this name
    print(json.dumps([asdict(row) for row in named._measured(Data.of(sys.argv[1]))]))
