"""A benchmark as large as the report's page must hold: 30 configurations, 1,000 queries, 21 hits and 6 signals each."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from nlp_retrieval import Gold
from nlp_retrieval.benchmarks.cost import Cost
from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult, masks_of
from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.evaluation.comparison import compare_by_group, compare_pairs, intervals_by_group
from nlp_retrieval.evaluation.ranking_difference import measured
from nlp_retrieval.evaluation.rankings import Listing, RunLists
from nlp_retrieval.reports.page.explorer import rounded

CONFIGURATIONS, QUERIES, HITS, ITEMS = 30, 1000, 21, 32_000
K_VALUES = [5, 10, 21]
WORDS = (
    "river castle novel film director painter island queen album singer orbit harbour treaty bishop railway canal opera "
    "senator glacier regiment monastery sculptor airline comet province dynasty lighthouse composer tournament reactor"
).split()

Columns = tuple[Rows, Scores, dict[str, Scores]]


def sweep_lists() -> RunLists:
    """What a sweep gives: sets of two of five retrievers, each fused and reranked in four ways."""
    draw = np.random.default_rng(4)
    pools = np.stack([draw.choice(ITEMS, 100, replace=False) for _ in range(QUERIES)])
    engines = [draw.gumbel(0, 1, pools.shape) * 3 + 12 for _ in range(5)]
    places = [np.argsort(np.argsort(-scores)) + 1 for scores in engines]
    overlap = draw.uniform(0, 1, pools.shape)
    listings = {}
    for number in range(CONFIGURATIONS):
        one, other = number // 4 % 5, (number // 4 + 1 + number // 20) % 5
        weight = 1 + number % 2
        fused = weight / (60 + places[one]) + 1 / (60 + places[other])
        signals: dict[str, Scores] = {"fusion.score": fused}
        for engine in (one, other):
            signals |= {f"engine-{engine}.score": engines[engine], f"engine-{engine}.rank": places[engine].astype(float)}
        score = fused
        if number % 4 >= 2:
            score = fused + overlap / 100
            signals["overlap.score"] = overlap
        order = np.argsort(-score)[:, :HITS]
        seen = {key: np.take_along_axis(column, order, 1).ravel() for key, column in signals.items()}
        missing = draw.uniform(0, 1, len(seen["fusion.score"])) < 0.1
        seen[f"engine-{other}.score"][missing] = np.nan
        seen[f"engine-{other}.rank"][missing] = np.nan
        found = np.take_along_axis(pools, order, 1).ravel(), np.take_along_axis(score, order, 1).ravel(), seen
        listings[f"engines {one} and {other}, variant {number % 4}"] = found
    gold = np.stack([draw.choice(row[:40], 2, replace=False) for row in pools]).ravel()
    shown = np.unique(np.concatenate([gold, *(items for items, _, _ in listings.values())]))
    texts = {f"doc-{item:05}": _text(draw) for item in shown.tolist()}
    return replace(_run(listings, gold, draw), passages=texts)


def random_lists() -> RunLists:
    """Lists with nothing in common, which no real sweep comes near."""
    draw = np.random.default_rng(5)
    listings = {}
    for number in range(CONFIGURATIONS):
        items = np.concatenate([draw.choice(ITEMS, HITS, replace=False) for _ in range(QUERIES)])
        scores = -np.sort(-draw.uniform(0, 30, (QUERIES, HITS)), axis=1).ravel()
        listings[f"random {number}"] = (
            items, scores, {f"signal-{place}.score": draw.uniform(0, 30, QUERIES * HITS) for place in range(6)},
        )  # fmt: skip
    return _run(listings, draw.choice(ITEMS, 2 * QUERIES), draw)


def _text(draw: np.random.Generator) -> str:
    """About as long as the first paragraph of an article: 40 to 110 words, of which one in five is its own."""
    words = [
        str(draw.choice(WORDS)) if draw.random() < 0.8 else f"{draw.integers(10**7):x}" for _ in range(draw.integers(40, 110))
    ]
    return " ".join(words)


def _run(found: dict[str, Columns], gold: Rows, draw: np.random.Generator) -> RunLists:
    offsets = np.arange(QUERIES + 1) * HITS
    nobody: list[str | None] = [None] * QUERIES
    listings = {name: Listing(offsets, items, scores, signals) for name, (items, scores, signals) in found.items()}
    ids = [f"doc-{item:05}" for item in range(ITEMS)]
    judged = [
        Gold(query_id=f"q{query}", relevance=dict.fromkeys([ids[item] for item in pair], 1))
        for query, pair in enumerate(gold.reshape(-1, 2).tolist())
    ]
    return RunLists(
        query_ids=[f"q{query}" for query in range(QUERIES)],
        texts=[f"Which {' '.join(draw.choice(WORDS, 16))}?" for _ in range(QUERIES)],
        families=nobody,
        groups=[f"hops={2 + query % 3}" for query in range(QUERIES)],
        item_ids=ids,
        titles=[" ".join(draw.choice(WORDS, 3)).title() + f" {item}" for item in range(ITEMS)],
        gold=judged,
        gold_offsets=np.arange(QUERIES + 1) * 2,
        gold_items=gold,
        gold_grades=np.ones(2 * QUERIES, np.int64),
        listings=listings,
    )


def judged_report(lists: RunLists) -> tuple[BenchmarkReport, dict[str, dict[str, Scores]]]:
    """The report of these lists, with made-up costs, and the measures of every query."""
    values = measured(lists, lists.listings, K_VALUES)
    masks = masks_of(lists.groups)
    intervals = intervals_by_group(values, lists.families, masks, 0)
    begun = time.perf_counter()
    pairwise = compare_pairs(values, "recall@21", lists.families, 0)
    print(f"every two of {len(values)} configurations compared in {time.perf_counter() - begun:.2f} s")
    baseline = next(iter(values))
    report = BenchmarkReport(
        configurations=[
            ConfigurationResult(
                name=name,
                config={"name": "searcher"},
                fingerprint=f"f{place}",
                measures={key: float(column.mean()) for key, column in one.items()},
                groups={g: {key: float(column[mask].mean()) for key, column in one.items()} for g, mask in masks.items()},
                cost=Cost(10, 10**6, 10**8, {"retrieve": 3.0 + place, "items": 1.0}, 4.0 + place, 9.0 + place, 100, 10**8),
                empty_queries=0,
                intervals=intervals[name],
            )
            for place, (name, one) in enumerate(values.items())
        ],
        baseline=baseline,
        k_values=K_VALUES,
        query_counts={"": QUERIES} | {group: int(mask.sum()) for group, mask in masks.items()},
        n_items=ITEMS,
        manifest={"main": "recall@21"},
        comparisons=compare_by_group(values, baseline, lists.families, masks, 0),
    )
    return replace(report, pairwise=pairwise), values


def cut(lists: RunLists, depth: int) -> RunLists:
    """The lists as the page has them: cut, and rounded."""
    listings = {}
    for name, one in lists.listings.items():
        owner = np.repeat(np.arange(QUERIES), np.diff(one.offsets))
        kept = np.arange(len(owner)) - one.offsets[owner] < depth
        lengths = np.minimum(np.diff(one.offsets), depth)
        listings[name] = Listing(
            np.concatenate([[0], np.cumsum(lengths)]),
            one.items[kept],
            _short(one.scores[kept]),
            {key: _short(column[kept]) for key, column in one.signals.items()},
        )
    return replace(lists, listings=listings)


def _short(values: Scores) -> Scores:
    return np.array([np.nan if value is None else value for value in rounded(values)])
