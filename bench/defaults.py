"""What defaults bring and cost: ``python -m bench.defaults DATA`` writes ``bench/DEFAULTS.md``.

Sub-queries of the query, found by rules, are merged in each way, beside the query alone; and what ``overlap`` makes of a
ranking, by how it is joined with it. Over BM25, on HoVer, HotpotQA, MuSiQue and SciFact.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from bench.common import Data, compared
from bench.sweeps import Figures
from bench.writing import page, table
from nlp_retrieval import BeirLoader, Bm25Retriever, ClauseSplit, EntityPhrases, HoverLoader, OverlapReranker, Searcher
from nlp_retrieval.core import BaseLoader, BaseQueryLoader
from nlp_retrieval.core.search.joining import MergeRule

_PAGE = Path(__file__).parent / "DEFAULTS.md"
_ALONE = "the query alone"
_PROCESSORS = {
    "phrases": EntityPhrases(),
    "clauses": ClauseSplit(),
    "phrases, without the query": EntityPhrases(keep_query=False),
}
_MEASURES = ("recall@5", "recall@10", "ndcg@10")
_TEXT = """# Defaults

What the defaults of sub-queries and of the reranker `overlap` bring, against the query alone over BM25.

- Written by `python -m bench.defaults DATA` on $date.
- $machine.
- Differences to "the query alone", with 95% intervals over families. **Bold**: the interval is without 0.

`phrases` are those of `EntityPhrases()`, `clauses` those of `ClauseSplit()`; both search for the query too, first, but where
the table says otherwise. 100 candidates of each sub-query are merged. `overlap` reorders the first 100 candidates of the query.
The rule `alternate` (every other place to the query) was made after a look at these four collections, so its rows are in
sample; it has no parameter.

$tables
"""


def collections(data: Data) -> Iterator[tuple[str, BaseLoader, BaseQueryLoader]]:
    """Yield the name, the passages and the queries of each collection."""
    yield "HoVer", BeirLoader(data.corpus), HoverLoader(data.claims)
    yield "HotpotQA", BeirLoader(data.corpus), BeirLoader(data.root / "wiki" / "hotpotqa")
    for name in ("MuSiQue", "SciFact"):
        yield name, BeirLoader(data.root / name.lower()), BeirLoader(data.root / name.lower())


def searchers() -> dict[str, Searcher]:
    """Return what is compared, the query alone first."""
    made = {_ALONE: Searcher([Bm25Retriever()], depth=100)}
    for name, processor in _PROCESSORS.items():
        for rule in get_args(MergeRule):
            made[f"{name}, {rule}"] = Searcher([Bm25Retriever(merge=rule)], processor=processor, depth=100)
    for blend in ("rank", "score", "replace"):
        made[f"overlap, {blend}"] = Searcher([Bm25Retriever()], reranker=OverlapReranker(blend=blend), depth=100)
    return made


def main() -> int:
    """Measure, and write the page."""
    if len(sys.argv) != 2 or not Data.of(sys.argv[1]).claims.is_file():
        print("usage: python -m bench.defaults DATA   (DATA holds wiki/, musique/ and scifact/)")
        return 2
    warnings.simplefilter("ignore")
    data = Data.of(sys.argv[1])
    tables = []
    for name, corpus, queries in collections(data):
        run = compared(searchers(), corpus, queries, (5, 10, 21), data.work / f"defaults-{name.lower()}")
        families = [query.family for query in queries.queries()]
        figures = Figures(run.per_query, families, [None] * len(families), {})
        alone = [f"{figures.mean(_ALONE, measure):.3f}" for measure in _MEASURES]
        gains = {one: [figures.gain(one, _ALONE, measure) for measure in _MEASURES] for one in figures.values if one != _ALONE}
        tables.append(f"## {name}\n\n" + table([f"{len(families)} queries", *_MEASURES], {_ALONE: alone} | gains))
        print(tables[-1], flush=True)
    _PAGE.write_text(page(_TEXT, tables="\n\n".join(tables)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
