"""The index types of :class:`~nlp_retrieval.FaissRetriever`, each with its own parameters.

A manifest and a run store them in the flat form of earlier releases (``index_type``, ``nlist``, ...), so that what is stored
opens as before, and has the same fingerprint.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar

import faiss as _faiss
from pydantic import Field

from nlp_retrieval.core.components.component import Component, Config
from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.errors import ConfigurationError

faiss: Any = _faiss
_BITS = 8

FLAT_BELOW = 200_000
"""Most items that :class:`Auto` searches exactly; above, it uses an HNSW graph."""

FORMER: Config = {
    "index_type": "auto",
    "hnsw_m": 32,
    "ef_construction": 200,
    "ef_search": 128,
    "nlist": None,
    "nprobe": 32,
    "pq_bytes": 48,
    "train_size": 100_000,
    "seed": 0,
}
"""The flat form: parameters of all types side by side, and their defaults."""


class FaissIndexType(Component):
    """Base of the index types."""

    kind = "index_types"

    flat_names: ClassVar[dict[str, str]] = {}
    """The name of each parameter in the flat form, if it is another one."""

    @property
    def flat(self) -> Config:
        """This type in the flat form."""
        return FORMER | {"index_type": self.name} | {self.flat_names.get(key, key): v for key, v in self._arguments.items()}

    def chosen(self, n_items: int) -> FaissIndexType:
        """Return the type to build for this many items."""
        del n_items
        return self

    def empty(self, n_items: int, dimension: int) -> Any:
        """Return an empty index of FAISS for vectors of a corpus; None if the vectors themselves are the index."""
        del n_items, dimension
        return None


class Flat(FaissIndexType):
    """Exact search over the vectors themselves.

    Examples:
        >>> FaissRetriever(index=Flat())
        FaissRetriever(index=Flat())
    """

    name = "flat"

    def __init__(self) -> None:
        pass


class HNSW(FaissIndexType):
    """A graph (Malkov and Yashunin, 2016): fast, and approximate.

    Args:
        m: links per node.
        ef_construction: width of the build's search for them.
        ef_search: width of a search; at least k is used.

    Examples:
        >>> FaissRetriever(index=HNSW(m=48, ef_search=256))
        FaissRetriever(index=HNSW(m=48, ef_search=256))
    """

    name = "hnsw"
    search_only = frozenset({"ef_search"})
    manifest_may_set = may_set("m", "ef_construction", "ef_search")
    flat_names = {"m": "hnsw_m"}  # noqa: RUF012 - a constant

    def __init__(
        self,
        m: Annotated[int, Field(ge=2, le=256)] = 32,
        ef_construction: Annotated[int, Field(ge=1)] = 200,
        ef_search: Annotated[int, Field(ge=1)] = 128,
    ) -> None:
        self.m = m
        self.ef_construction = ef_construction
        self.ef_search = ef_search

    def empty(self, n_items: int, dimension: int) -> Any:
        del n_items
        index = faiss.IndexHNSWFlat(dimension, self.m, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = self.ef_construction
        return index


class Auto(HNSW):
    """Flat below 200,000 items, and a graph above.

    Args:
        m: links per node of the graph.
        ef_construction: width of the build's search for them.
        ef_search: width of a search of the graph; at least k is used.

    Examples:
        >>> FaissRetriever(index=Auto(ef_search=256))
        FaissRetriever(index=Auto(ef_search=256))
    """

    name = "auto"
    manifest_may_set = HNSW.manifest_may_set

    def chosen(self, n_items: int) -> FaissIndexType:
        return Flat() if n_items < FLAT_BELOW else HNSW(self.m, self.ef_construction, self.ef_search)


class SQ8(FaissIndexType):
    """Exact order over 8-bit vectors, a quarter of the size.

    Args:
        train_size: the most vectors sampled for training.
        seed: seed of that sample.

    Examples:
        >>> FaissRetriever(index=SQ8())
        FaissRetriever(index=SQ8())
    """

    name = "sq8"
    manifest_may_set = may_set("train_size", "seed")

    def __init__(self, train_size: Annotated[int, Field(ge=256)] = 100_000, seed: int = 0) -> None:
        self.train_size = train_size
        self.seed = seed

    def empty(self, n_items: int, dimension: int) -> Any:
        del n_items
        return faiss.IndexScalarQuantizer(dimension, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT)


class IVFPQ(FaissIndexType):
    """Inverted lists with product quantisation (Jegou et al., 2011): a few bytes per vector, and approximate.

    Args:
        nlist: number of lists; by default 4 times the square root of the number of items.
        nprobe: number of lists that a search reads.
        pq_bytes: bytes per vector; must divide the dimension.
        train_size: the most vectors sampled for training.
        seed: seed of that sample.

    Examples:
        >>> FaissRetriever(index=IVFPQ(nprobe=64))
        FaissRetriever(index=IVFPQ(nprobe=64))
    """

    name = "ivfpq"
    search_only = frozenset({"nprobe"})
    manifest_may_set = may_set("nlist", "nprobe", "pq_bytes", "train_size", "seed")

    def __init__(
        self,
        nlist: Annotated[int, Field(ge=1)] | None = None,
        nprobe: Annotated[int, Field(ge=1)] = 32,
        pq_bytes: Annotated[int, Field(ge=1)] = 48,
        train_size: Annotated[int, Field(ge=256)] = 100_000,
        seed: int = 0,
    ) -> None:
        self.nlist = nlist
        self.nprobe = nprobe
        self.pq_bytes = pq_bytes
        self.train_size = train_size
        self.seed = seed

    def empty(self, n_items: int, dimension: int) -> Any:
        if dimension % self.pq_bytes:
            fitting = [size for size in range(1, dimension + 1) if dimension % size == 0]
            raise ConfigurationError(
                f"faiss: pq_bytes={self.pq_bytes} does not divide the dimension {dimension}; these do: {fitting}"
            )
        nlist = self.nlist or max(1, int(4 * math.sqrt(n_items)))
        sampled = min(self.train_size, n_items)
        if sampled < max(nlist, 2**_BITS) <= n_items:
            raise ConfigurationError(
                f"faiss: train_size={self.train_size} is too small to train {nlist} lists and {2**_BITS} centroids; raise it"
            )
        if sampled < max(nlist, 2**_BITS):
            raise ConfigurationError(
                f"faiss: {n_items} items are too few to train ivfpq with {nlist} lists and {2**_BITS} centroids; "
                "use index='flat'"
            )
        quantizer = faiss.IndexFlatIP(dimension)
        return faiss.IndexIVFPQ(quantizer, dimension, nlist, self.pq_bytes, _BITS, faiss.METRIC_INNER_PRODUCT)


def from_flat(flat: Config) -> FaissIndexType:
    """Return the index type of a flat form; parameters of other types are ignored."""
    cls: type[FaissIndexType] = {"auto": Auto, "flat": Flat, "hnsw": HNSW, "ivfpq": IVFPQ, "sq8": SQ8}[flat["index_type"]]
    index_type = cls()
    names = {cls.flat_names.get(key, key): key for key in index_type._arguments}
    return cls(**{names[key]: value for key, value in flat.items() if key in names})
