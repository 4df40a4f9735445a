"""Whether links survive a crowd: ``python -m bench.multihop.crowd DATA [NAMING ...]`` writes ``bench/CROWD.md``.

The weights of the link graph are fitted to HotpotQA questions over some haystacks and judged over another, and each question
by weights that neither it nor a claim of HoVer had a part in. So a row says what a user has whose collection nobody has seen.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.common import Data
from bench.haystack import COPIES, Naming, haystack_index, wiki_index
from bench.multihop.fitting import ShuffledGraph
from bench.writing import page, shown, table
from nlp_retrieval import BeirLoader, Bm25Retriever, FaissRetriever, HoverLoader, LinkGraphRetriever
from nlp_retrieval.core import BaseQueryLoader
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.core.models import Gold, Query
from nlp_retrieval.encoders.sentence_transformer import SentenceTransformerEncoder
from nlp_retrieval.evaluation.gold import gold_of, relevant_documents
from nlp_retrieval.evaluation.tuning import gold_among
from nlp_retrieval.retrievers.link_graph.retriever import GraphCandidates
from nlp_retrieval.retrievers.link_graph.tuning import fit_weights
from nlp_retrieval.retrievers.link_graph.walk import DEFAULT_WEIGHTS

_FOLDS = 5
_AT = 5
_START = dict.fromkeys(DEFAULT_WEIGHTS, 0.0) | {"pagerank": 1.0}
_HIDDEN: dict[str, tuple[str, ...]] = {
    "without what a passage says of its own name": ("named",),
    "without the direction of mentions": ("chain_along", "chain_against"),
    "without titles": ("titles", "title_coverage", "named"),
    "without chains and complement": ("chain", "chain_along", "chain_against", "complement"),
}


@dataclass(frozen=True)
class Judged:
    """A set of queries over one haystack.

    Args:
        queries: as they were asked.
        pools: the candidates of each.
        golden: which of them are gold.
        n_gold: how many gold documents each query has.
    """

    queries: list[Query]
    pools: list[GraphCandidates]
    golden: list[NDArray[np.bool_]]
    n_gold: list[int]

    def hidden(self, kinds: Sequence[str]) -> Judged:
        """The same without some kinds of evidence."""
        pools = [
            pool._replace(evidence={kind: column * (kind not in kinds) for kind, column in pool.evidence.items()})
            for pool in self.pools
        ]
        return replace(self, pools=pools)

    def recalls(self, weights: Sequence[dict[str, float]]) -> NDArray[np.float64]:
        """Which share of the gold of each query stands among the first, by the weights of each."""
        recalls = []
        for pool, golden, n_gold, chosen in zip(self.pools, self.golden, self.n_gold, weights, strict=True):
            scores = sum(chosen[kind] * column for kind, column in pool.evidence.items())
            first = np.lexsort((pool.rows[: len(golden)], -np.asarray(scores)))[:_AT]
            recalls.append(min(1.0, float(golden[first].sum()) / n_gold))
        return np.array(recalls)

    @property
    def reached(self) -> float:
        """Which share of all gold is among the candidates."""
        return sum(int(golden.sum()) for golden in self.golden) / sum(self.n_gold)


Asked = tuple[list[Query], list[Gold]]
"""Queries and the gold of each."""


def asked_of(loader: BaseQueryLoader, left_out: Collection[str | None] = ()) -> Asked:
    """Read queries and their gold, without those that claims were written from."""
    queries, gold = [query for query in loader.queries() if query.query_id not in left_out], loader.gold()
    return queries, gold_of(queries, gold)


class Crowd:
    """The queries over one haystack, with links and with shuffled ones."""

    def __init__(self, index: Path, dense: FaissRetriever, sets: dict[str, Asked]) -> None:
        begin = time.perf_counter()
        generation = open_generation(index)
        self.opened = LinkGraphRetriever([Bm25Retriever(), dense]).open(generation)
        self.ids, self.titles = generation.items.ids(), generation.items.titles()
        self.n_links = self.opened._graph.graph.n_links
        self.sets = {name: self._judged(asked) for name, asked in sets.items()}
        self.seconds = (time.perf_counter() - begin) / sum(len(one.queries) for one in self.sets.values())
        self.opened = ShuffledGraph([Bm25Retriever(), dense]).open(generation)
        self.shuffled = {name: self._judged(asked) for name, asked in sets.items()}

    def _judged(self, asked: Asked) -> Judged:
        queries, gold = asked
        pools = list(self.opened.pools([query.text for query in queries], at_least=_AT))
        places = [pool.rows[: len(pool.evidence["pagerank"])] for pool in pools]
        golden, _ = gold_among(gold, self.ids, self.titles, places)
        return Judged(queries, pools, golden, [len(one) for one in relevant_documents(gold)])


def folds(n_queries: int) -> NDArray[np.int64]:
    """The fold of each question; each is a family of its own."""
    return np.random.default_rng(0).permutation(np.arange(n_queries) % _FOLDS)


def fitted(judged: Sequence[Judged], chosen: NDArray[np.bool_]) -> dict[str, float]:
    """Weights fitted to some questions over several haystacks."""
    places = np.flatnonzero(chosen).tolist()
    pools = [one.pools[place] for one in judged for place in places]
    return fit_weights(pools, [one.golden[place] for one in judged for place in places], _START)


def row(train: Sequence[dict[str, Judged]], test: dict[str, Judged]) -> list[str]:
    """The cells of one way of fitting: HotpotQA out of fold, and HoVer by the weights of all questions."""
    fold = folds(len(test["hotpotqa"].queries))
    questions = [one["hotpotqa"] for one in train]
    by_fold = [fitted(questions, fold != number) for number in range(_FOLDS)]
    cells = [_cell(test["hotpotqa"], test["hotpotqa"].recalls([by_fold[number] for number in fold.tolist()]))]
    weights = fitted(questions, fold >= 0)
    for name in ("hover2", "hover3"):
        cells.append(_cell(test[name], (test[name].recalls([weights] * len(test[name].queries)) >= 1).astype(float)))
    return cells


def _cell(judged: Judged, values: NDArray[np.float64]) -> str:
    return shown(values, [query.family for query in judged.queries])


def report(crowds: dict[str, Crowd]) -> str:
    """The whole page."""
    heads = ["HotpotQA, recall@5", "HoVer, 2 hops, perfect recall@5", "HoVer, 3 hops, perfect recall@5"]
    rows = {}
    for name, crowd in crowds.items():
        others = [other.sets for key, other in crowds.items() if key != name]
        rows[f"**{name}**, fitted to the other haystacks"] = row(others, crowd.sets)
        if name != "1x":
            rows[f"{name}, fitted at 1x alone"] = row([crowds["1x"].sets], crowd.sets)
        rows[f"{name}, fitted to it as well"] = row([*others, crowd.sets], crowd.sets)
        moved = [other.shuffled for key, other in crowds.items() if key != name]
        rows[f"{name}, links shuffled, fitted so"] = row(moved, crowd.shuffled)
    parts = {}
    for what, kinds in _HIDDEN.items():
        blind = {key: {part: one.hidden(kinds) for part, one in crowd.sets.items()} for key, crowd in crowds.items()}
        for name in crowds:
            others = [one for key, one in blind.items() if key != name]
            parts[f"{name}, {what}"] = row(others, blind[name])
    questions = [crowd.sets["hotpotqa"] for crowd in crowds.values()]
    real, *crowded = questions
    weights = fitted([*[real] * len(crowded), *crowded], np.ones(len(real.queries), bool))
    facts = {
        name: [
            f"{len(crowd.ids):,}",
            *(f"{count:,}" for count in crowd.n_links.values()),
            *(f"{crowd.sets[key].reached:.1%}" for key in ("hotpotqa", "hover3")),
            f"{crowd.seconds * 1000:.0f}",
        ]
        for name, crowd in crowds.items()
    }
    graph_heads = ["", "passages", *(f"links, {kind}" for kind in next(iter(crowds.values())).n_links)]
    graph_heads += ["gold in the pool, HotpotQA", "gold in the pool, HoVer 3 hops", "ms a query with its seeds"]
    return page(
        (Path(__file__).parent / "crowd.md").read_text("utf-8"),
        copies=COPIES,
        n_questions=f"{len(questions[0].queries):,}",
        quality=table(["", *heads], rows),
        parts=table(["", *heads], parts),
        graphs=table(graph_heads, facts),
        weights=", ".join(f"{kind} {weight:.2f}" for kind, weight in weights.items()),
    )


def main(arguments: list[str]) -> int:
    """Measure and write."""
    if not arguments or not (data := Data.of(arguments[0])).corpus.is_file():
        print("usage: python -m bench.multihop.crowd DATA [own] [shared] [said]   (DATA holds wiki/)")
        return 2
    warnings.simplefilter("ignore")
    namings: list[Naming] = [one for one in ("own", "shared", "said") if one in arguments[1:] or not arguments[1:]]
    encoder, sources = SentenceTransformerEncoder(), {claim.family for claim in HoverLoader(data.claims).queries()}
    sets = {"hotpotqa": asked_of(BeirLoader(str(data.root / "wiki" / "hotpotqa")), sources)}
    sets |= {f"hover{hops}": asked_of(HoverLoader(data.claims, hops=[hops])) for hops in (2, 3)}
    crowds = {"1x": Crowd(wiki_index(data, encoder), FaissRetriever(encoder), sets)}
    for naming in namings:
        crowds[f"10x, {naming} names"] = Crowd(*haystack_index(data, encoder, naming), sets)
        print(naming, flush=True)
    (Path(__file__).parents[1] / "CROWD.md").write_text(report(crowds))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
