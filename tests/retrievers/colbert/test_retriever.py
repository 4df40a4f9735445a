"""Late interaction gives what MaxSim by hand gives; compressed, it comes close, and promises the same in every way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hashed_tokens import HashedTokens, naive_maxsim
from hashed_words import InMemory, items_of, rows_of
from soaking import mostly_soaked
from token_passages import ASKED, ENCODER, QUERIES, SPOKEN, TEXTS

import nlp_retrieval
from nlp_retrieval import BeirLoader, SearchableItem, Searcher
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.encoders.colbert import ColbertEncoder
from nlp_retrieval.errors import ConfigurationError, IndexMismatchError, RetrievalWarning
from nlp_retrieval.retrievers.colbert.retriever import ColbertRetriever

DEMO = Path(nlp_retrieval.__file__).parent / "demo"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("colbert") / "index"
    for bits in (None, 2, 4):
        ColbertRetriever(ENCODER, bits=bits).index(items_of(TEXTS), folder)
    return folder


def opened(path: Path, **settings: object) -> ColbertRetriever:
    return ColbertRetriever(ENCODER, **settings).open(open_generation(path))  # type: ignore[arg-type]


def in_order(scores: np.ndarray) -> list[int]:
    return [int(row) for row in np.lexsort((np.arange(len(scores)), -scores)) if np.isfinite(scores[row])]


def same_hits(one: object, other: object) -> bool:
    pairs = ((one.offsets, other.offsets), (one.rows, other.rows), (one.scores, other.scores))  # type: ignore[attr-defined]
    return all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("k", mostly_soaked([10, 1, 5000]))
def test_exact_search_gives_maxsim_by_hand(path: Path, k: int) -> None:
    found, passages = ColbertRetriever(ENCODER, bits=None).retrieve(ASKED[:12], path, k), ENCODER.encode_passages(TEXTS)
    for tokens, hits in zip(ENCODER.encode_queries(QUERIES[:12]), found, strict=True):
        scores = np.array([naive_maxsim(tokens, passage) for passage in passages])
        rows = rows_of(hits)
        assert len(rows) == min(k, SPOKEN.sum())
        np.testing.assert_allclose([hit.score for hit in hits], scores[rows], atol=2e-3)  # float16 on disk
        np.testing.assert_allclose(scores[rows], np.sort(scores)[::-1][: len(rows)], atol=2e-3)


class Remembered(HashedTokens):
    """What a model gave for the texts of the demo, so that it is asked once."""

    name = "remembered"

    def __init__(self) -> None:
        super().__init__(128)
        self.of: dict[str, Vectors] = {}

    def encode_queries(self, queries: list[str]) -> list[Vectors]:
        return [self.of[query] for query in queries]

    def encode_passages(self, passages: list[str]) -> list[Vectors]:
        return [self.of[passage] for passage in passages]


@pytest.fixture(scope="module")
def demo() -> tuple[Remembered, list[SearchableItem], list[str]]:
    items = BeirLoader(DEMO / "corpus.jsonl").load()
    claims = [claim["claim"] for claim in json.loads((DEMO / "claims.json").read_text())]
    model = ColbertEncoder("sentence-transformers/all-MiniLM-L6-v2", device="cpu")
    encoder, texts = Remembered(), [item.text for item in items]
    with pytest.warns(RetrievalWarning, match="not a multi-vector checkpoint"):
        encoder.of = dict(zip(texts, model.encode_passages(texts), strict=True))
    encoder.of |= dict(zip(claims, model.encode_queries(claims), strict=True))
    return encoder, items, claims


@pytest.mark.parametrize(("bits", "least"), [(2, 0.85), pytest.param(4, 0.95, marks=pytest.mark.soak)])
def test_compressed_search_comes_close_to_exact_search_over_real_passages(
    demo: tuple[Remembered, list[SearchableItem], list[str]], tmp_path: Path, bits: Literal[2, 4], least: float
) -> None:
    encoder, items, claims = demo
    asked = [[claim] for claim in claims]
    exact, compressed = ColbertRetriever(encoder, bits=None), ColbertRetriever(encoder, bits=bits, rescored=64)
    exact.index(items, tmp_path)
    compressed.index(items, tmp_path)
    one, other = exact.retrieve(asked, tmp_path, 10), compressed.retrieve(asked, tmp_path, 10)
    overlap = [
        len({hit.item.item_id for hit in a} & {hit.item.item_id for hit in b}) / 10 for a, b in zip(one, other, strict=True)
    ]
    assert np.mean(overlap) >= least


@pytest.mark.parametrize("bits", [None, 2, 4])
def test_repeated_passages_stand_by_row_also_at_the_cut(tmp_path: Path, bits: Literal[2, 4] | None) -> None:
    texts = ["red fox", "blue whale sings", "red fox", "green tree in the wood"] * 101 + ["red"]
    retriever = ColbertRetriever(HashedTokens(19), bits=bits, rescored=8)  # type: ignore[arg-type]
    retriever.index(items_of(texts), tmp_path)
    same = [row for row, text in enumerate(texts) if text == "red fox"]
    for k in (1, 3, 50, 202):
        assert rows_of(retriever.retrieve([["red fox"]], tmp_path, k)[0]) == same[:k]


@pytest.mark.parametrize("bits", [None, 2, 4])
def test_empty_passages_are_never_found_and_k_may_be_larger_than_the_corpus(path: Path, bits: Literal[2, 4] | None) -> None:
    for hits in ColbertRetriever(ENCODER, bits=bits).retrieve(ASKED[:3], path, 5000):  # type: ignore[arg-type]
        assert sorted(rows_of(hits)) == np.flatnonzero(SPOKEN).tolist()


@pytest.mark.parametrize("bits", [None, 2, 4])
@pytest.mark.parametrize("share", mostly_soaked([0.0, 0.1, 0.005, 0.9], 2))
def test_a_mask_never_leaks_and_k_are_found_where_k_are_allowed(path: Path, bits: Literal[2, 4] | None, share: float) -> None:
    allowed = np.random.default_rng(1).random(len(TEXTS)) < share
    hits = opened(path, bits=bits, rescored=12, nprobe=1).search_batch(QUERIES, 10, allowed)
    assert (allowed & SPOKEN)[hits.rows].all()
    assert (np.diff(hits.offsets) == min(10, (allowed & SPOKEN).sum())).all()


def test_a_mask_keeps_the_order_of_the_rest(path: Path) -> None:
    allowed = np.random.default_rng(2).random(len(TEXTS)) < 0.3
    index = opened(path, bits=None)
    hits, whole = index.search_batch(QUERIES, 10, allowed), index.search_batch(QUERIES, len(TEXTS), None)
    for query in range(len(QUERIES)):
        everything = whole.rows[whole.offsets[query] : whole.offsets[query + 1]]
        found = hits.rows[hits.offsets[query] : hits.offsets[query + 1]]
        assert found.tolist() == everything[allowed[everything]][:10].tolist()


@pytest.mark.parametrize("bits", mostly_soaked([2, None, 4]))
def test_a_batch_gives_what_its_queries_give_one_by_one_to_the_last_bit(path: Path, bits: Literal[2, 4] | None) -> None:
    index = opened(path, bits=bits, rescored=32)
    tokens = index.encode(QUERIES)
    batch = index.search_tokens(tokens, 10, None)
    for number, query in enumerate(tokens):
        alone = index.search_tokens([query], 10, None)
        part = slice(batch.offsets[number], batch.offsets[number + 1])
        assert alone.rows.tolist() == batch.rows[part].tolist()
        assert alone.scores.tolist() == batch.scores[part].tolist()


def test_wider_settings_find_no_worse_passages(path: Path) -> None:
    exact = ColbertRetriever(ENCODER, bits=4, rescored=1000).retrieve(ASKED, path, 10)

    def overlap(**settings: float) -> float:
        found = ColbertRetriever(ENCODER, bits=4, **settings).retrieve(ASKED, path, 10)  # type: ignore[arg-type]
        scores = [(sum(hit.score for hit in a), sum(hit.score for hit in b)) for a, b in zip(found, exact, strict=True)]
        return float(np.mean([a / b for a, b in scores]))

    narrow, wide = overlap(rescored=20, nprobe=1, prune=0.95), overlap(rescored=200, nprobe=8, prune=0.0)
    assert narrow <= wide <= 1.0
    assert wide > 0.999


class Projecting(HashedTokens):
    """Multiplies by a matrix that is random where none is given."""

    name = "projecting"
    matrix: Vectors | None = None

    def projection_matrix(self) -> Vectors:
        if self.matrix is None:
            self.matrix = np.linalg.qr(np.random.default_rng().standard_normal((24, 24)))[0].astype(np.float32)
        return self.matrix

    def with_projection(self, matrix: Vectors) -> Projecting:
        other = Projecting(self.dimension)
        other.matrix = matrix
        return other

    def encode_queries(self, queries: list[str]) -> list[Vectors]:
        return [vectors @ self.projection_matrix() for vectors in super().encode_queries(queries)]

    def encode_passages(self, passages: list[str]) -> list[Vectors]:
        return [vectors @ self.projection_matrix() for vectors in super().encode_passages(passages)]


def test_queries_go_through_the_projection_that_was_saved_with_the_index(path: Path, tmp_path: Path) -> None:
    ColbertRetriever(Projecting(24), bits=None).index(items_of(TEXTS), tmp_path)
    found = ColbertRetriever(Projecting(24), bits=None).retrieve(ASKED[:10], tmp_path, 1)
    exact = ColbertRetriever(ENCODER, bits=None).retrieve(ASKED[:10], path, 1)
    assert [hits[0].score for hits in found] == pytest.approx([hits[0].score for hits in exact], abs=2e-3)


@pytest.mark.parametrize(
    ("bits", "changed"), [(2, {"nprobe": 9}), (4, {"rescored": 30, "prune": 0.1}), (None, {"merge": "rrf"})]
)
def test_search_parameters_change_no_index(path: Path, bits: Literal[2, 4] | None, changed: dict[str, object]) -> None:
    report = ColbertRetriever(ENCODER, bits=bits, **changed).index(items_of(TEXTS), path)  # type: ignore[arg-type]
    assert report.found == ["colbert"]


def test_parameters_of_compression_change_no_exact_index(path: Path) -> None:
    report = ColbertRetriever(ENCODER, bits=None, centroids=7, seed=3).index(items_of(TEXTS), path)
    assert report.found == ["colbert"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"encoder": HashedTokens(24, seed=1)}, r"encoder\.seed: indexed with 0, now 1"),
        ({"centroids": 8}, "centroids: indexed with None, now 8"),
    ],
)
def test_searching_with_another_index_configuration_is_an_error_that_names_it(
    path: Path, changed: dict[str, object], said: str
) -> None:
    with pytest.raises(IndexMismatchError, match=said):
        ColbertRetriever(**({"encoder": ENCODER} | changed)).retrieve([["word1"]], path, 5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", [{"bits": 3}, {"nprobe": 0}, {"rescored": 0}, {"prune": 1.5}, {"centroids": 0}, {"encoder": 3}]
)
def test_a_parameter_out_of_range_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match=f"ColbertRetriever: {next(iter(wrong))}"):
        ColbertRetriever(**({"encoder": ENCODER} | wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize("scope", ["pooled", "per_subquery"])
def test_it_works_inside_a_searcher(tmp_path: Path, scope: str) -> None:
    searcher = Searcher([ColbertRetriever(ENCODER, bits=4, rescored=32)], scope=scope)  # type: ignore[arg-type]
    searcher.index(InMemory(TEXTS), tmp_path)
    found = searcher.search([TEXTS[0], TEXTS[5]], k=5)
    assert [TEXTS[rows_of(hits)[0]] for hits in found] == [TEXTS[0], TEXTS[5]]
    assert all(len(hits) == 5 for hits in found)


def test_subqueries_are_merged(path: Path) -> None:
    retriever = ColbertRetriever(ENCODER, bits=4, merge="round_robin")
    first, second = TEXTS[0], TEXTS[5]
    (hits,) = retriever.retrieve([[first, second]], path, 2)
    assert {TEXTS[row] for row in rows_of(hits)} == {first, second}


def test_a_query_without_tokens_finds_nothing_and_the_others_are_not_touched(path: Path) -> None:
    index = opened(path)
    tokens = index.encode([QUERIES[1], QUERIES[2]])
    hits = index.search_tokens([tokens[0], tokens[0][:0], tokens[1]], 3, None)
    assert np.diff(hits.offsets).tolist() == [3, 0, 3]


def test_config_builds_an_equal_retriever_and_repr_shows_what_was_set() -> None:
    retriever = ColbertRetriever(ENCODER, bits=2, nprobe=9)
    assert retriever == ColbertRetriever(HashedTokens(24), bits=2, nprobe=9)
    assert "bits=2" in repr(retriever)
    assert "nprobe=9" in repr(retriever)
    assert ColbertRetriever().config["encoder"]["model"] == "colbert-ir/colbertv2.0"
