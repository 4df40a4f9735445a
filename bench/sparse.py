"""Learned sparse retrieval against its formula by hand.

Weights are made at random, like those of a SPLADE model in number and in how unevenly terms are used, so that no model is
needed: 20,000 passages of about 150 terms, 200 queries of about 30, a vocabulary of 30,522.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.common import Data, Row, at_most, best_of_each, noted, record_of
from nlp_retrieval import SearchableItem, SpladeRetriever
from nlp_retrieval.core.candidates import offsets_of
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.encoders import BaseSparseEncoder, TermWeights

_PASSAGES, _QUERIES, _VOCABULARY, _K = 20_000, 200, 30_522, 100


class _Made(BaseSparseEncoder):
    """The weights of passages and queries that are numbers."""

    name = "made"

    def __init__(self) -> None:
        draw = np.random.default_rng(0)
        self.passages, self.queries = _some(draw, _PASSAGES, 150), _some(draw, _QUERIES, 30)

    @property
    def dimension(self) -> int:
        return _VOCABULARY

    def encode_queries(self, queries: list[str]) -> TermWeights:
        return _rows(self.queries, [int(query.split()[1]) for query in queries])

    def encode_passages(self, passages: list[str]) -> TermWeights:
        return _rows(self.passages, [int(passage.split()[1]) for passage in passages])

    def term_names(self, terms: list[int]) -> list[str]:
        return [f"term {term}" for term in terms]

    def model_fingerprint(self) -> str:
        return "made"


def _some(draw: np.random.Generator, count: int, mean: int) -> TermWeights:
    chances = 1.0 / np.arange(20, _VOCABULARY + 20)
    counts = draw.poisson(mean, count)
    drawn = draw.choice(_VOCABULARY, counts.sum(), p=chances / chances.sum())
    texts = [np.unique(terms) for terms in np.split(drawn, np.cumsum(counts)[:-1])]
    offsets = offsets_of([len(terms) for terms in texts])
    return TermWeights(
        offsets, np.concatenate(texts).astype(np.int32), draw.gamma(2, 0.4, offsets[-1]).astype(np.float32) + 1e-3
    )


def _rows(weights: TermWeights, rows: list[int]) -> TermWeights:
    places = [np.arange(weights.offsets[row], weights.offsets[row + 1]) for row in rows]
    chosen = np.concatenate([np.zeros(0, np.int64), *places])
    return TermWeights(offsets_of([len(one) for one in places]), weights.terms[chosen], weights.weights[chosen])


def _matrix(weights: TermWeights) -> Any:
    from scipy.sparse import csr_matrix

    offsets, terms, values = weights
    return csr_matrix((values, terms, offsets), shape=(len(offsets) - 1, _VOCABULARY))


def measure(_: Data) -> Iterator[Row]:
    """Building and searching."""
    encoder = _Made()
    items = [SearchableItem(item_id=str(row), content=f"passage {row}") for row in range(_PASSAGES)]
    at = f"{_PASSAGES:,} passages, {len(encoder.passages.terms) / 1e6:.1f} million weights"
    with tempfile.TemporaryDirectory() as folder:
        retriever = SpladeRetriever(encoder)
        retriever.index(items, folder)
        record, written = record_of(Path(folder), retriever)
        size = sum(file.stat().st_size for file in written.iterdir())
        yield noted(f"splade: indexing without encoding, {at}", f"{record.seconds:.1f} s, {size / 2**20:.0f} MB")
        held = _matrix(encoder.passages).T.tocsr()
        asked = [f"query {row}" for row in range(_QUERIES)]
        generation = open_generation(Path(folder))

        def by_hand() -> list[Any]:
            scores = (_matrix(encoder.queries) @ held).toarray()
            best = np.argpartition(-scores, _K, axis=1)[:, :_K]
            return [rows[np.argsort(-scores[n][rows], kind="stable")] for n, rows in enumerate(best)]

        for backend, budget in (("numpy", 1.5), ("numba", 1.0)):
            opened = SpladeRetriever(encoder, backend=backend).open(generation)  # type: ignore[arg-type]
            weights = opened.encode(asked)
            hits = opened.search_weights(weights, _K, None)
            wanted = by_hand()
            same = np.mean([set(wanted[n].tolist()) == set(hits.rows[n * _K : (n + 1) * _K].tolist()) for n in range(_QUERIES)])
            ours, hand = best_of_each(5, partial(opened.search_weights, weights, _K, None), by_hand)
            yield at_most(
                f"splade: {_QUERIES} queries at once by {backend}, top {_K}, against a product of sparse matrices by hand",
                budget,
                ours / hand,
                f"{1000 * ours / _QUERIES:.2f} ms a query, {1000 * hand / _QUERIES:.2f} by hand; {same:.0%} of lists the same",
            )
        one = [opened.encode([query]) for query in asked]
        begin = time.perf_counter()
        for weights in one:
            opened.search_weights(weights, _K, None)
        yield noted("splade: one query a call, by numba", f"{1000 * (time.perf_counter() - begin) / _QUERIES:.2f} ms")
