"""pgvector against the same SQL by hand, and what filters cost: ``python -m bench.policy.pgvector [ROWS [SERVER]]``.

Random unit vectors of 384 dimensions, seeded, in which 32 directions hold nine tenths of what there is, as in those of texts
(of vectors without any such direction, no graph finds the neighbours, which are hardly nearer than others). Every hundredth
row passes the filter. Recall is that of the exact answer by numpy. Times are the median of single queries, both sides in turn;
by hand means one statement over psycopg, with the list of rows that may be found where there is a filter, and nothing checked
or converted.
SERVER is ``env:NAME``; by default an embedded server.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from psycopg.sql import SQL

from nlp_retrieval import BaseEncoder, PgvectorRetriever, SearchableItem
from nlp_retrieval.core.candidates import Mask
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.postgres.record import TableRecord, read_record
from nlp_retrieval.postgres.tables import table_of

DIMENSION, K, N_QUERIES, EVERY = 384, 10, 50, 100
_INNER = 32
_DIRECTIONS = 3 * np.random.default_rng(2).standard_normal((_INNER, DIMENSION), np.float32) / np.sqrt(_INNER)


class SeededVectors(BaseEncoder):
    """A random unit vector per text, which is a number, or ``q`` and a number.

    Args:
        dimension: of the vectors.
    """

    name = "bench-seeded-vectors"

    def __init__(self, dimension: int = DIMENSION) -> None:
        self.dimension = dimension

    def model_fingerprint(self) -> str:
        return "seeded"

    def encode_queries(self, queries: list[str]) -> Vectors:
        return self.encode_passages(queries)

    def encode_passages(self, passages: list[str]) -> Vectors:
        rows = []
        for text in passages:
            seed = [1, int(text[1:])] if text.startswith("q") else [0, int(text)]
            draw = np.random.default_rng(seed)
            rows.append(
                draw.standard_normal(_INNER, np.float32) @ _DIRECTIONS + draw.standard_normal(self.dimension, np.float32)
            )
        vectors = np.array(rows, np.float32)
        scaled: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return scaled


def main(n_rows: int, url: str | None) -> dict[str, Any]:
    """Measure an exact table and one with a graph."""
    measured: dict[str, Any] = {"rows": n_rows, "dimension": DIMENSION, "k": K}
    items = [SearchableItem(item_id=f"row {row}", content=str(row), metadata={"part": row % EVERY}) for row in range(n_rows)]
    everything = SeededVectors().encode_passages([str(row) for row in range(n_rows)])
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("exact", "hnsw"):
            retriever = PgvectorRetriever(
                SeededVectors(), url=url, index_type=kind, build_memory=2000, statement_timeout=3600.0
            )
            path = Path(folder) / kind
            begin = time.perf_counter()
            retriever.index(items, path)
            measured[f"{kind}: build"] = f"{time.perf_counter() - begin:.1f} s"
            generation = open_generation(path)
            opened = retriever.open(generation)
            record = read_record(next(path.glob("pgvector-*")))
            for name, where in (("", None), (", 1% filter", {"part": 7})):
                allowed = generation.items.mask(where)
                measured[f"{kind}{name}"] = _compared(opened, retriever, path, record, everything, allowed)
            allowed = generation.items.mask({"part": {"lt": EVERY // 2}})
            measured[f"{kind}, 50% filter"] = _compared(opened, retriever, path, record, everything, allowed)
            opened = retriever = None  # type: ignore[assignment]  # its server stops
    return measured


def _compared(
    opened: PgvectorRetriever,
    retriever: PgvectorRetriever,
    path: Path,
    record: TableRecord,
    everything: Vectors,
    allowed: Mask | None,
) -> dict[str, str]:
    queries = [f"q{number}" for number in range(N_QUERIES)]
    vectors = dict(zip(queries, SeededVectors().encode_queries(queries), strict=True))
    by_hand = _by_hand(retriever, path, record, allowed)
    ours: list[float] = []
    hands: list[float] = []
    found, lists = [], []
    for query in [queries[0], *queries]:
        vector = vectors[query][None]
        if len(ours) % 2:  # who comes second finds the pages read
            rows, seconds_by_hand = _timed(lambda: by_hand(vector[0]))  # noqa: B023
        hits, seconds = _timed(lambda: opened.search_prepared(vector, K, allowed))  # noqa: B023
        if not len(ours) % 2:
            rows, seconds_by_hand = _timed(lambda: by_hand(vector[0]))  # noqa: B023
        ours.append(seconds)
        hands.append(seconds_by_hand)
        found.append(len(hits.rows))
        lists.append({*hits.rows.tolist()})
        assert rows
    batch = _timed(lambda: opened.search_prepared(np.array([*vectors.values()]), K, allowed))[1]
    shown = everything if allowed is None else everything[allowed]
    numbers = np.arange(len(everything)) if allowed is None else np.flatnonzero(allowed)
    recalls = []
    for query, mine in zip(queries, lists[1:], strict=True):
        best = numbers[np.argsort(-(shown @ vectors[query]), kind="stable")[:K]]
        recalls.append(len(mine & {*best.tolist()}) / K)
    median, hand = statistics.median(ours[1:]), statistics.median(hands[1:])
    return {
        "ours": f"{1000 * median:.2f} ms",
        "by hand": f"{1000 * hand:.2f} ms",
        "ratio": f"{median / hand:.2f}",
        "in one batch": f"{1000 * batch / N_QUERIES:.2f} ms a query",
        "recall@10": f"{statistics.mean(recalls):.3f}",
        "fewest found": str(min(found)),
    }


def _by_hand(retriever: PgvectorRetriever, path: Path, record: TableRecord, allowed: Mask | None) -> Callable[[Any], list[Any]]:
    """One statement on a connection of its own, as somebody writes it who knows pgvector."""
    pool = retriever._connections(path)
    url = pool._url or pool._embedded.url()  # type: ignore[union-attr]
    connection = psycopg.connect(url, autocommit=True)
    connection.execute("SELECT '[1]'::vector")
    connection.execute("SET hnsw.ef_search = 100")
    connection.execute("SET hnsw.iterative_scan = strict_order")
    condition, values = SQL("true"), {}
    if allowed is not None:
        condition, values = SQL("row = ANY(%(rows)s)"), {"rows": np.flatnonzero(allowed).tolist()}
    statement = SQL(
        "SELECT row, -(embedding <#> %(query)s::vector) FROM {} WHERE {} ORDER BY embedding <#> %(query)s::vector LIMIT 10"
    ).format(table_of(record), condition)

    def ask(vector: Vectors) -> list[Any]:
        text = "[" + ",".join(map(str, vector.tolist())) + "]"
        return connection.execute(statement, {"query": text} | values).fetchall()

    return ask


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.perf_counter()
    result = work()
    return result, time.perf_counter() - begin


if __name__ == "__main__":
    n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print(json.dumps(main(n_rows, sys.argv[2] if len(sys.argv) > 2 else None), indent=1))
