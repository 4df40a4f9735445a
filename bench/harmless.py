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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.common import Data
from bench.multihop.fitting import ShuffledGraph
from bench.sweeps import Figures
from bench.writing import page, table
from nlp_retrieval import (
    BeirLoader,
    Benchmarker,
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

_K = 10
_SEED_HITS = 50
_MOST = 500
_SEED = 20261124
_MEASURES = ("recall@10", "ndcg@10")
_FUSION, _LINKED, _SHUFFLED = "RRF of its seeds", "link graph", "links shuffled"


@dataclass(frozen=True)
class Collection:
    """Passages and judged questions, those of the half that nothing was chosen on.

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
        queries = [queries[number] for number in kept.tolist() if not _is_chosen_on(queries[number])]
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


def _is_chosen_on(query: Query) -> bool:
    return bool(zlib.crc32((query.family or query.query_id).encode()) % 2)


def figures_of(collection: Collection, seeds: list[BaseRetriever]) -> Figures:
    """Search a collection with each seed, their fusion, the link graph over them, and its control."""
    searchers = {seed.name: Searcher([seed]) for seed in seeds}
    searchers |= {
        _FUSION: Searcher(list(seeds), fusion="rrf", depth=_SEED_HITS),
        _LINKED: Searcher([LinkGraphRetriever(list(seeds))]),
        _SHUFFLED: Searcher([ShuffledGraph(list(seeds))]),
    }
    run = Benchmarker(
        searchers, collection.corpus, collection.queries, collection.gold, [_K], index_path=collection.index, latency_queries=1
    ).run()
    return Figures(run.per_query, run.families, run.families)


def table_of(judged: dict[str, Figures]) -> str:
    """A table: the seeds, their fusion, the link graph, and its distances to the fusion and to the control."""
    rows = {}
    for name, figures in judged.items():
        best = max(set(figures.values) - {_FUSION, _LINKED, _SHUFFLED}, key=lambda seed: figures.mean(seed, "ndcg@10"))
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
    """Measure the collections, with an encoder those that are named, or all, and write the page."""
    warnings.simplefilter("ignore")
    data = Data.of(arguments[0])
    values: dict[str, str] = {}
    dense = FaissRetriever(SentenceTransformerEncoder(arguments[1]))
    for key, seeds in (("lexical", [Bm25Retriever()]), ("both", [Bm25Retriever(), dense])):
        judged = {}
        for collection in collections(data):
            if key == "lexical" or not arguments[2:] or collection.name.startswith(tuple(arguments[2:])):
                judged[collection.name] = figures_of(collection, list(seeds))
                print(f"{key}\n{table_of(judged)}", flush=True)
        values[f"{key}_table"] = table_of(judged)
    text = (Path(__file__).parent / "harmless_page.md").read_text("utf-8")
    values |= {"named": "".join(f" {name}" for name in arguments[2:]), "model": Path(arguments[1]).name, "most": f"{_MOST}"}
    (Path(__file__).parent / "HARMLESS.md").write_text(page(text, **values), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
