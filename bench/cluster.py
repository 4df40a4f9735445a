"""Workers of one core each against one process on one core: ``python -m bench.cluster DATA MODEL [PASSAGES]``.

All encode the same blocks of passages with a sentence-transformers model, in float32, after a block that is not timed; the
bytes are compared. The time by hand is that of Ray Data's ``map_batches`` over as many actors, its start counted, and is
compared with ours counted likewise. Nothing of it is kept.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.common import Data, seconds_of
from nlp_retrieval import BaseEncoder, SentenceTransformerEncoder
from nlp_retrieval.core.blocks.encoded import encoded_here
from nlp_retrieval.core.cores import limit_cores, threads_of
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.encoders.workers.cluster import cluster_pool
from nlp_retrieval.encoders.workers.pool import WorkerPool
from nlp_retrieval.encoders.workers.processes import local_pool
from nlp_retrieval.encoders.workers.task import PassageTask

BLOCK = 64


class Nothing(BaseEncoder):
    """Vectors of MiniLM's dimension that cost nothing."""

    name = "nothing"

    def encode_passages(self, passages: list[str]) -> Vectors:
        return np.ones((len(passages), 384), np.float32)

    def encode_queries(self, queries: list[str]) -> Vectors:
        return self.encode_passages(queries)

    def model_fingerprint(self) -> str:
        return "none"


class ByHand:
    """An actor of Ray Data."""

    def __init__(self, model: str) -> None:
        limit_cores(1)
        self.encoder = SentenceTransformerEncoder(model, precision="float32")

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return {"row": batch["row"], "vector": self.encoder.encode_passages(list(batch["text"]))}


def main(data: Data, model: str, n_passages: int) -> None:
    """Print a line for each way of encoding."""
    limit_cores(1)
    texts = data.texts()[:n_passages]
    task = PassageTask(SentenceTransformerEncoder(model, precision="float32"))
    task(texts[:BLOCK])
    digest = hashlib.sha256()
    alone = seconds_of(lambda: _consume(iter(encoded_here(task, _blocks(texts))), digest))
    expected = digest.hexdigest()
    _tell("one process, one core", len(texts), alone, alone)

    def timed(what: str, pool: WorkerPool) -> None:
        warm = [texts[:BLOCK]] * (4 * pool.n_workers)
        _consume(iter(pool.encoded(task, iter(warm))), hashlib.sha256())
        made = hashlib.sha256()
        seconds = seconds_of(lambda: _consume(iter(pool.encoded(task, _blocks(texts))), made))
        pool.close()
        _tell(what, len(texts), seconds, alone, made.hexdigest() == expected)

    sent = _seconds_sent(texts)
    print(f"blocks: {1e6 * sent:.0f} us of {1e6 * alone / len(texts):,.0f} us per passage (budget 3%)", flush=True)
    timed("two workers", local_pool(2))
    for n_nodes in (2, 4):
        with _Nodes(n_nodes) as address:
            timed(f"Ray, {n_nodes} nodes of one core", cluster_pool(address, n_nodes))
            ours = seconds_of(partial(_from_start, address, n_nodes, task, texts))
            hand, same = _by_hand(address, model, texts, n_nodes, expected)
            _tell(f"Ray Data by hand, {n_nodes} nodes", len(texts), hand, alone, same)
            print(f"ours, its start counted: {ours:.1f} s, {ours / hand:.2f} times Ray Data's (budget 1.1)", flush=True)


def _from_start(address: str, n_nodes: int, task: PassageTask, texts: list[str]) -> None:
    pool = cluster_pool(address, n_nodes)
    _consume(iter(pool.encoded(task, _blocks(texts))), hashlib.sha256())
    pool.close()


def _seconds_sent(texts: list[str]) -> float:
    """What sending a passage to a worker, and its vector back, takes by itself: less than timings of minutes differ by."""
    from bench.cluster import Nothing  # a worker imports it by this name

    pool, task = local_pool(1), PassageTask(Nothing())
    _consume(iter(pool.encoded(task, _blocks(texts[:BLOCK]))), hashlib.sha256())
    seconds = seconds_of(lambda: _consume(iter(pool.encoded(task, _blocks(texts))), hashlib.sha256()))
    pool.close()
    return seconds / len(texts)


def _by_hand(address: str, model: str, texts: list[str], n_actors: int, expected: str) -> tuple[float, bool]:
    import ray

    ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    rows = ray.data.from_items([{"row": row, "text": text} for row, text in enumerate(texts)], override_num_blocks=n_actors)
    made: list[dict[str, Any]] = []

    def run() -> None:
        mapped = rows.map_batches(
            ByHand,
            fn_constructor_args=(model,),
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


def _tell(what: str, n: int, seconds: float, alone: float, same: bool = True) -> None:
    compared = "equal bytes" if same else "OTHER BYTES"
    speed = f"{n / seconds:.1f} passages/s, {alone / seconds:.2f} times one process"
    print(f"{what}: {seconds:.1f} s, {speed}, {compared}", flush=True)


if __name__ == "__main__":
    main(Data.of(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 2048)
