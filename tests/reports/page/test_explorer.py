"""The block of data in the page holds the lists, small enough, and nothing that a user named is markup."""

from __future__ import annotations

import base64
import json
import math
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.small_benchmark import benchmarker
from evaluation.test_ranking_difference import plain
from evaluation.test_rankings import Hit, lists_of
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval import BenchmarkRun, Gold
from nlp_retrieval.evaluation.ranking_difference import measured
from nlp_retrieval.evaluation.rankings import Listing, RunLists
from nlp_retrieval.reports.page.explorer import explorer_block, explorer_depth, explorer_measures, rounded
from nlp_retrieval.reports.page.page import LIMIT, render_page, write_page
from reports.report_data import configuration, measures_like, report_of, usual_report

from .test_page import ATTACK, Page, policy

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def opened(text: str) -> dict[str, Any]:
    """The data as the page's script reads it."""
    data: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(text)))
    return data


def data_of(source: str) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/octet-stream" id="explorer-data">([^<]*)</script>', source)
    return opened(text)


def told(data: dict[str, Any]) -> dict[str, list[list[Hit]]]:
    """The lists in the data, as they were given."""
    found: dict[str, list[list[Hit]]] = {name: [] for name in data["configurations"]}
    for query in data["lists"]:
        for name, has, (items, scores, *columns) in zip(data["configurations"], data["has"], query, strict=True):
            keys = [data["signals"][key] for key in has]
            rows = zip(*columns, strict=True) if columns else [()] * len(items)
            signals = [{key: value for key, value in zip(keys, row, strict=True) if value is not None} for row in rows]
            found[name].append([(data["ids"][item], *rest) for item, *rest in zip(items, scores, signals, strict=True)])
    return found


def four_digits(value: float) -> float:
    return float(f"{value:.4g}")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> BenchmarkRun:
    return benchmarker(tmp_path_factory.mktemp("explorer") / "index").run()


@given(values=st.lists(st.one_of(NUMBERS, st.integers(-10000, 10000).map(float), st.floats(-40, 40))))
def test_values_are_rounded_to_four_significant_digits(values: list[float]) -> None:
    for short, value in zip(rounded(np.array(values, np.float64)), values, strict=True):
        assert short == pytest.approx(value, rel=5.001e-4, abs=1e-322)
        assert short == four_digits(short), "it has no more than four digits"


def test_what_is_no_number_is_rounded_to_nothing() -> None:
    values = [1.0, math.nan, 12.3456, math.inf, 123456.0, 0.0, -0.00123456, 1.7976e308, -math.inf]
    assert rounded(np.array(values)) == [
        1.0,
        None,
        12.35,
        None,
        123500.0,
        0.0,
        -0.001235,
        1.797e308,
        None,
    ]


def test_the_data_holds_the_lists_of_a_run_cut_and_rounded(ran: BenchmarkRun) -> None:
    data = data_of(render_page(ran.report, ran.lists, ran.per_query))
    assert data["depth"] == 10
    assert data["cutoffs"] == [3, 5, 10]
    found = told(data)
    assert list(found) == list(ran.lists.listings)
    for name, listing in ran.lists.listings.items():
        for query, hits in enumerate(found[name]):
            here = listing.of(query)
            assert [hit[0] for hit in hits] == [ran.lists.item_ids[item] for item in listing.items[here]][:10]
            assert [hit[1] for hit in hits] == [four_digits(score) for score in listing.scores[here][:10].tolist()]
            for place, hit in enumerate(hits):
                row = here.start + place
                signals = {key: float(column[row]) for key, column in listing.signals.items() if not math.isnan(column[row])}
                assert hit[2] == {key: four_digits(value) for key, value in signals.items()}
    for query, (items, grades) in enumerate(data["gold"]):
        gold = {data["ids"][item]: grade for item, grade in zip(items, grades, strict=True)}
        assert gold == ran.lists.qrels()[ran.lists.query_ids[query]]
    assert data["texts"] == ran.lists.texts
    assert data["groups"] == ran.lists.groups


def test_the_data_holds_the_measures_of_every_query(ran: BenchmarkRun) -> None:
    data = data_of(render_page(ran.report, ran.lists, ran.per_query))
    assert data["measures"] == ["recall@3", "recall@5", "recall@10", "perfect_recall@10", "ndcg@10", "mrr@10"]
    for key, by_name in zip(data["measures"], data["values"], strict=True):
        for name, values in zip(data["configurations"], by_name, strict=True):
            assert values == [four_digits(value) for value in ran.per_query[name][key].tolist()]
    from_lists = data_of(render_page(ran.report, ran.lists))
    assert from_lists["values"] == data["values"], "without them they are measured from the lists"


@given(data=st.data(), n_queries=st.integers(1, 3), depth=st.integers(1, 6))
def test_signals_come_back_with_their_hits(data: st.DataObject, n_queries: int, depth: int) -> None:
    value = st.sampled_from([1.0, 2.5])
    hits = st.lists(
        st.tuples(st.sampled_from("abcdef"), value, st.dictionaries(st.sampled_from(["x", "y"]), value)),
        unique_by=lambda hit: hit[0],
    )
    found = {name: [data.draw(hits) for _ in range(n_queries)] for name in ("one", "two", "three")}
    lists = lists_of(found, {"q0": {"gold alone": 1}}, n_queries)
    block = explorer_block(lists, measured(lists, lists.listings, [depth]), [depth], 10**6)
    assert block is not None
    assert told(opened(block.text)) == {name: [one[:depth] for one in every] for name, every in found.items()}


@pytest.mark.parametrize(
    ("k_values", "depth"), [([5, 10, 21], 10), ([2, 5], 5), ([3, 21], 21), ([1], 1), ([10, 100], 10), ([12, 20, 50], 12)]
)
def test_lists_are_shown_to_the_smallest_cutoff_of_ten_or_more(k_values: list[int], depth: int) -> None:
    assert explorer_depth(k_values) == depth


def test_recall_at_every_cutoff_is_shown_and_the_rest_at_the_largest() -> None:
    names = [f"{name}@{k}" for k in (10, 5) for name in ("precision", "recall", "perfect_recall", "ndcg", "mrr")]
    assert explorer_measures(names) == ["recall@5", "recall@10", "perfect_recall@10", "ndcg@10", "mrr@10"]
    assert explorer_measures(["recall@3"]) == ["recall@3"]
    assert explorer_measures([]) == []


def large_lists(configurations: int, queries: int, depth: int, signals: int) -> RunLists:
    """Lists with nothing in common: every score and signal is drawn by itself, which no real sweep comes near."""
    draw = np.random.default_rng(8)
    words = ["river", "castle", "novel", "film", "director", "painter", "island", "queen", "album", "singer", "orbit"]
    items = 32 * queries
    ids = [f"doc-{item:05}" for item in range(items)]
    titles = [" ".join(draw.choice(words, 3)) + f" {item}" for item in range(items)]
    texts = [" ".join(draw.choice(words, 18)) for _ in range(queries)]
    offsets = np.arange(queries + 1) * depth
    listings = {}
    for number in range(configurations):
        found = np.concatenate([draw.choice(items, depth, replace=False) for _ in range(queries)])
        columns = {f"signal-{place}.score": draw.uniform(0, 30, queries * depth) for place in range(signals)}
        scores = -np.sort(-draw.uniform(0, 30, (queries, depth)), axis=1).ravel()
        listings[f"configuration {number}"] = Listing(offsets, found, scores, columns)
    gold = np.concatenate([draw.choice(items, 2, replace=False) for _ in range(queries)])
    nobody: list[str | None] = [None] * queries
    judged = [
        Gold(query_id=f"q{query}", relevance=dict.fromkeys([ids[item] for item in pair], 1))
        for query, pair in enumerate(gold.reshape(-1, 2).tolist())
    ]
    return RunLists(
        [f"q{query}" for query in range(queries)], texts, nobody, [f"hops={query % 3}" for query in range(queries)],
        ids, titles, judged, np.arange(queries + 1) * 2, gold, np.ones(len(gold), np.int64), listings,
    )  # fmt: skip


def test_a_hit_with_six_signals_of_its_own_takes_at_most_22_characters() -> None:
    queries = 40
    lists = large_lists(20, queries, 10, 6)
    block = explorer_block(lists, measured(lists, lists.listings, [10]), [10], LIMIT)
    assert block is not None
    assert (block.depth, block.has_signals) == (10, True)
    texts = sum(map(len, [*lists.texts, *lists.titles, *lists.item_ids]))
    hits = 20 * queries * 10
    assert (len(block.text) - texts) / hits < 22, "20 configurations, 1,000 queries and 10 hits: 4.4 MB and the texts"


def test_where_there_is_no_room_lists_are_cut_shorter_and_then_signals_left_out() -> None:
    lists = large_lists(3, 10, 21, 4)
    values = measured(lists, lists.listings, [5, 10])
    whole = explorer_block(lists, values, [5, 10], 10**7)
    assert whole is not None
    assert (whole.depth, whole.has_signals) == (10, True)
    shorter = explorer_block(lists, values, [5, 10], len(whole.text) - 1)
    assert shorter is not None
    assert 5 <= shorter.depth < 10
    assert shorter.has_signals
    assert len(shorter.text) < len(whole.text)
    bare = explorer_block(lists, values, [5, 10], len(whole.text) * 2 // 5)
    assert bare is not None
    assert not bare.has_signals
    assert opened(bare.text)["signals"] == []
    assert explorer_block(lists, values, [5, 10], 100) is None


def test_of_many_queries_as_much_is_kept_as_fits() -> None:
    lists = large_lists(2, 400, 10, 6)
    values = measured(lists, lists.listings, [10])
    whole = explorer_block(lists, values, [10], 10**7)
    assert whole is not None
    again = explorer_block(lists, values, [10], len(whole.text))
    assert again == whole, "what fits is not left out"
    shorter = explorer_block(lists, values, [10], len(whole.text) - 1)
    assert shorter is not None
    assert (shorter.depth, shorter.has_signals) == (9, True)
    assert len(told(opened(shorter.text))["configuration 0"]) == 400
    bare = explorer_block(lists, values, [10], len(whole.text) // 3)
    assert bare is not None
    assert not bare.has_signals
    assert bare.queries == 400
    assert explorer_block(lists, values, [10], 1000) is None


def test_where_nothing_else_helps_the_queries_are_kept_that_differ_most(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = large_lists(2, 300, 10, 2)
    for query in range(7, 300, 10):  # one in ten has its gold in the first list of one configuration
        gold = lists.gold_items[2 * query]
        if gold not in lists.listing("configuration 1").items[10 * query : 10 * query + 10]:
            lists.listing("configuration 1").items[10 * query] = gold
    values = measured(lists, lists.listings, [10])
    whole = explorer_block(lists, values, [10], 10**7)
    assert whole is not None
    some = explorer_block(lists, values, [10], len(whole.text) // 6)
    assert some is not None
    assert (some.depth, some.has_signals) == (10, True)
    assert len(some.text) <= len(whole.text) // 6
    data = opened(some.text)
    assert some.queries == len(data["queries"]) == len(data["lists"]) < 60
    spread = np.abs(values["configuration 0"]["recall@10"] - values["configuration 1"]["recall@10"])
    kept = [lists.query_ids.index(query) for query in data["queries"]]
    assert kept == sorted(kept)
    assert spread[kept].min() >= np.delete(spread, kept).max()
    every = opened(whole.text)
    for name, found in told(data).items():
        assert found == [told(every)[name][query] for query in kept]
    for key, by_name in zip(data["measures"], data["values"], strict=True):
        expected = every["values"][every["measures"].index(key)]
        assert by_name == [[column[query] for query in kept] for column in expected]
    report = report_of(*(configuration(name, measures_like(0.3)) for name in lists.listings), k_values=[10])
    source = render_page(report, lists)
    assert "the page has room for" not in source
    limit = len(source.encode()) - len(whole.text) * 5 // 6
    monkeypatch.setattr("nlp_retrieval.reports.page.page.LIMIT", limit)
    smaller = render_page(report, lists)
    assert f"Of 300 queries the page has room for {len(data_of(smaller)['queries'])}: those in which" in smaller
    assert len(smaller.encode()) <= limit


def test_a_page_without_room_for_the_lists_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = large_lists(3, 10, 21, 4)
    report = report_of(*(configuration(name, measures_like(0.3)) for name in lists.listings))
    monkeypatch.setattr("nlp_retrieval.reports.page.page.LIMIT", 1000)
    source = render_page(report, lists)
    assert "too many for a page" in source
    assert "explorer-data" not in source
    assert not Page(source).open


def test_the_page_with_lists_is_well_formed_and_its_policy_names_both_scripts_in_one(ran: BenchmarkRun) -> None:
    source = render_page(ran.report, ran.lists, ran.per_query)
    page = Page(source)
    assert not page.open
    identifiers = [a["id"] for _, a in page.elements if "id" in a]
    assert len(identifiers) == len(set(identifiers))
    referred = [a.get(key) or "" for _, a in page.elements for key in ("aria-labelledby", "aria-controls")]
    assert {name for names in referred for name in names.split()} <= set(identifiers)
    kinds = [script.get("type") for script in page.of("script")]
    assert kinds == ["application/octet-stream", "application/octet-stream", None]
    assert "unsafe" not in policy(page)
    assert not any("style" in a or any(key.startswith("on") for key in a) for _, a in page.elements)
    digests = re.findall(r"script-src ('[^;]*')", policy(page))
    assert len(digests) == 1
    script = source.rpartition("<script>")[2].partition("</script>")[0]
    assert "innerHTML" not in script
    assert "insertAdjacentHTML" not in script


def test_nothing_that_users_named_is_markup() -> None:
    attacked: list[Hit] = [(ATTACK, 1.0, {f"{ATTACK}.score": 1.0})]
    lists = lists_of({ATTACK: [attacked], "plain": [plain(["a"])]}, {"q0": {ATTACK: 1}}, 1)
    lists.texts[0] = ATTACK
    lists.query_ids[0] = ATTACK
    lists.groups[0] = ATTACK
    report = report_of(configuration(ATTACK, {"recall@5": 0.4}), configuration("plain", {"recall@5": 0.2}), k_values=[5])
    source = render_page(report, lists)
    page = Page(source)
    assert len(page.of("script")) == 3
    assert not page.of("img")
    assert not page.open
    data = data_of(source)
    assert data["configurations"] == [ATTACK, "plain"]
    assert data["texts"] == data["queries"] == data["groups"] == [ATTACK]
    assert data["signals"] == [f"{ATTACK}.score"]


def test_names_that_are_no_clean_text_still_give_data() -> None:
    lists = lists_of({"\ud800half": [plain(["a"])], "日本語": [plain(["a"])]}, {"q0": {"a": 1}}, 1)
    lists.texts[0] = "\x00\x1b[31mred 日本語"
    report = report_of(configuration("\ud800half", measures_like(0.3)), configuration("日本語", measures_like(0.3)))
    data = data_of(render_page(report, lists))
    assert data["configurations"] == ["\ufffdhalf", "日本語"]
    assert data["texts"] == ["\ufffd\ufffd[31mred 日本語"]


def test_without_lists_or_with_one_configuration_there_is_no_explorer(ran: BenchmarkRun) -> None:
    assert 'id="why"' not in render_page(usual_report())
    assert "ExplorerData" not in Page(render_page(usual_report())).texts("script")[-1]
    lists = lists_of({"only": [plain(["a"])]}, {"q0": {"a": 1}}, 1)
    assert "explorer-data" not in render_page(report_of(configuration("only", measures_like(0.3))), lists)
    assert "explorer-data" in render_page(ran.report, ran.lists)


def test_the_page_is_written_with_its_lists(ran: BenchmarkRun, tmp_path: Path) -> None:
    write_page(ran.report, tmp_path / "report.html", ran.lists, ran.per_query)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == render_page(ran.report, ran.lists, ran.per_query)
