"""An expression is the searcher that is written out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import yaml

from core.engines import Brief, SplitAt, TermCount, TermShare, documents
from nlp_retrieval import Bm25Retriever, OverlapReranker, Searcher
from nlp_retrieval.core.search.joining import ReciprocalRankFusion, WeightedSum
from nlp_retrieval.errors import ConfigurationError, EngineError, QueryError

random = np.random.default_rng(5)
WORDS = "alpha beta gamma delta epsilon zeta".split()
ITEMS = documents([" ".join(random.choice(WORDS, random.integers(1, 6))) for _ in range(40)])
QUERIES = ["alpha beta;gamma", "zeta", "delta epsilon;alpha;beta"]

a, b, c = TermCount(), TermShare(), TermCount(boost=2.0)
first, second = Brief(), OverlapReranker()
split = SplitAt()

WRITTEN_OUT = {
    # depth
    "a % 50": (a % 50, Searcher([a], depth=50)),
    "a + b + c": (a + b + c, Searcher([a, b, c])),
    "a % 9 + c % 5": (a % 9 + c % 5, Searcher([a, c], depth={"terms": 9, "terms-2": 5})),
    "(a + b) % 50": ((a + b) % 50, Searcher([Searcher([a, b])], depth=50)),
    "labels are kept": (Searcher({"words": a}) % 5 + b, Searcher({"words": a, "share": b}, depth={"words": 5})),
    "another fusion": (Searcher([a, b], fusion=WeightedSum()) + c, Searcher([Searcher([a, b], fusion=WeightedSum()), c])),
    "a | b": (a | b, Searcher([a, b])),
    "a % 9 & b": (a % 9 & b, Searcher([a, b], fusion=ReciprocalRankFusion(found_by=2), depth={"terms": 9})),
    # weights
    "0.7 * a % 50 + 0.3 * b": (0.7 * a % 50 + 0.3 * b, Searcher([a, b], fusion=WeightedSum([0.7, 0.3]), depth={"terms": 50})),
    "a >> first % 10": (a >> first % 10, Searcher([a], reranker=first, depth={"brief": 10})),
    "a >> first % 9 >> first % 3": (
        a >> first % 9 >> first % 3, Searcher([a], reranker=[first, first], depth={"brief": 9, "brief-2": 3}),
    ),
    "the same without parentheses": (
        a % 50 + b % 50 >> first % 10,
        Searcher([a, b], reranker=first, depth={"terms": 50, "share": 50, "brief": 10}),
    ),
    "weights, then a reranker": (0.7 * a + 0.3 * b >> first, Searcher([a, b], fusion=WeightedSum([0.7, 0.3]), reranker=first)),
    "(a >> first) % 10 >> second": (
        (a >> first) % 10 >> second, Searcher([Searcher([a], reranker=first)], reranker=second, depth=10),
    ),
    "split >> a": (split >> a, Searcher([a], processor=split)),
}  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("expressions") / "index"
    Searcher([a, b]).index(ITEMS, folder)
    return folder


def test_it_is_the_searcher_written_out(path, subtests):
    for name, (expression, written) in WRITTEN_OUT.items():
        with subtests.test(name):
            assert type(expression) is Searcher
            assert expression == written
            assert expression.stages == written.stages
            assert repr(expression) == repr(written)
            assert expression.open(path).search(QUERIES, 12) == written.open(path).search(QUERIES, 12)


def test_an_expression_goes_through_yaml():
    bm25, other, overlap = Bm25Retriever(), Bm25Retriever(b=0.3), OverlapReranker()
    expression = 0.7 * (bm25 % 50 + other) + 0.3 * other % 20 >> overlap % 10
    assert Searcher.from_config(yaml.safe_load(yaml.safe_dump(expression.to_config()))) == expression


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("first + second", r"brief \+ overlap: brief cannot stand there; write a retriever or a Searcher"),
        ("a >> b", r"terms >> share: before >> comes one processor, or after it a reranker; a \+ b fuses"),
        ("split >> (split >> a)", r"split >> terms: before >> comes one processor"),
        ("a % 0", "terms % 0: a number of candidates is an integer from 1, as in terms % 50"),
        ("-1 * a", r"-1 \* terms: a weight is a number above 0"),
        ("0.7 * a + b", r"share has no weight and the rest has; .*0.7 \* a \+ 0.3 \* b"),
        ("a + 3", "3 cannot stand there; write a retriever or a Searcher"),
        ("a >> OverlapReranker", r"OverlapReranker without \(\) cannot stand there"),
        ("(lambda query, results: query) >> a", r"a function as a processor gets a query \(missing"),
        ("a >> (lambda results: results)", r"a function as a reranker gets a query and its results \(too many"),
        ("Searcher([a], reranker=[second, lambda results: results])", r"a function as a reranker gets a query and its results"),
    ],
)
def test_what_means_nothing_says_what_to_write(expression, message):
    with pytest.raises(ConfigurationError, match=message):
        eval(expression)


def test_a_function_is_a_processor_before_and_a_reranker_after(path):
    def found(searcher, query):
        return [hit.item for hit in searcher.open(path).search(query, k=10)[0]]

    assert found((lambda query: query.split(";")[0]) >> a, QUERIES[0]) == found(Searcher([a]), "alpha beta")
    assert found((lambda query: query.split(";")) >> a, QUERIES[0]) == found(split >> a, QUERIES[0])
    turn = lambda query, results: results[::-1]  # noqa: E731
    turned = a % 10 >> turn
    assert turned == (a % 10 >> turn) != (a % 10 >> (lambda query, results: results[::-1]))
    assert turned == Searcher([a], reranker=turn, depth=10) == Searcher([a], reranker=[turn], depth=10)
    assert found(Searcher([a], processor=lambda query: "beta"), "alpha") == found(Searcher([a]), "beta")
    assert found(turned, "alpha beta") == found(Searcher([a]), "alpha beta")[::-1]
    with pytest.raises(ConfigurationError, match="is an object of this program"):
        turned.to_config()
    with pytest.raises(EngineError, match="the reranking function returned None for a query; return a list of hits"):
        (a >> (lambda query, results: None)).open(path).search("alpha")
    with pytest.raises(QueryError, match="function: the sub-queries of query 2 must be a list of strings, not int"):
        ((lambda query: len(query) if query == "beta" else [query]) >> a).open(path).search(["alpha", "beta"])


def test_what_both_find_is_all_that_is_left_in_the_order_of_their_fusion(path):
    both, either = (a % 9 & b % 9).open(path), (a % 9 | b % 9).open(path)
    of_each = [(part % 9).open(path).search(QUERIES, 9) for part in (a, b)]
    for shared, fused, *lists in zip(both.search(QUERIES, 40), either.search(QUERIES, 40), *of_each, strict=True):
        ids = [{hit.item.item_id for hit in hits} for hits in lists]
        assert 0 < len(ids[0] & ids[1]) < len(ids[0] | ids[1])
        expected = [(hit.item.item_id, hit.score) for hit in fused if hit.item.item_id in ids[0] & ids[1]]
        assert [(hit.item.item_id, hit.score) for hit in shared] == expected
