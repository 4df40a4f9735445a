"""Learned sparse retrieval gives what a product of sparse matrices gives over all passages, and says by which terms."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hashed_words import items_of, rows_of
from scipy.sparse import csr_matrix
from soaking import mostly_soaked
from sparse_models import HashedTerms, save_splade
from updated_collection import UpdatedCollection, check_against

from nlp_retrieval import Searcher
from nlp_retrieval.encoders.base import BaseSparseEncoder, TermWeights
from nlp_retrieval.encoders.splade import SpladeEncoder
from nlp_retrieval.errors import IndexDamagedError, ModelError
from nlp_retrieval.retrievers.splade import SpladeRetriever, open_files

WORDS = [f"word{number}" for number in range(80)]
BACKENDS = ["numpy", "numba"]


def some_texts(count: int, seed: int = 0) -> list[str]:
    """Some repeat, so that scores tie; some are empty."""
    draw = random.Random(seed)
    made = [" ".join(draw.choices(WORDS, k=draw.choice([0, 1, 4, 12]))) for _ in range(count // 2)]
    return [*made, *draw.choices(made, k=count - len(made))]


TEXTS = some_texts(300)
QUERIES = some_texts(60, 1)


def matrix_of(weights: TermWeights, encoder: BaseSparseEncoder) -> csr_matrix:
    offsets, terms, values = weights
    return csr_matrix((values.astype(np.float64), terms, offsets), shape=(len(offsets) - 1, encoder.dimension))


def by_hand(encoder: BaseSparseEncoder, queries: Sequence[str], texts: Sequence[str]) -> np.ndarray:
    """``[queries, passages]``, the scores."""
    asked, held = encoder.encode_queries(list(queries)), encoder.encode_passages(list(texts))
    return (matrix_of(asked, encoder) @ matrix_of(held, encoder).T).toarray()


def best(scores: np.ndarray, k: int) -> list[int]:
    return [row for row in np.lexsort((np.arange(len(scores)), -scores)).tolist() if scores[row] > 0][:k]


def check_lists(searcher: Searcher, queries: list[str], scores: np.ndarray, k: int) -> None:
    asked = [number for number, query in enumerate(queries) if query]
    for number, hits in zip(asked, searcher.search([queries[n] for n in asked], k), strict=True):
        # equal to rounding, and then by row: what is near to equal by hand is compared by its score
        rounded = np.round(scores[number], 9)
        assert rows_of(hits) == best(rounded, k), queries[number]
        np.testing.assert_allclose([hit.score for hit in hits], scores[number][rows_of(hits)], rtol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("k", mostly_soaked([10, 1, 1000]))
def test_scores_are_those_of_a_product_of_sparse_matrices(tmp_path, backend, k):
    encoder = HashedTerms()
    searcher = Searcher([SpladeRetriever(encoder, backend=backend)])
    searcher.index(items_of(TEXTS), tmp_path)
    check_lists(searcher, QUERIES, by_hand(encoder, QUERIES, TEXTS), k)


@pytest.mark.parametrize("lookup", [False, True])
def test_a_model_of_sentence_transformers_gives_the_scores_that_its_library_gives(tmp_path, lookup):
    from sentence_transformers import SparseEncoder

    folder = save_splade(tmp_path / "model", lookup=lookup)
    texts = ["red fox", "the novel that kubrick filmed", "blue whale , green tree", "film", "東京 köln", ""]
    queries = ["who filmed the novel", "fox", "whale tree"]
    searcher = Searcher([SpladeRetriever(SpladeEncoder(str(folder), device="cpu"))])
    searcher.index(items_of(texts), tmp_path / "index")
    library = SparseEncoder(str(folder), device="cpu")
    scores = library.similarity(library.encode_query(queries), library.encode_document(texts[:-1])).to_dense().numpy()
    for wanted, hits in zip(scores, searcher.search(queries, 10), strict=True):
        assert set(rows_of(hits)) == set(np.flatnonzero(wanted > 0).tolist())
        np.testing.assert_allclose([hit.score for hit in hits], wanted[rows_of(hits)], rtol=1e-5)


@pytest.mark.filterwarnings("ignore:splade found nothing")  # where all that shares a term is deleted
def test_any_updates_leave_what_the_product_by_hand_finds(tmp_path, effort):
    encoder = HashedTerms()
    queries = [query for query in QUERIES if query][:6]
    scores = dict(zip(TEXTS, np.round(by_hand(encoder, queries, TEXTS), 9).T.tolist(), strict=True))
    for seed in range(3 * effort):
        draw = random.Random(seed)
        collection = UpdatedCollection(SpladeRetriever(encoder), draw.choices(TEXTS, k=40), tmp_path / str(seed))
        for _ in collection.change_at_random(draw, TEXTS, 8):
            k = draw.choice([1, 5, 1000])
            for number, hits in enumerate(collection.searcher.search(queries, k)):
                check_against(collection, hits, lambda text, number=number: scores[text][number] or -np.inf, k, 1e-8)


def test_a_model_of_another_kind_is_refused_before_random_weights_are_added_to_it(tmp_path):
    from rerankers.tiny_models import save_bert

    with pytest.raises(ModelError, match=r"is not a learned sparse model \(found: \[\"BertModel\"\]\)"):
        SpladeEncoder(str(save_bert(tmp_path / "plain", head=False)), device="cpu").encode_queries(["fox"])
    folder = save_splade(tmp_path / "model")
    config = folder / "config_sentence_transformers.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"model_type": "SentenceTransformer"}))
    with pytest.raises(ModelError, match='found: "SentenceTransformer"'):
        SpladeEncoder(str(folder), device="cpu").encode_queries(["fox"])
    masked = SpladeEncoder(str(tmp_path / "model-masked"), device="cpu")
    assert len(masked.encode_queries(["fox"]).terms)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("rows", lambda column: column + 1000, "it names"),
        ("weights", lambda column: -column, "is not above 0"),
        ("indptr", lambda column: column[:5], "do not ascend"),
        ("counts", lambda column: column + 1, "contradict"),
    ],
)
def test_files_that_do_not_fit_together_are_damaged(tmp_path: Path, file, change, message):
    SpladeRetriever(HashedTerms()).index(items_of(["a b c", "c d", "a d e", "f"]), tmp_path)
    (folder,) = tmp_path.glob("splade-*")
    assert len(open_files(folder, 4).counts) == 4
    np.save(folder / f"{file}.npy", change(np.load(folder / f"{file}.npy")), allow_pickle=False)
    with pytest.raises(IndexDamagedError, match=message):
        open_files(folder, 4)
