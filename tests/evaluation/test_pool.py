"""The pool of several lists is the union of sets, and what a list adds is what the union loses without it."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reports.page.test_page import ATTACK, Page

from nlp_retrieval.errors import ConfigurationError, GoldError, QueryError
from nlp_retrieval.evaluation.pool import gold_ranks, pool_report
from nlp_retrieval.evaluation.rankings import RunLists
from nlp_retrieval.reports.page.explorer import pool_tables

from .test_ranking_difference import plain
from .test_rankings import lists_of

IDS = ["a", "b", "c", "d", "e"]
LIST = st.lists(st.sampled_from(IDS), unique=True)
GOLD = st.dictionaries(st.sampled_from([*IDS, "nowhere"]), st.integers(1, 2))


@given(data=st.data(), n_queries=st.integers(1, 4), n_sources=st.integers(1, 4))
def test_the_pool_is_the_union_of_the_lists(data: st.DataObject, n_queries: int, n_sources: int) -> None:
    found = {f"s{number}": [data.draw(LIST) for _ in range(n_queries)] for number in range(n_sources)}
    gold = {f"q{query}": data.draw(GOLD) for query in range(n_queries)}
    cuts = data.draw(st.lists(st.integers(1, 6), min_size=1))
    lists = lists_of({name: [plain(one) for one in every] for name, every in found.items()}, gold, n_queries)
    report = pool_report(lists, {name: gold_ranks(lists, listing) for name, listing in lists.listings.items()}, cuts)

    wanted = [set(gold[f"q{query}"]) for query in range(n_queries)]

    def united(names: list[str], k: int) -> list[set[str]]:
        return [wanted[q].intersection(*[set().union(*(found[name][q][:k] for name in names))]) for q in range(n_queries)]

    def recalls(names: list[str], k: int) -> tuple[float, float]:
        judged = [(len(one), len(all_)) for one, all_ in zip(united(names, k), wanted, strict=True) if all_]
        if not judged:
            return 0.0, 0.0
        mean = sum(Fraction(one, all_) for one, all_ in judged) / len(judged)
        return float(mean), sum(one == all_ for one, all_ in judged) / len(judged)

    def pairs(found: list[set[str]]) -> set[tuple[str, str]]:
        return {(f"q{query}", item) for query, items in enumerate(found) for item in items}

    names = list(found)
    everything = pairs(wanted)
    assert report.gold == len(everything)
    assert report.queries == sum(map(bool, wanted))
    assert [cutoff.k for cutoff in report.cutoffs] == sorted(set(cuts))
    for cutoff in report.cutoffs:
        assert (cutoff.recall, cutoff.perfect_recall) == pytest.approx(recalls(names, cutoff.k))
        assert cutoff.unfound == len(everything - pairs(united(names, cutoff.k)))
        for name, share in cutoff.shares.items():
            others = [other for other in names if other != name]
            assert (share.recall, share.perfect_recall) == pytest.approx(recalls([name], cutoff.k))
            without = recalls(others, cutoff.k)
            assert share.adds == pytest.approx(cutoff.recall - without[0])
            assert share.adds_perfect == pytest.approx(cutoff.perfect_recall - without[1])
            assert share.only == len(pairs(united([name], cutoff.k)) - pairs(united(others, cutoff.k)))
    deepest = report.cutoffs[-1].k
    assert [(one.query_id, one.item_id) for one in report.unfound] == [
        (query, item) for query, grades in gold.items() for item in grades if (query, item) not in pairs(united(names, deepest))
    ]
    for name, only in report.only.items():
        others = [other for other in names if other != name]
        assert {(one.query_id, one.item_id) for one in only} == pairs(united([name], deepest)) - pairs(united(others, deepest))
        assert all(one.grade == gold[one.query_id][one.item_id] for one in only)


def test_ranks_are_those_of_each_gold_document_in_its_own_querys_list() -> None:
    lists = lists_of({"s": [plain(["b", "a"]), plain(["c", "b"])]}, {"q0": {"a": 1, "c": 1}, "q1": {"b": 2, "c": 1}}, 2)
    assert gold_ranks(lists, lists.listing("s")).tolist() == [2, 0, 2, 1]


def small() -> RunLists:
    return lists_of(
        {"one": [plain(["a", "b"]), plain(["c"])], "other": [plain(["b"]), plain(["a"])]},
        {"q0": {"a": 1, "b": 1}, "q1": {"c": 1, "nowhere": 3}},
        2,
    )


def test_a_retrievers_own_list_can_be_a_source() -> None:
    lists = small()
    report = pool_report(lists, {"deep": np.array([1, 2, 90, 100]), "shallow": np.array([0, 1, 0, 0])}, [10, 100])
    assert [cutoff.recall for cutoff in report.cutoffs] == [0.5, 1.0]
    assert report.cutoffs[0].shares["deep"].adds == 0.25
    assert report.cutoffs[1].shares["shallow"].adds == 0.0
    assert not report.unfound


def test_what_cannot_be_pooled_is_refused() -> None:
    lists = small()
    ranks = {name: gold_ranks(lists, listing) for name, listing in lists.listings.items()}
    with pytest.raises(ConfigurationError, match="0 sources"):
        pool_report(lists, {}, [5])
    with pytest.raises(ConfigurationError, match="0 cutoffs"):
        pool_report(lists, ranks, [])
    with pytest.raises(QueryError, match="a cutoff must be at least 1"):
        pool_report(lists, ranks, [0])
    with pytest.raises(GoldError, match=r"the ranks of 'short'.*for each of 4 gold documents"):
        pool_report(lists, {"short": np.array([1, 2])}, [5])
    with pytest.raises(GoldError, match="the least is -1"):
        pool_report(lists, {"below": np.array([1, 2, -1, 0])}, [5])
    with pytest.raises(ConfigurationError, match="1 lists for 2 queries"):
        gold_ranks(lists, lists_of({"s": [plain(["a"])]}, {}, 1).listing("s"))


def test_the_page_tells_who_finds_what_and_what_nobody_finds() -> None:
    lists = small()
    ranks = {name: gold_ranks(lists, listing) for name, listing in lists.listings.items()}
    source = pool_tables({"configuration": pool_report(lists, ranks, [1, 2])}, {"q0": "first?", "q1": "second?"})
    text = " ".join(re.sub(r"<[^>]+>", " ", source).split())
    assert "all 2 together 0.750 0.750" in text
    assert "1 gold document (25.0%) not found in the first 2" in text
    assert "second? q1 : nowhere" in text
    assert "2 gold documents that only one configuration finds in the first 2 only one : 2 gold documents first?" in text
    assert "only other" not in text
    assert not Page(source).open


def test_names_in_the_pool_stay_text() -> None:
    lists = lists_of({ATTACK: [plain(["a"])]}, {"q0": {ATTACK: 1}}, 1)
    report = pool_report(lists, {ATTACK: gold_ranks(lists, lists.listing(ATTACK))}, [5])
    page = Page(pool_tables({"configuration": report}, {"q0": ATTACK}))
    assert not page.of("script")
    assert not page.of("img")
    assert page.texts("bdi").count(ATTACK) == 3
    assert not page.open


def test_a_run_without_gold_has_no_pool() -> None:
    lists = lists_of({"one": [plain(["a"])]}, {}, 1)
    report = pool_report(lists, {"one": gold_ranks(lists, lists.listing("one"))}, [5])
    assert (report.gold, report.queries, report.cutoffs[0].recall) == (0, 0, 0.0)
    assert pool_tables({"configuration": report}, {"q0": ""}) == ""
