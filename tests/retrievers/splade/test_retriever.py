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
from updated_collection import UpdatedCollection, check_against, files_of, found_by

from nlp_retrieval import RetrievalWarning, Searcher
from nlp_retrieval.core.components.registry import build
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.encoders.base import BaseSparseEncoder, TermWeights
from nlp_retrieval.encoders.splade import SpladeEncoder
from nlp_retrieval.errors import ConfigurationError, IndexDamagedError, IndexMismatchError, ModelError
from nlp_retrieval.retrievers import splade as splade_room
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


@pytest.mark.parametrize("backend", BACKENDS)
def test_filters_are_exact(tmp_path, backend):
    collection = UpdatedCollection(SpladeRetriever(HashedTerms(), backend=backend), TEXTS, tmp_path)
    scores = by_hand(HashedTerms(), QUERIES[:10], TEXTS)
    scores[:, 1::2] = 0
    for query, wanted in zip(QUERIES[:10], np.round(scores, 9), strict=True):
        if query:
            found = found_by(collection.searcher, query, 7, where={"even": True})
            assert [int(name[1:]) for name, _ in found] == best(wanted, 7)


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


def test_joined_it_is_the_index_built_at_once_to_the_byte_and_nothing_is_encoded(tmp_path, monkeypatch):
    collection = UpdatedCollection(SpladeRetriever(HashedTerms()), TEXTS[:100], tmp_path / "updated")
    collection.add(TEXTS[100:150])
    collection.put(["d3", "d120"], ["word1 word2", ""])
    collection.delete([f"d{number}" for number in range(0, 140, 3) if number != 3])
    at_once = collection.built_at_once(tmp_path / "at once", SpladeRetriever(HashedTerms()))
    before = [found_by(collection.searcher, query, 1000) for query in QUERIES if query]
    monkeypatch.delattr(HashedTerms, "encode_passages")
    monkeypatch.setattr(HashedTerms, "__abstractmethods__", frozenset())
    assert collection.searcher.compact().segments == 1
    assert collection.files() == files_of(at_once)
    assert [found_by(collection.searcher, query, 1000) for query in QUERIES if query] == before


def test_batches_and_runs_make_no_difference(tmp_path, monkeypatch):
    whole, parts = Searcher([SpladeRetriever(HashedTerms())]), Searcher([SpladeRetriever(HashedTerms())])
    whole.index(items_of(TEXTS), tmp_path / "whole")
    monkeypatch.setattr(splade_room, "_BATCH", 7)
    parts.index(items_of(TEXTS), tmp_path / "parts")
    assert files_of(parts) == files_of(whole)
    queries = [query for query in QUERIES if query]
    assert parts.search(queries, 5) == whole.search(queries, 5)


def test_a_killed_build_goes_on_where_it_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(splade_room, "_BATCH", 20)
    read: list[int] = []
    plain = HashedTerms.encode_passages

    def stops(self: HashedTerms, passages: list[str]) -> TermWeights:
        if sum(read) >= 100 and not (tmp_path / "again").exists():
            raise KeyboardInterrupt
        read.append(len(passages))
        return plain(self, passages)

    monkeypatch.setattr(HashedTerms, "encode_passages", stops)
    searcher = Searcher([SpladeRetriever(HashedTerms())])
    with pytest.raises(KeyboardInterrupt):
        searcher.index(items_of(TEXTS), tmp_path / "index")
    (tmp_path / "again").mkdir()
    searcher.index(items_of(TEXTS), tmp_path / "index")
    assert read == [20] * 15, "a batch was encoded twice"
    monkeypatch.undo()
    plainly = Searcher([SpladeRetriever(HashedTerms())])
    plainly.index(items_of(TEXTS), tmp_path / "plain")
    assert files_of(searcher) == files_of(plainly)


def test_an_explanation_names_the_terms_that_gave_the_score(tmp_path):
    collection = UpdatedCollection(SpladeRetriever(HashedTerms()), ["word1 word2", "word3"], tmp_path)
    collection.add(["word2 word4 word1"])
    (hits,) = collection.searcher.search(["word2 word4"], 3)
    found = [explained["splade"] for explained in collection.searcher.explain("word2 word4", hits)]
    encoder = HashedTerms()
    asked = matrix_of(encoder.encode_queries(["word2 word4"]), encoder).toarray()[0]
    for hit, explanation in zip(hits, found, strict=True):
        held = matrix_of(encoder.encode_passages([hit.item.content]), encoder).toarray()[0]
        term = int(np.argmax(asked * held))
        part = (
            f"'term {term}' {asked[term] * held[term]:.3g} ({asked[term]:.3g} in the query x {held[term]:.3g} in the passage)"
        )
        assert explanation.origin.startswith(f"splade scores {hit.score:.4g} by the terms {part}")
        assert explanation.steps == ()
    assert [hit.item.item_id for hit in hits] == ["d2", "d0"]


def test_the_most_terms_of_passages_belong_to_the_index_and_those_of_queries_do_not(tmp_path):
    folder = str(save_splade(tmp_path / "model"))

    def retriever(**settings: int) -> SpladeRetriever:
        return SpladeRetriever(SpladeEncoder(folder, device="cpu", **settings))

    texts = ["red fox", "the novel that kubrick filmed"]
    Searcher([retriever(max_active_dims=3)]).index(items_of(texts), tmp_path / "index")
    generation = open_generation(tmp_path / "index")
    postings = open_files(generation.path / generation.manifest.retrievers[0].segments[0].folder)
    assert postings.counts.tolist() == [3, 3]
    few = Searcher([retriever(max_active_dims=3, max_query_dims=1)]).open(tmp_path / "index")
    many = Searcher([retriever(max_active_dims=3)]).open(tmp_path / "index")
    assert few.search("fox", 1)[0][0].score <= many.search("fox", 1)[0][0].score
    with pytest.raises(IndexMismatchError, match="max_active_dims"):
        Searcher([retriever()]).open(tmp_path / "index").search("fox", 1)


def test_texts_that_are_longer_than_the_model_reads_are_told(tmp_path):
    retriever = SpladeRetriever(HashedTerms(most=3))
    with pytest.warns(RetrievalWarning, match="splade: 1 of 2 passages are longer than the encoder reads"):
        Searcher([retriever]).index(items_of(["a b c d", "a b"]), tmp_path)


class Wrong(HashedTerms):
    """Gives what it is told to give."""

    name = "wrong-terms"
    given: object = None

    def encode_passages(self, passages: list[str]) -> TermWeights:
        sound = super().encode_passages(passages)
        return self.given(sound) if callable(self.given) else self.given  # type: ignore[return-value]


def changed(**columns: object) -> object:
    return lambda sound: sound._replace(**{key: change(getattr(sound, key)) for key, change in columns.items()})


def with_first(value: float) -> object:
    return lambda column: np.concatenate([np.array([value], column.dtype), column[1:]])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "returned NoneType"),
        (np.zeros((2, 997)), "returned ndarray"),
        (changed(offsets=lambda column: column[:-1]), "for 2 texts"),
        (changed(offsets=lambda column: column[::-1].copy()), "for 2 texts"),
        (changed(weights=lambda column: column[:-1]), "for 2 texts"),
        (changed(weights=lambda column: column.astype(object)), "of object"),
        (changed(terms=lambda column: column.astype(np.float32)), "of float32"),
        (changed(terms=with_first(-1)), r"gave the terms -1\.\."),
        (changed(terms=lambda column: column + 997), "it has 997"),
        (changed(terms=lambda column: column[::-1].copy()), r"twice or out of order \(in 'word1 word2'"),
        (changed(terms=np.zeros_like), "twice or out of order"),
        (changed(weights=with_first(0.0)), "the weight 0, and weights"),
        (changed(weights=with_first(-1.0)), "the weight -1, and weights"),
        (changed(weights=with_first(np.nan)), r"the weight nan, and weights .* \(in 'word1 word2'"),
        (changed(weights=with_first(np.inf)), "the weight inf, and weights"),
        (changed(weights=lambda column: column.astype(np.float64) * 1e300), "weights are finite"),
    ],
)
def test_weights_that_cannot_be_searched_are_an_error_that_names_the_text(tmp_path, monkeypatch, given, message):
    monkeypatch.setattr(Wrong, "given", given if not callable(given) else staticmethod(given))
    with pytest.raises(ModelError, match=message):
        Searcher([SpladeRetriever(Wrong())]).index(items_of(["word1 word2", "word3"]), tmp_path)


def test_a_device_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError, match=r"^there is no device 'cuda:9' here \(found: cpu"):
        SpladeEncoder(str(save_splade(tmp_path / "model")), device="cuda:9").encode_queries(["fox"])


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


@pytest.mark.parametrize("form", [{"name": "org/model"}, "org/model", {"name": "splade", "model": "org/model"}])
def test_a_model_by_its_name_is_a_sparse_encoder(form):
    assert build("retrievers", {"name": "splade", "encoder": form}) == SpladeRetriever("org/model")


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("rows", lambda column: column[::-1].copy(), "do not ascend|contradict"),
        ("rows", lambda column: column + 1000, "it names"),
        ("rows", lambda column: column[:-1], "it holds|it runs"),
        ("weights", lambda column: -column, "is not above 0"),
        ("weights", lambda column: column * np.float32(np.nan), "is not above 0"),
        ("weights", lambda column: column.astype(np.float64), "it holds <f8"),
        ("indptr", lambda column: column[:5], "it runs from 0"),
        ("indptr", lambda column: column[:0], "it is of -1 terms"),
        ("indptr", lambda column: column[::-1].copy(), "it runs from"),
        ("counts", lambda column: column + 1, "contradict"),
        ("counts", lambda column: column[:-1], "it names|contradict|of 4"),
    ],
)
def test_files_that_do_not_fit_together_are_damaged(tmp_path: Path, file, change, message):
    SpladeRetriever(HashedTerms()).index(items_of(["a b c", "c d", "a d e", "f"]), tmp_path)
    (folder,) = tmp_path.glob("splade-*")
    assert len(open_files(folder, 4).counts) == 4
    np.save(folder / f"{file}.npy", change(np.load(folder / f"{file}.npy")), allow_pickle=False)
    with pytest.raises(IndexDamagedError, match=message):
        open_files(folder, 4)
