"""The index types of :class:`~nlp_retrieval.FaissRetriever`, each with its own parameters."""

from __future__ import annotations

import math
from typing import Annotated, Any

import faiss as _faiss
from pydantic import Field

from nlp_retrieval.core.components.component import Component
from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.errors import ConfigurationError

faiss: Any = _faiss
"""FAISS has types only for a part of its Python interface, and wrong ones."""

FLAT_BELOW = 200_000
"""Most items that :class:`Auto` searches exactly; above, it uses an HNSW graph."""

_BITS = 8

_Count = Annotated[int, Field(ge=1, lt=2**31)]
_Seed = Annotated[int, Field(ge=0, lt=2**31)]


class FaissIndexType(Component):
    """Base of the index types."""

    kind = "index_types"

    def chosen(self, n_items: int) -> FaissIndexType:
        """Return the type to build for this many items."""
        del n_items
        return self

    def empty(self, n_items: int, dimension: int) -> Any:
        """Return an empty index of FAISS for vectors of a corpus; None if the vectors themselves are the index."""
        del n_items, dimension
        return None

    def search_parameters(self, depth: int, selector: Any) -> Any:
        """Return FAISS's parameters for a search of this depth, among the items that a selector of FAISS allows."""
        del depth
        return faiss.SearchParameters(sel=selector)


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

    def __init__(
        self,
        m: Annotated[int, Field(ge=2, le=256)] = 32,
        ef_construction: _Count = 200,
        ef_search: _Count = 128,
    ) -> None:
        self.m = m
        self.ef_construction = ef_construction
        self.ef_search = ef_search

    def empty(self, n_items: int, dimension: int) -> Any:
        del n_items
        index = faiss.IndexHNSWFlat(dimension, self.m, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = self.ef_construction
        return index

    def search_parameters(self, depth: int, selector: Any) -> Any:
        return faiss.SearchParametersHNSW(sel=selector, efSearch=max(self.ef_search, depth))


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

    def __init__(self, train_size: Annotated[int, Field(ge=256)] = 100_000, seed: _Seed = 0) -> None:
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
        seed: of that sample, and of the k-means.

    Examples:
        >>> FaissRetriever(index=IVFPQ(nprobe=64))
        FaissRetriever(index=IVFPQ(nprobe=64))
    """

    name = "ivfpq"
    search_only = frozenset({"nprobe"})
    manifest_may_set = may_set("nlist", "nprobe", "pq_bytes", "train_size", "seed")

    def __init__(
        self,
        nlist: _Count | None = None,
        nprobe: _Count = 32,
        pq_bytes: _Count = 48,
        train_size: Annotated[int, Field(ge=256)] = 100_000,
        seed: _Seed = 0,
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
        if min(self.train_size, n_items) < max(nlist, 2**_BITS):
            few = f"{n_items} items are" if n_items < max(nlist, 2**_BITS) else f"train_size={self.train_size} is"
            raise ConfigurationError(
                f"faiss: {few} too few to train ivfpq with {nlist} lists and {2**_BITS} centroids; "
                "raise train_size, or use index='flat' for few items"
            )
        index = faiss.IndexIVFPQ(
            faiss.IndexFlatIP(dimension), dimension, nlist, self.pq_bytes, _BITS, faiss.METRIC_INNER_PRODUCT
        )
        for clustering in (index.cp, index.pq.cp):
            clustering.seed, clustering.min_points_per_centroid = self.seed, 1
        return index

    def search_parameters(self, depth: int, selector: Any) -> Any:
        del depth
        return faiss.SearchParametersIVF(sel=selector, nprobe=self.nprobe)
