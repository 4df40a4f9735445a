"""Dense retrieval gives what numpy gives by brute force, in row order, and approximate indexes come close to it."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hashed_words import HashedWords, items_of, rows_of
from soaking import mostly_soaked

from nlp_retrieval import FaissRetriever
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import ConfigurationError, ModelError
from nlp_retrieval.retrievers import HNSW, IVFPQ, SQ8, Flat
from nlp_retrieval.retrievers.faiss.types import FaissIndexType

WORDS = [f"word{number}" for number in range(120)]


def some_texts(count: int = 700) -> list[str]:
    """Random texts; every fourth repeats an earlier one, so that scores tie."""
    draw = random.Random(11)
    texts: list[str] = []
    for row in range(count):
        texts.append(texts[draw.randrange(row)] if row % 4 == 3 else " ".join(draw.choices(WORDS, k=draw.randint(2, 9))))
    return texts


TEXTS = some_texts()
QUERIES = [" ".join(random.Random(seed).choices(WORDS, k=1 + seed % 5)) for seed in range(50)]
ENCODER = HashedWords()
VECTORS = ENCODER.encode_passages(TEXTS)
TYPES: dict[str, FaissIndexType] = {"flat": Flat(), "hnsw": HNSW(), "sq8": SQ8(), "ivfpq": IVFPQ(8, nprobe=8, pq_bytes=8)}
ANN = ["hnsw", "ivfpq", "sq8"]


@pytest.fixture(scope="module")
def flat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("faiss") / "index"
    FaissRetriever(ENCODER, index="flat").index(items_of(TEXTS), path)
    return path


@pytest.fixture(scope="module", params=ANN)
def ann(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[FaissRetriever, Path]:
    retriever = FaissRetriever(ENCODER, TYPES[request.param])
    path = tmp_path_factory.mktemp(request.param) / "index"
    retriever.index(items_of(TEXTS), path)
    return retriever, path


def brute_force(queries: list[str]) -> np.ndarray:
    scores = ENCODER.encode_queries(queries).astype(np.float64) @ VECTORS.astype(np.float64).T
    return np.round(scores, 5)


@pytest.mark.parametrize("k", mostly_soaked([10, 5000, 1, 100, 700], 2))
def test_flat_gives_what_numpy_gives(flat: Path, k: int) -> None:
    found = FaissRetriever(ENCODER, index="flat").retrieve([[query] for query in QUERIES], flat, k)
    for hits, scores in zip(found, brute_force(QUERIES), strict=True):
        rows = rows_of(hits)
        assert len(rows) == min(k, len(TEXTS))
        np.testing.assert_allclose([hit.score for hit in hits], scores[rows], atol=2e-5)
        np.testing.assert_allclose(scores[rows], np.sort(scores)[::-1][: len(rows)], atol=2e-5)


def test_approximate_indexes_come_close_to_flat(flat: Path, ann: tuple[FaissRetriever, Path]) -> None:
    retriever, path = ann
    exact = FaissRetriever(ENCODER, index="flat").retrieve([[query] for query in QUERIES], flat, 20)
    found = retriever.retrieve([[query] for query in QUERIES], path, 20)
    recall = np.mean([len(set(rows_of(a)) & set(rows_of(b))) / 20 for a, b in zip(exact, found, strict=True)])
    assert recall > {"hnsw": 0.95, "sq8": 0.9, "ivfpq": 0.4}[retriever.index_type.name]


class Spoilt(HashedWords):
    """Gives NaN for texts that hold the word ``spoilt``."""

    def encode_passages(self, passages: list[str]) -> Vectors:
        vectors = super().encode_passages(passages)
        vectors[["spoilt" in text for text in passages]] = np.nan
        return vectors


def test_nan_in_a_vector_names_the_text_when_indexing_and_when_searching(tmp_path: Path) -> None:
    retriever = FaissRetriever(Spoilt())
    with pytest.raises(ModelError, match=r"NaN, infinity .* for 1 of 3 texts \(the first: 'spoilt milk'"):
        retriever.index(items_of(["red fox", "spoilt milk", "blue whale"]), tmp_path / "bad")
    assert not (tmp_path / "bad" / "manifest.json").exists()
    retriever.index(items_of(["red fox", "blue whale"]), tmp_path / "good")
    with pytest.raises(ModelError, match="'something spoilt'"):
        retriever.retrieve([["red"], ["something spoilt"]], tmp_path / "good", 1)


@pytest.mark.parametrize("count", mostly_soaked([255, 1, 100]))
def test_too_few_items_for_ivfpq_is_an_error_that_says_what_to_use(tmp_path: Path, count: int) -> None:
    with pytest.raises(ConfigurationError, match=rf"{count} items are too few to train ivfpq.*index='flat'"):
        FaissRetriever(ENCODER, IVFPQ(pq_bytes=8)).index(items_of(TEXTS[:count]), tmp_path)


# what retrievers that are made of this one use


KEPT = {"flat": 1e-6, "hnsw": 1e-6, "sq8": 0.02, "ivfpq": 0.8}
"""How far a vector that an index gives back may be from the one that went in; pq keeps 8 bytes of 64."""


@pytest.fixture(params=list(KEPT))
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FaissRetriever:
    retriever = FaissRetriever(ENCODER, TYPES[request.param])
    path = tmp_path_factory.mktemp("vectors")
    retriever.index(items_of(TEXTS), path)
    return retriever.open(open_generation(path))
