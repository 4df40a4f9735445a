"""What RM3 changes: ``python -m bench.expansion DATA`` prints nDCG@10 and recall@100 with and without."""

from __future__ import annotations

import sys
import warnings

from bench.common import Data, compared
from nlp_retrieval import BeirLoader, Bm25Retriever, PyseriniRetriever, Searcher


def main(arguments: list[str]) -> int:
    """Compare on SciFact and on HotpotQA's questions over ``wiki/``."""
    if not arguments:
        print("usage: python -m bench.expansion DATA   (DATA holds scifact/ and wiki/)")
        return 2
    warnings.simplefilter("ignore")
    data = Data.of(arguments[0])
    searchers = {
        "bm25s": Searcher([Bm25Retriever()]),
        "bm25s, rm3": Searcher([Bm25Retriever(feedback="rm3")]),
        "pyserini": Searcher([PyseriniRetriever(document_vectors=True)]),
        "pyserini, rm3": Searcher([PyseriniRetriever(rm3=True)]),
    }
    scifact = BeirLoader(str(data.root / "scifact"))
    hotpotqa = BeirLoader(str(data.root / "wiki" / "hotpotqa"))
    for name, corpus, queries in (
        ("SciFact", scifact, scifact),
        ("HotpotQA", BeirLoader(str(data.corpus)), hotpotqa),
    ):
        run = compared(searchers, corpus, queries, (10, 100), data.work / f"expansion-{name}")
        for result in run.report.configurations:
            shown = ", ".join(f"{key} {result.measures[key]:.4f}" for key in ("ndcg@10", "recall@100"))
            print(f"{name}, {result.name}: {shown}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
