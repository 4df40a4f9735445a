"""Milvus against pymilvus called by hand, each on an embedded Milvus Lite of its own.

Both send the same seeded vectors in batches of the same size, and ask for the same queries.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pymilvus import DataType, MilvusClient

from bench.common import Data, Row, at_most, best_of_each, noted
from nlp_retrieval import MilvusRetriever, SearchableItem
from nlp_retrieval.encoders import BaseEncoder
from nlp_retrieval.encoders.base import Vectors

ROWS, DIMENSION, QUERIES, BATCH, K = 20_000, 384, 200, 4096, 10
_BUILDS = 3


class SeededNumbers(BaseEncoder):
    """Vectors of length 1 that a text's number draws: encoding costs next to nothing."""

    name = "seeded_numbers"

    def model_fingerprint(self) -> str:
        return f"{self.name}-{DIMENSION}"

    def encode_passages(self, passages: list[str]) -> Vectors:
        made = np.stack([np.random.default_rng(int(text)).standard_normal(DIMENSION) for text in passages])
        vectors: Vectors = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
        return vectors

    def encode_queries(self, queries: list[str]) -> Vectors:
        return self.encode_passages(queries)


def measure(_: Data) -> list[Row]:
    """Building, one query a call, and batches."""
    items = [SearchableItem(item_id=f"d{row}", content=str(row)) for row in range(ROWS)]
    encoder = SeededNumbers()
    asked = [str(ROWS + number) for number in range(QUERIES)]
    with tempfile.TemporaryDirectory() as folder:
        retriever = MilvusRetriever(encoder)
        Path(folder, "ours").mkdir()
        retriever.server_of(Path(folder, "ours"))  # starting one takes as long by hand
        client = MilvusClient(str(Path(folder, "by_hand.db")), dedicated=True)
        # each build has another order of the items, since ours keeps an index of the same; the last one is theirs
        orders = [items[cut:] + items[:cut] for cut in reversed(range(_BUILDS))]
        our_turns, their_turns = iter(orders), iter(orders)
        built, built_by_hand = best_of_each(
            _BUILDS,
            lambda: retriever.index(next(our_turns), Path(folder, "ours"), replace=True),
            lambda: _build(client, encoder.encode_passages([item.content for item in next(their_turns)])),
        )

        def ask(first: int, end: int) -> list[list[tuple[int, float]]]:
            options = {"search_params": {"metric_type": "IP"}}
            queries = [*encoder.encode_queries(asked[first:end])]
            found = client.search("by_hand", data=queries, anns_field="embedding", limit=K, **options)
            return [[(hit["row"], hit["distance"]) for hit in hits] for hits in found]

        def ours(first: int, end: int) -> list[Any]:
            return retriever.retrieve([[query] for query in asked[first:end]], Path(folder, "ours"), K)

        found, by_hand = ours(0, QUERIES), ask(0, QUERIES)
        agreed = np.mean(
            [
                {hit.item.item_id for hit in hits} == {f"d{row}" for row, _ in his}
                for hits, his in zip(found, by_hand, strict=True)
            ]
        )
        one, one_by_hand = (seconds / 30 for seconds in best_of_each(15, partial(_each, ours), partial(_each, ask)))
        batch, batch_by_hand = best_of_each(20, lambda: ours(0, 64), lambda: ask(0, 64))
        client.close()
    figures = {"building": (built, built_by_hand), "one query": (one, one_by_hand), "64 queries": (batch, batch_by_hand)}
    return [
        *(
            at_most(f"{what}, {ROWS:,} vectors, against pymilvus", 1.1, mine / his, f"{1000 * mine:,.1f} ms, {1000 * his:,.1f}")
            for what, (mine, his) in figures.items()
        ),
        noted("the same ten found", f"{agreed:.3f} of {QUERIES} queries"),
    ]


def _build(client: MilvusClient, vectors: Vectors) -> None:
    client.drop_collection("by_hand")
    schema = MilvusClient.create_schema(auto_id=False)
    schema.add_field("row", DataType.INT64, is_primary=True)
    schema.add_field("embedding", DataType.FLOAT_VECTOR, dim=DIMENSION)
    client.create_collection("by_hand", schema=schema, consistency_level="Strong")
    for first in range(0, len(vectors), BATCH):
        part = vectors[first : first + BATCH]
        client.insert("by_hand", [{"row": first + n, "embedding": vector} for n, vector in enumerate(part)])
    client.flush("by_hand")
    params = MilvusClient.prepare_index_params()
    params.add_index("embedding", index_type="FLAT", metric_type="IP")
    client.create_index("by_hand", params)
    client.load_collection("by_hand")


def _each(ask: Callable[[int, int], object]) -> None:
    """A query a call."""
    for number in range(30):
        ask(number, number + 1)
