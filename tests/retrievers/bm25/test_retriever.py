"""BM25 without Java gives what bm25s gives, in row order, and nothing that does not match."""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import bm25s
import numpy as np
import pytest
import Stemmer
from hashed_words import items_of, rows_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nlp_retrieval import Bm25Retriever, RetrievalWarning

WORDS = (
    "river bridge castle Köln naïve café museums painting novel Kubrick running runs ran children village island queen battle "
    "1914 album guitar singer physics electron orbit harbour whale straße film director the of and is Москва Αθήνα Київ x1"
).split()


def some_texts(count: int = 300) -> list[str]:
    """Random texts; every third repeats an earlier one, so that scores tie, and two rows hold nothing to index."""
    draw = random.Random(5)
    texts: list[str] = []
    for row in range(count):
        texts.append(texts[draw.randrange(row)] if row % 3 == 2 else " ".join(draw.choices(WORDS, k=draw.randint(1, 20))))
    texts[17], texts[40] = "", "the of and"
    return texts


TEXTS = some_texts()
QUERIES = [" ".join(random.Random(seed).choices(WORDS[:-8], k=1 + seed % 7)) for seed in range(40)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bm25") / "index"
    Bm25Retriever().index(items_of(TEXTS), path)
    return path


def oracle(queries: list[str], k1: float, b: float, stemmer: str = "porter", texts: list[str] | None = None) -> np.ndarray:
    """``[queries, items]`` scores, by bm25s itself."""
    stem = Stemmer.Stemmer(stemmer)
    model = bm25s.BM25(k1=k1, b=b, method="lucene")
    corpus = bm25s.tokenize(texts or TEXTS, stopwords="en", stemmer=stem, show_progress=False, return_ids=False)
    model.index(corpus, show_progress=False)
    asked = bm25s.tokenize(queries, stopwords="en", stemmer=stem, show_progress=False, return_ids=False)
    n_items = len(texts or TEXTS)
    return np.stack([model.get_scores(tokens) if tokens else np.zeros(n_items, np.float32) for tokens in asked])


def quietly(retriever: Bm25Retriever, queries: list[str], folder: Path, k: int = 10) -> list:  # type: ignore[type-arg]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)
        return retriever.retrieve([[query] for query in queries], folder, k)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize(
    ("k1", "b"),
    [(0.9, 0.4), (2.5, 1.0), *(pytest.param(k1, b, marks=pytest.mark.soak) for k1, b in [(1.5, 0.75), (0.0, 0.0)])],
)
def test_scores_and_order_are_those_of_bm25s(folder: Path, k1: float, b: float, backend: str) -> None:
    wanted = oracle(QUERIES, k1, b)
    found = quietly(Bm25Retriever(k1=k1, b=b, backend=backend), QUERIES, folder, k=len(TEXTS))
    for query, hits, scores in zip(QUERIES, found, wanted, strict=True):
        rows = rows_of(hits)
        np.testing.assert_allclose([hit.score for hit in hits], scores[rows], rtol=1e-5, err_msg=query)
        assert set(rows) == set(np.flatnonzero(scores)), query
        # bm25s adds in single precision: documents that it ties may differ there in the last bit, and those alone
        assert (np.diff(scores[rows]) <= 1e-5 * scores.max()).all(), query


def test_numpy_and_numba_give_the_same_bits(folder: Path) -> None:
    queries = [*QUERIES, " ".join(WORDS * 3)] * 2  # more than one part for numba's threads
    for k in (1, 7, 1000):
        one = quietly(Bm25Retriever(backend="numpy"), queries, folder, k)
        other = quietly(Bm25Retriever(backend="numba"), queries, folder, k)
        assert [[(h.item.item_id, h.score) for h in hits] for hits in one] == [
            [(h.item.item_id, h.score) for h in hits] for hits in other
        ]


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@given(
    texts=st.lists(st.text("abc  ", max_size=12), min_size=1, max_size=12),
    query=st.text("abcd ", max_size=8),
    k=st.integers(1, 15),
)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_corpus_and_query_agree_with_scoring_by_hand(
    tmp_path_factory: pytest.TempPathFactory, backend: str, texts: list[str], query: str, k: int
) -> None:
    doubled = [text.replace("a", "aa ").replace("b", "bb ").replace("c", "cc ") for text in texts]
    asked = query.replace("a", "aa ").replace("b", "bb ").replace("c", "cc ")
    documents = [[w for w in text.split() if len(w) > 1] for text in doubled]
    mean = max(sum(map(len, documents)) / len(documents), 1.0)
    scores = np.zeros(len(documents))
    for word in asked.split():
        found = sum(word in document for document in documents)
        idf = np.log(1 + (len(documents) - found + 0.5) / (found + 0.5))
        for row, document in enumerate(documents):
            count = document.count(word)
            scores[row] += idf * count / (count + 0.9 * (0.6 + 0.4 * len(document) / mean))
    retriever = Bm25Retriever(stemmer="none", stopwords=None, backend=backend)
    folder = tmp_path_factory.mktemp("any")
    retriever.index(items_of(doubled), folder)
    hits = quietly(retriever, [asked], folder, k)[0]
    assert len(hits) == min(k, int((scores > 0).sum()))
    np.testing.assert_allclose([hit.score for hit in hits], np.sort(scores)[::-1][: len(hits)], rtol=1e-5)
    np.testing.assert_allclose([hit.score for hit in hits], scores[rows_of(hits)], rtol=1e-5)
