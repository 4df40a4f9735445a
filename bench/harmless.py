"""Whether links do harm where they say nothing: ``python -m bench.harmless DATA MODEL [NAME ...]``, for ``bench/HARMLESS.md``.

The link graph stands beside its own seeds and their reciprocal rank fusion, on collections with links that matter and on
collections without, once over BM25 alone and once over BM25 and an encoder. The control is links dealt out anew. The weight of
the seeds' fusion in the score was chosen on half of the families of all collections together, and all are judged on the others.
Encoding takes most of the time: NAMEs choose the collections that are also searched with the encoder ("policy", "MuSiQue").
"""

from __future__ import annotations

import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.common import Data
from bench.multihop.fitting import shuffle_links
from bench.sweeps import Figures
from bench.writing import page, table
from nlp_retrieval import (
    BeirLoader,
    Bm25Retriever,
    FaissRetriever,
    Gold,
    HoverLoader,
    LinkGraphRetriever,
    Query,
    Searcher,
    SentenceTransformerEncoder,
)
from nlp_retrieval.core import BaseLoader, BaseQueryLoader, BaseRetriever
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.evaluation.evaluator import RetrievalEvaluator
from nlp_retrieval.retrievers.link_graph.retriever import GraphCandidates
from nlp_retrieval.retrievers.link_graph.walk import DEFAULT_WEIGHTS

_K = 10
_REACHED = 200
_MOST = 500
_SEED = 20261124
_MEASURES = ("recall@10", "ndcg@10")
_FUSION, _LINKED, _SHUFFLED = "RRF of its seeds", "link graph", "links shuffled"


@dataclass(frozen=True)
class Collection:
    """Passages and judged questions.

    Args:
        name: as it is shown.
        corpus: the passages.
        index: the folder of their index.
        queries: the questions, with their families.
        gold: one for each.
    """

    name: str
    corpus: BaseLoader
    index: Path
    queries: list[Query]
    gold: list[Gold]

    @classmethod
    def of(cls, name: str, corpus: BaseLoader, index: Path, judged: BaseQueryLoader, **wanted: str) -> Collection:
        """Take questions of a loader, those with some metadata (``variant="named"``)."""
        gold = {one.query_id: one for one in judged.gold()}
        queries = [query for query in judged.queries() if wanted.items() <= query.metadata.items()]
        kept = np.sort(np.random.default_rng(_SEED).permutation(len(queries))[:_MOST])
        queries = [queries[number] for number in kept.tolist()]
        return cls(name, corpus, index, queries, [gold[query.query_id] for query in queries])


def collections(data: Data) -> Iterator[Collection]:
    """Yield the collections: policies with and without the country's name, and those of one hop and of several."""
    for name, variant, shown in (("cat", "named", ""), ("cat", "filter", ", country not named"), ("ndc", "named", "")):
        loader = BeirLoader(data.root / "policy" / name)
        yield Collection.of(f"policy {name}{shown}", loader, data.work / f"harmless-policy-{name}", loader, variant=variant)
    for name in ("SciFact", "MuSiQue"):
        loader = BeirLoader(data.root / name.lower())
        yield Collection.of(name, loader, data.work / f"harmless-{name.lower()}", loader)
    wiki, questions, index = BeirLoader(data.corpus), BeirLoader(data.root / "wiki" / "hotpotqa"), data.work / "wiki-index"
    yield Collection.of("HotpotQA", wiki, index, questions)
    for hops in (2, 3):
        yield Collection.of(f"HoVer, {hops} hops", wiki, index, HoverLoader(data.claims, hops=[hops]))


class Judged:
    """A link graph over a collection, its seeds and its control, query by query.

    Args:
        collection: what is searched.
        seeds: of the link graph.
    """

    def __init__(self, collection: Collection, seeds: list[BaseRetriever]) -> None:
        retriever = LinkGraphRetriever(seeds)
        Searcher([retriever]).index(collection.corpus, collection.index)
        generation = open_generation(collection.index)
        self.opened = retriever.open(generation)
        titles = generation.items.titles()
        self._evaluator = RetrievalEvaluator(collection.gold, generation.items.ids(), titles if any(titles) else None, [5, _K])
        self._queries = [query.text for query in collection.queries]
        pools = self._pools()
        values = {label: self._evaluated(pools, partial(_of_seed, label=label)) for label in pools[0].seeds}
        values[_FUSION] = self._evaluated(pools, _fused)
        values[_LINKED] = self._evaluated(pools, _ranked)
        shuffle_links(self.opened)
        values[_SHUFFLED] = self._evaluated(self._pools(), _ranked)
        families = [query.family for query in collection.queries]
        self.figures = Figures(values, families, [_half(query) for query in collection.queries]).group("judged")

    def _pools(self) -> list[GraphCandidates]:
        asked = list(dict.fromkeys(self._queries))
        found = dict(zip(asked, self.opened.pools(asked, at_least=_REACHED), strict=True))
        return [found[query] for query in self._queries]

    def _evaluated(
        self, pools: list[GraphCandidates], ranked: Callable[[GraphCandidates], NDArray[np.int64]]
    ) -> dict[str, NDArray[np.float64]]:
        rows = np.full((len(pools), _K), -1, np.int64)
        for number, pool in enumerate(pools):
            found = ranked(pool)[:_K]
            rows[number, : len(found)] = found
        return self._evaluator.evaluate(rows).per_query


def _half(query: Query) -> str:
    return "chosen on" if zlib.crc32((query.family or query.query_id).encode()) % 2 else "judged"


def _of_seed(pool: GraphCandidates, label: str) -> NDArray[np.int64]:
    found = np.flatnonzero(~np.isnan(pool.seeds[label]))
    order: NDArray[np.int64] = found[np.lexsort((pool.rows[found], -pool.seeds[label][found]))]
    return pool.rows[order]


def _fused(pool: GraphCandidates) -> NDArray[np.int64]:
    scores = {int(row): 0.0 for row in pool.rows}
    for label in pool.seeds:
        for rank, row in enumerate(_of_seed(pool, label).tolist(), 1):
            scores[row] += 1 / (60 + rank)
    return np.array(sorted(scores, key=lambda row: (-scores[row], row)), np.int64)


def _ranked(pool: GraphCandidates) -> NDArray[np.int64]:
    return pool.ranked(DEFAULT_WEIGHTS, _K)[0]


def rows_of(names: list[str], judged: list[Judged]) -> str:
    """A table: the seeds, their fusion, the link graph, and its distances to the fusion and to the control."""
    rows = {}
    for name, one in zip(names, judged, strict=True):
        figures = one.figures
        best = max(one.opened.seeds, key=lambda label: figures.mean(label, "ndcg@10"))
        for measure in _MEASURES:
            rows[f"{name}, {measure}"] = [
                f"{figures.mean(best, measure):.3f} ({best})",
                f"{figures.mean(_FUSION, measure):.3f}",
                f"{figures.mean(_LINKED, measure):.3f}",
                figures.gain(_LINKED, _FUSION, measure),
                figures.gain(_LINKED, _SHUFFLED, measure),
            ]
    return table(["", "best seed", _FUSION, _LINKED, f"minus {_FUSION}", f"minus {_SHUFFLED}"], rows)


def main(arguments: list[str]) -> None:
    """Measure the collections that are named, or all, and write the page."""
    warnings.simplefilter("ignore")
    data = Data.of(arguments[0])
    values: dict[str, str] = {}
    dense = FaissRetriever(SentenceTransformerEncoder(arguments[1]))
    for key, seeds in (("lexical", [Bm25Retriever()]), ("both", [Bm25Retriever(), dense])):
        names, judged = [], []
        for collection in collections(data):
            if key == "both" and arguments[2:] and not collection.name.startswith(tuple(arguments[2:])):
                continue
            names.append(collection.name)
            judged.append(Judged(collection, list(seeds)))
            print(f"{key}\n{rows_of(names[-1:], judged[-1:])}", flush=True)
        values[f"{key}_table"] = rows_of(names, judged)
    text = (Path(__file__).parent / "harmless_page.md").read_text("utf-8")
    values |= {"named": "".join(f" {name}" for name in arguments[2:]), "model": Path(arguments[1]).name, "most": f"{_MOST}"}
    (Path(__file__).parent / "HARMLESS.md").write_text(page(text, **values), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
