"""Creating collections: their fields and indexes, and the requirements on a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.retrievers.milvus.client import MilvusConnections
from nlp_retrieval.retrievers.milvus.record import IndexType

VECTORS, WORDS = "embedding", "words"
"""The fields that are searched."""

MOST_BYTES = 65_535
"""Most bytes of a text in Milvus."""

_ON_LITE = ("flat", "hnsw", "ivf")
_OLDEST, _RABITQ_SINCE = ((2, 5), ""), ((2, 6), "index_type='rabitq'")


@dataclass(frozen=True)
class Making:
    """Settings for creating collections.

    Args:
        index_type: of the vectors.
        params: for building that index.
        analyzer: for the texts; None if there are none.
        bm25: ``bm25_k1`` and ``bm25_b``.
        consistency: default consistency of other clients' reads.
    """

    index_type: IndexType
    params: dict[str, int]
    analyzer: str | None
    bm25: dict[str, float]
    consistency: str


def require_abilities(connections: MilvusConnections, making: Making) -> None:
    """Raise an error if a server cannot create such a collection, before anything is encoded.

    Raises:
        ServerError: it is too old, or cannot be reached.
        ConfigurationError: Milvus Lite lacks a feature of servers.
    """
    connections.require(*(_RABITQ_SINCE if making.index_type == "rabitq" else _OLDEST))
    if connections.lite and making.index_type not in _ON_LITE:
        raise ConfigurationError(
            f"Milvus Lite has no index_type={making.index_type!r}; use {', '.join(_ON_LITE)}, or pass url=... of a server"
        )
    if connections.lite and making.analyzer not in (None, "standard"):
        raise ConfigurationError(
            f"Milvus Lite has no analyzer={making.analyzer!r}; use 'standard', or pass url=... of a server"
        )


def schema_of(directory: Path, dimension: int, analyzer: str | None) -> Any:
    """The fields of a collection.

    Args:
        directory: of the index, for its description.
        dimension: of the vectors; 0 without.
        analyzer: of the texts; None without.
    """
    from pymilvus import DataType, Function, FunctionType, MilvusClient

    schema = MilvusClient.create_schema(auto_id=False, description=f"nlp_retrieval: {directory}"[:1000])
    schema.add_field("row", DataType.INT64, is_primary=True)
    schema.add_field("id_sum", DataType.INT64)
    if dimension:
        schema.add_field(VECTORS, DataType.FLOAT_VECTOR, dim=dimension)
    if analyzer is not None:
        schema.add_field(
            "text", DataType.VARCHAR, max_length=MOST_BYTES, enable_analyzer=True, analyzer_params={"type": analyzer}
        )
        schema.add_field(WORDS, DataType.SPARSE_FLOAT_VECTOR)
        made = Function(name="bm25", function_type=FunctionType.BM25, input_field_names=["text"], output_field_names=[WORDS])
        schema.add_function(made)
    return schema


def index_params_of(dimension: int, making: Making, *, lite: bool) -> Any:
    """Return the indexes of the searched fields; ``lite`` for Milvus Lite."""
    from pymilvus import MilvusClient

    kinds = {"flat": "FLAT", "hnsw": "HNSW", "ivf": "IVF_FLAT", "diskann": "DISKANN", "rabitq": "IVF_RABITQ"}
    params = MilvusClient.prepare_index_params()

    def given(settings: Mapping[str, float]) -> Mapping[str, Any]:
        return {"params": settings} if lite else settings  # Milvus Lite reads no other settings

    if dimension:
        params.add_index(VECTORS, index_type=kinds[making.index_type], metric_type="IP", params=given(making.params))
    if making.analyzer is not None:
        params.add_index(WORDS, index_type="SPARSE_INVERTED_INDEX", metric_type="BM25", params=given(making.bm25))
    return params
