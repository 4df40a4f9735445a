"""What Milvus finds is what numpy and the formula of BM25 find: filters, ties, deep lists, segments, index types."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter

import numpy as np
import pytest
from hashed_words import HashedWords
from pymilvus.client.prepare import Prepare
from soaking import mostly_soaked

from nlp_retrieval import MilvusRetriever, SearchableItem, Searcher
from nlp_retrieval.errors import ConfigurationError, QueryError, RetrievalWarning
from nlp_retrieval.retrievers.milvus import collections as collections_room
from nlp_retrieval.retrievers.milvus import retriever as searching

from .conftest import WORDS, corpus, found, retriever, searcher

QUERIES = ["fox whale", "queen orbit harbour", "river"]
FILTERS = [
    (None, lambda n: True),
    ({"part": 7}, lambda n: n % 10 == 7),
    ({"part": {"lt": 8}}, lambda n: n % 10 < 8),
]


def exact(items: list[SearchableItem], query: str, passes, k: int) -> list[tuple[str, float]]:
    encoder = HashedWords(dimension=24)
    scores = encoder.encode_passages([item.text for item in items]) @ encoder.encode_queries([query])[0]
    rows = [row for row in range(len(items)) if passes(int(items[row].item_id[1:]))]
    listed = levelled([(float(scores[row]), row) for row in rows])
    return [(items[row].item_id, score) for score, row in listed[:k]]


def levelled(pairs: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Scores and rows, best first; scores that differ by a millionth are one, and their rows in order."""
    pairs = sorted(pairs, reverse=True)
    made: list[tuple[float, int]] = []
    for number, (score, row) in enumerate(pairs):
        same_level = number and pairs[number - 1][0] - score <= 1e-6
        made.append((made[-1][0] if same_level else score, row))
    return sorted(made, key=lambda pair: (-pair[0], pair[1]))


def bm25(items: list[SearchableItem], query: str, k1: float, b: float) -> dict[str, float]:
    """By the formula (Robertson and Zaragoza, 2009), with Lucene's idf."""
    texts = {item.item_id: re.findall(r"\w+", item.text.lower()) for item in items}
    mean = sum(map(len, texts.values())) / len(texts)
    scores = dict.fromkeys(texts, 0.0)
    for word in {*query.split()}:
        n_with = sum(word in words for words in texts.values())
        idf = math.log(1 + (len(texts) - n_with + 0.5) / (n_with + 0.5))
        for item_id, words in texts.items():
            often = Counter(words)[word]
            scores[item_id] += idf * often * (k1 + 1) / (often + k1 * (1 - b + b * len(words) / mean))
    return {item_id: score for item_id, score in scores.items() if score > 0}


def same(given: list[tuple[str, float]], wanted: list[tuple[str, float]], atol: float = 2e-6) -> None:
    np.testing.assert_allclose([score for _, score in given], [score for _, score in wanted], rtol=1e-5, atol=atol)
    assert [item_id for item_id, _ in given] == [item_id for item_id, _ in wanted]


def test_vectors_are_compared_as_numpy_does_under_every_filter_and_after_updates(index):
    items, made = corpus(900), searcher()
    made.index(items, index)
    for where, passes in FILTERS:
        for query in QUERIES:
            for k in (1, 10, 1000):
                same(found(made, query, k, where), exact(items, query, passes, k))
    made.delete([f"d{row}" for row in range(0, 900, 3)], auto_compact=False)
    made.add(corpus(100, 900), auto_compact=False)
    left = [item for item in items if int(item.item_id[1:]) % 3] + corpus(100, 900)
    for compacted in (False, True):
        if compacted:
            made.compact()
        for where, passes in FILTERS:
            same(found(made, QUERIES[0], 50, where), exact(left, QUERIES[0], passes, 50))


@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), pytest.param(0.9, 0.4, marks=pytest.mark.soak)])
def test_words_are_scored_by_the_formula(k1, b, index):
    items, made = corpus(300), searcher("bm25", k1=k1, b=b)
    made.index(items, index)
    for query in (*QUERIES, "Fox! (whale)"):
        wanted = bm25(items, re.sub(r"\W+", " ", query).strip().lower(), k1, b)
        ranked = sorted(wanted.items(), key=lambda pair: (-round(pair[1], 5), int(pair[0][1:])))
        given = found(made, query, 1000)
        same(given, ranked, atol=1e-4)
        for where, passes in FILTERS[1:]:
            same(found(made, query, 7, where), [pair for pair in given if passes(int(pair[0][1:]))][:7])
    with pytest.warns(RetrievalWarning, match="found nothing"):
        assert found(made, "nothing-of-it") == []


def test_both_are_fused_by_reciprocal_ranks_and_equal_scores_share_one(index):
    items = corpus(200)
    for mode in ("dense", "bm25", "both"):
        searcher(mode).index(items, index / mode)
    wanted: Counter[str] = Counter()
    for mode in ("dense", "bm25"):
        listed = found(searcher(mode).open(index / mode), QUERIES[0], 100)
        scores = [round(score, 5) for _, score in listed]
        for item_id, score in listed:
            wanted[item_id] += 1 / (61 + scores.index(round(score, 5)))
    given = found(searcher("both").open(index / "both"), QUERIES[0], 30)
    ranked = sorted(wanted.items(), key=lambda pair: (-round(pair[1], 9), int(pair[0][1:])))[:30]
    same(given, ranked, atol=1e-9)


@pytest.mark.parametrize("mode", mostly_soaked(["both", "dense", "bm25"]))
def test_a_batch_answers_as_each_query_alone(mode, index):
    made = searcher(mode)
    made.index(corpus(300), index)
    queries = [f"{WORDS[n % 16]} {WORDS[(3 * n) % 16]} {n}" for n in range(70)]
    batch = made.search(queries, 7, {"part": {"lt": 5}})
    for query, hits in zip(queries[::9], batch[::9], strict=True):
        alone = made.search([query], 7, {"part": {"lt": 5}})[0]
        assert [hit.item.item_id for hit in hits] == [hit.item.item_id for hit in alone]
        np.testing.assert_allclose([hit.score for hit in hits], [hit.score for hit in alone], atol=2e-6)


@pytest.mark.parametrize("mode", ["dense", "bm25"])
def test_lists_longer_than_a_server_gives_at_once_are_whole(mode, index, monkeypatch):
    made = searcher(mode)
    made.index(corpus(300), index)
    wanted = [found(made, query, 250, where) for query in QUERIES for where, _ in FILTERS]
    monkeypatch.setattr(searching, "MOST_AT_ONCE", 16)
    for number, (query, where) in enumerate((query, where) for query in QUERIES for where, _ in FILTERS):
        same(found(made, query, 250, where), wanted[number])


@pytest.mark.parametrize("index_type", mostly_soaked(["hnsw", "ivf"]))
def test_an_approximate_index_finds_most_and_k_wherever_k_match(index_type, index):
    items = corpus(1500)
    made = searcher(index_type=index_type, nlist=40, nprobe=8, ef_search=64)
    made.index(items, index)
    shares = []
    for query in [f"{WORDS[n]} {WORDS[(5 * n + 2) % 16]}" for n in range(16)]:
        wanted, given = exact(items, query, lambda n: True, 10), found(made, query, 10)
        shares.append(np.mean([score >= wanted[-1][1] - 1e-5 for _, score in given]))
    assert np.mean(shares) >= 0.95
    for where, passes in FILTERS:
        for k in (20, 140):
            given = found(made, QUERIES[0], k, where)
            assert len({item_id for item_id, _ in given}) == k
            assert all(passes(int(item_id[1:])) for item_id, _ in given)
    made.add(corpus(20, 1500), auto_compact=False)
    assert found(made, corpus(1, 1507)[0].content, 30)[0][1] == pytest.approx(1, abs=1e-5)
    made.compact()
    assert len(found(made, k=1520)) == 1520


def test_what_an_approximate_index_misses_is_compared(index, monkeypatch):
    """One cluster of forty cannot hold the hundred best; all rows are then compared, in parts."""
    monkeypatch.setattr(searching, "_COMPARED_AT_ONCE", 64)
    monkeypatch.setattr(collections_room, "_MOST_ROWS", 50)
    items = corpus(600)
    made = searcher(index_type="ivf", nlist=40, nprobe=1)
    made.index(items, index)
    for where, passes in FILTERS[1:]:
        same(found(made, QUERIES[0], 55, where), exact(items, QUERIES[0], passes, 55))


def test_vectors_come_back_as_they_were(index):
    made = searcher()
    made.index(corpus(100), index)
    made.add(corpus(20, 100), auto_compact=False)
    rows = np.array([119, 3, 3, 101, 0])
    encoder = HashedWords(dimension=24)
    one = retriever()
    one.retrieve([["fox"]], index, 1)
    opened = one._opened[1]
    wanted = encoder.encode_passages([item.text for item in corpus(120)])[rows]
    np.testing.assert_array_equal(opened.vectors_of(rows), wanted)
    assert opened.search_vectors(wanted[:1], 1, None).scores[0] == pytest.approx(1, abs=1e-5)


def test_only_words_keep_no_vectors_and_need_no_encoder(index):
    made = MilvusRetriever("no/such-model", "bm25", url=retriever().url)
    Searcher([made]).index(corpus(20), index)
    assert made.identity == MilvusRetriever("another/model", "bm25").identity
    made.retrieve([["fox"]], index, 1)
    with pytest.raises(ConfigurationError, match="keeps no vectors"):
        made._opened[1].encode(["fox"])


ODD = [
    "'); drop",
    'say "row in [1]" or 1 == 1',
    "back\\slash",
    "{rows}",
    "%s",
    "\t\n",
    "Ünïcode 東京 🦊",
    "NULL",
    "row not in []",
    "a" * 70_000,
]


@pytest.mark.filterwarnings("ignore:milvus.* longer than the 65,535 bytes:nlp_retrieval.errors.RetrievalWarning")
@pytest.mark.parametrize("mode", ["dense", "bm25"])
def test_ids_texts_metadata_and_queries_are_values(mode, index):
    items = [
        SearchableItem(item_id=f"{name[:200]}", content=f"{name} fox", metadata={"said": name, "part": n})
        for n, name in enumerate(ODD)
    ]
    made = searcher(mode)
    made.index(items, index)
    assert len(found(made, "fox", 20)) == len(ODD) - (mode == "bm25")  # the fox behind 65,535 bytes is cut off
    for name in ODD:
        assert found(made, f"fox {name}", 3)
    for name in ODD[:-1]:
        assert [item_id for item_id, _ in found(made, f"fox {name}", 3, {"said": name})] == [name]
    with pytest.raises(QueryError):
        found(made, "fox", 3, {"said": {"nosuch": "x"}})
    made.delete([ODD[0]], auto_compact=False)
    made.add([items[0]], auto_compact=False)
    made.compact()
    assert len(found(made, "fox", 20)) == len(ODD) - (mode == "bm25")


def test_a_filter_is_numbers_of_rows_the_fewer_of_both():
    mask = np.zeros(10, np.bool_)
    mask[[2, 5]] = True
    assert searching.condition_of(None, templates=False) == ("", {})
    assert searching.condition_of(mask, templates=False) == ("row in [2,5]", {})
    assert searching.condition_of(~mask, templates=False) == ("row not in [2,5]", {})
    assert searching.condition_of(~mask, templates=True) == ("row not in {rows}", {"rows": [2, 5]})


def test_where_a_server_takes_them_the_numbers_travel_beside_the_expression():
    expression, values = searching.condition_of(np.array([True, False, False]), templates=True)
    request = Prepare.search_requests_with_expr(
        "c", "embedding", {"metric_type": "IP"}, 1, data=[[0.5, 0.5]], expr=expression, expr_params=values
    )
    assert request.dsl == "row in {rows}"
    assert [*request.expr_template_values["rows"].array_val.long_data.data] == [0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"index_type": "diskann"}, r"Milvus Lite has no index_type='diskann'; use flat, hnsw, ivf"),
        ({"index_type": "rabitq"}, r"Milvus Lite has no index_type='rabitq'"),
        ({"mode": "bm25", "analyzer": "english"}, r"Milvus Lite has no analyzer='english'"),
    ],
)
def test_what_milvus_lite_lacks_is_said_before_anything_is_encoded(settings, message, index):
    class Encoding(HashedWords):
        def encode_passages(self, passages):
            raise AssertionError("encoded")

    with pytest.raises(ConfigurationError, match=message):
        searcher(encoder=Encoding(24), **settings).index(corpus(5), index)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"token": "s3cret"}, "env:NAME"),
        ({"mode": "sparse"}, "mode"),
        ({"hnsw_m": 1}, "hnsw_m"),
        ({"b": 1.5}, "b"),
        ({"retries": -1}, "retries"),
        ({"timeout": 0}, "timeout"),
    ],
)
def test_settings_that_cannot_be_are_named_and_no_token_is_shown(settings, message):
    with pytest.raises(ConfigurationError, match=message) as caught:
        MilvusRetriever(**settings)
    assert "s3cret" not in str(caught.value)


def test_the_package_is_imported_without_milvus():
    assert "pymilvus" in sys.modules  # of these tests
    for module in ("retriever", "client", "collections"):
        source = sys.modules[f"nlp_retrieval.retrievers.milvus.{module}"]
        assert not {"pymilvus", "grpc", "milvus_lite"} & set(vars(source))
