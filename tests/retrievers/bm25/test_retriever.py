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
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.errors import ConfigurationError, IndexMismatchError, QueryError
from nlp_retrieval.retrievers.bm25 import scoring as bm25_scoring

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


def expected(scores: np.ndarray, k: int) -> list[int]:
    """Best first, ties by row, matches only."""
    order = np.lexsort((np.arange(len(scores)), -scores))
    return [int(row) for row in order[:k] if scores[row] > 0]


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


def test_another_stemmer_gives_what_bm25s_gives_with_it(tmp_path: Path) -> None:
    texts = ["Die Häuser der Stadt", "Ein Haus am See", "Hauses Dach und Häuser", "See und Stadt"]
    retriever = Bm25Retriever(stemmer="german")
    retriever.index(items_of(texts), tmp_path)
    scores = oracle(["Haus", "Städte See"], 0.9, 0.4, "german", texts)
    for hits, row_scores in zip(quietly(retriever, ["Haus", "Städte See"], tmp_path), scores, strict=True):
        assert rows_of(hits) == expected(row_scores, 10)


def test_numpy_and_numba_give_the_same_bits(folder: Path) -> None:
    queries = [*QUERIES, " ".join(WORDS * 3)] * 2  # more than one part for numba's threads
    for k in (1, 7, 1000):
        one = quietly(Bm25Retriever(backend="numpy"), queries, folder, k)
        other = quietly(Bm25Retriever(backend="numba"), queries, folder, k)
        assert [[(h.item.item_id, h.score) for h in hits] for hits in one] == [
            [(h.item.item_id, h.score) for h in hits] for hits in other
        ]


def test_auto_begins_with_numpy_and_turns_to_numba_without_changing_a_result(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever = Bm25Retriever(backend="auto")
    monkeypatch.setattr(bm25_scoring._loops, "numpy_seconds", 0.0)
    before = quietly(retriever, QUERIES, folder)
    assert bm25_scoring._loops.numpy_seconds > 0
    monkeypatch.setattr(bm25_scoring._loops, "numpy_seconds", 1e9)
    assert quietly(retriever, QUERIES, folder) == before
    assert bm25_scoring._loops.numpy_seconds == 1e9  # numpy did nothing more


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_ties_go_by_row_also_at_the_cut(tmp_path: Path, backend: str) -> None:
    texts = ["red fox", "blue whale", "red fox"] * 60 + ["red red fox fox fox"]
    retriever = Bm25Retriever(backend=backend)
    retriever.index(items_of(texts), tmp_path)
    same = [row for row, text in enumerate(texts) if text == "red fox"]
    for k in (1, 2, 13, 50, 119, 500):
        hits = retriever.retrieve([["red fox"]], tmp_path, k)[0]
        assert rows_of(hits) == [180, *same][:k]


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


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_k_beyond_the_corpus_gives_the_matches_and_no_padding(folder: Path, backend: str) -> None:
    hits = Bm25Retriever(backend=backend).retrieve([["kubrick"]], folder, 10_000)[0]
    assert sorted(rows_of(hits)) == [row for row, text in enumerate(TEXTS) if "Kubrick" in text.split()]
    assert all(hit.score > 0 for hit in hits)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_a_mask_never_leaks_and_keeps_the_order_of_the_rest(folder: Path, backend: str) -> None:
    retriever = Bm25Retriever(backend=backend).open(open_generation(folder))
    draw = np.random.default_rng(3)
    for share in (0.0, 0.02, 0.5, 1.0):
        allowed = draw.random(len(TEXTS)) < share
        masked = retriever.search_batch(QUERIES, 12, allowed)
        whole = retriever.search_batch(QUERIES, len(TEXTS), None)
        assert allowed[masked.rows].all()
        for query in range(len(QUERIES)):
            part = slice(masked.offsets[query], masked.offsets[query + 1])
            everything = whole.rows[whole.offsets[query] : whole.offsets[query + 1]]
            assert masked.rows[part].tolist() == everything[allowed[everything]][:12].tolist()


def test_a_query_of_stop_words_alone_or_of_nothing_is_empty_and_counted_once(folder: Path) -> None:
    with pytest.warns(RetrievalWarning, match="nothing for 3 of 4 queries") as caught:
        found = Bm25Retriever().retrieve([["the of"], ["   "], ["kubrick"], [""]], folder, 5)
    assert [len(hits) for hits in found] == [0, 0, 5, 0]
    (note,) = caught
    assert "1: stop words alone, which an index with stopwords='en' leaves out, and one with null keeps" in str(note.message)
    assert "(the first: 'the of'); 2: empty or without a letter or digit (the first: '   ')" in str(note.message)


@pytest.mark.parametrize(
    "query",
    [
        'AND ( "kubrick',
        "kubrick~2 OR title:film^4",
        "kubrick/*?\\",
        "+kubrick -film",
        "kubrick 🎬🦊",
        "kubrick\x00\ud7ff",
        "KUBRICK\u0301 kubrick",
    ],
)
def test_lucene_syntax_emoji_and_control_characters_are_only_text(folder: Path, query: str) -> None:
    hits = Bm25Retriever().retrieve([[query]], folder, 300)[0]
    kubrick = {row for row, text in enumerate(TEXTS) if "Kubrick" in text.split()}
    assert kubrick <= set(rows_of(hits))


@pytest.mark.parametrize("word", ["Köln", "café", "Москва", "Αθήνα", "straße"])
def test_words_outside_ascii_are_found_in_either_case(folder: Path, word: str) -> None:
    rows = [row for row, text in enumerate(TEXTS) if word in text.split()]
    for written in (word, word.lower(), word.capitalize()):
        assert sorted(rows_of(Bm25Retriever().retrieve([[written]], folder, 300)[0])) == rows


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_a_query_of_100_000_characters_is_searched(folder: Path, backend: str) -> None:
    long = ("kubrick film " * 8000)[:100_000]
    hits = Bm25Retriever(backend=backend).retrieve([[long], ["x" * 100_000 + " kubrick"], ["kubrick"]], folder, 300)
    assert {row for row, text in enumerate(TEXTS) if {"Kubrick", "film"} & set(text.split())} == set(rows_of(hits[0]))
    assert rows_of(hits[1]) == rows_of(hits[2])


def test_a_corpus_without_a_single_term_can_be_indexed_and_finds_nothing(tmp_path: Path) -> None:
    for number, backend in enumerate(("numpy", "numba")):
        retriever = Bm25Retriever(backend=backend)
        retriever.index(items_of(["the", "", "of a"]), tmp_path / str(number))
        assert quietly(retriever, ["kubrick", "the"], tmp_path / str(number)) == [[], []]


def test_k1_b_merge_and_backend_belong_to_the_search_and_change_no_index(tmp_path: Path) -> None:
    items = items_of(TEXTS)
    assert Bm25Retriever(k1=0.9, b=0.4).index(items, tmp_path).built == ["bm25"]
    other = Bm25Retriever(k1=2.0, b=0.9, merge="rrf", backend="numpy")
    again = other.index(items, tmp_path)
    assert (again.built, again.found) == ([], ["bm25"])
    first = quietly(Bm25Retriever(), ["kubrick film river"], tmp_path)[0]
    second = quietly(other, ["kubrick film river"], tmp_path)[0]
    assert [hit.score for hit in first] != [hit.score for hit in second]


@pytest.mark.parametrize("other", [Bm25Retriever(stemmer="german"), Bm25Retriever(stopwords=None)])
def test_searching_with_another_analysis_than_was_indexed_is_an_error_that_names_it(folder: Path, other: Bm25Retriever) -> None:
    field = (
        "stemmer: indexed with 'porter', now 'german'"
        if other.stemmer == "german"
        else "stopwords: indexed with 'en', now None"
    )
    with pytest.raises(IndexMismatchError, match=field):
        other.retrieve([["kubrick"]], folder, 5)


def test_an_unknown_stemmer_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no stemmer 'portr'; did you mean 'porter'"):
        Bm25Retriever(stemmer="portr").index(items_of(["a fox"]), tmp_path)


def test_an_unknown_stop_word_list_names_the_valid_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"stopwords.*'englisch'.*(english|\ben\b)"):
        Bm25Retriever(stopwords="englisch").index(items_of(["a fox"]), tmp_path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"k1": -0.1},
        {"b": 1.1},
        {"k1": "0.9"},
        {"k1": float("nan")},
        {"k1": float("inf")},
        {"k1": 1e39},
        {"merge": "sum"},
        {"backend": "jax"},
    ],
)
def test_a_parameter_out_of_range_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match=f"Bm25Retriever: {next(iter(wrong))}"):
        Bm25Retriever(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("k", [0, -1, "5", 2.0, True])
def test_a_cut_that_is_no_positive_integer_is_refused(folder: Path, k: object) -> None:
    with pytest.raises(QueryError, match="k must be"):
        Bm25Retriever().retrieve([["kubrick"]], folder, k)  # type: ignore[arg-type]


@pytest.fixture
def subqueries() -> list[str]:
    return ["kubrick film", "river bridge"]


@pytest.mark.parametrize("rule", ["max", "rrf", "round_robin"])
def test_sub_queries_are_merged_by_the_rule_without_repeating_a_document(
    folder: Path, subqueries: list[str], rule: str
) -> None:
    hits = Bm25Retriever(merge=rule).retrieve([subqueries], folder, 20)[0]
    alone = Bm25Retriever().retrieve([[query] for query in subqueries], folder, 20)
    ranks = [{row: rank for rank, row in enumerate(rows_of(one))} for one in alone]
    scores = [{row: hit.score for row, hit in zip(rows_of(one), one, strict=True)} for one in alone]
    union = set(ranks[0]) | set(ranks[1])
    if rule == "max":
        value = {row: max(one.get(row, 0.0) for one in scores) for row in union}
    elif rule == "rrf":
        value = {row: sum(1 / (61 + one[row]) for one in ranks if row in one) for row in union}
    else:
        value = {row: 1 / (1 + min(2 * one[row] + turn for turn, one in enumerate(ranks) if row in one)) for row in union}
    assert rows_of(hits) == sorted(union, key=lambda row: (-round(value[row], 12), row))[:20]
