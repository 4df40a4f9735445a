"""Stores of LangChain and LlamaIndex over pgvector, asked what ours is; run by ``bench.policy.pgvector`` in a venv apart.

``python peer_stores.py URL FOLDER``: the folder holds ``passages.npy`` and ``queries.npy`` (unit vectors), ``parts.npy`` (the
metadata that filters are about) and ``filters.json`` (conditions on them, by name). Prints JSON: by library and filter the rows
that each query finds, and the seconds that it took. Each library makes its HNSW index with m=16 and ef_construction=64 and
searches with ef_search=100, as ours does; everything else is its default.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

K, AT_ONCE = 10, 2000
Ask = Callable[[Any, Any], list[int]]


def langchain(url: str, vectors: Any, parts: Any) -> Ask:
    """LangChain's PGVectorStore; ``part`` is a column of its own."""
    from langchain_core.embeddings import FakeEmbeddings
    from langchain_postgres import Column, PGEngine, PGVectorStore
    from langchain_postgres.v2.indexes import DistanceStrategy, HNSWIndex, HNSWQueryOptions

    engine = PGEngine.from_connection_string(url=url.replace("postgresql://", "postgresql+psycopg://"))
    columns = [Column("part", "INTEGER")]
    engine.init_vectorstore_table(
        "peer_langchain", vectors.shape[1], metadata_columns=columns, id_column=Column("id", "TEXT"), overwrite_existing=True
    )
    store = PGVectorStore.create_sync(
        engine,
        FakeEmbeddings(size=vectors.shape[1]),
        "peer_langchain",
        id_column="id",
        metadata_columns=["part"],
        index_query_options=HNSWQueryOptions(ef_search=100),
        distance_strategy=DistanceStrategy.INNER_PRODUCT,
        k=K,
    )
    for first, last in _spans(len(vectors)):
        texts = [str(row) for row in range(first, last)]
        about = [{"part": int(part)} for part in parts[first:last]]
        store.add_embeddings(texts, vectors[first:last].tolist(), about, ids=texts)
    store.apply_vector_index(HNSWIndex(m=16, ef_construction=64, distance_strategy=DistanceStrategy.INNER_PRODUCT))

    def ask(vector: Any, where: Any) -> list[int]:
        wanted = None if where is None else {"part": where}
        return [int(found.page_content) for found in store.similarity_search_by_vector(vector.tolist(), K, filter=wanted)]

    return ask


def llama_index(url: str, vectors: Any, parts: Any) -> Ask:
    """LlamaIndex's PGVectorStore; metadata are JSON, with an index on ``part``."""
    from llama_index.core.schema import TextNode
    from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters, VectorStoreQuery
    from llama_index.vector_stores.postgres import PGVectorStore

    store = PGVectorStore(
        connection_string=url.replace("postgresql://", "postgresql+psycopg2://"),
        async_connection_string=url.replace("postgresql://", "postgresql+asyncpg://"),
        table_name="peer_llama_index",
        schema_name="public",
        embed_dim=vectors.shape[1],
        use_jsonb=True,
        hnsw_kwargs={
            "hnsw_m": 16, "hnsw_ef_construction": 64, "hnsw_ef_search": 100, "hnsw_dist_method": "vector_cosine_ops",
        },
    )  # fmt: skip
    for first, last in _spans(len(vectors)):
        store.add(
            [
                TextNode(id_=str(row), text=str(row), metadata={"part": int(parts[row])}, embedding=vectors[row].tolist())
                for row in range(first, last)
            ]
        )
    operators = {"$eq": FilterOperator.EQ, "$lt": FilterOperator.LT}

    def ask(vector: Any, where: Any) -> list[int]:
        filters = None
        if where is not None:
            ((operator, value),) = where.items()
            filters = MetadataFilters(filters=[MetadataFilter(key="part", value=value, operator=operators[operator])])
        found = store.query(VectorStoreQuery(query_embedding=vector.tolist(), similarity_top_k=K, filters=filters))
        return [int(node_id) for node_id in found.ids or []]

    return ask


def _spans(count: int) -> Iterator[tuple[int, int]]:
    return ((first, min(first + AT_ONCE, count)) for first in range(0, count, AT_ONCE))


def main(url: str, folder: Path) -> None:
    """Build both, and ask."""
    vectors, queries, parts = (np.load(folder / f"{name}.npy") for name in ("passages", "queries", "parts"))
    filters = json.loads((folder / "filters.json").read_text("utf-8"))
    measured: dict[str, Any] = {}
    for name, make in (("LangChain", langchain), ("LlamaIndex", llama_index)):
        begin = time.perf_counter()
        try:
            ask = make(url, vectors, parts)
            build = time.perf_counter() - begin
            asked: dict[str, Any] = {}
            for label, where in filters.items():
                ask(queries[0], where)
                found, seconds = [], []
                for vector in queries:
                    begin = time.perf_counter()
                    found.append(ask(vector, where))
                    seconds.append(time.perf_counter() - begin)
                asked[label] = {"rows": found, "seconds": seconds}
            measured[name] = {"build": build, "asked": asked}
        except Exception as error:  # the other one is still measured
            measured[name] = {"failed": f"{type(error).__name__}: {error}"[:400]}
    print(json.dumps(measured))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
