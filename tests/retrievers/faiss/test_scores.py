"""A score is the product of the query and the row, whatever is computed beside it; order goes by it."""

from __future__ import annotations

import numpy as np
import pytest
from hashed_words import items_of

from nlp_retrieval import FaissRetriever
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.encoders import BaseEncoder
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers import HNSW, IVFPQ, SQ8, Flat
from nlp_retrieval.retrievers.faiss.exact import Stack, exact_search

TYPES = {"flat": Flat(), "hnsw": HNSW(), "sq8": SQ8(), "ivfpq": IVFPQ(8, nprobe=8, pq_bytes=15)}


def around_some(count: int, dimension: int, seed: int = 0) -> Vectors:
    """Vectors of length 1 around thirty directions; every third is an earlier one again."""
    draw = np.random.default_rng(seed)
    found = draw.standard_normal((30, dimension))[draw.integers(0, 30, count)] + draw.standard_normal((count, dimension))
    found[2::3] = found[:-2:3]
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


class Given(BaseEncoder):
    """Texts are numbers of vectors."""

    name = "given"
    vectors = around_some(900, 195)

    def encode_queries(self, queries: list[str]) -> Vectors:
        return self.vectors[[int(query) for query in queries]]

    def encode_passages(self, passages: list[str]) -> Vectors:
        return self.encode_queries(passages)

    def model_fingerprint(self) -> str:
        return "given"


@pytest.fixture(scope="module", params=list(TYPES))
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FaissRetriever:
    retriever = FaissRetriever(Given(), TYPES[request.param])
    path = tmp_path_factory.mktemp(request.param)
    retriever.index(items_of([str(number) for number in range(900)]), path)
    return retriever.open(open_generation(path))


def test_a_query_alone_gets_what_it_gets_in_a_batch_to_the_bit(opened: FaissRetriever) -> None:
    k = 40
    queries = around_some(70, 195, seed=1)
    together = opened.search_vectors(queries, k, None)
    for number, vector in enumerate(queries):
        part = slice(int(together.offsets[number]), int(together.offsets[number + 1]))
        alone = opened.search_vectors(vector[None], k, None)
        assert alone.rows.tolist() == together.rows[part].tolist()
        assert alone.scores.tolist() == together.scores[part].tolist()


def test_a_score_is_the_product_with_the_row_that_is_given_back_and_equal_rows_have_one(opened: FaissRetriever) -> None:
    queries = around_some(70, 195, seed=1)
    hits = opened.search_vectors(queries, 60, None)
    for number, vector in enumerate(queries):
        part = slice(int(hits.offsets[number]), int(hits.offsets[number + 1]))
        rows, scores = hits.rows[part], hits.scores[part]
        vectors = opened.vectors_of(rows)
        np.testing.assert_allclose(scores, vectors.astype(np.float64) @ vector.astype(np.float64), atol=1e-6)
        by_vector: dict[bytes, float] = {}
        assert all(by_vector.setdefault(row.tobytes(), score) == score for row, score in zip(vectors, scores, strict=True))
        assert rows.tolist() == rows[np.lexsort((rows, -scores))].tolist()


def test_rows_whose_products_cancel_are_found_by_their_own_products() -> None:
    draw = np.random.default_rng(2)
    half = draw.standard_normal((400, 64)) * 1e4
    vectors = np.concatenate([half, -half], axis=1).astype(np.float32)
    vectors[200:] = vectors[:200]
    queries = np.tile(draw.standard_normal((5, 64)), 2).astype(np.float32)
    hits = exact_search(queries, Stack(vectors), 30, None)
    for number, query in enumerate(queries):
        own = [float(np.einsum("ij,j->i", row[None], query)[0]) for row in vectors]
        wanted = np.lexsort((np.arange(400), -np.array(own)))[:30]
        assert hits.rows[30 * number : 30 * number + 30].tolist() == wanted.tolist()
