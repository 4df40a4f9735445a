"""The composition, compared with a plain re-implementation of every stage in dicts and loops."""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

from core.engines import Brief, SplitAt, TermCount, TermShare, documents, terms
from nlp_retrieval.core.context import record_stages
from nlp_retrieval.core.models import RetrievalResult
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.errors import ConfigurationError, IndexMissingError, QueryError, RetrievalWarning

WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa".split()
random = np.random.default_rng(7)
TEXTS = [" ".join(random.choice(WORDS, random.integers(1, 7))) for _ in range(60)]
ITEMS = documents(TEXTS)
QUERIES = [
    " ".join(random.choice(WORDS, 3)) + ";" + " ".join(random.choice(WORDS, 2)) + ";" + random.choice(WORDS) for _ in range(8)
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("searcher") / "index"
    Searcher([TermCount(), TermShare()]).index(ITEMS, folder)
    return folder


# the plain re-implementation


def order(scored):
    return sorted(scored.items(), key=lambda pair: (-pair[1], pair[0]))


def engine(retriever, query, depth):
    wanted = terms(query)
    scored = {row: retriever.score(wanted, terms(item.text)) for row, item in enumerate(ITEMS) if wanted & terms(item.text)}
    return order(scored)[:depth]


def retrieved(retriever, subqueries, depth):
    best: dict[int, float] = {}
    for subquery in subqueries:
        for row, score in engine(retriever, subquery, depth):
            best[row] = max(best.get(row, -math.inf), score)
    return order(best)[:depth]


def ranked(retrievers, subqueries, original, depth, rerank):
    """(row, score) of one pool, and signals by row."""
    lists = {label: retrieved(retriever, subqueries, depth) for label, retriever in retrievers.items()}
    signals: dict[int, dict[str, float]] = {}
    for label, one in lists.items():
        for rank, (row, score) in enumerate(one, 1):
            signals.setdefault(row, {}).update({f"{label}.score": score, f"{label}.rank": rank})
    if len(lists) == 1:
        pool = dict(next(iter(lists.values())))
    else:
        pool = {}
        for one in lists.values():
            for rank, (row, _) in enumerate(one, 1):
                pool[row] = pool.get(row, 0.0) + 1 / (60 + rank)
        for row, score in pool.items():
            signals[row]["fusion.score"] = score
    if rerank:
        for row in pool:
            shared = len(terms(original) & terms(ITEMS[row].text))
            pool[row] = shared / (1 + len(terms(ITEMS[row].text)))
            signals[row] |= {"brief.score": pool[row], "brief.shared": shared}
    return order(pool), signals


def plain_search(retrievers, query, k, *, scope, depth=None, quota=None, split=False, rerank=False):
    subqueries = query.split(";") if split else [query]
    single = len(retrievers) == 1 and not rerank and scope == "pooled"
    depth = depth or (k if single else max(k, 100))
    if scope == "pooled":
        pool, signals = ranked(retrievers, subqueries, query, depth, rerank)
        return [(row, score, signals[row]) for row, score in pool[:k]]
    lists = [ranked(retrievers, [subquery], query, depth, rerank) for subquery in subqueries]
    share = quota or math.ceil(k / len(lists))
    taken: list[int] = []
    found = []
    for limit in [share] if quota else [share, math.inf]:
        given = [0] * len(lists)
        moved = True
        while moved:
            moved = False
            for number, (pool, signals) in enumerate(lists):
                fresh = next((row for row, _ in pool if row not in taken), None)
                if fresh is not None and given[number] < limit and len(taken) < k:
                    taken.append(fresh)
                    found.append((fresh, 1 / len(taken), signals[fresh]))
                    given[number] += 1
                    moved = True
    return found


CASES = [
    {"retrievers": [TermCount()], "k": 5},
    {"retrievers": [TermCount()], "k": 10, "split": True, "depth": 3},
    {"retrievers": [TermCount()], "k": 5, "rerank": True, "depth": 8},
    {"retrievers": [TermCount(), TermShare()], "k": 5},
    {"retrievers": [TermCount(), TermShare()], "k": 5, "depth": 4, "split": True},
    {"retrievers": [TermCount(), TermShare()], "k": 7, "split": True, "rerank": True, "depth": 12},
    {"retrievers": [TermCount()], "k": 9, "split": True, "scope": "per_subquery"},
    {"retrievers": [TermCount()], "k": 21, "split": True, "scope": "per_subquery", "depth": 25, "quota": 7, "rerank": True},
    {"retrievers": [TermCount(), TermShare()], "k": 6, "split": True, "scope": "per_subquery", "depth": 5, "quota": 1},
    {"retrievers": [TermCount(), TermShare()], "k": 40, "split": True, "scope": "per_subquery", "depth": 9, "rerank": True},
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_search_is_what_loops_do(path, case):
    settings = {"scope": "pooled", "depth": None, "quota": None, "split": False, "rerank": False} | CASES[case]
    retrievers, k = settings.pop("retrievers"), settings.pop("k")
    searcher = Searcher(
        retrievers,
        processor=SplitAt() if settings["split"] else None,
        reranker=Brief() if settings["rerank"] else None,
        scope=settings["scope"],
        depth=settings["depth"],
        quota=settings["quota"],
    ).open(path)
    found = searcher.search(QUERIES, k)
    assert len(found) == len(QUERIES)
    for query, hits in zip(QUERIES, found, strict=True):
        wanted = plain_search({r.name: r for r in retrievers}, query, k, **settings)
        assert [hit.item for hit in hits] == [ITEMS[row] for row, _, _ in wanted]
        assert [hit.score for hit in hits] == pytest.approx([score for _, score, _ in wanted])
        for hit, (_, _, signals) in zip(hits, wanted, strict=True):
            kept = {key: value for key, value in hit.signals.items() if "[" not in key}
            assert kept == pytest.approx(signals)
            assert isinstance(hit, RetrievalResult)
        if settings["scope"] == "per_subquery":
            assert all(one.score > other.score for one, other in pairwise(hits))


@pytest.mark.parametrize(
    ("retrievers", "others", "message"),
    [
        ({"a.b": TermCount()}, {}, r"'a\.b' cannot be a label"),
        ({"name": TermCount()}, {}, "'name' cannot be a label"),
        ({"items": TermCount()}, {}, "'items' is the name of another stage"),
        ({"brief": TermCount(), "other": TermShare()}, {"reranker": Brief()}, "'brief' is the name of another stage"),
        ([], {}, "retrievers is empty; pass at least one"),
        ([TermCount()], {"quota": 7}, r"quota=7.*per_subquery"),
    ],
)
def test_what_cannot_be_a_searcher_is_refused(retrievers, others, message):
    with pytest.raises(ConfigurationError, match=message):
        Searcher(retrievers, **others)


# what callers ask


@pytest.mark.parametrize(
    ("queries", "k", "message"),
    [
        (["alpha"], 0, "k must be"),
        (["alpha", None], 5, "query 2 is None"),
        (7, 5, "not as int"),
        ({"alpha": 1}, 5, r"1 \(int\)"),
    ],
)
def test_queries_and_k_that_are_none_are_named(path, queries, k, message):
    with pytest.raises(QueryError, match=message):
        Searcher([TermCount()]).open(path).search(queries, k)


@pytest.mark.parametrize("scope", ["pooled", "per_subquery"])
def test_a_blank_query_gives_an_empty_list_and_a_warning_that_counts(path, scope):
    searcher = Searcher([TermCount()], reranker=Brief(), scope=scope).open(path)
    said = r"found nothing for 3 of 5 queries: 2: empty or .* \(the first: ''\); 1: no item .* 'unseen'"
    with pytest.warns(RetrievalWarning, match=said) as caught:
        found = searcher.search(["", "alpha", " \t\n", "unseen", "beta"], 2)
    assert [len(hits) for hits in found] == [0, 2, 0, 0, 2]
    assert len(caught) == 1


# the index


def test_without_an_index_the_error_says_what_to_call():
    searcher = Searcher([TermCount()])
    for call in (lambda: searcher.search("a"), searcher.refresh, lambda: searcher.opened):
        with pytest.raises(IndexMissingError, match=r"index\(items, path\) or open\(path\)"):
            call()


def test_a_search_uses_one_generation_throughout(tmp_path):
    """A refresh in the middle of a search changes nothing of that search."""
    folder = tmp_path / "index"

    class Meanwhile(Brief):
        name = "meanwhile"

        def score_pairs(self, queries, items):
            if armed:
                armed.pop()
                Searcher([TermCount()]).index(documents(["alpha new"] * 3), folder, replace=True)
                assert searcher.refresh()
            return super().score_pairs(queries, items)

    armed: list[int] = []
    searcher = Searcher([TermCount()], reranker=Meanwhile())
    searcher.index(documents(["alpha old"] * 3), folder)
    armed.append(1)
    assert {hit.item.content for hit in searcher.search("alpha", 3)[0]} == {"alpha old"}
    assert {hit.item.content for hit in searcher.search("alpha", 3)[0]} == {"alpha new"}


# identity and stages


def test_the_stages_that_are_recorded_are_those_that_are_announced(path):
    searcher = Searcher([TermCount(), TermShare()], SplitAt(), reranker=Brief())
    stages = ["process", "terms", "share", "fuse", "brief", "items"]
    assert searcher.stages == stages
    searcher.open(path)
    with record_stages() as seconds:
        searcher.search("alpha", 2)
        searcher.search("beta", 2)
    assert [name for name in seconds if name in stages] == stages
    assert set(seconds) - set(stages) <= {"process"}


@pytest.mark.parametrize("scope", ["pooled", "per_subquery"])
def test_subqueries_that_are_given_stand_in_for_those_of_the_processor(path, scope):
    split = Searcher([TermCount()], processor=SplitAt(), scope=scope).open(path)
    parts = [query.split(";") for query in QUERIES]
    assert split.search(QUERIES, 5, subqueries=parts) == split.search(QUERIES, 5)
    other = [[parts[0][0]]] * len(QUERIES)
    plain = Searcher([TermCount()], scope=scope).open(path)
    assert split.search(QUERIES, 5, subqueries=other) == plain.search([parts[0][0]] * len(QUERIES), 5)
    with pytest.raises(QueryError, match="2 lists"):
        split.search(QUERIES, 5, subqueries=other[:2])


def test_opening_one_index_holds_up_no_other_searcher(tmp_path):
    begun, go_on = threading.Event(), threading.Event()

    class Slow(TermCount):
        name = "slow"

        def load(self, folder):
            begun.set()
            assert go_on.wait(30)
            super().load(folder)

    go_on.set()
    Searcher([Slow()]).index(documents(["red fox"]), tmp_path / "slow")
    quick = Searcher([TermCount()])
    quick.index(documents(["red fox"]), tmp_path / "quick")
    begun.clear()
    go_on.clear()
    with ThreadPoolExecutor() as pool:
        opening = pool.submit(Searcher([Slow()]).open, tmp_path / "slow")
        assert begun.wait(30)
        other = pool.submit(quick.open, tmp_path / "quick")
        try:
            assert other.result(30).search("fox")[0]
            assert not opening.done()
        finally:
            go_on.set()
    assert opening.result().search("fox")[0]


def test_searching_a_retriever_says_what_to_wrap_it_in():
    with pytest.raises(ConfigurationError, match=r"Searcher\(\[TermCount\(\)\]\)"):
        TermCount().search("fox")
