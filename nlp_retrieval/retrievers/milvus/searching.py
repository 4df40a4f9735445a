"""Searching one collection: filters before the cut, ties by row, and k rows whenever k match.

A filter is sent as the numbers of the allowed rows, or of the others, whichever are fewer. The columns of the index directory
decide which rows are allowed, as for every engine, so no text of a user is ever part of an expression.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from nlp_retrieval.core.candidates import Hits, Mask, Matrix, Rows, Scores, search_past_ties
from nlp_retrieval.retrievers.milvus.client import MilvusConnections
from nlp_retrieval.retrievers.milvus.collections import loaded, stored_vectors
from nlp_retrieval.retrievers.milvus.making import VECTORS, WORDS
from nlp_retrieval.retrievers.milvus.record import CollectionRecord

if TYPE_CHECKING:
    from pymilvus import MilvusClient

MOST_AT_ONCE = 16_384
"""Longest list that a server returns at once."""

ROUNDING = 1e-6
"""Tolerance of scores, as a share of those above 1."""

_COMPARED_AT_ONCE = 16_384


@dataclass(frozen=True)
class Search:
    """Search of one collection.

    Args:
        connections: to the server.
        client: of the server.
        record: of the collection.
        params: of a search for a number of rows.
        consistency: requested of the server.
    """

    connections: MilvusConnections
    client: MilvusClient
    record: CollectionRecord
    params: Callable[[int], dict[str, int]]
    consistency: str

    def nearest(self, vectors: Any, k: int, allowed: Mask | None) -> Hits:
        """Search for vectors, ``[queries, dimension]``, by the inner product.

        An approximate index may return fewer than k rows; then all allowed rows are compared.
        """
        hits = self._hits(VECTORS, vectors, k, allowed)
        short = np.flatnonzero(np.diff(hits.offsets) < k)
        if self.record.index_type == "flat" or len(short) == 0:
            return hits
        lists = [(hits.rows[a:b], hits.scores[a:b]) for a, b in pairwise(hits.offsets.tolist())]
        for number, found in zip(short.tolist(), self._compared(vectors[short], k, allowed), strict=True):
            lists[number] = found
        return Hits.from_lists(lists)

    def matching(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        """Search for words by BM25; rows that share no word with a query are not found."""
        return self._hits(WORDS, queries, k, allowed)

    def _hits(self, field: str, queries: Any, k: int, allowed: Mask | None) -> Hits:
        n_found = self.record.rows if allowed is None else int(np.count_nonzero(allowed))

        def search(numbers: Rows, depth: int) -> Matrix:
            rows, scores = np.full((len(numbers), depth), -1, np.int64), np.zeros((len(numbers), depth))
            asked = [queries[number] for number in numbers.tolist()]
            pages = [self._page(field, asked, depth, allowed)] if depth <= MOST_AT_ONCE else []
            lists = pages[0] if pages else [self._paged(field, query, depth, allowed) for query in asked]
            for place, (some, their) in enumerate(lists):
                rows[place, : len(some)], scores[place, : len(some)] = some, their
            return rows, np.take_along_axis(scores, first_of_level(scores), axis=1)

        return search_past_ties(search, len(queries), k, n_found, past_the_cut=1)

    def _paged(self, field: str, query: Any, depth: int, allowed: Mask | None) -> tuple[Rows, Any]:
        """A list longer than a server's limit: each page leaves out the rows found before."""
        left = np.ones(self.record.rows, np.bool_) if allowed is None else allowed.copy()
        found: list[tuple[Rows, Any]] = []
        missing = depth
        while missing > 0 and left.any():
            ((rows, scores),) = self._page(field, [query], min(missing, MOST_AT_ONCE), None if left.all() else left)
            if len(rows) == 0:
                break
            found.append((rows, scores))
            left[rows] = False
            missing -= len(rows)
        if not found:
            return np.zeros(0, np.int64), np.zeros(0)
        rows, scores = (np.concatenate(columns) for columns in zip(*found, strict=True))
        return rows, scores

    def _page(self, field: str, queries: list[Any], depth: int, allowed: Mask | None) -> list[tuple[Rows, Any]]:
        expression, values = condition_of(allowed, templates=not self.connections.lite)
        metric = "IP" if field == VECTORS else "BM25"

        def search() -> Any:
            return self.client.search(
                self.record.collection,
                data=queries,
                anns_field=field,
                limit=depth,
                filter=expression,
                filter_params=values,
                search_params={"metric_type": metric, "params": self.params(depth) if field == VECTORS else {}},
                consistency_level=self.consistency.title(),
                retry_times=0,
            )

        found = []
        for hits in loaded(self.client, self.record, search):
            rows, scores = np.array(hits.ids, np.int64), np.array(hits.distances, np.float64)
            found.append((rows, np.abs(scores) if field == WORDS else scores))  # Milvus Lite returns negative scores for BM25
        return found

    def _compared(self, vectors: Any, k: int, allowed: Mask | None) -> list[tuple[Rows, Any]]:
        """The best k per query of all allowed rows."""
        rows = np.arange(self.record.rows) if allowed is None else np.flatnonzero(allowed)
        wide, scores = vectors.astype(np.float64), np.empty((len(vectors), len(rows)), np.float32)
        for first in range(0, len(rows), _COMPARED_AT_ONCE):
            some = rows[first : first + _COMPARED_AT_ONCE]
            block = stored_vectors(self.connections, self.client, self.record, some)
            scores[:, first : first + len(some)] = wide @ block.T.astype(np.float64)
        return [best_levelled(rows, its.astype(np.float64), k) for its in scores]


def first_of_level(scores: Scores) -> Rows:
    """The place of each score in its list, best first; scores that differ only by rounding share the first of their places.

    A server rounds the products of equal vectors differently.

    Args:
        scores: ``[..., length]``.
    """
    apart = -np.diff(scores, prepend=np.inf) > ROUNDING * np.maximum(1.0, np.abs(scores))
    places: Rows = np.maximum.accumulate(np.where(apart, np.arange(scores.shape[-1]), 0), axis=-1)
    return places


def best_levelled(rows: Rows, scores: Scores, k: int) -> tuple[Rows, Scores]:
    """The k best of some rows and their scores, best first; the lowest rows if scores differ only by rounding."""
    order = np.argsort(-scores, kind="stable")
    rows, scores = rows[order], scores[order]
    scores = scores[first_of_level(scores)]
    best = np.lexsort((rows, -scores))[:k]
    return rows[best], scores[best]


def condition_of(allowed: Mask | None, *, templates: bool) -> tuple[str, dict[str, list[int]]]:
    """An expression that is true for the allowed rows, and its values.

    Args:
        allowed: ``[rows of the collection]``; None for all.
        templates: whether the server accepts values separately from an expression, so that it need not parse them.
    """
    if allowed is None:
        return "", {}
    word, rows = "in", np.flatnonzero(allowed)
    if 2 * len(rows) > len(allowed):
        word, rows = "not in", np.flatnonzero(~allowed)
    if templates:
        return f"row {word} {{rows}}", {"rows": rows.tolist()}
    return f"row {word} [{','.join(map(str, rows.tolist()))}]", {}
