"""Similarities are those of numpy, filters hold before the cut, on an old pgvector and a new one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nlp_retrieval import SearchableItem
from nlp_retrieval.errors import QueryError
from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTables

from .conftest import SMALL

COUNTRIES = ("Kenya", "Peru", "Japan", None)
N = 400
VECTORS = np.random.default_rng(7).standard_normal((N, 4)).astype(np.float32)
VECTORS[5] = VECTORS[9] = VECTORS[6]  # ties
QUERIES = np.random.default_rng(8).standard_normal((6, 4)).astype(np.float32)


def items() -> list[SearchableItem]:
    made = []
    for number in range(N):
        country = COUNTRIES[number % 4] if number % 100 else "Rare"
        metadata: dict[str, Any] = {"document": f"{country}-{number % 8}"} | ({"country": country} if country else {})
        made.append(SearchableItem(item_id=f"i{number}", content="", metadata=metadata))
    return sorted(made, key=lambda item: str(item.metadata["document"]))


ITEMS = items()
ROWS = [int(item.item_id[1:]) for item in ITEMS]
GIVEN = VECTORS[ROWS]


def by_hand(query: Any, k: int | None, countries: tuple[str, ...] | None) -> list[tuple[str, float]]:
    scores = GIVEN @ query / (np.linalg.norm(GIVEN, axis=1) * np.linalg.norm(query))
    passing = [row for row in range(N) if countries is None or ITEMS[row].metadata.get("country") in countries]
    return sorted(((ITEMS[row].item_id, float(scores[row])) for row in passing), key=lambda one: -one[1])[:k]


@pytest.fixture(params=["dsn", "old_dsn"], ids=["pgvector 0.8", "pgvector 0.6"])
def filled(request: pytest.FixtureRequest, schema: str) -> ChunkTables:
    tables = ChunkTables(request.getfixturevalue(request.param), schema=schema, create=True, dimensions=SMALL)
    tables.write(ITEMS, vectors={"transformer_embedding": GIVEN})
    return tables


@pytest.mark.parametrize("k", [1, 7, None])
@pytest.mark.parametrize("countries", [None, ("Kenya",), ("Rare", "Peru")])
def test_they_are_those_of_numpy(filled: ChunkTables, k: int | None, countries: Any) -> None:
    found = filled.batch_similarity_calculation(QUERIES, country=countries, k=k)
    assert len(found) == len(QUERIES)
    for query, one in zip(QUERIES, found, strict=True):
        wanted = by_hand(query, k, countries)
        assert one.similarities == pytest.approx([score for _, score in wanted], abs=1e-6)
        assert len(set(one.item_ids)) == len(one.item_ids) == len(wanted)
        if k is None:
            assert set(one.item_ids) == {item_id for item_id, _ in wanted}
    assert filled.batch_similarity_calculation(QUERIES[:1], country="Kenya")[0].item_ids == [
        item_id for item_id, _ in by_hand(QUERIES[0], 20, ("Kenya",))
    ]


def test_an_index_finds_k_whenever_k_pass(filled: ChunkTables) -> None:
    filled.index_vectors("transformer_embedding")
    for countries in (None, ("Rare",), ("Kenya",)):
        found = filled.batch_similarity_calculation(QUERIES, country=countries, k=4, exact=False)
        for query, one in zip(QUERIES, found, strict=True):
            wanted = by_hand(query, 4, countries)
            assert len(one.item_ids) == 4
            assert len({*one.item_ids} & {item_id for item_id, _ in wanted}) >= 3


def test_what_cannot_be_asked_is_said(tables: ChunkTables, subtests: pytest.Subtests) -> None:
    tables.write([SearchableItem(item_id="a", content="", metadata={"document": "d", "country": "Kenya"})])
    ones = np.ones((1, 4))
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"vectors": np.ones((1, 3))}, QueryError, "holds vectors of 4 dimensions, and the query vectors have 3"),
        ({"vectors": np.zeros((2, 4))}, QueryError, "vector 1 of 2 is zero or not finite"),
        ({"vectors": ones, "country": "Keny"}, QueryError, "no chunk of 'Keny'; did you mean 'Kenya'"),
    ]
    for arguments, error, said in cases:
        with subtests.test(said=said), pytest.raises(error, match=said):
            tables.batch_similarity_calculation(**arguments)
