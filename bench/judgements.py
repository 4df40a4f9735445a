"""``python -m bench.judgements DATA [REPETITIONS]`` writes ``bench/JUDGEMENTS.md``: decisions where grades are known."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from bench.common import Data
from bench.writing import page, table
from nlp_retrieval import BeirLoader, Bm25Retriever, Gold, HoverLoader, Query, SearchableItem, Searcher
from nlp_retrieval.evaluation.resampling import family_numbers
from nlp_retrieval.judging.pool import DESIGNS, JudgingPool, choose, pair_weights
from nlp_retrieval.judging.sequences import confidence_sequence, values_by_family
from nlp_retrieval.text.titles import normalize_title

_PAGE, _TEXT = Path(__file__).parent / "JUDGEMENTS.md", Path(__file__).parent / "judgements_page.md"
_MEASURES = ("precision@10", "recall@10", "ndcg@10", "mrr@10")
_NAMES = {"scifact": "SciFact", "hover": "HoVer", "cat": "Climate Action Tracker", "musique": "MuSiQue"}
_BASELINE, _FAVOURED, _DEPTH = "bm25", "RM3", 10
_SYSTEMS = {
    _BASELINE: Bm25Retriever(),
    "words as they are": Bm25Retriever(stemmer="none"),
    "k1 2, b 0.9": Bm25Retriever(k1=2.0, b=0.9),
    _FAVOURED: Bm25Retriever(feedback="rm3"),
    "titles": Bm25Retriever(),
    "first 25 words": Bm25Retriever(),
}
"""The last two search only a part of each passage."""

Numbers = NDArray[np.int64]


def _read(data: Data, name: str) -> tuple[list[SearchableItem], list[Query], list[Gold]]:
    if name == "hover":
        loader = HoverLoader(data.claims)
        return BeirLoader(data.corpus).load(), loader.queries(), loader.gold()
    beir = BeirLoader(data.root / {"cat": "policy/cat"}.get(name, name))
    return beir.load(), beir.queries(), beir.gold()


def _world(data: Data, name: str) -> tuple[JudgingPool, NDArray[np.float64]]:
    """Return what the six systems find for all questions of a collection, nothing judged, and the gold of each pair, 0 or 1."""
    items, queries, gold = _read(data, name)
    relevant = {one.query_id: one for one in gold}
    queries = [query for query in queries if query.query_id in relevant]
    parts = {
        "titles": [SearchableItem(item_id=item.item_id, content=item.title or " ") for item in items],
        "first 25 words": [SearchableItem(item_id=item.item_id, content=" ".join(item.content.split()[:25])) for item in items],
    }
    found = {}
    for place, (system, retriever) in enumerate(_SYSTEMS.items()):
        searcher = Searcher([retriever])
        searcher.index(parts.get(system, items), data.work / f"judgements-{name}" / str(place))
        results = searcher.search([query.text for query in queries], _DEPTH)
        found[system] = [[hit.item.item_id for hit in hits] for hits in results]
    numbers: dict[tuple[int, str], int] = {}
    for query in range(len(queries)):
        for lists in found.values():
            for item_id in lists[query]:
                numbers.setdefault((query, item_id), len(numbers))
    by_id = {item.item_id: item for item in items}
    grades = np.array([_is_relevant(by_id[item_id], relevant[queries[query].query_id]) for query, item_id in numbers], float)
    systems = {
        system: [np.array([numbers[query, item_id] for item_id in own], np.int64) for query, own in enumerate(lists)]
        for system, lists in found.items()
    }
    families = [query.family or query.query_id for query in queries]
    return _pool(families, systems, np.array([query for query, _ in numbers])), grades


def _is_relevant(item: SearchableItem, gold: Gold) -> bool:
    if gold.by == "title":
        return normalize_title(item.title) in {normalize_title(title) for title, grade in gold.relevance.items() if grade > 0}
    return gold.relevance.get(item.item_id, 0) > 0


def _pool(families: list[str], systems: dict[str, list[Numbers]], pair_query: Numbers) -> JudgingPool:
    unknown = np.full(len(pair_query), np.nan)
    return JudgingPool(
        query_ids=[str(number) for number in range(len(families))],
        families=list(families),
        systems=systems,
        pair_query=pair_query,
        item_ids=[""] * len(pair_query),
        chosen=np.ones(len(pair_query), bool),
        drawn=np.ones(len(families), bool),
        grades=unknown,
        model=unknown,
    )


def _drawn(pool: JudgingPool, chosen: Numbers) -> tuple[JudgingPool, Numbers]:
    """Return the pool of families, of which each may be there several times, and the numbers of its pairs in the whole."""
    numbers = family_numbers(pool.families)
    place = np.searchsorted(pool.pair_query, np.arange(len(pool.query_ids) + 1))
    queries = [np.flatnonzero(numbers == family) for family in chosen.tolist()]
    families = [str(number) for number, own in enumerate(queries) for _ in own]
    in_all = np.concatenate(queries)
    sizes = np.diff(place)[in_all]
    shift = np.concatenate([[0], np.cumsum(sizes)[:-1]]) - place[in_all]
    systems = {
        name: [lists[query] + by for query, by in zip(in_all.tolist(), shift.tolist(), strict=True)]
        for name, lists in pool.systems.items()
    }
    pairs = np.concatenate([np.arange(place[query], place[query + 1]) for query in in_all.tolist()])
    return _pool(families, systems, np.repeat(np.arange(len(in_all)), sizes)), pairs


def _missed(
    pool: JudgingPool, gold: NDArray[np.float64], measure: str, wrong: float, repetitions: int, families: int = 200
) -> float:
    """Return how often somebody who looks after every family ever sees an interval that misses the truth.

    The truth is the mean over the collection, as the same people would judge it; the worst difference to the baseline counts.
    """
    draw = np.random.default_rng(7)
    pool = replace(pool, grades=np.abs(gold - (draw.random(len(gold)) < wrong)))
    missed = []
    for system in pool.systems:
        if system == _BASELINE:
            continue
        values, low, high = values_by_family(pool, measure, system, _BASELINE)
        drawn = draw.integers(0, len(values), (repetitions, families))
        ends = [confidence_sequence(values[own], (low, high)) if low < high else np.zeros((1, 2)) for own in drawn]
        truth = values.mean()
        missed.append(np.mean([((each[:, 0] > truth + 1e-9) | (each[:, 1] < truth - 1e-9)).any() for each in ends]))
    return float(max(missed))


def _until_decided(
    pool: JudgingPool, gold: NDArray[np.float64], difference: float, repetitions: int, most: int = 400
) -> dict[str, float]:
    """Return by design how many pairs people judged (median) until a true difference in precision@10 was decided.

    Pairs that only the other system finds are called relevant at random until both differ by ``difference`` on average. One
    that is not decided after the most families counts as all their pairs.
    """
    draw = np.random.default_rng(7)
    n_families = int(family_numbers(pool.families).max()) + 1
    found: dict[str, list[float]] = {design: [] for design in DESIGNS}
    for repetition in range(repetitions):
        own, pairs = _drawn(pool, draw.integers(0, n_families, most))
        said = gold[pairs].copy()
        one, other = (pair_weights(own, "precision@10", name) > 0 for name in (_FAVOURED, _BASELINE))
        only, gain = np.flatnonzero(one & ~other), difference * 10 * len(own.query_ids)
        have = said[only].sum() - said[other & ~one].sum()
        free = only[said[only] == 0]
        said[draw.permutation(free)[: max(0, round(gain - have))]] = 1
        families = family_numbers(own.families)
        for design in DESIGNS:
            chosen = choose(own, design, None, repetition, "precision@10", [(_FAVOURED, _BASELINE)]).chosen
            judged = replace(own, chosen=chosen, grades=np.where(chosen, said, np.nan))
            values, low, high = values_by_family(judged, "precision@10", _FAVOURED, _BASELINE)
            (clear,) = np.nonzero(confidence_sequence(values, (low, high))[:, 0] > 0)
            until = int(clear[0]) + 1 if len(clear) else most
            found[design].append(float(chosen[families[own.pair_query] < until].sum()))
    return {design: median(counts) for design, counts in found.items()}


def main(root: str, repetitions: int = 200) -> None:
    """Simulate, and write the page."""
    data, rows = Data.of(root), {}
    for name, shown in _NAMES.items():
        world = _world(data, name)
        missed = [max(_missed(*world, measure, wrong, repetitions) for measure in _MEASURES) for wrong in (0.0, 0.05)]
        until = _until_decided(*world, 0.05, max(1, repetitions // 4))
        every, few = until["depth-k"], until["decisive"]
        rows[shown] = [*(f"{share:.3f}" for share in missed), f"{every:,.0f}", f"{few:,.0f}", f"{few / every:.2f}"]
        print(shown, rows[shown], flush=True)
    heads = ["collection", "missed", "missed, people err", "depth-k", "decisive", "ratio"]
    _PAGE.write_text(page(_TEXT.read_text("utf-8"), stopping=table(heads, rows), repetitions=repetitions), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
